"""Frames of a video file, one after the other, never all in memory. PyAV is imported only here."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synaptune.errors import OptionError
from synaptune.predicting.items import Item

if TYPE_CHECKING:
    from synaptune.data.decode import Decoded
    from synaptune.data.images import Pixels

__all__ = ["frames"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class FrameItem(Item):
    """A frame: `FILE#NUMBER`, counted from 0."""

    name: str
    pixels: Pixels

    def read(self) -> Decoded:
        from synaptune.data.decode import Decoded

        return Decoded(self.pixels, ())


@dataclass(frozen=True)
class BrokenItem(Item):
    """Something that is known to be unreadable, and why."""

    name: str
    reason: str

    def read(self) -> Decoded:
        from synaptune.data.decode import ImageProblemError

        raise ImageProblemError(self.name, self.reason)


def frames(name: str, *, every: int = 1) -> Iterator[Item]:
    """Decode a video; one that breaks off gives the frames before that and an item that says so.

    Args:
        name: the file.
        every: take every n-th frame.
    """
    if every < 1:
        raise OptionError(f"every must be at least 1, not {every}")
    av = _library(name)
    number = -1
    try:
        with av.open(str(Path(name))) as container:
            for number, frame in enumerate(container.decode(video=0)):
                if number % every == 0:
                    yield FrameItem(f"{name}#{number}", frame.to_ndarray(format="rgb24"))
    except (av.FFmpegError, OSError, IndexError) as error:
        log.info("%s breaks off after frame %d: %s", name, number, error)
        yield BrokenItem(f"{name}#{number + 1}", f"video cannot be decoded from here on ({type(error).__name__})")


def _library(name: str) -> Any:
    try:
        return importlib.import_module("av")
    except ModuleNotFoundError as error:
        raise OptionError(
            f"{name} is a video, which needs PyAV: pip install av; or cut it into pictures first "
            "(ffmpeg -i VIDEO frames/%06d.jpg)"
        ) from error

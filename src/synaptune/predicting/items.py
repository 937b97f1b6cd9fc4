"""What is to be predicted, in order: pictures of folders, patterns, lists, and frames of videos.

Names are given back as they were given, in natural order, so that a list can be resumed and compared. A folder is
searched through; what cannot be read is not an error here but a line in the report at the end.
"""

from __future__ import annotations

import glob
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from synaptune.errors import DataError, OptionError

if TYPE_CHECKING:
    from synaptune.data.decode import Decoded

__all__ = ["STDIN", "VIDEO_ENDINGS", "FileItem", "Item", "Items", "find_items"]

STDIN = "-"
VIDEO_ENDINGS = frozenset({".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ts", ".webm", ".wmv"})


class Item(ABC):
    """One picture: a name, and how to get at it."""

    name: str

    @abstractmethod
    def read(self) -> Decoded:
        """Decode it; raises `BadImageError` where that cannot be done."""


@dataclass(frozen=True)
class FileItem(Item):
    """A picture in a file of its own."""

    name: str

    def read(self) -> Decoded:
        from synaptune.data.decode import Blob, decode

        return decode(Blob(Path(self.name)))


class Items:
    """Pictures in order, made when they are asked for.

    Attributes:
        total: how many there are, or None where only the end will tell (a list on stdin, a video).
        folders: how many folders they come from one after the other.
    """

    def __init__(self, parts: Iterable[Iterable[Item]], *, total: int | None, folders: int = 1):
        self.total, self.folders = total, folders
        self._parts = parts

    def __iter__(self) -> Iterator[Item]:
        for part in self._parts:
            yield from part


def find_items(
    sources: Sequence[str], *, stdin: TextIO | None = None, every: int = 1, shuffle: int | None = None
) -> Items:
    """Find what is meant by folders, files, patterns (`**` included), videos, and `-` for a list of them on stdin.

    Args:
        sources: what the user named.
        stdin: where `-` reads from, one name per line.
        every: take every n-th frame of a video.
        shuffle: seed of a random order. Images that come class by class, as a folder per class gives them, mislead
            every method that learns from the batch.

    Raises:
        DataError: a name that is no file, no folder and matches nothing.
    """
    if not sources:
        raise DataError(f"no images were named: give folders, files, patterns, or {STDIN} for a list on stdin")
    if sources.count(STDIN) > 1 or (STDIN in sources and stdin is None):
        raise DataError(f"a list can be read from stdin ({STDIN}) once, where there is one")
    names: list[str] = []
    for source in sources:
        found = [STDIN] if source == STDIN else _files(source)
        if not found:
            raise DataError(f"there is no image in {source}: it is no file, matches nothing, or is an empty folder")
        names += found
    open_ended = [name for name in names if name == STDIN or _is_video(name)]
    if shuffle is not None:
        if open_ended:
            raise OptionError(f"only files can be shuffled, not {open_ended[0]}")
        random.Random(shuffle).shuffle(names)  # noqa: S311 - an order, not a secret
    parts = (_listed(stdin, every) if name == STDIN and stdin is not None else _open(name, every) for name in names)
    folders = len({Path(name).parent for name in names}) if shuffle is None else 1
    return Items(parts, total=None if open_ended else len(names), folders=folders)


def _listed(lines: Iterable[str], every: int) -> Iterator[Item]:
    for line in lines:
        name = line.rstrip("\r\n")
        if name.strip():
            for file in _files(name) or [name]:  # a name that leads nowhere is reported when it cannot be read
                yield from _open(file, every)


def _open(name: str, every: int) -> Iterable[Item]:
    if _is_video(name):
        from synaptune.predicting.video import frames

        return frames(name, every=every)
    return [FileItem(name)]


def _is_video(name: str) -> bool:
    return Path(name).suffix.lower() in VIDEO_ENDINGS


def _files(source: str) -> list[str]:
    """Names of the files behind a folder, a file or a pattern, in natural order."""
    path = Path(source).expanduser()
    if path.is_dir():
        return _inside(path)
    if path.exists():
        return [str(path)]
    found: list[str] = []
    for match in _in_order(Path(name) for name in glob.iglob(str(path), recursive=True)):  # noqa: PTH207 - `**` with a root
        found += _inside(match) if match.is_dir() and not source.endswith("*") else [str(match)] * match.is_file()
    return found


def _inside(folder: Path) -> list[str]:
    """All visible files below a folder; links to folders are followed, but not in circles."""
    found: list[Path] = []
    seen = {folder.resolve()}
    waiting = [folder]
    while waiting:
        for entry in waiting.pop().iterdir():
            if entry.name.startswith("."):
                continue
            if not entry.is_dir():
                found.append(entry)
            elif (real := entry.resolve()) not in seen:
                seen.add(real)
                waiting.append(entry)
    return [str(path) for path in _in_order(found)]


def _in_order(paths: Iterable[Path]) -> list[Path]:
    from synaptune.data.folder import natural_order

    return sorted(paths, key=natural_order)

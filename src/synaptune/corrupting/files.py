"""Output that is whole or absent, and a recipe beside it, so that a run can stop anywhere and be taken up again."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

from synaptune.errors import DataError, OptionError
from synaptune.shifts.ice import frost_source
from synaptune.shifts.presets import Size
from synaptune.shifts.recipe import GENERATOR_VERSION

__all__ = ["RECIPE_FILE", "Plan", "Tally", "in_order", "open_destination", "whole_file"]

RECIPE_FILE = "recipe.json"

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Plan:
    """What is to be made from every image, and with how many threads."""

    corruptions: tuple[str, ...]
    severities: tuple[int, ...]
    seed: int
    size: Size | None
    workers: int

    def stamp(self, **source: Any) -> dict[str, Any]:
        """Return what the recipe file says: everything on which the pixels depend."""
        return {
            "generator": GENERATOR_VERSION,
            "seed": self.seed,
            "size": self.size,
            "frost": frost_source() if "frost" in self.corruptions else None,
            "severities": list(self.severities),
            "corruptions": list(self.corruptions),
            **source,
        }


class Tally:
    """Counts images made and found, and tells a listener after every block."""

    def __init__(self, total: int, listener: Callable[[int, int], None] | None):
        self.total, self._listener = total, listener
        self.written = self.present = self.lost = 0

    def add(self, *, written: int = 0, present: int = 0, lost: int = 0) -> None:
        """Count, and report (images dealt with, images in all)."""
        self.written += written
        self.present += present
        self.lost += lost
        if self._listener is not None:
            self._listener(self.written + self.present + self.lost, self.total)


def open_destination(folder: Path, stamp: dict[str, Any]) -> None:
    """Make the folder, or check that what lies there was made by the same recipe; then write the recipe.

    Corruptions may be added to a folder later, and severities to a tree; nothing else may change.

    Raises:
        OptionError: the folder holds something else, which is left alone.
    """
    recipe_file = folder / RECIPE_FILE
    before = _recipe_in(folder, recipe_file)
    if before is not None:
        changed = [key for key in stamp if key not in _may_grow(stamp) and before.get(key) != stamp[key]]
        if None in (before.get("frost"), stamp["frost"]):
            changed = [key for key in changed if key != "frost"]
        if changed:
            details = ", ".join(f"{key} was {before.get(key)!r} and is {stamp[key]!r}" for key in changed)
            raise OptionError(f"{folder} was made by another recipe ({details}); choose another folder, or delete it")
        for key in _may_grow(stamp):
            stamp = {**stamp, key: _joined(before.get(key, []), stamp[key])}
        stamp["frost"] = stamp["frost"] or before.get("frost")
    with whole_file(recipe_file) as file:
        file.write(json.dumps(stamp, indent=1).encode() + b"\n")


def _recipe_in(folder: Path, recipe_file: Path) -> dict[str, Any] | None:
    """Read the recipe of an earlier run; None for a folder that is new or empty."""
    if not recipe_file.exists():
        if folder.is_dir() and any(not entry.name.startswith(".") for entry in folder.iterdir()):
            raise OptionError(
                f"{folder} holds files but no {RECIPE_FILE}, so it was not made here; choose a new or empty folder"
            )
        return None
    try:
        recipe = json.loads(recipe_file.read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"{recipe_file} cannot be read ({error}); delete {folder} and start afresh") from error
    if not isinstance(recipe, dict):
        raise DataError(f"{recipe_file} is not a recipe; delete {folder} and start afresh")
    return recipe


def _may_grow(stamp: dict[str, Any]) -> tuple[str, ...]:
    return ("corruptions", "severities") if stamp["layout"] == "tree" else ("corruptions",)


def _joined(before: list[Any], now: list[Any]) -> list[Any]:
    return before + [entry for entry in now if entry not in before]


@contextmanager
def whole_file(path: Path, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """Write under another name and rename at the end; leave nothing behind if that fails.

    Args:
        path: where the file is to be.
        durable: wait until it is on the disk before renaming; for files that take long to make.
    """
    # Named after the process: a second run by mistake must not write into the file of the first.
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"cannot write {path} ({error.strerror or error}); what was made before is whole and stays: make room or "
            "correct the permissions, and run the same command again"
        ) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def in_order(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """Apply a function in threads, give results in the order of the items, and never work far ahead.

    >>> list(in_order(abs, [-3, 2, -1], workers=2))
    [3, 2, 1]
    """
    if workers == 1:
        yield from map(function, items)
        return
    waiting = iter(items)
    with ThreadPoolExecutor(workers) as pool:
        running: deque[Future[Result]] = deque(pool.submit(function, item) for item in islice(waiting, 2 * workers))
        while running:
            result = running.popleft().result()
            running.extend(pool.submit(function, item) for item in islice(waiting, 1))
            yield result

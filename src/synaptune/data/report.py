"""What happened while image files were read: how many, which were skipped and why, which were converted."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ReadReport", "ReportKeeper"]

_EXAMPLES = 5
"""File names kept per reason: enough to act on, few enough for a screen."""


@dataclass(frozen=True)
class ReadReport:
    """Counts and reasons; printed once, at the end.

    Attributes:
        found: files that were looked at, or images of a set that needs no decoding.
        skipped: (reason, how many, first file names), the most frequent reason first.
        converted: (what was done, how many), such as ("grey to RGB", 12).
        folders: like `skipped`, for folders and patterns that gave nothing.

    >>> from synaptune.data import ReadReport
    >>> print(ReadReport(10, (("truncated", 1, ("a.jpg",)),), (("grey to RGB", 2),)))
    9 of 10 read
    skipped 1: truncated (a.jpg)
    converted 2: grey to RGB
    """

    found: int
    skipped: tuple[tuple[str, int, tuple[str, ...]], ...] = ()
    converted: tuple[tuple[str, int], ...] = ()
    folders: tuple[tuple[str, int, tuple[str, ...]], ...] = ()

    @property
    def lost(self) -> int:
        """Number of files that were skipped."""
        return sum(count for _, count, _ in self.skipped)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was skipped."""
        return not self.skipped and not self.folders

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "found": self.found,
            "skipped": [{"reason": r, "count": n, "examples": list(e)} for r, n, e in self.skipped],
            "converted": [{"what": what, "count": count} for what, count in self.converted],
            "folders": [{"reason": r, "count": n, "examples": list(e)} for r, n, e in self.folders],
        }

    def __str__(self) -> str:
        lines = [f"{self.found - self.lost:,} of {self.found:,} read"]
        for reason, count, examples in (*self.skipped, *self.folders):
            more = ", ..." if count > len(examples) else ""
            lines.append(f"skipped {count:,}: {reason} ({', '.join(examples)}{more})")
        lines += [f"converted {count:,}: {what}" for what, count in self.converted]
        return "\n".join(lines)


class ReportKeeper:
    """Collects what readers meet, from several threads; counts every file once."""

    def __init__(self, found: int = 0) -> None:
        self._lock = threading.Lock()
        self._found = found
        self._skipped: dict[str, dict[str, None]] = {}
        self._folders: dict[str, dict[str, None]] = {}
        self._converted: dict[str, int] = {}
        self._judged: set[str] = set()

    def found(self, count: int = 1) -> None:
        """Count files that were looked at."""
        with self._lock:
            self._found += count

    def skip(self, path: str | Path, reason: str) -> None:
        """Count a file that could not be used."""
        with self._lock:
            self._judged.add(str(path))
            self._skipped.setdefault(reason, {})[str(path)] = None

    def fruitless(self, path: str | Path, reason: str) -> None:
        """Count a folder or a pattern that gave no file."""
        with self._lock:
            self._folders.setdefault(reason, {})[str(path)] = None

    def convert(self, path: str | Path, steps: Sequence[str]) -> None:
        """Count what was done to a file that was read; a second reading of it changes nothing."""
        with self._lock:
            if str(path) in self._judged:
                return
            if steps:
                self._judged.add(str(path))
            for step in steps:
                self._converted[step] = self._converted.get(step, 0) + 1

    def report(self) -> ReadReport:
        """Take stock."""
        with self._lock:
            converted = tuple(sorted(self._converted.items(), key=lambda item: (-item[1], item[0])))
            return ReadReport(self._found, _ranked(self._skipped), converted, _ranked(self._folders))


def _ranked(paths_of: dict[str, dict[str, None]]) -> tuple[tuple[str, int, tuple[str, ...]], ...]:
    """The most frequent reason first, each with the names of its first few files."""
    return tuple(
        (reason, len(paths), tuple(Path(path).name for path in list(paths)[:_EXAMPLES]))
        for reason, paths in sorted(paths_of.items(), key=lambda item: (-len(item[1]), item[0]))
    )

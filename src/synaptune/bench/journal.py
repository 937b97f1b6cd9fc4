"""The file of rows: append-only JSON lines that survive a kill at any moment.

A row is written by one call and forced to the disk before the next begins, so a kill can tear only the last line.
Reading skips a torn last line; opening for writing cuts it off first, and says so. A whole row that only lacks its line
break, as some editors leave it, counts. A lock refuses a second writer and falls with the process that holds it.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from synaptune.bench.row import Row
from synaptune.errors import DataError, SynaptuneError

__all__ = ["Journal", "Notes", "TornLineWarning", "read_rows"]


class TornLineWarning(UserWarning):
    """A file of rows ended in the middle of a line."""


def read_rows(path: str | Path) -> list[Row]:
    """Read all whole rows of a run.

    Raises:
        DataError: there is no such file, or a line in it (other than a torn last one) is no row.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"there is no run at {path}; `synaptune bench TABLE --out {path}` makes one")
    *lines, tail = path.read_bytes().split(b"\n")
    rows = []
    for number, line in enumerate([*lines, tail] if _is_row(tail) else lines, start=1):
        if line.strip():
            try:
                rows.append(Row.from_json(line.decode()))
            except (DataError, UnicodeDecodeError) as error:
                raise DataError(
                    f"{path}, line {number}: {error}; delete that line to measure its cell again"
                ) from error
    return rows


class Journal:
    """A run that is being written; use it as a context manager.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "run.jsonl") as journal:
    ...     journal.rows
    []
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.rows: list[Row] = []
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        file = self.path.open("a+b", buffering=0)
        try:
            _lock(file, self.path)
            _end_last_line(file, self.path)
            self.rows = read_rows(self.path)
        except BaseException:
            file.close()
            raise
        if is_new:
            _sync_folder(self.path.parent)
        self._file = file
        return self

    def append(self, row: Row) -> None:
        """Write a row; when this returns, it is on the disk."""
        if self._file is None:
            raise SynaptuneError(f"{self.path} is not open for writing; use it in a `with` block")
        left = memoryview(row.to_json().encode() + b"\n")
        while left:
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())
        self.rows.append(row)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()  # which drops the lock
            self._file = None


class Notes:
    """A run that is only looked at: no lock, nothing is written, and rows are added in memory.

    >>> with Notes("nowhere.jsonl") as notes:
    ...     notes.rows
    []
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.rows: list[Row] = []

    def __enter__(self) -> Self:
        self.rows = read_rows(self.path) if self.path.exists() else []
        return self

    def append(self, row: Row) -> None:
        """Add a row, for as long as this object lives."""
        self.rows.append(row)

    def __exit__(self, *error: object) -> None:
        pass


def _is_row(line: bytes) -> bool:
    """Whether a line is a whole row; what a kill has torn lacks at least its last brace."""
    try:
        Row.from_json(line.decode())
    except (DataError, UnicodeDecodeError):
        return False
    return True


def _end_last_line(file: BinaryIO, path: Path) -> None:
    """Cut off what a kill has left behind the last line break; a whole row that only lacks its own gets it."""
    size = file.seek(0, os.SEEK_END)
    position = size
    tail = b""
    while position > 0 and b"\n" not in tail:
        step = min(65536, position)
        position -= step
        file.seek(position)
        tail = file.read(step) + tail
    whole = position + tail.rfind(b"\n") + 1
    if whole == size:
        return
    is_whole = _is_row(tail[whole - position :])
    if is_whole:
        file.write(b"\n")  # at the end, wherever the file stands
    else:
        file.truncate(whole)
    os.fsync(file.fileno())
    if not is_whole:
        warnings.warn(
            f"the last line of {path} was torn when its run was stopped, and is cut off ({size - whole:,} bytes); its "
            "cell is measured again",
            TornLineWarning,
            stacklevel=3,
        )


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on this system; the run is then unguarded against a second writer
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise SynaptuneError(
            f"{path} is being written by another process; wait for it, or choose another file"
        ) from error


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Prediction tables on disk: CSV, JSON lines, Parquet. Written as predictions come, and safe to stop at any moment.

Rows go out in whole batches and reach the file before the next batch is begun. A file that was cut off in the middle
of a row (by a power failure) loses that row when it is opened again. Parquet can only be written whole, so its rows
are kept as JSON lines beside it until they are turned into the table at the end.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TextIO

from synaptune.errors import DataError, OptionError
from synaptune.predicting.rows import Row

__all__ = ["FORMATS", "Format", "StreamTable", "Table", "format_of", "open_table"]

Format = Literal["csv", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "jsonl", "parquet")
_ENDINGS: Mapping[str, Format] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def format_of(path: Path, form: Format | None = None) -> Format:
    """Tell the format of a table, and make sure that it can be written here.

    Args:
        path: the file.
        form: CSV, JSON lines or Parquet; by default told by the ending of the file.

    Raises:
        OptionError: the ending tells no format, or Parquet is asked for without pyarrow.
        DataError: there is no folder for the file.

    >>> format_of(Path("predictions.ndjson"))
    'jsonl'
    """
    chosen = form or _ENDINGS.get(path.suffix.lower())
    if chosen is None:
        known = ", ".join(_ENDINGS)
        raise OptionError(f"the ending of {path.name!r} tells no format; use one of {known}, or say --format")
    if not path.parent.is_dir():
        raise DataError(f"there is no folder {path.parent} for {path.name}; make it first")
    if chosen == "parquet":
        _pyarrow()
    return chosen


def open_table(path: Path, columns: Mapping[str, type], *, form: Format | None = None, resume: bool = False) -> Table:
    """Open a table for writing.

    Args:
        path: the file.
        columns: names and types.
        form: CSV, JSON lines or Parquet; by default told by the ending of the file.
        resume: go on after the rows that are there; otherwise start with none.

    Raises:
        OptionError: as `format_of`.
        DataError: the file cannot be written, or holds other columns.
    """
    chosen = format_of(path, form)
    kind: dict[str, Callable[..., Table]] = {"csv": CsvTable, "jsonl": JsonlTable, "parquet": ParquetTable}
    try:
        return kind[chosen](path, columns, resume=resume)
    except OSError as error:
        raise error if isinstance(error, DataError) else DataError(f"{path} cannot be written: {error}") from error


class Table(ABC):
    """A table that grows by batches.

    Attributes:
        path: the file that the user asked for.
        images: names of the images that are in it already, in order.
    """

    path: Path
    images: list[str]

    @abstractmethod
    def append(self, rows: Sequence[Row]) -> None:
        """Write the rows of a batch, and see to it that they reach the file."""

    @abstractmethod
    def position(self) -> int:
        """Length of the file in bytes, for `cut`."""

    @abstractmethod
    def cut(self, *, rows: int, position: int) -> None:
        """Go back to the first `rows` rows, which end at `position`."""

    @abstractmethod
    def close(self, *, complete: bool) -> None:
        """Finish the file; `complete` tells whether all images are in it."""

    def remove(self) -> None:
        """Take the closed file away, where it holds nothing worth keeping."""
        self.path.unlink(missing_ok=True)


class _TextTable(Table):
    """Lines of text in a file that is opened once."""

    def __init__(self, path: Path, columns: Mapping[str, type], *, resume: bool):
        self.path, self.columns = path, dict(columns)
        there = path.read_bytes() if resume and path.exists() else b""
        self.images, end = self._recover(there) if there else ([], 0)
        # Unbuffered: what a full disk did not take must not be waiting when the file is closed.
        self._file = path.open("r+b" if there else "wb", buffering=0)
        self._file.truncate(end)
        self._file.seek(end)
        if not end:
            self._write(self._head())

    @abstractmethod
    def _head(self) -> str:
        """What stands above the rows."""

    @abstractmethod
    def _text(self, rows: Sequence[Row]) -> str:
        """Rows as lines."""

    @abstractmethod
    def _recover(self, content: bytes) -> tuple[list[str], int]:
        """Names of the images in whole rows, and where these end."""

    def _write(self, text: str) -> None:
        try:
            left = memoryview(text.encode(errors="surrogateescape"))
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise DataError(
                f"{self.path} cannot be written any further: {error.strerror}; make room, and go on with --resume"
            ) from error

    def append(self, rows: Sequence[Row]) -> None:
        self._write(self._text(rows))

    def position(self) -> int:
        os.fsync(self._file.fileno())
        return self._file.tell()

    def cut(self, *, rows: int, position: int) -> None:
        self._file.truncate(position)
        self._file.seek(position)
        self.images = self.images[:rows]

    def close(self, *, complete: bool) -> None:
        self._file.close()

    def _refuse_columns(self, found: Sequence[str]) -> None:
        if list(found) != list(self.columns):
            raise DataError(
                f"{self.path} has the columns {', '.join(found)}, this run would write {', '.join(self.columns)}; "
                "resume with the same settings, or write to another file"
            )


class CsvTable(_TextTable):
    """Comma-separated values with a header."""

    def _head(self) -> str:
        return _csv_line(self.columns)

    def _text(self, rows: Sequence[Row]) -> str:
        return "".join(_csv_line(row.values()) for row in rows)

    def _recover(self, content: bytes) -> tuple[list[str], int]:
        end = content.rfind(b"\n") + 1
        while end:
            records = list(csv.reader(io.StringIO(content[:end].decode(errors="surrogateescape"), newline="")))
            self._refuse_columns(records[0])
            # A line end inside of a quoted name is no end of a row.
            if all(len(record) == len(self.columns) for record in records):
                return [record[0] for record in records[1:]], end
            end = content.rfind(b"\n", 0, end - 1) + 1
        return [], 0


class JsonlTable(_TextTable):
    """One JSON object per line."""

    def _head(self) -> str:
        return ""

    def _text(self, rows: Sequence[Row]) -> str:
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    def _recover(self, content: bytes) -> tuple[list[str], int]:
        end = content.rfind(b"\n") + 1
        images = []
        for row in _json_rows(content[:end].decode(errors="surrogateescape"), self.path):
            self._refuse_columns(list(row))
            images.append(str(row["image"]))
        return images, end


class ParquetTable(Table):
    """A Parquet file, made from JSON lines that are kept beside it while the run lasts."""

    def __init__(self, path: Path, columns: Mapping[str, type], *, resume: bool):
        self.path, self.columns = path, dict(columns)
        self._arrow = _pyarrow()
        self._part = path.with_name(f"{path.name}.part.jsonl")
        if resume and path.exists() and not self._part.exists():
            self._unpack()
        self._rows = JsonlTable(self._part, columns, resume=resume)
        self.images = self._rows.images

    def append(self, rows: Sequence[Row]) -> None:
        self._rows.append(rows)

    def position(self) -> int:
        return self._rows.position()

    def cut(self, *, rows: int, position: int) -> None:
        self._rows.cut(rows=rows, position=position)
        self.images = self._rows.images

    def close(self, *, complete: bool) -> None:
        self._rows.close(complete=complete)
        self._pack()
        if complete:
            self._part.unlink()

    def remove(self) -> None:
        super().remove()
        self._part.unlink(missing_ok=True)

    def _schema(self) -> Any:
        kinds = {str: self._arrow.string(), int: self._arrow.int64(), float: self._arrow.float64()}
        return self._arrow.schema([(name, kinds[kind]) for name, kind in self.columns.items()])

    def _pack(self) -> None:
        """Write the table in row groups, so that it need not fit into memory; it appears whole or not at all."""
        parquet = importlib.import_module("pyarrow.parquet")
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        try:
            with parquet.ParquetWriter(temporary, self._schema()) as writer, self._part.open(encoding="utf-8") as lines:
                for group in _groups(map(json.loads, lines)):
                    writer.write_table(self._arrow.Table.from_pylist(group, schema=self._schema()))
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)

    def _unpack(self) -> None:
        """Turn the table of a finished run back into lines, to go on after them."""
        parquet = importlib.import_module("pyarrow.parquet")
        try:
            with parquet.ParquetFile(self.path) as file, self._part.open("w", encoding="utf-8") as lines:
                for batch in file.iter_batches():
                    lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())
        except (self._arrow.ArrowInvalid, OSError) as error:
            self._part.unlink(missing_ok=True)
            raise DataError(f"{self.path} is not a Parquet file that can be resumed: {error}") from error


class StreamTable(Table):
    """Rows to a pipe or a terminal, batch by batch; there is nothing to resume."""

    def __init__(self, columns: Mapping[str, type], *, form: Format = "csv", stream: TextIO | None = None):
        if form == "parquet":
            raise OptionError("Parquet cannot go to a pipe or a terminal; name a file with --out")
        self.path, self.images = Path("-"), []
        self._form, self._stream = form, stream or sys.stdout
        if form == "csv":
            self._stream.write(_csv_line(columns))

    def append(self, rows: Sequence[Row]) -> None:
        for row in rows:
            line = _csv_line(row.values()) if self._form == "csv" else json.dumps(row, ensure_ascii=False) + "\n"
            self._stream.write(line)
        self._stream.flush()

    def position(self) -> int:
        return 0

    def cut(self, *, rows: int, position: int) -> None:
        raise OptionError("what went to a pipe or a terminal cannot be taken back; name a file with --out")

    def close(self, *, complete: bool) -> None:
        self._stream.flush()

    def remove(self) -> None:
        """Do nothing: what went out is gone."""


def _csv_line(values: Any) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(["" if value is None else value for value in values])
    return line.getvalue()


def _json_rows(text: str, path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line:
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(f"line {number} of {path} is no JSON: {error}; write to another file") from error
            if not isinstance(row, dict) or "image" not in row:
                raise DataError(f"line {number} of {path} is no row of predictions; write to another file")
            yield row


def _groups(rows: Iterator[Row], size: int = 10_000) -> Iterator[list[Row]]:
    group: list[Row] = []
    for row in rows:
        group.append(row)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise OptionError("Parquet needs pyarrow: pip install pyarrow; or write .csv or .jsonl") from error

"""Reading result files: rows of a run, and stream logs, told apart by their first line.

The writer appends whole lines, so only what follows the last line break may be torn; it is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from synaptune.errors import DataError
from synaptune.report.rows import ResultRow, RowLike, parse_row
from synaptune.report.stream_log import Stream, is_stream_line, parse_streams

__all__ = ["parse_rows", "read_results"]


def parse_rows(rows: Iterable[RowLike]) -> list[ResultRow]:
    """Check rows that are there already."""
    return [parse_row(row, where=f"row {position}") for position, row in enumerate(rows, start=1)]


def read_results(path: str | Path) -> tuple[list[ResultRow], list[Stream]]:
    """Read a file of rows, a stream log, or a folder of such files (`*.jsonl`).

    Raises:
        DataError: there is none, or a line is no row; it is named with its number.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(path.glob("*.jsonl"))
        if not files:
            raise DataError(f"{path} holds no .jsonl file; name the file that `synaptune bench --out FILE` wrote")
        rows: list[ResultRow] = []
        logs: list[Stream] = []
        for file in files:
            more_rows, more_logs = read_results(file)
            rows, logs = rows + more_rows, logs + more_logs
        return rows, logs
    if not path.is_file():
        raise DataError(f"there is no result file at {path}; `synaptune bench TABLE --out {path}` makes one")
    lines = list(_read_lines(path))
    if lines and _begins_stream(lines[0][1]):
        return [], parse_streams(line for _, line in lines)
    places = [(f"{path}, line {position}", line) for position, line in lines]
    return [parse_row(_parse_line(line, where=where), where=where) for where, line in places], []


def _begins_stream(line: str) -> bool:
    try:
        return is_stream_line(_parse_line(line, where=""))
    except DataError:
        return False


def _parse_line(text: str, *, where: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON ({error}); a result file has one JSON object per line") from error
    if not isinstance(values, dict):
        raise DataError(f"{where} is {type(values).__name__}, not a JSON object; a result file has one object per line")
    return values


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Give the lines that are not blank with their numbers, from 1; what follows the last line break may be torn."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    *lines, last = text.split(b"\n")
    for number, line in enumerate([*lines, *([last] if _is_whole(last) else [])], start=1):
        if line.strip():
            yield number, line.decode("utf-8", errors="replace")


def _is_whole(line: bytes) -> bool:
    """Whether a last line without a line break was written to its end."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True

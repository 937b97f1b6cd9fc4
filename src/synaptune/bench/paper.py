"""The paper's numbers, from the one file that holds them, `paper.toml`."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from synaptune.errors import UnknownNameError

__all__ = ["PrintedLine", "PrintedTable", "printed_table", "printed_tables"]


@dataclass(frozen=True)
class PrintedLine:
    """One line as printed.

    Attributes:
        model: the network, by the name used in `paper.toml`.
        method: the method.
        cells: errors by column.
        mean: the printed average.
        note: where the line comes from, or what is odd about it.
        arithmetic: why the average is not the mean of the cells, where it is not.
        oracle: whether labels chose the step that the line reports.
    """

    model: str
    method: str
    cells: dict[str, float]
    mean: float
    note: str = ""
    arithmetic: str = ""
    oracle: bool = False

    @property
    def remarks(self) -> list[str]:
        """What must be said under a table that shows this line."""
        return [text for text in (self.note, self.arithmetic) if text]


@dataclass(frozen=True)
class PrintedTable:
    """A table of the paper, or a reference beside it.

    Attributes:
        name: its name in `paper.toml`.
        title: what it shows.
        source: where it stands.
        columns: names of the columns.
        lines: lines by (model, method).
        notes: what is known about the table as a whole.
        severity: of the corruptions; 0 for clean images.
        data: data sets of ours that the numbers may stand beside.
        images: in each cell, where they are the same.
    """

    name: str
    title: str
    source: str
    columns: tuple[str, ...]
    lines: dict[tuple[str, str], PrintedLine]
    notes: tuple[str, ...]
    severity: int
    data: tuple[str, ...]
    images: int | None = None

    @property
    def is_reference(self) -> bool:
        """Whether the numbers are somebody else's than the paper's."""
        return self.name == "reference"


def printed_tables() -> tuple[str, ...]:
    """Names of all tables in the file."""
    return tuple(name for name in _content() if name != "common")


@functools.cache
def printed_table(name: str) -> PrintedTable:
    """One table.

    >>> printed_table("cifar10c").lines["wrn-40-2", "nhl"].mean
    10.7
    """
    content = _content()
    if name not in content or name == "common":
        raise UnknownNameError("table in the paper", name, printed_tables())
    section = content[name]
    columns = tuple(section["columns"])
    lines = [
        PrintedLine(**(line | {"cells": dict(zip(columns, line["cells"], strict=True))})) for line in section["lines"]
    ]
    return PrintedTable(
        name=name,
        title=section["title"],
        source=section["source"],
        columns=columns,
        lines={(line.model, line.method): line for line in lines},
        notes=tuple(section["notes"]),
        severity=section["severity"],
        data=tuple(section["data"]),
        images=section.get("images"),
    )


@functools.cache
def _content() -> dict[str, Any]:
    return tomllib.loads(resources.files("synaptune.bench").joinpath("paper.toml").read_text(encoding="utf-8"))

"""Markdown from values: cells and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Make a text fit into a cell of a table: one line, no bar."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Set a text as code, also inside a table."""
    return f"`{' '.join(text.split())}`"


def alternatives(spelled: str) -> str:
    """Set a type as code, its alternatives one by one: a bar would end the cell of a table, inside code too."""
    return " or ".join(code(part) for part in spelled.split(" | "))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table; cells are Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

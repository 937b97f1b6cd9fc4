"""Cells and rows for tests."""

from __future__ import annotations

from typing import Any

from synaptune.bench.cell import Cell
from synaptune.bench.protocol import Protocol
from synaptune.bench.row import Row
from tests.unit.bench import tiny

SMALL = {"batch": 16}


def cell(method: str = "tent", *, protocol: dict[str, Any] | None = None, **others: Any) -> Cell:
    """Make a cell on the tiny model and data."""
    values: dict[str, Any] = {"model": tiny.MODEL, "data": tiny.DATA} | others
    return Cell.of(method=method, protocol=Protocol(**(SMALL | (protocol or {}))), **values)


def row(method: str = "tent", *, run: str = "run", measured: dict[str, Any] | None = None, **others: Any) -> Row:
    """Make a finished row without measuring."""
    values: dict[str, Any] = {
        "images": 50,
        "error_online": 10.0,
        "fingerprint": "f" * 64,
        "recipe_digest": "a" * 64,
        "versions": {"torch": "2.9"},
        "seconds": 1.0,
    }
    return Row.of(cell(method, **others), run=run, **(values | (measured or {})))

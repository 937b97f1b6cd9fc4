"""A table as a value: lines, columns, and the cells that they expand to."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from synaptune.bench.cell import CLEAN, Cell, in_turn, method_label
from synaptune.bench.protocol import Protocol
from synaptune.bench.row import ErrorKey
from synaptune.core.registry import find

__all__ = ["ColumnKey", "MethodLine", "ModelLine", "Table"]

ColumnKey = Literal["corruption", "data", "severity", "mean"]


@dataclass(frozen=True, kw_only=True)
class ModelLine:
    """A model of a table.

    Attributes:
        model: what `synaptune.models.load_model` takes.
        weights: a weights file of `model`, or "" for its own.
        label: how the table calls it.
        paper: its name in `paper.toml`, or "" if no numbers are known.
        reference: whether those are in the section `reference` instead of the table's own.
        rotation: the same model with a rotation head, for methods that need one; it has weights of its own.
        data: data sets of this model, in place of the table's.
        shape_only: whether those are of another network or other data, so that only the order of lines compares.
    """

    model: str
    weights: str = ""
    label: str = ""
    paper: str = ""
    reference: bool = False
    rotation: str = ""
    data: tuple[str, ...] = ()
    shape_only: bool = False

    def spec_for(self, method: str) -> str:
        """Which model a method gets."""
        return self.rotation if self.rotation and find(method).needs.rotation_head else self.model

    @property
    def title(self) -> str:
        """How the table calls it."""
        return self.label or self.model.removeprefix("zoo:")


@dataclass(frozen=True, kw_only=True)
class MethodLine:
    """A line of a table: a method, how it is measured, and which of its errors counts.

    Attributes:
        method: registered name.
        options: those that differ from the method's defaults.
        label: how the table calls it.
        metric: which error the line shows.
        protocol: the table's protocol with this line's changes.
        paper: the method's name in `paper.toml`.
        factors: levels by factor, for lines of a grid.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    metric: ErrorKey = "error_online"
    protocol: Protocol = field(default_factory=Protocol)
    paper: str = ""
    factors: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """How the table calls it."""
        return self.label or method_label(self.method, dict(self.options))


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: what is measured and how it is laid out."""

    name: str
    title: str
    columns: ColumnKey
    models: tuple[ModelLine, ...]
    methods: tuple[MethodLine, ...]
    data: tuple[str, ...]
    corruptions: tuple[str, ...] = (CLEAN,)
    severities: tuple[int, ...] = (5,)
    seeds: tuple[int, ...] = (0,)
    paper: str = ""
    notes: tuple[str, ...] = ()

    def cells(self) -> tuple[Cell, ...]:
        """All cells, each once, model by model; under a model, methods side by side for one shift after the other."""
        found: dict[str, Cell] = {}
        for model in self.models:
            shifts = list(self._shifts(model))
            cells = [cell for line in self.methods for cell in self.cells_of(model, line)]
            cells.sort(key=lambda cell: shifts.index((cell.data, cell.corruption, cell.severity)))
            found |= {cell.key: cell for cell in cells if cell.key not in found}
        return tuple(found.values())

    def cells_of(self, model: ModelLine, line: MethodLine) -> Iterator[Cell]:
        """The cells of one line under one model."""
        yield from in_turn(self._cells_of(model, line))

    def _cells_of(self, model: ModelLine, line: MethodLine) -> Iterator[Cell]:
        spec = model.spec_for(line.method)
        for (data, corruption, severity), seed in itertools.product(self._shifts(model), self.seeds):
            cell = Cell.of(
                model=spec,
                weights=model.weights if spec == model.model else "",
                method=line.method,
                options=line.options,
                data=data,
                corruption=corruption,
                severity=severity,
                seed=seed,
                protocol=line.protocol,
            )
            if cell.is_seeded or seed == self.seeds[0]:
                yield cell

    def block_of(self, model: ModelLine, cell: Cell) -> str:
        """Title of the cell's block: the model, and everything that is neither a column nor averaged."""
        severity = f"severity {cell.severity}" if cell.severity else ""
        parts = {
            "corruption": (cell.data, severity),
            "mean": (cell.data, severity),
            "severity": (cell.data,),
            "data": (),
        }[self.columns]
        return ", ".join(part for part in (model.title, *parts) if part)

    def _shifts(self, model: ModelLine) -> Iterator[tuple[str, str, int]]:
        for data, corruption in itertools.product(model.data or self.data, self.corruptions):
            for severity in (0,) if corruption == CLEAN else self.severities:
                yield data, corruption, severity

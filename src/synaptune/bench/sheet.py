"""A table's numbers: ours, the printed ones, the difference, and what has to be said about them.

A mean and its difference are always over the same cells: where ours lack columns, the printed mean is taken over those
that are there, and the line says how many. A column that ours has only in part is shown with its count.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from synaptune.bench.cell import Cell
from synaptune.bench.paper import PrintedLine, PrintedTable, printed_table
from synaptune.bench.remarks import absences, blanks, deviations, mixtures, omissions, stamp
from synaptune.bench.row import ErrorKey, Row
from synaptune.bench.table import MethodLine, ModelLine, Table
from synaptune.shifts import names as corruption_names

__all__ = ["Block", "Effect", "Entry", "Line", "Sheet", "make_sheet"]

OVERVIEW = ("error_online", "error_after", "error_full", "ece")
"""Columns of tables that show means alone: everything that one pass gives."""


@dataclass(frozen=True)
class Entry:
    """One place of a table.

    Attributes:
        ours: measured error, the mean where several cells belong here; None if there is none.
        printed: the paper's (or the reference's) over the same cells, None if there is none.
        have: measured cells; of a mean, columns that are complete and enter it.
        total: cells, or columns, that belong here.
        spread: standard deviation over seeds, where there are several.
    """

    ours: float | None = None
    printed: float | None = None
    have: int = 0
    total: int = 0
    spread: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether everything that belongs here is measured."""
        return self.have == self.total > 0

    @property
    def difference(self) -> float | None:
        """Ours less the printed one, where both are there."""
        return None if self.ours is None or self.printed is None else self.ours - self.printed


@dataclass(frozen=True)
class Line:
    """One method under one model.

    Attributes:
        label: how the table calls the method.
        metric: which error it shows.
        entries: by column.
        mean: over the columns.
        printed: the printed line beside it.
        factors: levels by factor, for lines of a grid.
        comparable: whether ours and the printed numbers are of one network and data.
        states: how many cells are in which state ("ok", "failed", "missing", "inapplicable", "open").
        method: the method's name, which lines of a grid share.
    """

    label: str
    metric: ErrorKey
    entries: Mapping[str, Entry]
    mean: Entry
    printed: PrintedLine | None = None
    factors: Mapping[str, object] = field(default_factory=dict)
    comparable: bool = True
    states: Mapping[str, int] = field(default_factory=dict)
    method: str = ""

    @property
    def is_oracle(self) -> bool:
        """Whether labels chose what ours shows."""
        return self.metric == "error_oracle"


@dataclass(frozen=True)
class Effect:
    """A level of a factor, the mean error of the lines that are compared at it, and how many these are."""

    factor: str
    level: str
    mean: float
    lines: int


@dataclass(frozen=True)
class Block:
    """Lines that belong together: one model on one data set.

    Attributes:
        title: model, data, severity.
        columns: names of the columns.
        lines: the methods.
        beside: what the printed numbers are, such as "paper, Table 1".
        is_overview: whether the columns are different measures, which have no mean.
    """

    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    beside: str = ""
    is_overview: bool = False

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Of a grid: the mean at each level of each factor, over lines that differ in nothing else.

        Settings of the other factors at which a level is not there, or not complete, say nothing about this factor and
        are left out at all of its levels.
        """
        factors = list(dict.fromkeys(factor for line in self.lines for factor in line.factors))
        return tuple(effect for factor in factors for effect in self._effects_of(factor))

    def _effects_of(self, factor: str) -> Iterator[Effect]:
        alike: dict[tuple[object, ...], dict[str, float]] = defaultdict(dict)
        for line in self.lines:
            if factor in line.factors and line.mean.is_complete and line.mean.ours is not None:
                others = ((name, _level(level)) for name, level in line.factors.items() if name != factor)
                alike[line.method, *others][_level(line.factors[factor])] = line.mean.ours
        levels = list(dict.fromkeys(level for found in alike.values() for level in found))
        whole = [found for found in alike.values() if len(found) == len(levels) > 1]
        for level in levels if whole else ():
            yield Effect(factor, level, statistics.fmean(found[level] for found in whole), len(whole))


@dataclass(frozen=True)
class Sheet:
    """A rendered table's content.

    Attributes:
        name: of the table.
        title: its heading.
        blocks: one for each model and data set.
        stamp: the protocol, in a sentence.
        absent: what could not run, with how to mend it, and how many cells it costs.
        notes: what has to be said about the numbers.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]
    stamp: str
    absent: tuple[str, ...]
    notes: tuple[str, ...]


def make_sheet(table: Table, rows: Iterable[Row]) -> Sheet:
    """Lay rows out as the table says; rows of other cells are left out."""
    found = {row.cell: row for row in rows}
    printed = printed_table(table.paper) if table.paper else None
    blocks = tuple(_blocks(table, found, printed))
    used = [found[cell.key] for cell in table.cells() if cell.key in found]
    return Sheet(
        name=table.name,
        title=table.title,
        blocks=blocks,
        stamp=stamp(table, used),
        absent=tuple(absences(used)),
        notes=(
            *table.notes,
            *mixtures(used),
            *omissions(used),
            *deviations(table),
            *blanks(table, found),
            *_remarks(blocks, printed),
            *_sizes(table, used),
        ),
    )


def _level(value: object) -> str:
    if isinstance(value, list | tuple):
        return "".join(map(str, value)) or "none"
    return str(value)


def _blocks(table: Table, found: Mapping[str, Row], printed: PrintedTable | None) -> Iterator[Block]:
    for model in table.models:
        beside = printed_table("reference") if model.reference else printed
        groups: dict[str, list[Line]] = defaultdict(list)
        columns: dict[str, dict[str, None]] = defaultdict(dict)
        for method in table.methods:
            cells: dict[str, list[Cell]] = defaultdict(list)
            for cell in table.cells_of(model, method):
                cells[table.block_of(model, cell)].append(cell)
            for block, members in cells.items():
                line = _line(table, model, method, members, found, beside)
                groups[block].append(line)
                columns[block] |= dict.fromkeys(line.entries)
        for title, lines in groups.items():
            known = any(line.printed for line in lines)
            yield Block(
                title=title,
                columns=tuple(columns[title]),
                lines=tuple(lines),
                beside=_beside(beside) if beside and known else "",
                is_overview=table.columns == "mean",
            )


def _beside(printed: PrintedTable) -> str:
    return printed.source if printed.is_reference else f"paper, {printed.source}"


def _line(
    table: Table,
    model: ModelLine,
    method: MethodLine,
    cells: Sequence[Cell],
    found: Mapping[str, Row],
    beside: PrintedTable | None,
) -> Line:
    fits = [_is_beside(beside, cell, model) for cell in cells]
    printed = beside.lines.get((model.paper, method.paper)) if beside and any(fits) else None

    def printed_at(column: str, members: Sequence[Cell]) -> float | None:
        return _printed_at(printed, beside, table, column, members, model) if printed and beside else None

    states = [found[cell.key].status if cell.key in found else "open" for cell in cells]
    if table.columns == "mean":
        entries = {
            key: _entry(cells, found, key, printed_at("mean", cells) if key == method.metric else None)
            for key in dict.fromkeys((*OVERVIEW, method.metric))
        }
        mean = entries[method.metric]
    else:
        by_column: dict[str, list[Cell]] = defaultdict(list)
        for cell in cells:
            by_column[_column_of(table, cell)].append(cell)
        entries = {
            column: _entry(members, found, method.metric, printed_at(column, members))
            for column, members in by_column.items()
        }
        mean = _mean(entries, printed, seeds=_per_seed(cells, found, method.metric))
    return Line(
        label=method.title,
        metric=method.metric,
        entries=entries,
        mean=mean,
        printed=printed,
        factors=method.factors,
        comparable=not model.shape_only,
        states={state: states.count(state) for state in dict.fromkeys(states)},
        method=method.method,
    )


def _column_of(table: Table, cell: Cell) -> str:
    return {
        "corruption": cell.corruption,
        "data": cell.data,
        "severity": str(cell.severity),
    }[table.columns]


def _is_beside(beside: PrintedTable | None, cell: Cell, model: ModelLine) -> bool:
    """Whether printed numbers may stand in the cell's block, which may have a column of clean images."""
    if beside is None or cell.severity not in (0, beside.severity):
        return False
    return model.shape_only or cell.data in beside.data


def _printed_at(
    printed: PrintedLine, beside: PrintedTable, table: Table, column: str, cells: Sequence[Cell], model: ModelLine
) -> float | None:
    if not all(_is_beside(beside, cell, model) for cell in cells):
        return None
    if table.columns in ("corruption", "data"):
        return printed.cells.get(column)
    # The paper prints such means over its fifteen corruptions.
    same_corruptions = set(table.corruptions) == set(corruption_names("benchmark"))
    at_severity = all(cell.severity == beside.severity for cell in cells)
    return printed.mean if at_severity and (model.shape_only or same_corruptions) else None


def _entry(cells: Sequence[Cell], found: Mapping[str, Row], key: str, printed: float | None) -> Entry:
    values = (getattr(found[cell.key], key) for cell in cells if cell.key in found)
    measured = [value for value in values if value is not None]
    seeds = _per_seed(cells, found, key)
    return Entry(
        ours=statistics.fmean(measured) if measured else None,
        printed=printed,
        have=len(measured),
        total=len(cells),
        spread=statistics.stdev(seeds) if len(seeds) > 1 else None,
    )


def _per_seed(cells: Sequence[Cell], found: Mapping[str, Row], key: str) -> list[float]:
    """Mean of each seed that has all its cells."""
    errors: dict[int, list[float | None]] = defaultdict(list)
    for cell in cells:
        row = found.get(cell.key)
        errors[cell.seed].append(getattr(row, key) if row else None)
    whole = [[error for error in values if error is not None] for values in errors.values() if None not in values]
    return [statistics.fmean(values) for values in whole]


def _mean(entries: Mapping[str, Entry], printed: PrintedLine | None, *, seeds: Sequence[float]) -> Entry:
    """Mean over the columns that are complete, and the printed one over the same columns."""
    there = {column: entry for column, entry in entries.items() if entry.is_complete}
    shown = there or entries  # where nothing is measured, the printed mean stands alone
    beside = [entry.printed for entry in shown.values() if entry.printed is not None]
    printed_mean = statistics.fmean(beside) if beside and len(beside) == len(shown) else None
    if printed is not None and printed_mean is not None and shown.keys() == printed.cells.keys():
        printed_mean = printed.mean  # as it stands in the paper, wrong ones included
    return Entry(
        ours=statistics.fmean(entry.ours for entry in there.values() if entry.ours is not None) if there else None,
        printed=printed_mean,
        have=len(there),
        total=len(entries),
        spread=statistics.stdev(seeds) if len(seeds) > 1 else None,
    )


def _remarks(blocks: Sequence[Block], printed: PrintedTable | None) -> Iterator[str]:
    """Say what has to be known about oracle lines, partial means and printed numbers."""
    lines = [line for block in blocks for line in block.lines]
    if any(line.is_oracle for line in lines):
        yield "Oracle lines show the lowest whole-set error over stages, which labels chose: nothing one could use."
    if any(line.mean.have and not line.mean.is_complete for line in lines):
        yield "A mean with a count is over the columns that are complete; so is what is printed beside it."
    if any(line.printed and not line.comparable for line in lines):
        yield "The printed numbers are of another network or other data: compare the order of lines, not the numbers."
    beside = [line.printed for line in lines if line.printed is not None]
    yield from dict.fromkeys(
        f"Printed {line.method} of {line.model}: {remark}" for line in beside for remark in line.remarks
    )
    if printed is not None and beside:
        yield from printed.notes


def _sizes(table: Table, rows: Sequence[Row]) -> Iterator[str]:
    """Say where ours and the printed numbers are over different numbers of images."""
    names = [table.paper, *("reference" for model in table.models if model.reference)]
    for printed in (printed_table(name) for name in dict.fromkeys(names) if name):
        ours = {row.images for row in rows if row.status == "ok" and row.images is not None}
        if printed.images is not None and ours and ours != {printed.images}:
            counts = ", ".join(f"{count:,}" for count in sorted(ours))
            yield f"Ours are over {counts} images, those of the {_beside(printed)} over {printed.images:,}."

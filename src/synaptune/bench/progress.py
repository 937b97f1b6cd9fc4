"""How far a run is: cells done, time left, running mean error of each line of the table.

A mean is over cells of one line, which share a protocol, and is of the error that the line shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from synaptune.bench.cell import Cell
from synaptune.bench.protocol import Protocol
from synaptune.bench.row import ErrorKey, Row
from synaptune.bench.table import Table

__all__ = ["OnProgress", "Progress", "Shown", "Tracker", "lines_of"]


@dataclass(frozen=True)
class Shown:
    """A line of a block of a table, in which a cell counts.

    Attributes:
        block: the block's title.
        line: the line's title.
        metric: the error that it shows; None for the first that was measured.
        model: number of the model in the table, since two may be called the same.
    """

    block: str
    line: str
    metric: ErrorKey | None = None
    model: int = 0

    def error_of(self, row: Row) -> float | None:
        """The row's error that this line shows."""
        return row.first_error if self.metric is None else row.error_of(self.metric)


def lines_of(table: Table) -> dict[str, tuple[Shown, ...]]:
    """The lines of a table by the keys of their cells; two lines may show two errors of one cell."""
    found: dict[str, tuple[Shown, ...]] = {}
    for number, model in enumerate(table.models):
        for line in table.methods:
            for cell in table.cells_of(model, line):
                shown = Shown(table.block_of(model, cell), line.title, line.metric, number)
                found[cell.key] = tuple(dict.fromkeys((*found.get(cell.key, ()), shown)))
    return found


@dataclass(frozen=True)
class Progress:
    """A snapshot of a run.

    Attributes:
        total: cells of the run.
        done: cells that have a row, of whatever status.
        resumed: those of them that had one when the run was started.
        failed: cells that failed.
        missing: cells whose model or data are not on this machine.
        inapplicable: cells whose method does not fit the model.
        seconds_left: an estimate, from the times of finished cells; None before the first.
        mean_error: running mean by line, each over the finished cells, with their number.
        last: the newest row.
        lines: those in which the newest row counts.
    """

    total: int
    done: int
    resumed: int
    failed: int
    missing: int
    inapplicable: int
    seconds_left: float | None
    mean_error: Mapping[Shown, tuple[float, int]]
    last: Row | None
    lines: tuple[Shown, ...] = ()


OnProgress = Callable[[Progress], None]


class Tracker:
    """Turns rows into progress.

    Args:
        cells: what is measured.
        workers: processes.
        lines: lines by the keys of their cells; by default one line for each model, method and protocol.
    """

    def __init__(
        self, cells: Sequence[Cell], *, workers: int, lines: Mapping[str, tuple[Shown, ...]] | None = None
    ) -> None:
        self._kinds: dict[str, object] = {cell.key: (cell.model, cell.label, cell.protocol) for cell in cells}
        self._lines = lines or {cell.key: (_own_line(cell, cells[0].protocol),) for cell in cells}
        self._open = set(self._kinds)
        self._rows: dict[str, Row] = {}
        self._workers = max(1, workers)
        self._total = len(self._open)
        self._resumed = 0

    def resume(self, rows: Sequence[Row]) -> None:
        """Count rows that were there before."""
        for row in rows:
            if row.cell in self._open:
                self._open.remove(row.cell)
                self._rows[row.cell] = row
                self._resumed += 1

    def add(self, row: Row) -> Progress:
        """Count a new row."""
        self._open.discard(row.cell)
        self._rows[row.cell] = row
        return self.snapshot(row)

    def snapshot(self, last: Row | None = None) -> Progress:
        """Say where the run stands."""
        rows = self._rows.values()
        states = [row.status for row in rows]
        return Progress(
            total=self._total,
            done=len(self._rows),
            resumed=self._resumed,
            failed=states.count("failed"),
            missing=states.count("missing"),
            inapplicable=states.count("inapplicable"),
            seconds_left=self._seconds_left(),
            mean_error=self._mean_error(),
            last=last,
            lines=self._lines.get(last.cell, ()) if last else (),
        )

    def _seconds_left(self) -> float | None:
        times: dict[object, list[float]] = {}
        for key, row in self._rows.items():
            if row.status == "ok" and row.seconds is not None:
                times.setdefault(self._kinds.get(key), []).append(row.seconds)
        if not times:
            return None
        means = {kind: sum(spent) / len(spent) for kind, spent in times.items()}
        usual = sum(means.values()) / len(means)
        return sum(means.get(self._kinds[key], usual) for key in self._open) / self._workers

    def _mean_error(self) -> dict[Shown, tuple[float, int]]:
        found: dict[Shown, list[float]] = {}
        for key, row in self._rows.items():
            for line in self._lines.get(key, ()):
                error = line.error_of(row)
                if error is not None:
                    found.setdefault(line, []).append(error)
        return {line: (sum(errors) / len(errors), len(errors)) for line, errors in found.items()}


def _own_line(cell: Cell, usual: Protocol) -> Shown:
    """The line of a cell of no table."""
    switches = usual.as_dict()
    changed = [f"{name} {value}" for name, value in cell.protocol.as_dict().items() if value != switches[name]]
    return Shown(f"{cell.model.removeprefix('zoo:')}, {cell.data}", ", ".join([cell.label, *changed]))

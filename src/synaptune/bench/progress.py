"""How far a run is: cells done, time left, running mean error of each method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from synaptune.bench.cell import Cell
from synaptune.bench.row import Row

__all__ = ["OnProgress", "Progress", "Tracker"]


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
        mean_error: running mean by (model, method), each over the finished cells, with their number.
        last: the newest row.
    """

    total: int
    done: int
    resumed: int
    failed: int
    missing: int
    inapplicable: int
    seconds_left: float | None
    mean_error: Mapping[tuple[str, str], tuple[float, int]]
    last: Row | None


OnProgress = Callable[[Progress], None]


class Tracker:
    """Turns rows into progress."""

    def __init__(self, cells: Sequence[Cell], *, workers: int):
        self._open = {cell.key: (cell.model, cell.label) for cell in cells}
        self._rows: dict[str, Row] = {}
        self._workers = max(1, workers)
        self._total = len(self._open)
        self._resumed = 0

    def resume(self, rows: Sequence[Row]) -> None:
        """Count rows that were there before."""
        for row in rows:
            if self._open.pop(row.cell, None):
                self._rows[row.cell] = row
                self._resumed += 1

    def add(self, row: Row) -> Progress:
        """Count a new row."""
        self._open.pop(row.cell, None)
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
        )

    def _seconds_left(self) -> float | None:
        times: dict[tuple[str, str], list[float]] = {}
        for row in self._rows.values():
            if row.status == "ok" and row.seconds is not None:
                times.setdefault((row.model, row.label), []).append(row.seconds)
        if not times:
            return None
        means = {who: sum(spent) / len(spent) for who, spent in times.items()}
        usual = sum(means.values()) / len(means)
        return sum(means.get(who, usual) for who in self._open.values()) / self._workers

    def _mean_error(self) -> dict[tuple[str, str], tuple[float, int]]:
        found: dict[tuple[str, str], list[float]] = {}
        for row in self._rows.values():
            if row.first_error is not None:
                found.setdefault((row.model, row.label), []).append(row.first_error)
        return {who: (sum(errors) / len(errors), len(errors)) for who, errors in found.items()}

"""What a method costs: time per batch, passes per image, memory; beside it, what it buys."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from synaptune.report.grid import Grid
from synaptune.report.noise import Estimate
from synaptune.report.rows import ResultRow
from synaptune.report.sections import RowGroup
from synaptune.report.table import Column, Line, Place, Table
from synaptune.report.wording import count, number, percent

__all__ = ["Cost", "cost_table", "costs"]


@dataclass(frozen=True)
class Cost:
    """What one method costs in one section, and its mean error.

    Attributes:
        method: its label.
        ms_p50: median time of a batch, the median over cells.
        ms_p95: what one batch in twenty exceeds, the median over cells.
        forwards: passes forward for each image that was adapted on.
        backwards: passes backward for each.
        peak_mb: the most memory of any cell.
        ratio: of `ms_p50` to that of the source model, where both are known.
        error: mean error over all columns; None where some are missing.
    """

    method: str
    ms_p50: float | None
    ms_p95: float | None
    forwards: float | None
    backwards: float | None
    peak_mb: float | None
    ratio: float | None
    error: Estimate | None


def costs(group: RowGroup, grid: Grid | None) -> list[Cost]:
    """Sum up what the methods of a section cost; methods without any measured row are left out."""
    measured = {method: rows for method in group.methods if (rows := group.measured_of(method))}
    plain = _median(row.ms_p50 for row in measured.get("source", ()))
    return [_cost(method, rows, plain=plain, grid=grid) for method, rows in measured.items()]


def cost_table(found: Sequence[Cost], *, batch: int | None = None) -> Table | None:
    """Lay out the costs of batches of that many images; None when nothing was timed or counted."""
    if all(cost.ms_p50 is None and cost.forwards is None and cost.peak_mb is None for cost in found):
        return None
    columns = (
        Column("mean error, %"),
        Column("ms per batch, median"),
        Column("ms per batch, 95 %"),
        Column("times source"),
        Column("forwards per image"),
        Column("backwards per image"),
        Column("peak MB"),
    )
    size = f"A batch is {count(batch, 'image')}. " if batch else ""
    return Table(
        title="What it costs",
        corner="method",
        columns=columns,
        lines=tuple(Line(cost.method, tuple(map(_place, _texts(cost)))) for cost in found),
        caption=(
            f"{size}Times hold for this run's machine, its load and its threads. 95 %: one batch in twenty takes "
            "longer. On a CPU, peak memory is that of the whole process."
        ),
    )


def _cost(method: str, rows: Sequence[ResultRow], *, plain: float | None, grid: Grid | None) -> Cost:
    ms_p50 = _median(row.ms_p50 for row in rows)
    peaks = [row.peak_mb for row in rows if row.peak_mb is not None]
    has_all = grid is not None and grid.is_complete(method)
    return Cost(
        method=method,
        ms_p50=ms_p50,
        ms_p95=_median(row.ms_p95 for row in rows),
        forwards=_per_image((row.forwards, row) for row in rows),
        backwards=_per_image((row.backwards, row) for row in rows),
        peak_mb=max(peaks, default=None),
        ratio=ms_p50 / plain if ms_p50 is not None and plain else None,
        error=grid.mean(method) if grid is not None and has_all else None,
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _per_image(counted: Iterable[tuple[int | None, ResultRow]]) -> float | None:
    known = [(passes, row) for passes, row in counted if passes is not None and _adapted_images(row)]
    images = sum(_adapted_images(row) for _, row in known)
    return sum(passes for passes, _ in known) / images if images else None


def _adapted_images(row: ResultRow) -> int:
    images, horizon = row.images or 0, row.switches["horizon"]
    return min(images, horizon * row.batch) if isinstance(horizon, int) and row.batch else images


def _texts(cost: Cost) -> list[str]:
    ratio = f"{cost.ratio:.1f}×" if cost.ratio is not None else number(None)
    return [
        percent(cost.error.value if cost.error else None),
        number(cost.ms_p50),
        number(cost.ms_p95),
        ratio,
        _per_image_text(cost.forwards),
        _per_image_text(cost.backwards),
        number(cost.peak_mb),
    ]


def _per_image_text(passes: float | None) -> str:
    return number(None) if passes is None else f"{passes:.2f}".rstrip("0").rstrip(".")


def _place(text: str) -> Place:
    return Place(text, is_quiet=text == number(None))

"""Series over time: what happened batch by batch, ready to be drawn.

The running mean of errors after batch k is the error of all images so far; after the last batch it is the number in the
table. Other quantities are smoothed by a moving mean. Long streams are thinned to what a drawing can show; the end
points stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from synaptune.report.rows import ResultRow
from synaptune.report.sections import RowGroup, Shift

__all__ = [
    "Panel",
    "PanelGroup",
    "Series",
    "drift_over_time",
    "entropy_over_time",
    "error_over_stages",
    "error_over_time",
    "moving_mean",
    "running_mean",
    "thinned",
    "weight_distance_over_time",
]

MOST_POINTS = 160


@dataclass(frozen=True)
class Series:
    """One line of a drawing.

    Attributes:
        name: what it is of; also decides its colour.
        xs: places, rising.
        ys: values; NaN leaves a gap.
        detail: single batches behind a smoothed line, as (place, value).
    """

    name: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    detail: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Panel:
    """One drawing: several lines over one axis."""

    title: str
    series: tuple[Series, ...]
    x_label: str
    y_label: str


@dataclass(frozen=True)
class PanelGroup:
    """Drawings that show the same for one shift each."""

    title: str
    caption: str
    panels: tuple[Panel, ...]


def running_mean(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Mean of all values so far; NaN counts for nothing.

    >>> running_mean([10.0, 20.0, 60.0], [2, 2, 1])
    [10.0, 15.0, 24.0]
    """
    total = seen = 0.0
    means = []
    for value, weight in zip(values, weights, strict=True):
        if math.isfinite(value):
            total, seen = total + value * weight, seen + weight
        means.append(total / seen if seen else math.nan)
    return means


def moving_mean(values: Sequence[float], window: int) -> list[float]:
    """Mean of the last `window` values; NaN counts for nothing.

    >>> moving_mean([1.0, 3.0, 5.0], 2)
    [1.0, 2.0, 4.0]
    """
    means = []
    for end in range(1, len(values) + 1):
        recent = [value for value in values[max(0, end - window) : end] if math.isfinite(value)]
        means.append(math.fsum(recent) / len(recent) if recent else math.nan)
    return means


def thinned(length: int, most: int = MOST_POINTS) -> list[int]:
    """Choose positions of a series, evenly, the first and the last among them.

    >>> thinned(4), thinned(101, most=3)
    ([0, 1, 2, 3], [0, 50, 100])
    """
    if length <= most:
        return list(range(length))
    return [round(number * (length - 1) / (most - 1)) for number in range(most)]


def error_over_time(group: RowGroup) -> PanelGroup | None:
    """Errors of single batches and their running mean, for each shift."""
    return _over_shifts(
        group,
        lambda method, shift: _error_series(group, method, shift),
        title="Error over time",
        caption=("Error of all images so far: a line ends at the number in the table."),
        x_label="batch",
        y_label="error, %",
    )


def entropy_over_time(group: RowGroup) -> PanelGroup | None:
    """Entropy of predictions, for each shift."""
    return _over_shifts(
        group,
        lambda method, shift: _smooth_series(group, method, shift, lambda row: row.entropy_per_batch),
        title="Entropy over time",
        caption=(
            "How undecided the predictions are; low is sure, rightly or wrongly. A fall towards zero while the error "
            "rises is a collapse. Moving mean over one twentieth of the stream."
        ),
        x_label="batch",
        y_label="entropy, nats",
    )


def drift_over_time(group: RowGroup) -> PanelGroup | None:
    """Distance of the first features from the source, for each shift."""
    return _over_shifts(
        group,
        lambda method, shift: _smooth_series(group, method, shift, lambda row: row.drift_per_batch),
        title="Drift over time",
        caption=(
            "How far the first features lie from those of the source data, in its standard deviations. Moving mean "
            "over one twentieth of the stream."
        ),
        x_label="batch",
        y_label="drift, source deviations",
    )


def weight_distance_over_time(group: RowGroup) -> PanelGroup | None:
    """Relative distance of the adapted tensors from the source, for each shift."""
    return _over_shifts(
        group,
        lambda method, shift: _smooth_series(group, method, shift, lambda row: row.distance_per_batch, window=1),
        title="Distance of the weights over time",
        caption="Relative distance of the adapted tensors from the source model.",
        x_label="batch",
        y_label="relative distance",
    )


def error_over_stages(group: RowGroup) -> PanelGroup | None:
    """Whole-set error as adaptation goes on, for each shift."""
    return _over_shifts(
        group,
        lambda method, shift: _stage_series(group, method, shift),
        title="Whole-set error as adaptation goes on",
        caption="The state after so many batches, frozen, predicts all images. Its minimum is the oracle number.",
        x_label="batches adapted on",
        y_label="error, %",
    )


def _over_shifts(
    group: RowGroup,
    series_of: Callable[[str, Shift], Series | None],
    *,
    title: str,
    caption: str,
    x_label: str,
    y_label: str,
) -> PanelGroup | None:
    panels = []
    for shift in group.shifts:
        series = tuple(found for method in group.methods if (found := series_of(method, shift)) is not None)
        if series:
            panels.append(Panel(shift.name, series, x_label, y_label))
    return PanelGroup(title, caption, tuple(panels)) if panels else None


def _error_series(group: RowGroup, method: str, shift: Shift) -> Series | None:
    rows = group.measured(method, shift)
    values = _seed_mean([row.error_per_batch for row in rows])
    if len(values) < 2:
        return None
    return smooth(method, values, running_mean(values, batch_sizes(rows[0], len(values))))


def _smooth_series(
    group: RowGroup,
    method: str,
    shift: Shift,
    values_of: Callable[[ResultRow], tuple[float, ...]],
    *,
    window: int | None = None,
) -> Series | None:
    values = _seed_mean([values_of(row) for row in group.measured(method, shift)])
    # Nothing moved: a line of zeros would only hide the others.
    if len(values) < 2 or not any(values):
        return None
    return smooth(method, values, moving_mean(values, window or max(1, len(values) // 20)))


def smooth(name: str, values: Sequence[float], line: Sequence[float]) -> Series:
    """Make a thinned series of single values and the line through them."""
    chosen = thinned(len(values))
    detail = [(float(position + 1), values[position]) for position in chosen if math.isfinite(values[position])]
    # Where nothing is smoothed away, dots would lie on the line.
    is_smoothed = any(value != smoothed for value, smoothed in zip(values, line, strict=True) if math.isfinite(value))
    return Series(
        name,
        tuple(float(position + 1) for position in chosen),
        tuple(line[position] for position in chosen),
        tuple(detail) if is_smoothed else (),
    )


def _stage_series(group: RowGroup, method: str, shift: Shift) -> Series | None:
    rows = [row for row in group.measured(method, shift) if len(row.error_per_stage) > 1]
    if not rows:
        return None
    xs = [stage for stage, _ in rows[0].error_per_stage]
    values = _seed_mean([tuple(error for _, error in row.error_per_stage) for row in rows])
    chosen = thinned(len(values))
    return Series(method, tuple(xs[position] for position in chosen), tuple(values[position] for position in chosen))


def _seed_mean(repeats: Sequence[tuple[float, ...]]) -> list[float]:
    """Mean over seeds, batch by batch; seeds of another length than the first are left out."""
    alike = [values for values in repeats if len(values) == len(repeats[0])]
    return [math.fsum(values) / len(values) for values in zip(*alike, strict=True)]


def batch_sizes(row: ResultRow, batches: int) -> list[int]:
    """Images in each batch: all alike, and the rest in the last one.

    With images that could not be read the sizes are slightly off, for they are not in the file.
    """
    size = row.batch or 1
    rest = (row.images or 0) - size * (batches - 1)
    return [*[size] * (batches - 1), rest if 0 < rest <= size and row.switches["horizon"] is None else size]

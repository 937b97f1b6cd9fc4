"""Figure 4 of the paper: error of the whole test set in the course of adaptation.

After every so many batches the whole set is predicted with the state at that moment. The numbers come from the rows of
a run whose protocol has `oracle_every`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from synaptune.bench.figures.style import clean_axes, colour_of, looks, marker_of, new_figure
from synaptune.bench.row import Row
from synaptune.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_batches", "stage_curves"]

Curve = Sequence[tuple[float, float]]


def stage_curves(rows: Sequence[Row]) -> dict[str, Curve]:
    """Error of the whole set by batches adapted on, for each method.

    Raises:
        InputError: no row has such errors, or two rows of one method do: a figure shows one model and one shift.
    """
    curves: dict[str, Curve] = {}
    for row in rows:
        if row.status == "ok" and row.error_per_stage:
            if row.label in curves:
                raise InputError(
                    f"{row.label} stands twice: the figure shows one model, one corruption and one seed; choose "
                    "them with overrides such as corruptions=[gaussian_noise] models=[resnet20]"
                )
            curves[row.label] = [(batches, error) for batches, error in row.error_per_stage]
    if not curves:
        raise InputError("no row has errors of stages; measure with oracle_every=1 or another number of batches")
    return curves


def draw_batches(curves: Mapping[str, Curve], *, title: str, batch: int) -> Figure:
    """Draw one line per method, with its name at the line's end.

    Args:
        curves: pairs of batches and error, by method.
        title: what is shown.
        batch: images per batch, for the axis.
    """
    with looks():
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        for place, (method, curve) in enumerate(curves.items()):
            xs, ys = [point[0] for point in curve], [point[1] for point in curve]
            colour = colour_of(method, place)
            every = max(1, len(xs) // 10)
            axes.plot(
                xs, ys, color=colour, marker=marker_of(method, place), markevery=every, markersize=4, linewidth=1.8
            )
        last = max(curve[-1][0] for curve in curves.values())
        for (method, curve), height in zip(curves.items(), _spread([c[-1][1] for c in curves.values()]), strict=True):
            colour = colour_of(method, list(curves).index(method))
            label = f"{method} {curve[-1][1]:.1f}"
            axes.annotate(label, (last, height), xytext=(8, 0), textcoords="offset points", color=colour, va="center")
        axes.set_xlabel(f"batches adapted on ({batch} images each)")
        axes.set_ylabel("error of the whole set (%)")
        axes.set_title(title, loc="left")
        clean_axes(axes)
        return figure


def _spread(heights: Sequence[float], *, gap: float = 0.045) -> list[float]:
    """Move labels apart that would overlap, upwards, keeping their order."""
    span = max(max(heights) - min(heights), 1.0)
    placed: dict[int, float] = {}
    floor = float("-inf")
    for number in sorted(range(len(heights)), key=heights.__getitem__):
        floor = max(heights[number], floor + gap * span)
        placed[number] = floor
    return [placed[number] for number in range(len(heights))]

"""A run in one picture: a photograph under every corruption, and below it what each method makes of that corruption.

The errors come from the rows of a run, the photograph from the bundled sample.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from synaptune.bench.figures.style import INK, clean_axes, colour_of, looks, marker_of, new_figure
from synaptune.bench.row import Row
from synaptune.errors import InputError
from synaptune.options import Options, option
from synaptune.shifts import names as corruption_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["OverviewOptions", "draw_overview", "overview_of", "thumbnails"]

Errors = Mapping[str, Mapping[str, float]]
Picture = npt.NDArray[np.uint8]

_SHARED = ("data", "images", "batch", "order", "reset", "fingerprint", "versions")


@dataclass(frozen=True, kw_only=True)
class OverviewOptions(Options):
    """What the picture of a run shows."""

    title: str = option("", "heading")
    rows: str = option("results/cifar10c.jsonl", "file of rows of a run")
    model: str = option("zoo:resnet26-cifar10", "the network, as its rows name it")
    severity: int = option(5, "of the corruptions", at_least=1, at_most=5)
    methods: tuple[str, ...] = option(("source", "norm", "tent", "nhl"), "methods, the last one joined with the first")
    image: int = option(0, "which of the bundled photographs stands above", at_least=0)


def overview_of(rows: Sequence[Row], options: OverviewOptions) -> dict[str, dict[str, float]]:
    """Error in percent by method and corruption; seeds are averaged.

    Raises:
        InputError: a method has no rows there, or others than the rest; or rows differ in a switch.
    """
    found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in options.methods}
    used = []
    for row in rows:
        here = (row.status, row.model, row.severity) == ("ok", options.model, options.severity)
        if here and row.label in found and row.first_error is not None:
            found[row.label][row.corruption].append(row.first_error)
            used.append(row)
    order = [name for name in corruption_names("all") if any(name in errors for errors in found.values())]
    for name, errors in found.items():
        if not order or set(errors) != set(order):
            lacks = [corruption for corruption in order if corruption not in errors]
            raise InputError(
                f"{options.rows} has no rows of {name} on {options.model} at severity {options.severity}"
                + (f" under {', '.join(lacks)}" if lacks else "")
                + "; measure them first, or choose with methods=, model= and severity="
            )
    mixed = [switch for switch in _SHARED if len({str(getattr(row, switch)) for row in used}) > 1]
    if mixed:
        raise InputError(f"the rows of {options.rows} differ in {', '.join(mixed)}, and cannot stand in one picture")
    return {
        name: {corruption: statistics.fmean(errors[corruption]) for corruption in order}
        for name, errors in found.items()
    }


def thumbnails(corruptions: Sequence[str], *, severity: int, image: int) -> list[Picture]:
    """One bundled photograph under each corruption, (height, width, 3)."""
    from synaptune.data import corrupted, sample

    photographs = sample()
    if image >= len(photographs):
        raise InputError(f"image {image} is not among the {len(photographs)} bundled ones")
    chosen = photographs.take(image + 1)
    return [np.asarray(corrupted(chosen, name, severity, cache=False).images[image]) for name in corruptions]


def draw_overview(errors: Errors, pictures: Sequence[Picture], *, title: str) -> Figure:
    """Draw a column for every corruption: the picture above, one mark per method below.

    Args:
        errors: in percent, by method and corruption; a line joins the first method with the last.
        pictures: one for each corruption.
        title: what is shown.
    """
    corruptions = list(next(iter(errors.values())))
    with looks():
        figure = new_figure(10.0, 4.6)
        grid = figure.add_gridspec(2, 1, height_ratios=(1, 4.6))
        above, below = (figure.add_subplot(grid[row]) for row in range(2))
        for place, picture in enumerate(pictures):
            above.imshow(picture, extent=(place - 0.46, place + 0.46, -0.46, 0.46), interpolation="nearest")
        above.set_ylim(-0.46, 0.46)
        above.axis("off")
        above.set_title(title, loc="left")
        _marks(below, errors, corruptions)
        for axes in (above, below):
            axes.set_xlim(-0.6, len(corruptions) - 0.4)
            axes.set_aspect("equal" if axes is above else "auto")
        return figure


def _marks(axes: Axes, errors: Errors, corruptions: Sequence[str]) -> None:
    methods = list(errors)
    for place, corruption in enumerate(corruptions):
        ends = [errors[methods[0]][corruption], errors[methods[-1]][corruption]]
        axes.plot([place, place], ends, color="#bbbbbb", linewidth=1.2, zorder=1)
    for number, (method, found) in enumerate(errors.items()):
        is_last = method == methods[-1]
        mean = statistics.fmean(found.values())
        axes.plot(
            range(len(corruptions)),
            [found[corruption] for corruption in corruptions],
            linestyle="none",
            marker=marker_of(method, number),
            markersize=8 if is_last else 6,
            color=colour_of(method, number),
            alpha=1.0 if is_last else 0.85,
            label=f"{method}, mean {mean:.1f} %",
            zorder=3 if is_last else 2,
        )
    axes.set_xticks(range(len(corruptions)), [name.replace("_", "\n") for name in corruptions], fontsize=7.5)
    axes.tick_params(axis="x", length=0, colors=INK)
    axes.set_ylim(0, None)
    axes.set_ylabel("error (%)")
    clean_axes(axes)
    axes.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=len(methods),
        frameon=False,
        fontsize=9.5,
        handletextpad=0.2,
    )

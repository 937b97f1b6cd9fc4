"""Figure 5 of the paper: how the features of each channel are distributed, against those of clean images.

One panel per state of the network, one ridge per channel; in front the shifted images, behind, in yellow, the clean
ones in the source model. Each panel says how far apart they are, over all channels, not only those that are shown:

    distance = median over channels of W_1(front, back) / sd(back),    W_1 = mean over quantiles of |q_front - q_back|

The median, because a channel that is all but silent on clean images has next to no scale, and would decide a mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from synaptune.bench.figures.style import CLEAN_COLOUR, INK, clean_axes, colour_of, looks, new_figure
from synaptune.bench.figures.views import CLEAN_VIEW, View
from synaptune.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["density", "draw_density", "evenly_chosen", "wasserstein"]

Values = npt.NDArray[np.float32]
Curve = npt.NDArray[np.float64]

_POINTS = 200
_OVERLAP = 1.8


def wasserstein(front: Values, back: Values) -> float:
    """Median over channels of the first Wasserstein distance in standard deviations of the back.

    >>> back = np.array([[0.0, 1.0, 2.0, 3.0]], np.float32)
    >>> round(wasserstein(back + 1, back), 4) == round(1 / float(back.std()), 4)
    True
    """
    levels = np.linspace(0.5 / _POINTS, 1 - 0.5 / _POINTS, _POINTS)
    gaps = np.abs(np.quantile(front, levels, axis=1) - np.quantile(back, levels, axis=1)).mean(axis=0)
    spread = back.std(axis=1)
    alive = spread > 1e-6 * max(float(spread.max()), 1e-12)  # a dead channel has no scale to measure in
    return float(np.median(gaps[alive] / spread[alive]))


def density(values: Values, xs: Curve) -> Curve:
    """Gaussian kernel density at evenly spaced points; the bandwidth is Silverman's, two grid steps at least.

    >>> xs = np.linspace(-4, 4, 200)
    >>> curve = density(np.random.default_rng(0).normal(size=5000).astype(np.float32), xs)
    >>> bool(abs(curve.sum() * (xs[1] - xs[0]) - 1) < 0.01), bool(abs(xs[curve.argmax()]) < 0.3)
    (True, True)
    """
    step = xs[1] - xs[0]
    low, high = np.quantile(values, [0.25, 0.75])
    spread = min(float(values.std()), float(high - low) / 1.34) or float(values.std())
    width = max(0.9 * spread * len(values) ** -0.2, 2 * step)
    edges = np.append(xs, xs[-1] + step) - step / 2
    counts = np.histogram(values, edges)[0] / len(values)  # what lies outside is not drawn, and not moved inside
    kernel = np.exp(-0.5 * (np.arange(-len(xs) + 1, len(xs)) * step / width) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum(), mode="full")[len(xs) - 1 : 2 * len(xs) - 1]
    return np.asarray(smooth / step, np.float64)


def evenly_chosen(total: int, count: int) -> list[int]:
    """Channels at even distances: chosen without a look at what they show.

    >>> evenly_chosen(64, 4)
    [0, 21, 42, 63]
    """
    return sorted(set(np.linspace(0, total - 1, min(count, total)).round().astype(int).tolist()))


def draw_density(views: Sequence[View], *, title: str, channels: int) -> Figure:
    """Draw one panel per view but the clean one, which stands behind in all of them.

    Args:
        views: the clean one first.
        title: what is shown.
        channels: how many ridges.
    """
    clean, *fronts = views
    if clean.name != CLEAN_VIEW or not fronts:
        raise InputError("this figure needs the view of clean images first, and another one at least")
    chosen = evenly_chosen(len(clean.values), channels)
    low, high = np.percentile(np.concatenate([view.values[chosen].ravel() for view in views]), [0.5, 99.5])
    margin = 0.08 * (high - low)
    xs = np.linspace(low - margin, high + margin, _POINTS)
    with looks():
        figure = new_figure(2.3 * len(fronts) + 0.4, 0.34 * len(chosen) + 1.5)
        panels = figure.subplots(1, len(fronts), squeeze=False, sharex=True, sharey=True)[0]
        for place, (axes, view) in enumerate(zip(panels, fronts, strict=True)):
            _ridges(axes, view, clean, chosen, xs, colour_of(view.name, place))
            distance = wasserstein(view.values, clean.values)
            axes.set_title(f"{view.name}: error {view.error:.1f} %\ndistance {distance:.2f}", loc="left", fontsize=9)
        panels[0].set_ylabel("channel")
        panels[0].set_yticks([-float(number) for number in range(len(chosen))], [str(channel) for channel in chosen])
        figure.supxlabel("feature value (front: shifted images; yellow: clean images, source model)", fontsize=8)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        return figure


def _ridges(axes: Axes, view: View, clean: View, chosen: Sequence[int], xs: Curve, colour: str) -> None:
    for number, channel in enumerate(chosen):
        back, front = density(clean.values[channel], xs), density(view.values[channel], xs)
        scale = _OVERLAP / max(float(back.max()), float(front.max()))
        floor = np.full(len(xs), -float(number))
        # Upper ridges lie behind lower ones, as mountains do.
        axes.fill_between(xs, floor, floor + scale * back, color=CLEAN_COLOUR, alpha=0.9, zorder=3 * number, lw=0)
        axes.plot(xs, floor + scale * back, color="#A89F1C", lw=0.7, zorder=3 * number + 1)
        axes.fill_between(xs, floor, floor + scale * front, color=colour, alpha=0.45, zorder=3 * number + 2, lw=0)
        axes.plot(xs, floor + scale * front, color=colour, lw=1.0, zorder=3 * number + 2)
    clean_axes(axes, grid=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0, colors=INK)

"""Figure 1 of the paper: what the first convolution shows of one image, clean, corrupted, and after adaptation.

Beside the maps stands how far the features of all images are from those of the clean ones in the source model:

    distance = || f - f_clean || / || f_clean ||        over all channels, images and places
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from synaptune.bench.figures.style import looks, new_figure
from synaptune.bench.figures.views import CLEAN_VIEW, View
from synaptune.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["distance_to_clean", "draw_features", "liveliest_channels"]


def distance_to_clean(view: View, clean: View) -> float:
    """Relative distance of the features from those of the clean images."""
    return float(np.linalg.norm(view.values - clean.values) / np.linalg.norm(clean.values))


def liveliest_channels(clean: View, count: int) -> list[int]:
    """Channels whose values vary most over the clean images, in their own order."""
    spread = clean.values.std(axis=1)
    return sorted(np.argsort(-spread, kind="stable")[:count].tolist())


def draw_features(views: Sequence[View], *, title: str, channels: int) -> Figure:
    """Draw one row per view: the image, then its feature maps; each channel has one grey scale in all rows.

    Args:
        views: the clean one first.
        title: what is shown.
        channels: how many channels.
    """
    clean = views[0]
    if clean.name != CLEAN_VIEW or any(view.maps is None for view in views):
        raise InputError("this figure needs the view of clean images first, and feature maps: place='first_conv'")
    chosen = liveliest_channels(clean, channels)
    with looks():
        figure = new_figure(1.15 * (len(chosen) + 1) + 1.2, 1.2 * len(views) + 0.5)
        grid = figure.subplots(len(views), len(chosen) + 1, squeeze=False)
        for row, view in zip(grid, views, strict=True):
            assert view.maps is not None
            row[0].imshow(view.image.clip(0, 1), interpolation="nearest")
            row[0].set_ylabel(_caption(view, clean), rotation=0, ha="right", va="center", labelpad=8)
            for axes, channel in zip(row[1:], chosen, strict=True):
                low, high = _scale(views, channel)
                axes.imshow(view.maps[channel], cmap="gray", vmin=low, vmax=high, interpolation="nearest")
        for axes, heading in zip(grid[0], ("image", *(f"channel {channel}" for channel in chosen)), strict=True):
            axes.set_title(heading, fontsize=8)
        for axes in grid.flat:
            _bare(axes)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        return figure


def _caption(view: View, clean: View) -> str:
    if view is clean:
        return f"clean, source\nerror {view.error:.1f} %"
    return f"corrupted, {view.name}\nerror {view.error:.1f} %\ndistance {distance_to_clean(view, clean):.2f}"


def _scale(views: Sequence[View], channel: int) -> tuple[float, float]:
    """Grey values from the 1st to the 99th percentile over all rows, so that rows can be compared."""
    maps: list[npt.NDArray[np.float32]] = [view.maps[channel].ravel() for view in views if view.maps is not None]
    low, high = np.percentile(np.concatenate(maps), [1, 99])
    return float(low), float(high)


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)

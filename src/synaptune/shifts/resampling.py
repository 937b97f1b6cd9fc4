"""Zooming and warping by linear interpolation, and box averaging, for whole batches.

Every step is a single IEEE operation on arrays, so results do not depend on batch size or machine.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synaptune.shifts.fixed_point import Border, border_indices

__all__ = ["Grid", "box_share", "clipped_zoom", "grid_at", "sample_linear", "zoom_window"]


class ZoomLine(NamedTuple):
    """How one axis is enlarged: between which source pixels each target pixel lies, and where."""

    start: int
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    fraction: NDArray[np.float32]


def zoom_window(size: int, factor: float) -> tuple[int, int]:
    """Return (start, length) of the central part that fills a line of `size` pixels when enlarged.

    >>> zoom_window(32, 1.25)
    (3, 26)
    """
    length = math.ceil(size / factor)
    return (size - length) // 2, length


@functools.lru_cache(maxsize=512)
def zoom_line(size: int, factor: float) -> ZoomLine:
    """Enlarge the central part so that its end pixels stay end pixels, and cut the middle `size` out.

    Same grid as SciPy's `zoom` of order 1 followed by the published trimming.
    """
    start, length = zoom_window(size, factor)
    enlarged = round(length * factor)
    trim = (enlarged - size) // 2
    positions = (np.arange(size) + trim) * ((length - 1) / max(1, enlarged - 1))
    lower = np.minimum(np.floor(positions).astype(np.int64), max(0, length - 2))
    return ZoomLine(start, lower, np.minimum(lower + 1, length - 1), (positions - lower).astype(np.float32))


def clipped_zoom(centre: NDArray[np.float32], factor: float, *, height: int, width: int) -> NDArray[np.float32]:
    """Enlarge the central window (h', w', ...) of an image, see `zoom_window`, to (height, width, ...).

    Further axes come last so that pixels move as contiguous blocks, which is several times faster.
    """
    down, across = zoom_line(height, factor), zoom_line(width, factor)
    rest = (1,) * (centre.ndim - 2)
    tall = centre.take(down.lower, axis=0)
    step = centre.take(down.upper, axis=0)
    step -= tall
    step *= down.fraction.reshape(-1, 1, *rest)
    tall += step
    wide = tall.take(across.lower, axis=1)
    step = tall.take(across.upper, axis=1)
    step -= wide
    step *= across.fraction.reshape(-1, *rest)
    wide += step
    return wide


class Grid(NamedTuple):
    """Where to sample: for each output pixel the four neighbours (flat, within a plane) and two fractions."""

    corners: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    down: NDArray[np.float32]
    right: NDArray[np.float32]


def grid_at(
    rows: tuple[NDArray[np.integer[Any]], NDArray[np.float32]],
    columns: tuple[NDArray[np.integer[Any]], NDArray[np.float32]],
    *,
    shape: tuple[int, int],
    border: Border,
) -> Grid:
    """Make the grid for positions given as (whole part, fraction), any distance outside the image."""
    height, width = shape
    top = border_indices(rows[0], height, border) * width
    bottom = border_indices(rows[0] + 1, height, border) * width
    left = border_indices(columns[0], width, border)
    right = border_indices(columns[0] + 1, width, border)
    return Grid((top + left, top + right, bottom + left, bottom + right), rows[1], columns[1])


def sample_linear(planes: NDArray[np.float32], grid: Grid) -> NDArray[np.float32]:
    """Interpolate planes (batch, c, h, w) at a grid whose arrays are (batch, h, w)."""
    batch, channels, height, width = planes.shape
    lines = planes.reshape(batch * channels, height * width)
    base = (np.arange(batch * channels) * (height * width)).reshape(batch, channels)
    sampled = np.empty_like(planes)
    for channel in range(channels):
        offset = base[:, channel, None, None]
        a, b, c, d = (lines.ravel().take(corner + offset) for corner in grid.corners)
        a += (b - a) * grid.right
        c += (d - c) * grid.right
        a += (c - a) * grid.down
        sampled[:, channel] = a
    return sampled


@functools.lru_cache(maxsize=64)
def box_share(size: int, target: int) -> NDArray[np.float64]:
    """Return the (target, size) matrix that averages runs of pixels, in units of 2**-22.

    The runs and the rounding of the weights are Pillow's (`Resampling.BOX`, 8-bit images).
    """
    scale = size / target
    support = 0.5 * max(scale, 1.0)
    matrix = np.zeros((target, size))
    for row in range(target):
        centre = (row + 0.5) * scale
        first = max(0, int(centre - support + 0.5))
        last = min(size, int(centre + support + 0.5))
        matrix[row, first:last] = int(2**22 / (last - first) + 0.5)
    matrix.flags.writeable = False
    return matrix

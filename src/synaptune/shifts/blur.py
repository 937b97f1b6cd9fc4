"""Blurs: defocus, frosted glass, motion, zoom, and the plain Gaussian.

The formulas are those of Hendrycks and Dietterich (ICLR 2019). Two of them need care:

*Glass* walks over the pixels and "swaps" each with a random neighbour. In the published code the swap is a tuple
assignment of NumPy views, which overwrites instead of swapping: pixel p becomes a copy of its neighbour, and the
neighbour stays. The published data were made so, hence so are ours. Written that way the walk is a pointer to an
earlier pixel per pixel, which pointer doubling resolves for all pixels of all images at once (see `_copied_from`).

*Zoom* averages the image with enlarged copies; factor 1 is among them, so the image itself counts twice.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from synaptune.shifts.fixed_point import (
    SINGLE_PASS_BITS,
    border_indices,
    correlate,
    filter_matrix,
    quantise_weights,
    smooth_planes,
    to_bytes,
    to_images,
    to_planes,
)
from synaptune.shifts.motion import blur_along
from synaptune.shifts.presets import Defocus, Glass, Motion, Smooth, Zoom
from synaptune.shifts.randomness import ImageStreams
from synaptune.shifts.resampling import clipped_zoom, zoom_window

__all__ = ["defocus_blur", "gaussian_blur", "glass_blur", "motion_blur", "zoom_blur"]

# Pixels of an image up to which matrix products are faster than a Fourier transform: 64 x 64, or a bit more.
_THUMBNAIL = 1 << 13
_WIDE_DISK = 64.0


def gaussian_blur(images: NDArray[np.uint8], level: Smooth, streams: ImageStreams) -> NDArray[np.uint8]:  # noqa: ARG001
    """Blur by a Gaussian; outside pixels repeat the edge."""
    return to_images(to_bytes(_smooth(images, level.sigma)))


def defocus_blur(images: NDArray[np.uint8], level: Defocus, streams: ImageStreams) -> NDArray[np.uint8]:  # noqa: ARG001
    """Blur by a disk with a soft edge."""
    height, width = images.shape[1:3]
    bits = _disk_bits(level.radius)
    # Either way gives the same bits; a matrix product per row of the kernel is faster for thumbnails only.
    if height * width > _THUMBNAIL or bits > SINGLE_PASS_BITS:
        kernel = _disk(level.radius, level.alias_sigma)
        return to_images(to_bytes(correlate(to_planes(images, np.float64), kernel, bits=bits, border="mirror")))
    return to_images(to_bytes(_defocused_by_rows(to_planes(images, np.float32), level)))


def motion_blur(images: NDArray[np.uint8], level: Motion, streams: ImageStreams) -> NDArray[np.uint8]:
    """Streak each image along its own direction, within 45 degrees of the horizontal."""
    angles = streams.uniform(1, -45, 45)[:, 0]
    return blur_along(images, angles, radius=level.radius, sigma=level.sigma)


def zoom_blur(images: NDArray[np.uint8], level: Zoom, streams: ImageStreams) -> NDArray[np.uint8]:  # noqa: ARG001
    """Average the image and its enlarged copies."""
    batch, height, width, channels = images.shape
    stack = np.ascontiguousarray(images.transpose(1, 2, 0, 3)).reshape(height, width, -1).astype(np.float32)
    total = stack.copy()
    for factor in level.factors:
        top, tall = zoom_window(height, factor)
        left, wide = zoom_window(width, factor)
        window = stack[top : top + tall, left : left + wide]
        total += clipped_zoom(window, factor, height=height, width=width)
    total *= np.float32(1 / (len(level.factors) + 1))
    blurred = to_bytes(total).reshape(height, width, batch, channels)
    return np.ascontiguousarray(blurred.transpose(2, 0, 1, 3))


def glass_blur(images: NDArray[np.uint8], level: Glass, streams: ImageStreams) -> NDArray[np.uint8]:
    """Blur, let every pixel copy a random neighbour for some rounds, blur again."""
    batch, height, width, channels = images.shape
    pixels = to_images(to_bytes(_smooth(images, level.sigma))).reshape(-1, channels)
    rows = max(0, height - 2 * level.reach)
    columns = max(0, width - 2 * level.reach)
    # Rounds follow each other: what the last one copies was put there by the one before.
    source = np.arange(batch * height * width)
    for _ in range(level.rounds):
        steps = streams.words(rows * columns).reshape(batch, rows, columns)
        source = source.take(_copied_from(steps, level.reach, height=height, width=width))
    moved = pixels.take(source, axis=0).reshape(images.shape)
    return to_images(to_bytes(_smooth(moved, level.sigma)))


def _smooth(images: NDArray[np.uint8], sigma: float) -> NDArray[np.float64]:
    return smooth_planes(to_planes(images, np.float64), sigma, border="edge")


def _copied_from(words: NDArray[np.uint32], reach: int, *, height: int, width: int) -> NDArray[np.int64]:
    """Say, for every pixel of the batch, which pixel's old value it holds after one walk.

    The walk goes from the last pixel to the first. A pixel copies its neighbour's new value if that neighbour was
    visited before, which means it lies later in the image, and its old value otherwise. Following "later"
    neighbours until a pixel that copied an old value is a chain; doubling shortens all chains at once.
    """
    batch, rows, columns = words.shape
    target = np.arange(batch * height * width).reshape(batch, height, width)
    neighbour = target.copy()
    walked = np.s_[:, reach + 1 : reach + 1 + rows, reach + 1 : reach + 1 + columns]
    across = ((words & 0xFFFF) * np.uint32(2 * reach) >> 16).astype(np.int64) - reach
    down = ((words >> 16) * np.uint32(2 * reach) >> 16).astype(np.int64) - reach
    neighbour[walked] += down * width + across
    inside = np.zeros((height, width), dtype=bool)
    inside[walked[1:]] = True

    start, goal = target.ravel(), neighbour.ravel()
    if reach == 1:
        return goal  # all neighbours lie before the pixel, so every copy is of an old value
    follows = (goal > start) & np.broadcast_to(inside, target.shape).ravel().take(goal)
    last = np.where(follows, goal, start)
    while True:
        further = last.take(last)
        if np.array_equal(further, last):
            return goal.take(last)
        last = further


def _defocused_by_rows(planes: NDArray[np.float32], level: Defocus) -> NDArray[np.float32]:
    """Multiply by one matrix per row of the kernel, and add."""
    height, width = planes.shape[-2:]
    taps = len(_disk(level.radius, level.alias_sigma))
    reach = taps // 2
    padded = planes.take(border_indices(np.arange(-reach, height + reach), height, "mirror"), axis=-2)
    total = np.zeros_like(planes)
    for row in range(taps):
        matrix = _disk_row_matrix(width, level.radius, level.alias_sigma, row)
        total += np.matmul(padded[:, :, row : row + height], matrix)
    return total


def _disk_bits(radius: float) -> int:
    """Return the bits of a weight: a disk of many pixels needs finer ones, or they could hardly be equal."""
    return SINGLE_PASS_BITS if radius <= _WIDE_DISK else SINGLE_PASS_BITS + 8


@functools.lru_cache(maxsize=32)
def _disk(radius: float, alias_sigma: float) -> NDArray[np.float64]:
    """Return the kernel: a disk on the pixel grid, its edge softened by a small Gaussian, without empty margin."""
    span, taps = (8, 3) if radius <= 8 else (int(np.floor(radius)), 5)
    steps = np.arange(-span, span + 1)
    disk = (steps[:, None] ** 2 + steps**2 <= radius**2).astype(np.float64)
    softener = np.exp(-0.5 * ((np.arange(taps) - taps // 2) / alias_sigma) ** 2)
    soften = filter_matrix(len(steps), softener / softener.sum(), "mirror")
    kernel = quantise_weights(soften @ disk @ soften.T, _disk_bits(radius))
    margin = int(np.flatnonzero(kernel.any(axis=0))[0])
    return kernel[margin : len(kernel) - margin, margin : len(kernel) - margin]


@functools.lru_cache(maxsize=128)
def _disk_row_matrix(width: int, radius: float, alias_sigma: float, row: int) -> NDArray[np.float32]:
    """Return the matrix by which lines are multiplied from the right for one row of the kernel."""
    return filter_matrix(width, _disk(radius, alias_sigma)[row], "mirror").T.astype(np.float32)

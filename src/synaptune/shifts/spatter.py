"""Spatter: drops of water or mud on the lens, cut from smoothed noise by a threshold.

Mud covers; water glints: its drops are weighted by a relief of the distance to their outlines (Canny edges, chamfer
distance, histogram equalisation, emboss), with the constants and the rounding that OpenCV uses for 8-bit images in
the published generators (Hendrycks and Dietterich, ICLR 2019).

Canny, *A computational approach to edge detection* (PAMI 1986); Borgefors, *Distance transformations in digital
images* (CVGIP 1986).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synaptune.shifts.fixed_point import Border, border_indices, smooth_planes, to_bytes
from synaptune.shifts.presets import Spatter
from synaptune.shifts.randomness import ImageStreams

__all__ = ["chamfer_distance", "edges", "equalised", "spatter"]

_WATER = (175, 238, 238)
_MUD = (63, 42, 20)
_EDGE_LOW, _EDGE_HIGH = 50, 150
_TAN_22_5 = 13573  # in units of 2**-15
_FARTHEST = 20.0
_EMBOSS = {(-1, -1): -2, (-1, 0): -1, (0, -1): -1, (0, 0): 1, (0, 1): 1, (1, 0): 1, (1, 1): 2}
# Costs of a step to the 24 neighbours; those left out are sums of these.
_STEP_COST = {1: 1.0, 2: 1.4, 5: 2.1969}


def spatter(images: NDArray[np.uint8], level: Spatter, streams: ImageStreams) -> NDArray[np.uint8]:
    """Throw water (light severities) or mud (severe ones) at the lens."""
    liquid = _liquid(images.shape, level, streams)
    if level.mud:
        drops = smooth_planes((liquid > level.threshold).astype(np.float64), level.opacity, border="edge")
        cover = np.where(drops < 0.8, 0.0, drops).astype(np.float32)[..., None]
        return to_bytes(images * (1 - cover) + np.array(_MUD, dtype=np.float32) * cover)
    glint = _glint(np.minimum(liquid * 255, 255).astype(np.uint8)) * np.float32(level.opacity)
    return to_bytes(images + np.array(_WATER, dtype=np.float32) * glint[..., None])


def _liquid(shape: tuple[int, ...], level: Spatter, streams: ImageStreams) -> NDArray[np.float64]:
    """Return smoothed noise where it is above the threshold: (batch, h, w)."""
    batch, height, width, _ = shape
    noise = streams.normal(height * width).reshape(batch, height, width) * level.spread + level.mean
    # On a grid of 2**-12 the smoothing is exact; see fixed_point.
    grain = np.floor(noise.astype(np.float64) * 2.0**12 + 0.5) * 2.0**-12
    liquid = smooth_planes(grain, level.sigma, border="edge")
    liquid[liquid < level.threshold] = 0
    return liquid


def _glint(liquid: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the relief of the drops, scaled so that the brightest spot of each image is one."""
    distance = np.minimum(chamfer_distance(edges(liquid)), np.float32(_FARTHEST))
    softened = (_neighbour_sum(distance) * np.float32(1 / 9)).astype(np.uint8)
    relief = equalised(softened).astype(np.int32)
    embossed = np.zeros_like(relief)
    for (down, right), weight in _EMBOSS.items():
        embossed += weight * _shifted(relief, down, right)
    # Nine summands: a half never occurs, so this is rounding to nearest.
    blurred = np.floor(_neighbour_sum(np.clip(embossed, 0, 255)) / 9.0 + 0.5).astype(np.float32)
    glint: NDArray[np.float32] = liquid * blurred
    glint /= np.maximum(glint.max(axis=(1, 2), keepdims=True), np.float32(1))
    return glint


def edges(planes: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Find edges: Sobel, L1 norm, thinning across the edge, then strong ones and what hangs together with them."""
    pixels = planes.astype(np.int32)
    batch, height, width = planes.shape
    padded = _padded(pixels, 1, "edge")
    smooth_down = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    smooth_right = padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + padded[:, :, 2:]
    across, down = smooth_down[:, :, 2:] - smooth_down[:, :, :-2], smooth_right[:, 2:] - smooth_right[:, :-2]
    norm = np.zeros((batch, height + 2, width + 2), dtype=np.int32)
    norm[:, 1:-1, 1:-1] = np.abs(across) + np.abs(down)
    crest = _crest(norm, across, down)
    weak = crest & (norm[:, 1:-1, 1:-1] > _EDGE_LOW)
    strong = crest & (norm[:, 1:-1, 1:-1] > _EDGE_HIGH)
    while True:
        grown = weak & (_neighbour_sum(strong.astype(np.int32), "edge") > 0)
        if np.array_equal(grown, strong):
            return strong
        strong = grown


def _crest(norm: NDArray[np.int32], across: NDArray[np.int32], down: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Say where the gradient is a maximum along its own direction, of which four are told apart."""

    def at(row: int, column: int) -> NDArray[np.int32]:
        rows, columns = norm.shape[1] - 2, norm.shape[2] - 2
        return norm[:, 1 + row : 1 + row + rows, 1 + column : 1 + column + columns]

    here = at(0, 0)
    wide, tall = np.abs(across).astype(np.int64), np.abs(down).astype(np.int64) << 15
    shallow = tall < wide * _TAN_22_5
    steep = tall > wide * (_TAN_22_5 + (2 << 15))
    falling = (across ^ down) < 0
    along_row = (here > at(0, -1)) & (here >= at(0, 1))
    along_column = (here > at(-1, 0)) & (here >= at(1, 0))
    main = (here > at(-1, -1)) & (here > at(1, 1))
    anti = (here > at(-1, 1)) & (here > at(1, -1))
    return np.where(shallow, along_row, np.where(steep, along_column, np.where(falling, anti, main)))


def chamfer_distance(marks: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the distance to the nearest mark, in steps of a 5 x 5 mask, correct up to 20 pixels.

    Relaxed for all images at once until nothing changes, which takes one round per pixel of distance.
    """
    far = np.float32(_FARTHEST + 1)
    distance = np.where(marks, np.float32(0), far)
    steps = [
        (down, right, np.float32(_STEP_COST[down * down + right * right]))
        for down, right in product(range(-2, 3), repeat=2)
        if down * down + right * right in _STEP_COST
    ]
    height, width = distance.shape[1:]
    while True:
        padded = np.pad(distance, ((0, 0), (2, 2), (2, 2)), constant_values=far)
        nearer = distance
        for down, right, cost in steps:
            moved = padded[:, 2 + down : 2 + down + height, 2 + right : 2 + right + width] + cost
            nearer = np.minimum(nearer, moved)
        if np.array_equal(nearer, distance):
            return distance
        distance = nearer


def equalised(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Spread the grey levels of each plane evenly over the range; a flat plane stays as it is."""
    batch, pixels = len(planes), planes[0].size
    levels = planes.reshape(batch, pixels).astype(np.int64) + np.arange(batch)[:, None] * 256
    counts = np.bincount(levels.ravel(), minlength=batch * 256).reshape(batch, 256)
    first = counts[np.arange(batch), (counts > 0).argmax(axis=1)]
    rest = pixels - first
    scale = np.float32(255) / np.maximum(rest, 1).astype(np.float32)
    ranks = (np.cumsum(counts, axis=1) - first[:, None]).astype(np.float32) * scale[:, None]
    tables = np.where(rest[:, None] > 0, np.rint(np.clip(ranks, 0, 255)), np.arange(256))
    return tables.astype(np.uint8).take(levels).reshape(planes.shape)


def _padded(planes: NDArray[Any], reach: int, border: Border) -> NDArray[Any]:
    height, width = planes.shape[1:]
    rows = border_indices(np.arange(-reach, height + reach), height, border)
    columns = border_indices(np.arange(-reach, width + reach), width, border)
    padded: NDArray[Any] = planes.take(rows, axis=1).take(columns, axis=2)
    return padded


def _shifted(planes: NDArray[Any], down: int, right: int) -> NDArray[Any]:
    height, width = planes.shape[1:]
    padded = _padded(planes, 1, "mirror")
    return padded[:, 1 + down : 1 + down + height, 1 + right : 1 + right + width]


def _neighbour_sum(planes: NDArray[Any], border: Border = "mirror") -> NDArray[Any]:
    """Sum the 3 x 3 neighbourhood of every pixel."""
    padded = _padded(planes, 1, border)
    lines = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    total: NDArray[Any] = lines[:, :, :-2] + lines[:, :, 1:-1] + lines[:, :, 2:]
    return total

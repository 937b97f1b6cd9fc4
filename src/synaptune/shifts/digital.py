"""Digital faults: contrast, elastic warps, pixelation, JPEG; and the extra one, saturation.

    contrast    c (x - mean) + mean, per image and channel
    elastic     a random affine map of three points, then a smooth random field of displacements
    pixelate    box average to fewer pixels and back
    jpeg        through Pillow's encoder and decoder, 4:2:0 as by default
    saturate    a S + b in HSV

Formulas of Hendrycks and Dietterich (ICLR 2019). The affine map samples on a grid of 1/32 pixel with mirrored borders
and the field with repeated borders, as OpenCV and SciPy do in the published generators.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from synaptune.shifts.fixed_point import smooth_planes, to_bytes, to_images, to_planes
from synaptune.shifts.presets import Amount, Elastic, Pixelate, Saturate
from synaptune.shifts.randomness import ImageStreams
from synaptune.shifts.resampling import Grid, box_share, grid_at, sample_linear

__all__ = ["contrast", "elastic_transform", "jpeg_compression", "pixelate", "saturate"]

_SUBPIXELS = 32


def contrast(images: NDArray[np.uint8], level: Amount, streams: ImageStreams) -> NDArray[np.uint8]:  # noqa: ARG001
    """Pull every channel towards its mean."""
    height, width = images.shape[1:3]
    totals = images.sum(axis=(1, 2), keepdims=True, dtype=np.int64)  # exact, whatever the order
    pulled = images.astype(np.float32)
    pulled *= np.float32(level.value)
    pulled += (totals * ((1 - level.value) / (height * width))).astype(np.float32)
    return to_bytes(pulled)


def saturate(images: NDArray[np.uint8], level: Saturate, streams: ImageStreams) -> NDArray[np.uint8]:  # noqa: ARG001
    """Scale the saturation of HSV; a grey pixel counts as a red without saturation."""
    pixels = images.astype(np.float32)
    value = images.max(axis=-1, keepdims=True).astype(np.float32)
    spread = value - images.min(axis=-1, keepdims=True)
    saturation = spread / np.maximum(value, 1)
    saturation *= np.float32(level.gain)
    saturation += np.float32(level.offset)
    np.clip(saturation, 0, 1, out=saturation)
    # How far each channel lies below the largest, as a share of the way to the smallest.
    depth = (value - pixels) / np.maximum(spread, 1)
    depth[(spread == 0)[..., 0]] = np.array([0, 1, 1], dtype=np.float32)
    depth *= saturation * value
    return to_bytes(value - depth)


def jpeg_compression(images: NDArray[np.uint8], level: Amount, streams: ImageStreams) -> NDArray[np.uint8]:  # noqa: ARG001
    """Encode and decode each image."""
    decoded = np.empty(images.shape, dtype=np.uint8)
    for image, target in zip(images, decoded, strict=True):
        file = BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=int(level.value))
        target[:] = np.asarray(Image.open(file))
    return decoded


def pixelate(images: NDArray[np.uint8], level: Pixelate, streams: ImageStreams) -> NDArray[np.uint8]:  # noqa: ARG001
    """Average blocks of pixels, then spread the averages over the image again."""
    height, width = images.shape[1:3]
    rows, columns = max(1, int(height * level.share)), max(1, int(width * level.share))
    planes = to_planes(images, np.float64)
    planes = _rounded(planes @ box_share(width, columns).T)
    planes = _rounded(np.matmul(box_share(height, rows), planes))
    nearest_row = ((np.arange(height) + 0.5) * (rows / height)).astype(np.int64)
    nearest_column = ((np.arange(width) + 0.5) * (columns / width)).astype(np.int64)
    coarse = to_images(planes.astype(np.uint8))
    spread: NDArray[np.uint8] = coarse.take(nearest_row, axis=1).take(nearest_column, axis=2)
    return spread


def elastic_transform(images: NDArray[np.uint8], level: Elastic, streams: ImageStreams) -> NDArray[np.uint8]:
    """Warp by a random affine map, then by a smooth random field."""
    warped = sample_linear(to_planes(images, np.float32), _affine_grid(images.shape, level.jitter, streams))
    if level.amplitude > 0:
        warped = sample_linear(warped, _field_grid(images.shape, level, streams))
    return to_images(to_bytes(warped))


def _rounded(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide by 2**22 and round, as Pillow does after each of its two passes."""
    sums += 2.0**21
    sums *= 2.0**-22
    return np.floor(sums, out=sums)


def _affine_grid(shape: tuple[int, ...], jitter: float, streams: ImageStreams) -> Grid:
    """Return where each pixel comes from when three points of a right angle are moved by up to `jitter`."""
    batch, height, width, _ = shape
    arm = max(1, min(height, width) // 3)
    still = np.array([width // 2, height // 2]) + np.array([[arm, arm], [arm, -arm], [-arm, -arm]])  # (point, x and y)
    moved = still + streams.uniform(6, -jitter, jitter).reshape(batch, 3, 2)
    # Affine coordinates of the moved triangle: p = m0 + s (m1 - m0) + t (m2 - m1).
    (ax, ay), (bx, by) = (moved[:, 1] - moved[:, 0]).T, (moved[:, 2] - moved[:, 1]).T
    area = ax * by - ay * bx
    x = np.arange(width)[None, None, :] - moved[:, 0, 0, None, None]
    y = np.arange(height)[None, :, None] - moved[:, 0, 1, None, None]
    s = x * (by / area)[:, None, None] - y * (bx / area)[:, None, None]
    t = y * (ax / area)[:, None, None] - x * (ay / area)[:, None, None]
    first, second = still[1] - still[0], still[2] - still[1]
    source_x, source_y = (still[0][k] + s * first[k] + t * second[k] for k in (0, 1))
    return grid_at(_split(source_y), _split(source_x), shape=(height, width), border="mirror")


def _split(positions: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Round positions to 1/32 pixel; return whole part and fraction."""
    units = np.floor(positions * _SUBPIXELS + 0.5).astype(np.int64)
    return units >> 5, (units & (_SUBPIXELS - 1)).astype(np.float32) * np.float32(1 / _SUBPIXELS)


def _field_grid(shape: tuple[int, ...], level: Elastic, streams: ImageStreams) -> Grid:
    """Return where each pixel comes from under smoothed uniform noise."""
    batch, height, width, _ = shape
    noise = streams.signed(2 * height * width).reshape(batch, 2, height, width).astype(np.float64)
    field = smooth_planes(noise, level.sigma, border="reflect", truncate=3.0) * level.amplitude
    columns = field[:, 0] + np.arange(width)
    rows = field[:, 1] + np.arange(height)[:, None]
    top, left = np.floor(rows), np.floor(columns)
    return grid_at(
        (top.astype(np.int64), (rows - top).astype(np.float32)),
        (left.astype(np.int64), (columns - left).astype(np.float32)),
        shape=(height, width),
        border="reflect",
    )

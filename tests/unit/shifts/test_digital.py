"""Contrast, saturation, brightness, JPEG and elastic warps against their definitions."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from synaptune.shifts import corrupt, digital
from synaptune.shifts.presets import LEVELS, SIZES, Amount, Elastic, Saturate, Size
from synaptune.shifts.randomness import ImageStreams
from tests.unit.shifts.conftest import picture_like


def colours() -> NDArray[np.uint8]:
    """Random colours, and the corners where hue or saturation are not defined."""
    corners = [(0, 0, 0), (255, 255, 255), (128, 128, 128), (255, 0, 0), (0, 255, 255), (1, 0, 0), (7, 7, 9)]
    random = np.random.default_rng(0).integers(0, 256, (257, 3))
    return np.concatenate([np.array(corners), random]).astype(np.uint8).reshape(1, 12, 22, 3)


def through_hsv(
    images: NDArray[np.uint8], change: Callable[[float, float, float], tuple[float, float, float]]
) -> NDArray[np.float64]:
    pixels = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*pixel))) for pixel in images.reshape(-1, 3) / 255]
    return 255 * np.array(pixels).reshape(images.shape)


@pytest.mark.parametrize("size", SIZES)
def test_brightness_raises_the_value_of_hsv(size: Size) -> None:
    images = colours()
    for severity, level in enumerate(LEVELS[size]["brightness"], start=1):
        assert isinstance(level, Amount)
        expected = through_hsv(images, lambda h, s, v, step=level.value: (h, s, min(v + step, 1)))  # type: ignore[misc]
        result = corrupt(images, "brightness", severity, size=size)
        assert (np.abs(result - np.floor(expected + 2.0**-10)) <= (expected % 1 > 0.998)).all()


@pytest.mark.parametrize("size", SIZES)
def test_saturate_scales_the_saturation_of_hsv(size: Size) -> None:
    images = colours()
    for severity, level in enumerate(LEVELS[size]["saturate"], start=1):
        assert isinstance(level, Saturate)
        gain, offset = level.gain, level.offset
        expected = through_hsv(images, lambda h, s, v, a=gain, b=offset: (h, min(max(a * s + b, 0), 1), v))  # type: ignore[misc]
        result = corrupt(images, "saturate", severity, size=size)
        assert np.abs(result + 0.5 - expected).max() < 0.51


def test_contrast_pulls_every_channel_of_every_image_to_its_mean() -> None:
    images = picture_like(3, 32, 32)
    means = images.astype(np.float64).mean(axis=(1, 2), keepdims=True)
    expected = 0.15 * (images - means) + means
    assert np.abs(corrupt(images, "contrast", 5) + 0.5 - expected).max() < 0.51


@pytest.mark.parametrize("size", SIZES)
def test_jpeg_is_pillows_at_the_published_quality(size: Size) -> None:
    image = picture_like(1, size, size)
    for severity, level in enumerate(LEVELS[size]["jpeg_compression"], start=1):
        assert isinstance(level, Amount)
        file = BytesIO()
        Image.fromarray(image[0]).save(file, "JPEG", quality=int(level.value))
        assert np.array_equal(corrupt(image, "jpeg_compression", severity)[0], np.asarray(Image.open(file)))


def streams() -> ImageStreams:
    return ImageStreams(np.arange(4), seed=0, name="elastic", severity=1)


def test_the_affine_map_takes_its_three_points_where_they_were_drawn() -> None:
    # A ramp says where each pixel came from.
    size, jitter = 65, 5.0
    rows, columns = np.mgrid[0:size, 0:size].astype(np.float32)
    planes = np.broadcast_to(np.stack([columns, rows]), (4, 2, size, size)).copy()
    warped = digital.sample_linear(planes, digital._affine_grid((4, size, size, 3), jitter, streams()))
    moved = streams().uniform(6, -jitter, jitter).reshape(4, 3, 2)
    arm, middle = size // 3, size // 2
    for number in range(4):
        for point, corner in enumerate([(arm, arm), (arm, -arm), (-arm, -arm)]):
            source = np.array(corner) + middle
            x, y = source + moved[number, point]
            column, row = int(np.floor(x)), int(np.floor(y))
            square = warped[number, :, row : row + 2, column : column + 2]
            down, right = y - row, x - column
            top = square[:, 0, 0] * (1 - right) + square[:, 0, 1] * right
            bottom = square[:, 1, 0] * (1 - right) + square[:, 1, 1] * right
            assert np.abs(top * (1 - down) + bottom * down - source).max() < 1 / 32


def test_no_jitter_and_no_amplitude_change_nothing() -> None:
    images = picture_like(4, 32, 32)
    assert np.array_equal(digital.elastic_transform(images, Elastic(0, 0, 0), streams()), images)


def test_the_field_is_smoothed_noise_times_the_amplitude() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    level, side = Elastic(amplitude=3.0, sigma=2.0, jitter=0.0), 40
    grid = digital._field_grid((4, side, side, 3), level, streams())
    noise = streams().signed(2 * side * side).reshape(4, 2, side, side).astype(np.float64)
    for number in range(4):
        right = 3.0 * ndimage.gaussian_filter(noise[number, 0], 2.0, mode="reflect", truncate=3)
        down = 3.0 * ndimage.gaussian_filter(noise[number, 1], 2.0, mode="reflect", truncate=3)
        columns = np.arange(side) + right
        rows = np.arange(side)[:, None] + down
        assert np.abs(grid.right[number] - columns % 1)[np.abs(columns % 1 - 0.5) < 0.49].max() < 1e-3
        assert np.abs(grid.down[number] - rows % 1)[np.abs(rows % 1 - 0.5) < 0.49].max() < 1e-3

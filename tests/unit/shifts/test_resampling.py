"""Zooming, warping and box averaging against SciPy and Pillow."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from synaptune.shifts import corrupt
from synaptune.shifts.fixed_point import Border
from synaptune.shifts.presets import LEVELS, SIZES, Pixelate, Size
from synaptune.shifts.resampling import box_share, clipped_zoom, grid_at, sample_linear, zoom_window
from tests.unit.shifts.conftest import picture_like


@pytest.mark.parametrize("size", [32, 64, 75, 224])
@pytest.mark.parametrize("factor", [1.0, 1.01, 1.13, 1.25, 1.75, 2.25, 4.5])
def test_clipped_zoom_is_scipys_zoom_of_the_middle(size: int, factor: float) -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    image = np.random.default_rng(0).random((size, size)).astype(np.float32)
    start, length = zoom_window(size, factor)
    window = image[start : start + length, start : start + length]
    enlarged = ndimage.zoom(window, factor, order=1)
    trim = (len(enlarged) - size) // 2
    expected = enlarged[trim : trim + size, trim : trim + size]
    assert np.abs(clipped_zoom(window, factor, height=size, width=size) - expected).max() < 1e-5


def test_zoom_treats_height_and_width_apart() -> None:
    image = np.random.default_rng(0).random((20, 40, 2)).astype(np.float32)
    (top, tall), (left, wide) = zoom_window(20, 1.6), zoom_window(40, 1.6)
    window = image[top : top + tall, left : left + wide]
    zoomed = clipped_zoom(window, 1.6, height=20, width=40)
    turned = clipped_zoom(window.swapaxes(0, 1), 1.6, height=40, width=20)
    assert zoomed.shape == (20, 40, 2)
    assert np.allclose(zoomed, turned.swapaxes(0, 1), atol=1e-6)


@pytest.mark.parametrize(("border", "mode"), [("edge", "nearest"), ("reflect", "reflect"), ("mirror", "mirror")])
def test_sampling_is_scipys_linear_interpolation(border: Border, mode: str) -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    generator = np.random.default_rng(0)
    planes = generator.random((2, 3, 11, 14)).astype(np.float32)
    rows, columns = generator.uniform(-5, 15, (2, 11, 14)), generator.uniform(-5, 18, (2, 11, 14))
    top, left = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    grid = grid_at(
        (top, (rows - top).astype(np.float32)),
        (left, (columns - left).astype(np.float32)),
        shape=(11, 14),
        border=border,
    )
    sampled = sample_linear(planes, grid)
    for number in range(2):
        for channel in range(3):
            expected = ndimage.map_coordinates(
                planes[number, channel], [rows[number], columns[number]], order=1, mode=mode
            )
            assert np.abs(sampled[number, channel] - expected).max() < 1e-5


@pytest.mark.parametrize("size", SIZES)
def test_pixelate_is_pillows_box_filter_byte_for_byte(size: Size) -> None:
    images = picture_like(2, size, size)
    for severity, level in enumerate(LEVELS[size]["pixelate"], start=1):
        assert isinstance(level, Pixelate)
        corrupted = corrupt(images, "pixelate", severity)
        few = int(size * level.share)
        for image, result in zip(images, corrupted, strict=True):
            small = Image.fromarray(image).resize((few, few), Image.Resampling.BOX)
            assert np.array_equal(result, np.asarray(small.resize((size, size), Image.Resampling.BOX)))


@pytest.mark.parametrize(("size", "target"), [(32, 20), (224, 56), (7, 7), (10, 1)])
def test_box_weights_share_out_every_pixel(size: int, target: int) -> None:
    matrix = box_share(size, target)
    assert np.allclose(matrix.sum(axis=1), 2**22, atol=size)
    assert (matrix > 0).any(axis=0).all()

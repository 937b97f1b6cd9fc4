"""Snow, frost, fog and spatter against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from synaptune.shifts import corrupt, ice, weather
from synaptune.shifts.plasma import plasma
from synaptune.shifts.presets import LEVELS, SIZES, Fog, Frost, Size, Snow
from synaptune.shifts.randomness import ImageStreams
from synaptune.shifts.spatter import chamfer_distance, edges, equalised
from tests.unit.shifts.conftest import picture_like


def streams(count: int, name: str, severity: int = 1) -> ImageStreams:
    return ImageStreams(np.arange(count), seed=0, name=name, severity=severity)


def slow_plasma(noise: NDArray[np.float32], side: int, decay: float) -> NDArray[np.float64]:
    """The diamond-square algorithm point by point, on a torus."""
    heights = np.zeros((side, side))
    used, wibble, step = 0, 100.0, side
    while step >= 2:
        half, cells = step // 2, side // step
        rough = noise[used : used + 3 * cells * cells].reshape(3, cells, cells) * (wibble * wibble)
        used += 3 * cells * cells
        for i in range(cells):
            for j in range(cells):
                y, x = i * step, j * step
                corners = [heights[(y + a) % side, (x + b) % side] for a in (0, step) for b in (0, step)]
                heights[y + half, x + half] = sum(corners) / 4 + rough[0, i, j]
        for i in range(cells):
            for j in range(cells):
                y, x = i * step, j * step
                above, left = heights[(y - half) % side, x + half], heights[y + half, (x - half) % side]
                centre, corner = heights[y + half, x + half], heights[y, x]
                right, below = heights[y, (x + step) % side], heights[(y + step) % side, x]
                heights[y, x + half] = (centre + above + corner + right) / 4 + rough[1, i, j]
                heights[y + half, x] = (centre + left + corner + below) / 4 + rough[2, i, j]
        step, wibble = half, wibble / decay
    heights -= heights.min()
    return heights / heights.max()


@pytest.mark.parametrize("side", [2, 4, 16])
def test_plasma_is_the_diamond_square_fractal(side: int) -> None:
    noise = streams(3, "plasma").signed(side * side - 1)
    fractal = plasma(streams(3, "plasma"), side, 1.75)
    for number in range(3):
        assert np.allclose(fractal[number], slow_plasma(noise[number], side, 1.75), atol=1e-12)


def test_plasma_gets_smoother_with_faster_decay() -> None:
    rough, smooth = (np.abs(np.diff(plasma(streams(8, "plasma"), 64, decay), axis=1)).mean() for decay in (1.4, 3.0))
    assert smooth < 0.5 * rough


@pytest.mark.parametrize("size", SIZES)
def test_fog_mixes_the_image_with_the_cloud(size: Size) -> None:
    images = picture_like(2, size, size) // 2
    side = {32: 32, 64: 64, 224: 256}[size]
    level = LEVELS[size]["fog"][4]
    assert isinstance(level, Fog)
    cloud = plasma(streams(2, "fog", 5), side, level.decay)[:, :size, :size, None]
    brightest = images.max(axis=(1, 2, 3), keepdims=True) / 255
    expected = 255 * (images / 255 + level.thickness * cloud) * brightest / (brightest + level.thickness)
    assert np.abs(corrupt(images, "fog", 5) + 0.5 - expected).max() < 0.51


def test_snow_is_flakes_over_a_whitened_image() -> None:
    images = picture_like(3, 32, 32)
    level = LEVELS[32]["snow"][2]
    assert isinstance(level, Snow)
    own = streams(3, "snow", 3)
    flakes = weather._flakes((32, 32), level, own)
    angles = own.uniform(1, -135, -45)[:, 0]
    blown = weather.blur_along(flakes[..., None], angles, radius=level.radius, sigma=level.sigma).astype(float)
    grey = images @ np.array([0.299, 0.587, 0.114])
    whitened = np.maximum(images, 1.5 * grey[..., None] + 127.5)
    expected = level.keep * images + (1 - level.keep) * whitened + blown + np.rot90(blown, 2, axes=(1, 2))
    assert np.abs(corrupt(images, "snow", 3) + 0.5 - np.clip(expected, 0, 255.4)).max() < 0.52
    assert 0.01 < (flakes > 0).mean() < 0.3
    assert flakes[flakes > 0].min() >= int(255 * level.threshold)


def test_flakes_are_the_enlarged_middle_of_normal_noise() -> None:
    level = Snow(mean=0.5, spread=0.1, zoom=1.0, threshold=0.0, radius=1, sigma=1, keep=1)
    flakes = weather._flakes((64, 64), level, streams(4, "snow"))
    assert flakes.mean() == pytest.approx(127, abs=1)
    assert flakes.std() == pytest.approx(25.5, abs=0.5)


def test_frost_adds_a_window_of_a_texture(no_photographs: object) -> None:
    images = picture_like(2, 32, 32)
    level = LEVELS[32]["frost"][4]
    assert isinstance(level, Frost)
    textures = ice.ice_textures(level.texture_scale, 32, 32)
    frosted = corrupt(images, "frost", 5)
    for image, result in zip(images, frosted, strict=True):
        assert any(
            np.array_equal(result, mixed(image, texture.window(row, column, 32, 32), level))
            for texture in textures
            for row in range(texture.shape[0] - 32)
            for column in range(texture.shape[1] - 32)
        )


def mixed(image: NDArray[np.uint8], window: NDArray[np.uint8], level: Frost) -> NDArray[np.uint8]:
    total = image * np.float32(level.image_weight) + window.astype(np.float32) * np.float32(level.ice_weight)
    return np.clip(total + 2.0**-10, 0, 255).astype(np.uint8)


def test_edges_of_a_step_are_one_line() -> None:
    step = np.zeros((1, 9, 12), dtype=np.uint8)
    step[:, :, 6:] = 200
    found = edges(step)[0]
    assert found.sum() == 9
    assert len(np.unique(np.flatnonzero(found) % 12)) == 1
    assert not edges(np.full((1, 9, 12), 200, dtype=np.uint8)).any()


def test_weak_edges_count_where_they_continue_a_strong_one() -> None:
    ramp = np.linspace(12, 120, 40)[:, None] * (np.arange(40) >= 20)
    found = edges(ramp.astype(np.uint8)[None])[0]
    faint = edges((ramp * 0.2).astype(np.uint8)[None])[0]
    assert found.any(axis=1).sum() >= 38  # all but the faintest end of the edge, far below the upper threshold
    assert not faint.any()


def test_chamfer_distance_is_close_to_the_true_one() -> None:
    marks = np.zeros((2, 25, 31), dtype=bool)
    marks[0, 3, 4] = marks[0, 20, 20] = marks[1, 12, 0] = True
    measured = chamfer_distance(marks)
    rows, columns = np.mgrid[0:25, 0:31]
    for number in range(2):
        points = np.argwhere(marks[number])
        true = np.min([np.hypot(rows - y, columns - x) for y, x in points], axis=0)
        near = true < 19
        assert np.abs(measured[number] - true)[near].max() < 0.5
        assert (measured[number][true > 22] > 20).all()
    straight = measured[1, 12, :20]
    assert np.array_equal(straight, np.arange(20, dtype=np.float32))


def test_nothing_is_near_where_there_is_no_mark() -> None:
    assert (chamfer_distance(np.zeros((1, 5, 5), dtype=bool)) > 20).all()


def test_equalising_spreads_the_levels_and_leaves_flat_planes() -> None:
    planes = np.stack([np.repeat([10, 20, 30, 40], 4), np.full(16, 7)]).astype(np.uint8).reshape(2, 4, 4)
    spread = equalised(planes)
    assert np.unique(spread[0]).tolist() == [0, 85, 170, 255]
    assert np.array_equal(spread[1], planes[1])


@pytest.mark.parametrize("size", SIZES)
def test_water_brightens_and_mud_browns(size: Size) -> None:
    grey = np.full((3, size, size, 3), 90, dtype=np.uint8)
    wet = corrupt(grey, "spatter", 3).astype(int)
    assert (wet >= 90).all()
    assert 0.01 < (wet > 90).mean() < 0.9
    assert (wet[..., 0] <= wet[..., 1]).all()  # pale turquoise has least red
    muddy = corrupt(grey, "spatter", 5).astype(int)
    hit = (muddy != 90).any(axis=-1)
    assert 0.005 < hit.mean() < 0.6
    assert (muddy[hit][:, 0] > muddy[hit][:, 2]).all()

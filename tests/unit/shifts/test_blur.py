"""Blurs against literal, slow versions of what they stand for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from synaptune.shifts import SEVERITIES, blur, corrupt
from synaptune.shifts.motion import blur_along, streak_offsets, streak_weights
from synaptune.shifts.presets import LEVELS, SIZES, Defocus, Glass, Motion, Size, Zoom
from tests.unit.shifts.conftest import picture_like


def walked(words: NDArray[np.uint32], reach: int, height: int, width: int) -> NDArray[np.int64]:
    """Which pixel each pixel ends as a copy of: the published walk, pixel after pixel."""
    holds = np.arange(height * width).reshape(height, width)
    for row in range(height - reach, reach, -1):
        for column in range(width - reach, reach, -1):
            word = int(words[row - reach - 1, column - reach - 1])
            right = ((word & 0xFFFF) * 2 * reach >> 16) - reach
            down = ((word >> 16) * 2 * reach >> 16) - reach
            holds[row, column] = holds[row + down, column + right]
    return holds


@pytest.mark.parametrize("reach", [1, 2, 3, 4])
@pytest.mark.parametrize(("height", "width"), [(20, 20), (13, 31)])
def test_glass_gives_what_the_walk_over_the_pixels_gives(reach: int, height: int, width: int) -> None:
    rows, columns = height - 2 * reach, width - 2 * reach
    words = np.random.default_rng(reach).integers(0, 2**32, (5, rows, columns), dtype=np.uint32)
    source = blur._copied_from(words, reach, height=height, width=width).reshape(5, height, width)
    for number in range(5):
        expected = walked(words[number], reach, height, width) + number * height * width
        assert np.array_equal(source[number], expected)


def test_glass_moves_pixels_by_no_more_than_its_reach() -> None:
    words = np.random.default_rng(0).integers(0, 2**32, (1, 30, 30), dtype=np.uint32)
    source = blur._copied_from(words, 1, height=32, width=32).reshape(32, 32)
    rows, columns = np.divmod(source, 32)
    down, right = rows - np.arange(32)[:, None], columns - np.arange(32)
    # randint(-1, 1) never gives 1, so pixels only come from above and from the left.
    assert set(np.unique(down)) == set(np.unique(right)) == {-1, 0}
    assert np.array_equal(source[:2], np.arange(64).reshape(2, 32))


def test_glass_rounds_follow_each_other() -> None:
    images = picture_like(1, 16, 16)
    once, twice = (corrupt_glass(images, rounds) for rounds in (1, 2))
    assert not np.array_equal(once, twice)
    assert set(map(tuple, twice.reshape(-1, 3).tolist())) <= set(map(tuple, images.reshape(-1, 3).tolist()))


def corrupt_glass(images: NDArray[np.uint8], rounds: int) -> NDArray[np.uint8]:
    from synaptune.shifts.randomness import ImageStreams

    streams = ImageStreams(np.arange(len(images)), seed=0, name="glass", severity=1)
    return blur.glass_blur(images, Glass(sigma=0.05, reach=1, rounds=rounds), streams)


def slow_motion(image: NDArray[np.uint8], radius: float, sigma: float, angle: float) -> NDArray[np.uint8]:
    """ImageMagick's motion blur, as documented, pixel after pixel."""
    taps = 2 * math.ceil(radius) + 1
    weights = [math.exp(-(i**2) / (2 * sigma**2)) for i in range(taps)]
    height, width, _ = image.shape
    down, right = math.sin(math.radians(angle)), math.cos(math.radians(angle))
    blurred = np.zeros(image.shape)
    for row in range(height):
        for column in range(width):
            for i, weight in enumerate(weights):
                y = min(max(row + math.ceil(i * down - 0.5), 0), height - 1)
                x = min(max(column + math.ceil(i * right - 0.5), 0), width - 1)
                blurred[row, column] += weight * image[y, x]
    return np.floor(blurred / sum(weights) + 0.5).astype(np.uint8)


@pytest.mark.parametrize(("radius", "sigma", "angle"), [(9, 2.5, 17.0), (6, 1, -45.0), (14, 12, -100.0), (3, 2, 0.0)])
def test_motion_is_imagemagicks(radius: float, sigma: float, angle: float) -> None:
    image = picture_like(1, 12, 15)[0]
    expected = slow_motion(image, radius, sigma, angle).astype(int)
    blurred = blur_along(image[None], np.array([angle]), radius=radius, sigma=sigma)[0].astype(int)
    # Weights are rounded to 2**-16, so a value that lies on a half may round the other way.
    assert np.abs(blurred - expected).max() <= 1
    assert (blurred != expected).mean() < 0.01


def test_motion_is_one_sided() -> None:
    dot = np.zeros((1, 9, 33, 1), dtype=np.uint8)
    dot[0, 4, 16] = 255
    streak = blur_along(dot, np.array([0.0]), radius=5, sigma=3)[0, 4, :, 0]
    assert streak[17:].max() == 0
    assert (np.diff(streak[6:17].astype(int)) >= 0).all()
    assert streak[8] > 0


def test_every_image_has_its_own_direction() -> None:
    same = np.repeat(picture_like(1, 32, 32), 8, axis=0)
    blurred = corrupt(same, "motion_blur", 5)
    assert len({image.tobytes() for image in blurred}) == 8


def test_streaks_lose_only_weights_that_vanish() -> None:
    weights = streak_weights(20, 15)
    assert len(weights) == 41
    assert weights.sum() == 1
    assert streak_offsets(41, 30.0)[40].tolist() == [20, 35]


@pytest.mark.parametrize("size", SIZES)
def test_defocus_convolves_with_its_disk(size: Size) -> None:
    image = picture_like(1, 24, 28)
    for severity in (1, 3, 5):
        level = LEVELS[size]["defocus_blur"][severity - 1]
        assert isinstance(level, Defocus)
        kernel = blur._disk(level.radius, level.alias_sigma)
        reach = len(kernel) // 2
        assert kernel.sum() == 1
        assert np.allclose(kernel, kernel[::-1], atol=2.0**-15)
        assert np.allclose(kernel, kernel.T, atol=2.0**-15)
        padded = np.pad(image[0].astype(np.float64), ((reach, reach), (reach, reach), (0, 0)), mode="reflect")
        expected = np.zeros(image[0].shape)
        for row in range(2 * reach + 1):
            for column in range(2 * reach + 1):
                expected += kernel[row, column] * padded[row : row + 24, column : column + 28]
        blurred = corrupt(image, "defocus_blur", severity, size=size)[0]
        assert np.array_equal(blurred, (expected + 2.0**-10).astype(np.uint8))


def test_defocus_gives_the_same_bits_by_matrices_and_by_fourier_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    image = picture_like(2, 60, 70)
    by_matrices = [corrupt(image, "defocus_blur", severity) for severity in SEVERITIES]
    monkeypatch.setattr(blur, "_THUMBNAIL", 0)
    for severity, expected in zip(SEVERITIES, by_matrices, strict=True):
        assert np.array_equal(corrupt(image, "defocus_blur", severity), expected)


def test_a_disk_for_a_photograph_of_many_megapixels_is_even() -> None:
    kernel = blur._disk(134, 0.5)
    assert kernel.sum() == 1
    inside = kernel[100:170, 100:170] * kernel[134, 134] ** -1
    assert inside == pytest.approx(1, abs=0.01)
    assert kernel[:134].sum() == pytest.approx(kernel[135:].sum(), abs=5e-3)


def test_the_disk_covers_its_radius() -> None:
    kernel = blur._disk(6, 0.5)
    across = kernel.sum(axis=0)
    distance = np.abs(np.arange(len(kernel)) - len(kernel) // 2)
    assert (kernel.diagonal()[distance > 5] == 0).all()
    assert (across[distance <= 6] > 0).all()
    assert len(blur._disk(10, 0.5)) == 21


@pytest.mark.parametrize(("size", "counts"), [(32, (7, 12, 16, 21, 26)), (224, (12, 16, 11, 13, 11))])
def test_zoom_averages_the_published_number_of_copies(size: Size, counts: tuple[int, ...]) -> None:
    zooms = LEVELS[size]["zoom_blur"]
    assert tuple(len(zoom.factors) for zoom in zooms if isinstance(zoom, Zoom)) == counts
    assert all(zoom.factors[0] == 1 for zoom in zooms if isinstance(zoom, Zoom))


def test_zoom_keeps_the_middle_and_stretches_the_rest() -> None:
    rings = np.zeros((1, 33, 33, 3), dtype=np.uint8)
    rings[:, 16, 16] = 255
    rings[:, ::16, ::16] = 255
    blurred = corrupt(rings, "zoom_blur", 5, size=32)[0, :, :, 0]
    assert blurred[16, 16] > 100
    assert np.array_equal(blurred, blurred.T)


@pytest.mark.parametrize("size", SIZES)
def test_published_motion_streaks_grow_longer(size: Size) -> None:
    means = []
    for level in LEVELS[size]["motion_blur"]:
        assert isinstance(level, Motion)
        weights = streak_weights(level.radius, level.sigma)
        means.append(float(weights @ np.arange(len(weights))))
    assert means == sorted(means)

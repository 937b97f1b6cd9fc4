"""The tables of published constants, and how they are chosen and scaled for other sizes."""

from __future__ import annotations

import hashlib

import pytest

from synaptune import shifts
from synaptune.shifts.presets import (
    LEVELS,
    SIZES,
    Amount,
    Defocus,
    Elastic,
    Frost,
    Glass,
    Motion,
    Pixelate,
    Size,
    Smooth,
    Snow,
    Spatter,
    nearest_size,
    strength_of,
)

TABLES = "d8d86a626da84393d4a78a04a38ec83570e5c3f469888b205d6f15e65cf2f31f"


@pytest.mark.parametrize("size", SIZES)
def test_every_corruption_has_five_strengths_at_every_size(size: Size) -> None:
    assert set(LEVELS[size]) == set(shifts.names("all"))
    assert all(len(levels) == 5 for levels in LEVELS[size].values())
    assert all(len({type(level) for level in levels}) == 1 for levels in LEVELS[size].values())


# Read once more, by eye, from make_cifar_c.py, make_tinyimagenet_c.py and make_imagenet_c.py.
@pytest.mark.parametrize(
    ("size", "name", "severity", "expected"),
    [
        (32, "gaussian_noise", 5, Amount(0.10)),
        (32, "shot_noise", 1, Amount(500)),
        (32, "glass_blur", 4, Glass(0.25, 1, 2)),
        (32, "motion_blur", 5, Motion(9, 2.5)),
        (32, "snow", 5, Snow(0.3, 0.3, 1.25, 0.65, 14, 12, 0.8)),
        (32, "jpeg_compression", 5, Amount(40)),
        (32, "elastic_transform", 5, Elastic(3.2, 0.96, 0.96)),
        (64, "impulse_noise", 5, Amount(0.14)),
        (64, "defocus_blur", 4, Defocus(2.5, 0.01)),
        (64, "frost", 2, Frost(0.9, 0.4, 0.3)),
        (64, "pixelate", 5, Pixelate(0.5)),
        (64, "contrast", 1, Amount(0.4)),
        (224, "shot_noise", 5, Amount(3)),
        (224, "glass_blur", 3, Glass(1, 2, 3)),
        (224, "gaussian_blur", 5, Smooth(6)),
        (224, "elastic_transform", 1, Elastic(488, 170.8, 24.4)),
        (224, "spatter", 5, Spatter(0.67, 0.4, 1, 0.65, 1.5, mud=True)),
        (224, "jpeg_compression", 1, Amount(25)),
    ],
)
def test_constants_are_the_published_ones(size: Size, name: str, severity: int, expected: object) -> None:
    found = strength_of(name, severity, height=size, width=size)
    assert vars(found) == pytest.approx(vars(expected))
    assert type(found) is type(expected)


def test_no_constant_changes_by_accident() -> None:
    text = repr([(size, name, LEVELS[size][name]) for size in SIZES for name in shifts.names("all")])
    assert hashlib.sha256(text.encode()).hexdigest() == TABLES


@pytest.mark.parametrize(
    ("height", "width", "size"),
    [
        (32, 32, 32),
        (28, 28, 32),
        (45, 45, 32),
        (46, 46, 64),
        (96, 96, 64),
        (120, 120, 224),
        (480, 640, 224),
        (1, 9, 32),
    ],
)
def test_the_nearest_published_size_counts_by_the_shorter_side(height: int, width: int, size: Size) -> None:
    assert nearest_size(height, width) == nearest_size(width, height) == size


@pytest.mark.parametrize("name", shifts.names("all"))
@pytest.mark.parametrize("size", SIZES)
def test_published_sizes_are_not_scaled(name: str, size: Size) -> None:
    for severity in shifts.SEVERITIES:
        scaled = strength_of(name, severity, height=size, width=2 * size)
        assert scaled == LEVELS[size][name][severity - 1]


def test_lengths_grow_with_the_image_and_amplitudes_do_not() -> None:
    def at(name: str, severity: int) -> object:
        return strength_of(name, severity, height=448, width=448)

    assert at("gaussian_blur", 1) == Smooth(2)
    assert at("defocus_blur", 1) == Defocus(6, 0.1)
    assert at("glass_blur", 2) == Glass(1.8, 4, 1)
    assert at("motion_blur", 1) == Motion(20, 6)
    assert at("pixelate", 1) == Pixelate(0.3)
    assert at("frost", 1) == Frost(1, 0.4, 2)
    assert at("snow", 1) == Snow(0.1, 0.3, 6, 0.5, 20, 8, 0.8)
    assert at("spatter", 1) == Spatter(0.65, 0.3, 8, 0.69, 0.6, mud=False)
    assert at("spatter", 5) == Spatter(0.67, 0.4, 2, 0.65, 3.0, mud=True)
    for name in ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "contrast", "brightness", "fog"):
        assert at(name, 3) == LEVELS[224][name][2]
    assert at("jpeg_compression", 3) == LEVELS[224]["jpeg_compression"][2]


def test_small_images_never_get_impossible_strengths() -> None:
    for name in shifts.names("all"):
        for severity in shifts.SEVERITIES:
            for side in (1, 8, 20, 46):
                strength = strength_of(name, severity, height=side, width=side)
                if isinstance(strength, Glass):
                    assert strength.reach >= 1
                if isinstance(strength, Snow):
                    assert strength.zoom >= 1
                if isinstance(strength, Pixelate):
                    assert 0 < strength.share <= 1


def test_a_named_size_takes_the_table_as_it_is() -> None:
    assert strength_of("motion_blur", 2, height=500, width=375, size=224) == Motion(15, 5)
    assert strength_of("motion_blur", 2, height=500, width=375, size=32) == Motion(6, 1.5)

"""Noise: the tables against the published formulas, and the sampling against the tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from synaptune.shifts import corrupt, noise
from synaptune.shifts.presets import LEVELS, SIZES, Amount, Size

Floats = NDArray[np.float64]


def probabilities(table: tuple[NDArray[np.uint32], NDArray[np.uint8]]) -> Floats:
    """Undo the alias method: P(output | input) as (256, 256)."""
    threshold, alias = (part.reshape(256, 256).astype(np.int64) for part in table)
    mass = threshold.astype(np.float64)
    for value in range(256):
        np.add.at(mass[value], alias[value], 2**24 - threshold[value])
    return mass / 2**32


def normal(values: Floats, level: float, generator: np.random.Generator) -> Floats:
    return values + generator.normal(size=values.shape, scale=level)


def shot(values: Floats, level: float, generator: np.random.Generator) -> Floats:
    return generator.poisson(values * level) / level


def impulse(values: Floats, level: float, generator: np.random.Generator) -> Floats:
    hit = generator.random(values.shape) < level
    return np.where(hit, generator.random(values.shape) < 0.5, values)


def speckle(values: Floats, level: float, generator: np.random.Generator) -> Floats:
    return values + values * generator.normal(size=values.shape, scale=level)


LAWS: dict[str, Callable[[Floats, float, np.random.Generator], Floats]] = {
    "gaussian_noise": normal,
    "shot_noise": shot,
    "impulse_noise": impulse,
    "speckle_noise": speckle,
}
TABLES = {
    "gaussian_noise": noise._gaussian_table,
    "shot_noise": noise._shot_table,
    "impulse_noise": noise._impulse_table,
    "speckle_noise": noise._speckle_table,
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", sorted(LAWS))
def test_tables_hold_the_published_laws(name: str, size: Size) -> None:
    generator = np.random.default_rng(0)
    values = np.array([0, 1, 37, 128, 254, 255])
    for strength in LEVELS[size][name]:
        assert isinstance(strength, Amount)
        table = probabilities(TABLES[name](strength.value))
        assert np.allclose(table.sum(axis=1), 1, atol=1e-9)
        repeats = 20_000
        drawn = LAWS[name](np.repeat(values / 255.0, repeats), strength.value, generator)
        bytes_drawn = (np.clip(drawn, 0, 1) * 255 + 1e-9).astype(np.int64).reshape(len(values), repeats)
        for value, row in zip(values, bytes_drawn, strict=True):
            expected = table[value] * repeats
            counts = np.bincount(row, minlength=256)
            assert counts[expected == 0].sum() == 0
            common = expected > 8
            rest_expected, rest_counts = expected[~common].sum(), counts[~common].sum()
            chi_square = ((counts - expected)[common] ** 2 / expected[common]).sum()
            freedom = common.sum()
            assert chi_square < freedom + 5 * np.sqrt(2 * freedom) + 8
            assert abs(rest_counts - rest_expected) < 6 * np.sqrt(rest_expected + 1)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_sampling_follows_the_table(name: str) -> None:
    images = np.repeat(np.arange(0, 256, 5, dtype=np.uint8), 52 * 3)[: 52 * 52 * 3].reshape(1, 52, 52, 3)
    images = np.repeat(images, 40, axis=0)
    strength = LEVELS[32][name][4]
    assert isinstance(strength, Amount)
    table = probabilities(TABLES[name](strength.value))
    corrupted = corrupt(images, name, 5, size=32).astype(np.float64)
    outputs = np.arange(256)
    for value in (0, 5, 100, 250, 255):
        drawn = corrupted[images == value]
        mean = table[value] @ outputs
        variance = table[value] @ (outputs - mean) ** 2
        assert abs(drawn.mean() - mean) < 5 * np.sqrt(variance / drawn.size) + 1e-9
        if variance > 0:
            fourth = table[value] @ (outputs - mean) ** 4
            error = np.sqrt(max(fourth - variance**2, 1e-9) / drawn.size)
            assert abs(drawn.var() - variance) < 6 * error + 1e-6


def test_an_alias_table_keeps_every_probability() -> None:
    rows = np.random.default_rng(0).random((256, 256)) ** 8
    rows /= rows.sum(axis=1, keepdims=True)
    assert np.abs(probabilities(noise._alias_table(rows)) - rows).max() < 2.0**-27  # 256 roundings of 2**-33 each
    certain = np.eye(256)
    assert np.array_equal(probabilities(noise._alias_table(certain)), certain)


def test_channels_are_hit_on_their_own() -> None:
    grey = np.full((4, 32, 32, 3), 128, dtype=np.uint8)
    hit = corrupt(grey, "impulse_noise", 5) != 128
    share = hit.mean()
    all_three = hit.all(axis=-1).mean()
    assert share == pytest.approx(0.07, abs=0.01)
    assert all_three == pytest.approx(share**3, abs=0.002)


def test_black_stays_black_under_noise_in_proportion_to_light() -> None:
    black = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    assert not corrupt(black, "speckle_noise", 5).any()
    assert not corrupt(black, "shot_noise", 5).any()

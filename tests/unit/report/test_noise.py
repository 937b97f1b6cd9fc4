from __future__ import annotations

import numpy as np
import pytest

from synaptune.report.noise import Estimate, binomial_error, difference, estimate, mean


@pytest.mark.parametrize(("percent", "images"), [(25.0, 10_000), (5.0, 1_000), (60.0, 200)])
def test_binomial_error_is_the_spread_of_repeated_samples(percent: float, images: int) -> None:
    draws = np.random.default_rng(0).binomial(images, percent / 100, size=20_000) / images * 100
    assert binomial_error(percent, images) == pytest.approx(draws.std(), rel=0.03)


def test_a_cell_without_errors_is_not_taken_for_exact() -> None:
    assert binomial_error(0.0, 100) > 1
    assert binomial_error(100.0, 100) > 1


def test_more_seeds_shrink_the_part_of_the_seeds_only() -> None:
    spread = [18.0, 22.0]
    two, many = estimate(spread, images=10_000), estimate(spread * 50, images=10_000)
    assert two.error is not None
    assert many.error is not None
    assert many.error < two.error
    assert many.error > binomial_error(20.0, 10_000)


def test_without_the_number_of_images_nothing_is_called_clear() -> None:
    unknown = estimate([50.0], images=None)
    gap = difference(unknown, estimate([10.0], images=10_000))
    assert gap.value == 40.0
    assert gap.error is None
    assert not gap.is_clear


def test_a_mean_of_one_unknown_cell_is_unknown() -> None:
    assert mean([Estimate(1.0, 0.1), Estimate(2.0, None)]).error is None


@pytest.mark.parametrize(("value", "clear"), [(-2.1, True), (-1.9, False), (2.1, True), (0.0, False)])
def test_clear_means_more_than_two_standard_errors(value: float, clear: bool) -> None:
    assert Estimate(value, 1.0).is_clear is clear

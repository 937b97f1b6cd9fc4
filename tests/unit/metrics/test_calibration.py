from __future__ import annotations

import numpy as np
import pytest

from synaptune.errors import InputError, OptionError
from synaptune.metrics import expected_calibration_error, reliability


def test_error_equals_a_plain_loop_over_bins() -> None:
    rng = np.random.default_rng(0)
    sure, right = rng.uniform(size=400), rng.uniform(size=400) < 0.6
    total = 0.0
    for number in range(15):
        low, high = number / 15, (number + 1) / 15
        inside = (sure > low) & (sure <= high) if number else sure <= high
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - sure[inside].mean())
    assert expected_calibration_error(sure, right) == pytest.approx(100 * total)


def test_bins_are_closed_on_the_right_and_take_both_ends() -> None:
    found = reliability(np.array([0.0, 0.5, 0.500001, 1.0]), np.ones(4), bins=2)
    assert found.counts.tolist() == [2, 2]


def test_an_empty_bin_adds_nothing() -> None:
    assert expected_calibration_error(np.ones(3), np.ones(3)) == 0.0
    assert expected_calibration_error(np.array([]), np.array([])) == 0.0


def test_confidence_outside_the_unit_interval_is_refused() -> None:
    with pytest.raises(InputError, match="softmax"):
        reliability(np.array([1.2]), np.array([True]))


def test_shapes_and_bin_count_are_checked() -> None:
    with pytest.raises(InputError, match="one value per prediction"):
        reliability(np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(OptionError, match="bins"):
        reliability(np.zeros(2), np.zeros(2), bins=0)

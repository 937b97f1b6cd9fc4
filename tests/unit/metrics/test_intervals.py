from __future__ import annotations

import numpy as np
import pytest

from synaptune.errors import InputError, OptionError
from synaptune.metrics import bootstrap_interval


def test_groups_weigh_the_same_however_many_repeats_they_have() -> None:
    assert bootstrap_interval([[0.0] * 9, [10.0]]).mean == 5.0


def test_interval_matches_the_normal_approximation_for_many_groups() -> None:
    values = np.random.default_rng(1).normal(size=400)
    interval = bootstrap_interval([[value] for value in values], seed=2)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert interval.high - interval.mean == pytest.approx(half, rel=0.1)
    assert interval.mean - interval.low == pytest.approx(half, rel=0.1)


def test_spread_of_repeats_widens_the_interval() -> None:
    groups = [1.0, 2.0, 3.0, 4.0]
    plain = bootstrap_interval([[value] * 3 for value in groups])
    noisy = bootstrap_interval([[value - 4, value, value + 4] for value in groups])
    assert plain.mean == pytest.approx(noisy.mean)
    assert noisy.high - noisy.low > 1.3 * (plain.high - plain.low)


def test_one_group_of_one_value_leaves_no_spread() -> None:
    interval = bootstrap_interval([[3.5]])
    assert (interval.low, interval.mean, interval.high, interval.groups) == (3.5, 3.5, 3.5, 1)


def test_same_seed_gives_the_same_interval() -> None:
    groups = [[1.0, 2.0], [5.0, 7.0], [3.0]]
    assert bootstrap_interval(groups, seed=4) == bootstrap_interval(groups, seed=4)
    assert bootstrap_interval(groups, seed=4) != bootstrap_interval(groups, seed=5)


def test_empty_groups_and_impossible_levels_are_refused() -> None:
    with pytest.raises(InputError, match="one group"):
        bootstrap_interval([])
    with pytest.raises(InputError, match="one value"):
        bootstrap_interval([[1.0], []])
    with pytest.raises(OptionError, match="level"):
        bootstrap_interval([[1.0]], level=1.0)

"""The order inside a visit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synaptune.errors import OptionError
from synaptune.streams import Arrangement, Correlated, InOrder, LabelShift, Shuffled

LABELS = np.repeat(np.arange(10), 100)
np.random.default_rng(5).shuffle(LABELS)


def arrange(arrangement: Arrangement, labels: Any = LABELS, seed: int = 0) -> Any:
    return arrangement.arrange(labels, np.random.default_rng(seed))


def run_lengths(labels: Any) -> Any:
    changes = np.flatnonzero(np.diff(labels)) + 1
    return np.diff([0, *changes, len(labels)])


@pytest.mark.parametrize(
    "arrangement", [InOrder(), Shuffled(), Correlated(delta=0.1), Correlated(delta=100.0, slots=3)]
)
def test_every_image_comes_exactly_once(arrangement: Arrangement) -> None:
    order = arrange(arrangement)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(np.sort(order), np.arange(len(LABELS)))
    assert arrangement.count(LABELS) == len(LABELS)


@pytest.mark.parametrize("arrangement", [Shuffled(), Correlated(), LabelShift()])
def test_the_order_hangs_on_the_seed_alone(arrangement: Arrangement) -> None:
    np.testing.assert_array_equal(arrange(arrangement, seed=1), arrange(arrangement, seed=1))
    assert not np.array_equal(arrange(arrangement, seed=1), arrange(arrangement, seed=2))


def test_in_order_is_the_order_of_the_set() -> None:
    np.testing.assert_array_equal(arrange(InOrder()), np.arange(len(LABELS)))


def test_shuffled_labels_are_not_correlated() -> None:
    lengths = run_lengths(LABELS[arrange(Shuffled())])
    assert lengths.mean() == pytest.approx(1 / 0.9, rel=0.1)


def test_a_small_delta_keeps_a_class_for_long_and_a_large_one_does_not() -> None:
    means = [run_lengths(LABELS[arrange(Correlated(delta=delta))]).mean() for delta in (1e-3, 0.1, 1.0, 1000.0)]
    assert means == sorted(means, reverse=True)
    assert means[0] > 60, "nearly sorted by class"
    assert means[-1] == pytest.approx(10, rel=0.15), "100 runs: ten slots, each with every class in equal parts"


def test_classes_come_in_another_order_in_each_slot() -> None:
    order = LABELS[arrange(Correlated(delta=1e6))]
    runs = order[np.concatenate([[0], np.cumsum(run_lengths(order))[:-1]])]
    first_slots = {tuple(runs[start : start + 8]) for start in (0, 20, 40, 60)}
    assert len(first_slots) == 4


def test_slots_are_filled_by_the_dirichlet_draw_of_each_class() -> None:
    # With two slots the share of the first is Beta(delta, delta); its variance is 1 / (4 (2 delta + 1)).
    labels = np.repeat(np.arange(400), 50)
    delta = 0.5
    order = labels[arrange(Correlated(delta=delta, slots=2), labels)]
    first_seen = {}
    for place, label in enumerate(order):
        first_seen.setdefault(label, place)
    runs = np.split(order, np.cumsum(run_lengths(order))[:-1])
    shares: dict[int, list[int]] = {}
    for run in runs:
        shares.setdefault(int(run[0]), []).append(len(run))
    first_share = np.array([parts[0] / 50 if len(parts) == 2 else 0.0 for parts in shares.values()])
    split = first_share[first_share > 0]
    # Classes that fall whole into one slot show no share; the others are spread, and on both sides of a half.
    assert 0.5 < len(split) / 400 < 0.95
    assert split.mean() == pytest.approx(0.5, abs=0.06)


def test_an_extreme_delta_ends_with_whole_classes() -> None:
    order = LABELS[arrange(Correlated(delta=1e-300))]
    assert (run_lengths(order) >= 100).all()


def test_classes_that_do_not_occur_do_not_matter() -> None:
    labels = np.array([3] * 10 + [900] * 10)
    assert len(arrange(Correlated(delta=0.1), labels)) == 20


@pytest.mark.parametrize("arrangement", [Correlated(), LabelShift()])
def test_unknown_labels_are_refused(arrangement: Arrangement) -> None:
    with pytest.raises(OptionError, match="needs a label for every image"):
        arrange(arrangement, np.array([0, 1, -1]))


@pytest.mark.parametrize("ratio", [1.0, 10.0, 100.0])
def test_a_long_tail_falls_geometrically_from_the_first_class_to_the_last(ratio: float) -> None:
    rule = LabelShift(ratio=ratio)
    order = arrange(rule)
    counts = np.bincount(LABELS[order], minlength=10)
    np.testing.assert_array_equal(counts, np.rint(100 * ratio ** (-np.arange(10) / 9)))
    assert len(set(order.tolist())) == len(order) == rule.count(LABELS)


def test_ranks_can_be_shuffled_and_then_stay() -> None:
    rule = LabelShift(ratio=50.0, ranking_seed=3)
    first, second = (np.bincount(LABELS[arrange(rule, seed=seed)], minlength=10) for seed in (1, 2))
    np.testing.assert_array_equal(first, second)
    assert first.tolist() != sorted(first, reverse=True)
    assert sorted(first, reverse=True) == np.bincount(LABELS[arrange(LabelShift(ratio=50.0))], minlength=10).tolist()


def test_no_class_vanishes_from_a_long_tail() -> None:
    assert np.bincount(LABELS[arrange(LabelShift(ratio=1e6))], minlength=10).min() == 1


def test_a_given_prior_is_met_with_as_many_images_as_there_are() -> None:
    prior = (0.5, 0.25, 0.25, *[0.0] * 7)
    counts = np.bincount(LABELS[arrange(LabelShift(prior=prior))], minlength=10)
    assert counts.tolist() == [100, 50, 50, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Correlated(delta=0.0), "delta must be above 0"),
        (lambda: Correlated(slots=0), "slots must be at least 1"),
        (lambda: LabelShift(ratio=0.5), "ratio must be at least 1"),
        (lambda: LabelShift(prior=()), "prior must be frequencies"),
        (lambda: LabelShift(prior=(0.5, -0.5)), "prior must be frequencies"),
        (lambda: LabelShift(prior=(0.0, 0.0)), "prior must be frequencies"),
        (lambda: LabelShift(prior=(float("nan"), 1.0)), "prior must be frequencies"),
    ],
)
def test_impossible_options_are_refused(make: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        make()


def test_a_prior_must_cover_the_labels() -> None:
    with pytest.raises(OptionError, match="prior has 3 frequencies, but there is a label 9"):
        arrange(LabelShift(prior=(1.0, 1.0, 1.0)))
    with pytest.raises(OptionError, match="0 for every class that occurs"):
        arrange(LabelShift(prior=(1.0, 0.0)), np.array([1, 1]))

"""The random streams: fixed for ever, apart from each other, and distributed as they should be."""

from __future__ import annotations

import numpy as np
import pytest

from synaptune.shifts.randomness import ImageStreams, normal_quantiles

WORDS = [[2047966911, 2451655685, 63399850, 3225061452], [1486265546, 821568813, 1918652506, 1550582764]]


def streams(count: int, *, seed: int = 0, name: str = "test", severity: int = 1) -> ImageStreams:
    return ImageStreams(np.arange(count), seed=seed, name=name, severity=severity)


def test_the_bits_are_those_of_every_release() -> None:
    # Philox 4x64 keyed by blake2b("0/fog/5"), counter (0, 0, 7, 0). A change here changes every corrupted image.
    source = ImageStreams(np.array([7]), seed=0, name="fog", severity=5)
    assert source.words(4)[0].tolist() == WORDS[0]
    assert source.words(4)[0].tolist() == WORDS[1]


def test_a_stream_is_that_of_its_index() -> None:
    together = streams(5)
    first, second = together.words(7), together.words(7)
    for index in range(5):
        alone = ImageStreams(np.array([index]), seed=0, name="test", severity=1)
        assert np.array_equal(alone.words(7)[0], first[index])
        assert np.array_equal(alone.words(7)[0], second[index])


def test_how_much_an_earlier_draw_took_does_not_matter() -> None:
    short, long = streams(1), streams(1)
    short.words(1)
    long.words(1000)
    assert np.array_equal(short.words(5), long.words(5))


def test_streams_differ_by_index_draw_seed_name_and_severity() -> None:
    base = streams(2)
    drawn = [*base.words(64), *base.words(64)]
    drawn += [streams(1, seed=1).words(64)[0], streams(1, name="other").words(64)[0]]
    drawn += [streams(1, severity=2).words(64)[0]]
    assert len({words.tobytes() for words in drawn}) == len(drawn)
    # Nor are they shifted copies of each other.
    assert len(np.unique(np.concatenate(drawn))) == 64 * len(drawn)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 9])
def test_any_number_can_be_drawn(count: int) -> None:
    source = streams(3)
    assert source.words(count).shape == (3, count)
    assert source.half_words(count).shape == (3, count)
    assert source.uniform(count, -1, 1).shape == (3, count)


def test_uniform_numbers_fill_their_range_evenly() -> None:
    drawn = streams(4).uniform(20_000, -45, 45)
    assert drawn.min() > -45
    assert drawn.max() < 45
    counts = np.histogram(drawn, bins=20, range=(-45, 45))[0]
    chi_square = float(((counts - 4000) ** 2 / 4000).sum())
    assert chi_square < 45  # 19 degrees of freedom, p = 7e-4
    signed = streams(4).signed(20_000)
    assert abs(float(signed.mean())) < 0.01
    assert abs(float(signed.astype(float).var()) - 1 / 3) < 0.005


def test_normal_numbers_have_the_moments_of_the_normal_law() -> None:
    drawn = streams(4).normal(50_000).astype(np.float64).ravel()
    assert abs(drawn.mean()) < 0.01
    assert abs(drawn.var() - 1) < 0.015
    assert abs((drawn**3).mean()) < 0.04
    assert abs((drawn**4).mean() - 3) < 0.12


def test_the_quantile_table_is_symmetric_and_rising() -> None:
    table = normal_quantiles()
    assert np.array_equal(table, -table[::-1])
    assert (np.diff(table) > 0).all()
    assert table[-1] == pytest.approx(4.3, abs=0.05)
    assert not table.flags.writeable


def test_neighbouring_indices_are_uncorrelated() -> None:
    drawn = streams(40).normal(4000).astype(np.float64)
    correlation = np.corrcoef(drawn) - np.eye(40)
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)

"""Bootstrap intervals of a mean over groups that differ, each with a few repeats.

Corruptions differ far more than seeds do, so single cells are not exchangeable. The two-level bootstrap draws groups
(corruptions) with replacement, then repeats (seeds) within each drawn group, and takes percentiles of the mean:

    mean* = mean over drawn groups of the mean over drawn repeats

Davison and Hinkley, *Bootstrap Methods and Their Application* (1997), section 3.8. With one repeat per group the
second level does nothing. With few groups, percentile intervals are somewhat too narrow; the number of groups is
kept beside the interval so that nobody overlooks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synaptune.errors import InputError, OptionError

__all__ = ["Interval", "bootstrap_interval"]


@dataclass(frozen=True)
class Interval:
    """A mean with its interval.

    Attributes:
        mean: mean over groups of the mean over repeats.
        low: lower end; equal to `high` and to the mean where a single group leaves nothing to draw from.
        high: upper end.
        groups: how many groups there were.
    """

    mean: float
    low: float
    high: float
    groups: int


def bootstrap_interval(
    groups: Sequence[Sequence[float]], *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Percentile interval of the mean, groups weighing the same.

    Args:
        groups: values, one sequence for each group.
        level: coverage.
        resamples: bootstrap samples.
        seed: of the drawing.

    >>> interval = bootstrap_interval([[1.0, 1.2], [2.0], [3.0]])
    >>> round(interval.mean, 3), interval.low < interval.mean < interval.high
    (2.033, True)
    """
    if not groups or any(len(group) == 0 for group in groups):
        raise InputError("an interval needs one group at least, and one value in each")
    if not 0 < level < 1 or resamples < 1:
        raise OptionError(f"level must lie between 0 and 1 and resamples be positive, not {level}, {resamples}")
    rng = np.random.default_rng(seed)
    # Means of drawn repeats, for each resample and each place at which a group may be drawn.
    drawn = rng.integers(len(groups), size=(resamples, len(groups)))
    means = np.empty(drawn.shape)
    for number, group in enumerate(groups):
        values = np.asarray(group, np.float64)
        rows, columns = np.nonzero(drawn == number)
        picks = rng.integers(len(values), size=(len(rows), len(values)))
        means[rows, columns] = values[picks].mean(axis=1)
    tail = 50 * (1 - level)
    low, high = np.percentile(means.mean(axis=1), [tail, 100 - tail])
    mean = float(np.mean([np.mean(group) for group in groups]))
    return Interval(mean=mean, low=float(low), high=float(high), groups=len(groups))

"""How far a number can be off by chance: images are a sample, and seeds differ.

    se(cell)^2 = p (1 - p) / n  +  s^2 / k        p: error, n: images, s: deviation between k seeds
    se(mean)^2 = sum se(cell)^2 / m^2             m cells
    se(a - b)^2 = se(a)^2 + se(b)^2

All in points of percent. p is taken with two hits and two misses added (Agresti and Coull, 1998), so that a cell
without any error is not taken for exact. All seeds see the same images, so more seeds shrink the second term only.

Two methods on the same images agree on most of them, so the last line is too large for their difference, and a verdict
"within noise" is on the careful side. Cells count as independent, although corruptions share their clean images.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["CLEAR", "Estimate", "binomial_error", "difference", "estimate", "mean"]

CLEAR = 2.0
"""Standard errors beyond which a difference is called clear."""


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error.

    Attributes:
        value: the number.
        error: its standard error; None where nothing is known about it.
        seeds: repeats behind it.
    """

    value: float
    error: float | None
    seeds: int = 1

    @property
    def margin(self) -> float | None:
        """What a difference must exceed to be called clear."""
        return None if self.error is None else CLEAR * self.error

    @property
    def is_clear(self) -> bool:
        """Whether the number, a difference, is told from zero; without a standard error it never is."""
        return self.margin is not None and abs(self.value) > self.margin


def binomial_error(percent: float, images: int) -> float:
    """Standard error of a share of wrong predictions, in points.

    >>> round(binomial_error(25.0, 10_000), 2), round(binomial_error(0.0, 100), 1)
    (0.43, 1.3)
    """
    share = (percent / 100 * images + 2) / (images + 4)
    return 100 * math.sqrt(share * (1 - share) / (images + 4))


def estimate(errors: Sequence[float], *, images: int | None) -> Estimate:
    """Take the mean over seeds of a cell's error.

    Args:
        errors: one for each seed, in percent.
        images: in the evaluated set; None when the row does not say.

    >>> estimate([20.0], images=None)
    Estimate(value=20.0, error=None, seeds=1)
    """
    value = statistics.fmean(errors)
    if not images:
        return Estimate(value, None, len(errors))
    variance = binomial_error(value, images) ** 2
    if len(errors) > 1:
        variance += statistics.variance(errors) / len(errors)
    return Estimate(value, math.sqrt(variance), len(errors))


def mean(parts: Sequence[Estimate]) -> Estimate:
    """Take the mean of cells, each weighing the same.

    >>> mean([Estimate(10.0, 0.3), Estimate(20.0, 0.4)])
    Estimate(value=15.0, error=0.25, seeds=1)
    """
    value = statistics.fmean(part.value for part in parts)
    errors = [part.error for part in parts]
    known = [error for error in errors if error is not None]
    total = math.hypot(*known) / len(parts) if len(known) == len(parts) else None
    return Estimate(value, total, min(part.seeds for part in parts))


def difference(left: Estimate, right: Estimate) -> Estimate:
    """Take `left` from `right`'s point of view: negative means that `left` makes fewer errors.

    >>> difference(Estimate(20.0, 0.3), Estimate(25.0, 0.4))
    Estimate(value=-5.0, error=0.5, seeds=1)
    """
    known = left.error is not None and right.error is not None
    error = math.hypot(left.error or 0.0, right.error or 0.0) if known else None
    return Estimate(left.value - right.value, error, min(left.seeds, right.seeds))

"""Calibration: does a prediction that is 80 % sure hold 80 % of the time?

    ECE = sum_m |B_m| / n * | accuracy(B_m) - confidence(B_m) |,   B_m: predictions in the m-th of M equal bins

Naeini et al., AAAI 2015; Guo et al., ICML 2017, with M = 15. In percent. Bins are closed on the right, as in Guo et
al.; an empty bin adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synaptune.errors import InputError, OptionError

__all__ = ["Reliability", "expected_calibration_error", "reliability"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reliability:
    """Per bin of confidence: how many predictions, how sure on average, how often right.

    Attributes:
        counts: predictions in each bin, (bins,).
        confidence: mean confidence in each bin, from 0 to 1; 0 in an empty one.
        accuracy: share of right predictions in each bin; 0 in an empty one.
    """

    counts: npt.NDArray[np.int64]
    confidence: Floats
    accuracy: Floats

    @property
    def error(self) -> float:
        """Expected calibration error, in percent."""
        shares = self.counts / max(int(self.counts.sum()), 1)
        return float(100 * (shares * np.abs(self.accuracy - self.confidence)).sum())


def reliability(confidence: npt.NDArray[Any], correct: npt.NDArray[Any], *, bins: int = 15) -> Reliability:
    """Sort predictions into bins of equal width.

    Args:
        confidence: probability of the predicted class, (n,), from 0 to 1.
        correct: whether the prediction was right, (n,).
        bins: number of bins.

    >>> reliability(np.array([0.9, 0.8]), np.array([True, False]), bins=2).counts.tolist()
    [0, 2]
    """
    if bins < 1:
        raise OptionError(f"bins must be at least 1, not {bins}")
    sure, right = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    if sure.ndim != 1 or sure.shape != right.shape:
        raise InputError(f"confidence and correct must be one value per prediction, not {sure.shape}, {right.shape}")
    if len(sure) and not (sure.min() >= 0 and sure.max() <= 1):
        raise InputError("confidence must lie between 0 and 1; apply softmax to logits first")
    edges = np.linspace(0, 1, bins + 1)
    # `side="left"` on the inner edges closes bins on the right.
    which = np.searchsorted(edges[1:-1], sure, side="left")
    counts = np.bincount(which, minlength=bins)
    divisor = np.maximum(counts, 1)
    return Reliability(
        counts=counts,
        confidence=np.bincount(which, weights=sure, minlength=bins) / divisor,
        accuracy=np.bincount(which, weights=right, minlength=bins) / divisor,
    )


def expected_calibration_error(confidence: npt.NDArray[Any], correct: npt.NDArray[Any], *, bins: int = 15) -> float:
    """Expected calibration error, in percent.

    >>> round(expected_calibration_error(np.array([0.75, 0.75, 0.75, 0.75]), np.array([1, 1, 1, 0])), 6)
    0.0
    >>> round(expected_calibration_error(np.array([0.9, 0.9]), np.array([1, 0])), 6)
    40.0
    """
    return reliability(confidence, correct, bins=bins).error

"""Time per batch: the median, and what one batch in twenty exceeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synaptune.errors import InputError

__all__ = ["Latency", "latency"]


@dataclass(frozen=True)
class Latency:
    """Percentiles of the wall time of a batch, in milliseconds."""

    p50: float
    p95: float


def latency(seconds: Sequence[float]) -> Latency:
    """Summarise wall times; percentiles between two batches are interpolated.

    >>> latency([0.010, 0.020, 0.030])
    Latency(p50=20.0, p95=29.0)
    """
    if len(seconds) == 0:
        raise InputError("no batch was timed")
    p50, p95 = np.percentile(np.asarray(seconds, np.float64), [50, 95]) * 1000
    return Latency(p50=round(float(p50), 3), p95=round(float(p95), 3))

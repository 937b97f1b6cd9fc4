"""Axes: round ticks, and where a value lies on paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Axis", "batch_axis", "linear_axis", "log_axis", "spell_tick"]


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        ticks: round values, rising, inside the axis.
        low: value at its start.
        high: value at its end.
        start: coordinate of its start.
        end: coordinate of its end.
        is_log: whether equal distances are equal ratios.
    """

    ticks: tuple[float, ...]
    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """Return the coordinate of a value."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.is_log else (self.low, self.high)
        place = math.log10(value) if self.is_log else value
        return self.start + (place - low) / (high - low) * (self.end - self.start)

    @property
    def step(self) -> float:
        """Distance of ticks, which decides how they are spelled."""
        return self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else abs(self.ticks[0]) if self.ticks else 1.0


def linear_axis(
    values: Sequence[float],
    *,
    start: float,
    end: float,
    count: int = 4,
    from_zero: bool = False,
) -> Axis:
    """Make an axis that holds all values and ends at round ones.

    >>> linear_axis([12.0, 47.0], start=0, end=100).ticks
    (10.0, 20.0, 30.0, 40.0, 50.0)
    >>> linear_axis([3.0, 3.0], start=0, end=1).low < 3 < linear_axis([3.0, 3.0], start=0, end=1).high
    True
    """
    low, high = min(values), max(values)
    if from_zero:
        low, high = min(0.0, low), max(0.0, high)
    if math.isclose(low, high, rel_tol=1e-9, abs_tol=1e-12):
        margin = abs(low) * 0.05 or 0.5
        low, high = low - margin, high + margin
    step = _round_step((high - low) / count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(number * step, 12) for number in range(first, last + 1))
    return Axis(ticks, ticks[0], ticks[-1], start, end)


def batch_axis(last: float, *, start: float, end: float, count: int = 4) -> Axis:
    """Make an axis of batches, which ends at the last one.

    >>> batch_axis(79, start=0, end=78).ticks
    (1.0, 20.0, 40.0, 60.0)
    """
    step = max(1.0, _round_step(max(last - 1, 1) / count))
    ticks = [1.0, *(number * step for number in range(1, int(last / step) + 1) if number * step > 1)]
    return Axis(tuple(ticks), 1.0, max(last, 2.0), start, end)


def log_axis(values: Sequence[float], *, start: float, end: float) -> Axis:
    """Make an axis of ratios with ticks at 1, 2 and 5 times powers of ten.

    >>> log_axis([3.0, 450.0], start=0, end=1).ticks
    (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
    """
    low, high = min(values), max(values)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    all_ticks = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    first = max((tick for tick in all_ticks if tick <= low), default=all_ticks[0])
    last = min((tick for tick in all_ticks if tick >= high and tick > first), default=all_ticks[-1])
    ticks = tuple(tick for tick in all_ticks if first <= tick <= last)
    return Axis(ticks, first, last, start, end, is_log=True)


def spell_tick(value: float, step: float) -> str:
    """Spell a tick with as many digits as neighbours need to differ.

    >>> spell_tick(20.0, 10.0), spell_tick(0.25, 0.05), spell_tick(12000.0, 4000.0)
    ('20', '0.25', '12,000')
    """
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step else 0
    if digits > 5:
        return f"{value:.2e}"
    return f"{value:,.{digits}f}".replace("-", "−")


def _round_step(raw: float) -> float:
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)

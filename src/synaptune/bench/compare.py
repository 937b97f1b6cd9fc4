"""Runs or methods side by side: paired differences with bootstrap intervals, under one protocol.

    d = error(left) - error(right), cell by cell;   interval: two-level bootstrap over corruptions, and pairs in them

Both sides are averaged as their difference is: over the pairs (seeds, severities) of each corruption, then over these.

Pairs agree in everything that identifies a cell except what tells the sides apart. A pair that differs in a switch
(batch, order, images, weights, library versions, ...) is refused unless that switch is named in `mix`.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, get_args

from synaptune.bench.pairing import SWITCHES, Across, Meeting, Place, sides_of, spot_of
from synaptune.bench.row import ERRORS, ErrorKey, Row
from synaptune.bench.selection import chosen
from synaptune.errors import InputError, OptionError, UnknownNameError
from synaptune.metrics import bootstrap_interval

__all__ = ["SWITCHES", "Across", "Comparison", "Contrast", "Difference", "compare"]


@dataclass(frozen=True)
class Difference:
    """A mean difference, its interval, and what that was drawn from.

    Attributes:
        mean: over corruptions of the mean over their pairs.
        low: lower end of the interval; None where a single pair leaves nothing to draw from.
        high: upper end.
        groups: corruptions.
        fewest: pairs (seeds, severities) of the corruption that has the fewest.
        most: likewise.
    """

    mean: float
    low: float | None
    high: float | None
    groups: int
    fewest: int
    most: int


@dataclass(frozen=True)
class Contrast:
    """Two sides on one model and data set.

    Attributes:
        model: the model.
        data: the data set.
        method: the method, where runs are compared; "" where methods are.
        left: what is compared.
        right: with what.
        left_mean: error of the left side, the mean over corruptions of the mean over their pairs.
        right_mean: likewise.
        difference: left less right, with its interval over corruptions and pairs; below zero is better.
        pairs: how many pairs there are.
        better: pairs in which the left side has the lower error.
        worse: pairs in which it has the higher one.
    """

    model: str
    data: str
    method: str
    left: str
    right: str
    left_mean: float
    right_mean: float
    difference: Difference
    pairs: int
    better: int
    worse: int


@dataclass(frozen=True)
class Comparison:
    """What came of comparing.

    Attributes:
        metric: which error.
        baseline: the right side of every contrast.
        contrasts: one for each other side, model and data set.
        mixed: switches in which pairs differ although they were let through.
        unpaired: rows that have no counterpart.
        level: coverage of the intervals.
    """

    metric: ErrorKey
    baseline: str
    contrasts: tuple[Contrast, ...]
    mixed: tuple[str, ...]
    unpaired: int
    level: float


def compare(
    runs: Mapping[str, Sequence[Row]],
    *,
    across: Across | None = None,
    baseline: str | None = None,
    metric: ErrorKey = "error_online",
    mix: Collection[str] = (),
    where: Mapping[str, Any] | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Put sides next to each other.

    Args:
        runs: rows by the name of their run.
        across: compare methods (of all runs together), or runs (method by method); by default methods in a single
            run, and runs where there are several.
        baseline: the side that others are compared with; by default the first.
        metric: which error.
        mix: switches that may differ within a pair, or "all".
        where: rows to take: value, or list of values, by key (see `synaptune.bench.selection.KEYS`).
        level: coverage of the intervals.
        resamples: bootstrap samples.
        seed: of the bootstrap.

    Raises:
        OptionError: pairs differ in a switch that is not in `mix`; the message says which and how.
        InputError: nothing can be paired.
    """
    if metric not in ERRORS:
        raise UnknownNameError("metric", metric, ERRORS)
    allowed = _allowed(mix)
    across = across or ("run" if len(runs) > 1 else "method")
    if across not in get_args(Across):
        raise OptionError(f"across must be 'method' or 'run', not {across!r}")
    runs = chosen(runs, where or {})
    sides = sides_of(runs, across, metric, allowed=allowed)
    names = list(sides)
    base = names[0] if baseline is None else baseline
    if base not in sides:
        raise UnknownNameError(across, base, names)
    meeting = Meeting(metric)
    contrasts = []
    for name in names:
        if name != base:
            for place, pairs in meeting.of(sides[name], sides[base], (name, base)).items():
                errors = [(spot_of(one)[0], one.error_of(metric), other.error_of(metric)) for one, other in pairs]
                known = [(spot, one, other) for spot, one, other in errors if one is not None and other is not None]
                difference = _difference(known, level=level, resamples=resamples, seed=seed)
                contrasts.append(_contrast(place, name, base, known, difference))
    _refuse_mixtures(meeting.mixed, allowed)
    if not contrasts:
        raise InputError(_unpaired(runs, across, metric, names))
    return Comparison(metric, base, tuple(contrasts), tuple(meeting.mixed), meeting.unpaired, level)


_Errors = Sequence[tuple[str, float, float]]


def _allowed(mix: Collection[str]) -> set[str]:
    names = {mix} if isinstance(mix, str) else set(mix)
    if "all" in names:
        return set(SWITCHES)
    for name in names:
        if name not in SWITCHES:
            raise UnknownNameError("switch", name, (*SWITCHES, "all"))
    return names


def _unpaired(runs: Mapping[str, Sequence[Row]], across: Across, metric: ErrorKey, names: Sequence[str]) -> str:
    """Say why nothing can be paired, and whether the other way of pairing would find pairs."""
    if len(names) == 1:
        return f"nothing can be paired by {across}: {names[0]} alone has {metric}"
    said = f"nothing can be paired by {across}: the sides ({', '.join(names)}) share no measured cell"
    other: Across = "method" if across == "run" else "run"
    # What stands twice there is refused later, with how to choose.
    sides = [side.keys() for side in sides_of(runs, other, metric, allowed=None).values()]
    if any(left & right for left, right in combinations(sides, 2)):
        return f"{said}; --across {other} finds pairs"
    return f"{said}; pairs agree in model, data, corruption and severity" + (", and method" if across == "run" else "")


def _by_corruption(values: Iterable[tuple[str, float]]) -> list[list[float]]:
    groups: dict[str, list[float]] = defaultdict(list)
    for corruption, value in values:
        groups[corruption].append(value)
    return list(groups.values())


def _mean(values: Iterable[tuple[str, float]]) -> float:
    return statistics.fmean(statistics.fmean(group) for group in _by_corruption(values))


def _difference(errors: _Errors, *, level: float, resamples: int, seed: int) -> Difference:
    groups = _by_corruption((corruption, one - other) for corruption, one, other in errors)
    sizes = [len(group) for group in groups]
    interval = bootstrap_interval(groups, level=level, resamples=resamples, seed=seed)
    return Difference(
        mean=interval.mean,
        low=interval.low if sum(sizes) > 1 else None,
        high=interval.high if sum(sizes) > 1 else None,
        groups=len(groups),
        fewest=min(sizes),
        most=max(sizes),
    )


def _contrast(place: Place, left: str, right: str, errors: _Errors, difference: Difference) -> Contrast:
    model, data, method = place
    return Contrast(
        model=model,
        data=data,
        method=method,
        left=left,
        right=right,
        left_mean=_mean((corruption, one) for corruption, one, _ in errors),
        right_mean=_mean((corruption, other) for corruption, _, other in errors),
        difference=difference,
        pairs=len(errors),
        better=sum(one < other for _, one, other in errors),
        worse=sum(one > other for _, one, other in errors),
    )


def _refuse_mixtures(mixed: Mapping[str, str], allowed: Collection[str]) -> None:
    refused = {switch: how for switch, how in mixed.items() if switch not in allowed}
    if refused:
        told = "; ".join(f"{switch}: {how}" for switch, how in refused.items())
        raise OptionError(
            f"these rows were measured under different protocols and are not compared: {told}. To compare them all "
            f"the same, say so: mix={','.join(refused)} (--mix {','.join(refused)})"
        )

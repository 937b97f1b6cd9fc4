"""Runs or methods side by side: paired differences with bootstrap intervals, under one protocol.

    d = error(left) - error(right), cell by cell;   interval: two-level bootstrap over corruptions, and pairs in them

Both sides are averaged as their difference is: over the pairs (seeds, severities) of each corruption, then over these.

Pairs agree in everything that identifies a cell except what tells the sides apart. A pair that differs in a switch
(batch, order, images, weights, library versions, ...) is refused unless that switch is named in `mix`.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from synaptune.bench.row import ERRORS, ErrorKey, Row
from synaptune.errors import InputError, OptionError, UnknownNameError
from synaptune.metrics import bootstrap_interval

__all__ = ["SWITCHES", "Across", "Comparison", "Contrast", "Difference", "compare"]

Across = Literal["method", "run"]

SWITCHES: Mapping[str, Callable[[Row], Any]] = {
    "images": lambda row: row.images,
    "batch": lambda row: row.batch,
    "order": lambda row: row.order,
    "delta": lambda row: row.delta if row.order == "correlated" else None,
    "reset": lambda row: row.reset,
    "horizon": lambda row: row.horizon,
    "full_batch": lambda row: row.full_batch or row.batch,
    "oracle_every": lambda row: row.oracle_every,
    "corruption_seed": lambda row: row.corruption_seed,
    "threads": lambda row: row.threads,
    "channels_last": lambda row: row.channels_last,
    "device": lambda row: row.device,
    "fingerprint": lambda row: row.fingerprint,
    "recipe": lambda row: row.recipe_digest,
    "versions": lambda row: dict(row.versions),
}
"""What the rows of a pair must share, and how to read it."""

_ONLY_FOR: Mapping[str, tuple[ErrorKey, ...]] = {
    "full_batch": ("error_full", "error_oracle"),
    "oracle_every": ("error_oracle",),  # a minimum over more stages is lower
}
"""Switches without influence on the other errors."""


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
    sides = _sides(runs, across, metric)
    names = list(sides)
    chosen = names[0] if baseline is None and names else baseline
    if chosen not in sides:
        raise UnknownNameError(across, str(chosen), names)
    meeting = _Meeting(metric)
    contrasts = []
    for name in names:
        if name != chosen:
            for place, pairs in meeting.of(sides[name], sides[chosen], (name, chosen)).items():
                errors = [(_spot(one)[0], one.error_of(metric), other.error_of(metric)) for one, other in pairs]
                known = [(spot, one, other) for spot, one, other in errors if one is not None and other is not None]
                difference = _difference(known, level=level, resamples=resamples, seed=seed)
                contrasts.append(_contrast(place, name, chosen, known, difference))
    _refuse_mixtures(meeting.mixed, allowed)
    if not contrasts:
        raise InputError(f"nothing can be paired by {across}: the sides ({', '.join(names)}) share no measured cell")
    return Comparison(metric, chosen, tuple(contrasts), tuple(meeting.mixed), meeting.unpaired, level)


# A place is what a contrast is about (model, data, method); a spot is a corruption and severity within it.
_Place = tuple[str, str, str]
_Spot = tuple[str, int]
_Side = dict[tuple[_Place, _Spot], dict[int, Row]]
_Errors = Sequence[tuple[str, float, float]]


class _Meeting:
    """Finds pairs, and notes in which switches they differ and how many rows stay alone."""

    def __init__(self, metric: ErrorKey) -> None:
        self._switches = {name: read for name, read in SWITCHES.items() if metric in _ONLY_FOR.get(name, ERRORS)}
        self.mixed: dict[str, str] = {}
        self.unpaired = 0

    def of(self, left: _Side, right: _Side, names: tuple[str, str]) -> dict[_Place, list[tuple[Row, Row]]]:
        found: dict[_Place, list[tuple[Row, Row]]] = defaultdict(list)
        for key in sorted(left.keys() | right.keys()):
            ours, theirs = left.get(key, {}), right.get(key, {})
            pairs = _matching(ours, theirs)
            self.unpaired += len(ours) - len({one.cell for one, _ in pairs})
            self.unpaired += len(theirs) - len({other.cell for _, other in pairs})
            for one, other in pairs:
                self._note(one, other, names)
            if pairs:
                found[key[0]] += pairs
        return found

    def _note(self, left: Row, right: Row, names: tuple[str, str]) -> None:
        for switch, read in self._switches.items():
            if switch not in self.mixed and read(left) != read(right):
                self.mixed[switch] = f"{_told(read(left))} in {names[0]}, {_told(read(right))} in {names[1]}"


def _allowed(mix: Collection[str]) -> set[str]:
    names = {mix} if isinstance(mix, str) else set(mix)
    if "all" in names:
        return set(SWITCHES)
    for name in names:
        if name not in SWITCHES:
            raise UnknownNameError("switch", name, (*SWITCHES, "all"))
    return names


def _sides(runs: Mapping[str, Sequence[Row]], across: Across, metric: ErrorKey) -> dict[str, _Side]:
    sides: dict[str, _Side] = {}
    for run, rows in runs.items():
        for row in _newest(rows):
            if row.status != "ok" or row.error_of(metric) is None:
                continue
            name = row.label if across == "method" else run
            place = (row.model, row.data, "" if across == "method" else row.label)
            seeds = sides.setdefault(name, {}).setdefault((place, _spot(row)), {})
            if row.seed in seeds:
                raise OptionError(_twice(name, seeds[row.seed], row))
            seeds[row.seed] = row
    if not sides:
        raise InputError(f"no row has {metric}; choose another metric, or finish the runs first")
    return sides


def _newest(rows: Iterable[Row]) -> Iterable[Row]:
    return {row.cell: row for row in rows}.values()


def _spot(row: Row) -> _Spot:
    return row.corruption, row.severity


def _matching(left: Mapping[int, Row], right: Mapping[int, Row]) -> list[tuple[Row, Row]]:
    """Pair rows of the same seed; one row on which the seed has no influence stands for every seed."""
    if len(left) == 1 and not (only := next(iter(left.values()))).seeded:
        return [(only, other) for other in right.values()]
    if len(right) == 1 and not (only := next(iter(right.values()))).seeded:
        return [(one, only) for one in left.values()]
    return [(left[seed], right[seed]) for seed in sorted(left.keys() & right.keys())]


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


def _contrast(place: _Place, left: str, right: str, errors: _Errors, difference: Difference) -> Contrast:
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


def _twice(name: str, first: Row, second: Row) -> str:
    how = [switch for switch, read in SWITCHES.items() if read(first) != read(second)]
    return (
        f"{name} stands twice for {second.model}, {second.data}, {second.corruption} {second.severity}, seed "
        f"{second.seed} (the rows differ in {', '.join(how) or 'nothing that counts'}); compare across runs, or leave "
        "one of them out"
    )


def _told(value: Any) -> str:
    if isinstance(value, str) and len(value) == 64:
        return value[:12]
    return ", ".join(f"{name} {text}" for name, text in value.items()) if isinstance(value, dict) else str(value)

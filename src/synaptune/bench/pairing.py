"""Which rows of a comparison belong together, and in what the rows of a pair differ.

A side holds rows by place (what a contrast is about) and spot (a corruption and severity in it), then by seed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from synaptune.bench.row import ERRORS, ErrorKey, Row
from synaptune.bench.selection import KEYS, spell
from synaptune.errors import InputError, OptionError

__all__ = ["SWITCHES", "Across", "Meeting", "Place", "Side", "Spot", "sides_of", "spot_of"]

Across = Literal["method", "run"]

Place: TypeAlias = tuple[str, str, str]
"""Model, data set, and the method where runs are compared."""

Spot: TypeAlias = tuple[str, int]

Side: TypeAlias = dict[tuple[Place, Spot], dict[int, Row]]

SWITCHES: Mapping[str, Callable[[Row], Any]] = {
    "images": lambda row: row.images,
    "batch": lambda row: row.batch,
    "order": lambda row: row.order,
    "delta": lambda row: row.delta if row.order == "correlated" else None,
    "reset": lambda row: ", behind ".join([row.reset, *_past(row)]),
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


def _past(row: Row) -> list[str]:
    """Spell what came before in a stream that is never reset."""
    return [", ".join(f"{name} {severity}" for name, severity in row.earlier)] if row.earlier else []


_ONLY_FOR: Mapping[str, tuple[ErrorKey, ...]] = {
    "full_batch": ("error_full", "error_oracle"),
    "oracle_every": ("error_oracle",),  # a minimum over more stages is lower
}
"""Switches without influence on the other errors."""


def sides_of(
    runs: Mapping[str, Sequence[Row]], across: Across, metric: ErrorKey, *, allowed: Collection[str] | None = ()
) -> dict[str, Side]:
    """Sort the rows that have the metric by side. A cell that several runs hold stands once.

    Args:
        runs: rows by the name of their run.
        across: whether a side is a method or a run.
        metric: which error.
        allowed: switches in which two rows of one cell may differ; the first of them stays. None: it always does.

    Raises:
        OptionError: a side has two rows for one spot and seed, and nothing says which is meant.
        InputError: no row has the metric.
    """
    sides: dict[str, Side] = {}
    for run, rows in runs.items():
        for row in _newest(rows):
            if row.status != "ok" or row.error_of(metric) is None:
                continue
            name = row.label if across == "method" else run
            place = (row.model, row.data, "" if across == "method" else row.label)
            seeds = sides.setdefault(name, {}).setdefault((place, spot_of(row)), {})
            first = seeds.setdefault(row.seed, row)
            if allowed is not None and not (first.cell == row.cell and set(_differing(first, row)) <= set(allowed)):
                raise OptionError(_twice(name, first, row, several=across == "method" and len(runs) > 1))
    if not sides:
        raise InputError(f"no row has {metric}; choose another metric, or finish the runs first")
    return sides


def _newest(rows: Iterable[Row]) -> Iterable[Row]:
    return {row.cell: row for row in rows}.values()


def spot_of(row: Row) -> Spot:
    """Corruption and severity."""
    return row.corruption, row.severity


def _matching(left: Mapping[int, Row], right: Mapping[int, Row]) -> list[tuple[Row, Row]]:
    """Pair rows of the same seed; one row on which the seed has no influence stands for every seed."""
    if len(left) == 1 and not (only := next(iter(left.values()))).seeded:
        return [(only, other) for other in right.values()]
    if len(right) == 1 and not (only := next(iter(right.values()))).seeded:
        return [(one, only) for one in left.values()]
    return [(left[seed], right[seed]) for seed in sorted(left.keys() & right.keys())]


def _differing(first: Row, second: Row) -> list[str]:
    return [switch for switch, read in SWITCHES.items() if read(first) != read(second)]


def _twice(name: str, first: Row, second: Row, *, several: bool) -> str:
    how = _differing(first, second)
    ways = ["compare across runs"] if several else []
    if first.cell == second.cell:
        ways.append(f"take the first of them (--mix {','.join(how)})")
    else:
        # Rows of one label in two cells may also differ in what no switch tells, as which weights were asked for.
        known = [f"{key}={spell(getattr(first, key))}" for key in how if key in KEYS]
        ways.append(f"choose one of them (--where {known[0] if known else 'KEY=VALUE'})")
    return (
        f"{name} stands twice for {second.model}, {second.data}, {second.corruption} {second.severity}, seed "
        f"{second.seed} (the rows differ in {', '.join(how) or 'nothing that counts'}); {', or '.join(ways)}"
    )


class Meeting:
    """Finds pairs, and notes in which switches they differ and how many rows stay alone."""

    def __init__(self, metric: ErrorKey) -> None:
        self._switches = {name: read for name, read in SWITCHES.items() if metric in _ONLY_FOR.get(name, ERRORS)}
        self.mixed: dict[str, str] = {}
        self.unpaired = 0

    def of(self, left: Side, right: Side, names: tuple[str, str]) -> dict[Place, list[tuple[Row, Row]]]:
        """Pairs of two sides by place."""
        found: dict[Place, list[tuple[Row, Row]]] = defaultdict(list)
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


def _told(value: Any) -> str:
    if isinstance(value, str) and len(value) == 64:
        return value[:12]
    return ", ".join(f"{name} {text}" for name, text in value.items()) if isinstance(value, dict) else str(value)

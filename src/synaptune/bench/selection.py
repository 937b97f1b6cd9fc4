"""Choosing rows by what they are: `KEY=VALUE` conditions, all of which hold; of a list of values, one has to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from synaptune.bench.row import Row
from synaptune.bench.scalars import read_text
from synaptune.errors import OptionError, UnknownNameError

__all__ = ["KEYS", "chosen", "read_conditions", "spell"]

KEYS = (
    *("method", "label", "model", "weights", "data", "corruption", "severity", "seed", "images", "batch", "order"),
    *("reset", "horizon", "full_batch", "oracle_every", "corruption_seed", "threads", "channels_last", "device"),
)
"""Attributes of a row that conditions may name."""


def read_conditions(words: Iterable[str]) -> dict[str, list[Any]]:
    """Read `key=value` words; a key that stands twice takes either value.

    >>> read_conditions(["method=[tent,nhl]", "batch=128", "batch=200", "horizon=null"])
    {'method': ['tent', 'nhl'], 'batch': [128, 200], 'horizon': [None]}
    """
    found: dict[str, list[Any]] = {}
    for word in words:
        key, separator, text = word.partition("=")
        if not separator:
            raise OptionError(f"{word!r} is not of the form key=value, such as method=tent or corruption=[fog,snow]")
        value = read_text(text, where=f"the value of {key}")
        found.setdefault(key.strip(), []).extend(value if isinstance(value, list) else [value])
    return found


def chosen(runs: Mapping[str, Sequence[Row]], conditions: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Keep the rows of which every condition holds.

    Raises:
        UnknownNameError: a key that rows do not have, or a value that no row has.
    """
    kept = {name: list(rows) for name, rows in runs.items()}
    for key, value in conditions.items():
        if key not in KEYS:
            raise UnknownNameError("key to choose rows by", key, KEYS)
        wanted = {spell(one) for one in (value if isinstance(value, list | tuple) else [value])}
        there = {name for rows in runs.values() for row in rows for name in _names(row, key)}
        for name in sorted(wanted - there):
            raise UnknownNameError(f"row with {key}", name, there)
        kept = {name: [row for row in rows if wanted & _names(row, key)] for name, rows in kept.items()}
    return kept


def spell(value: Any) -> str:
    """A value as it stands in a condition.

    >>> [spell(value) for value in (None, True, 5, "fog")]
    ['null', 'true', '5', 'fog']
    """
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _names(row: Row, key: str) -> set[str]:
    """How a row's value may be called; `zoo:NAME` also NAME."""
    name = spell(getattr(row, key))
    return {name, name.rpartition(":")[2]} if key in ("model", "data") else {name}

"""`key=value` on the command line, applied to what a table's file says, before it is checked.

| key | changes |
| --- | --- |
| `seeds=[0,1,2]`, `data=cifar10-c`, `corruptions=[fog,snow]` | that key of the table |
| `batch=200`, `images=2000` (or `protocol.batch=200`) | that switch, for all lines |
| `methods=[tent,nhl]`, `models=[resnet20]` | keeps these lines of the table; a name that it lacks is a new line |
| `tent.lr=1e-4`, `tent.batch=200` | that option, factor or switch of the lines whose method or label is `tent` |
| `NAME.weights=FILE` | the weights file of the model whose name or label is `NAME`, but not of its rotation twin |
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from synaptune.bench.protocol import Protocol
from synaptune.bench.scalars import read_text
from synaptune.bench.table import Table
from synaptune.core.registry import find
from synaptune.errors import OptionError, UnknownNameError, nearest

__all__ = ["apply_overrides", "parse_overrides", "spell_overrides"]

_KEYS = {item.name for item in dataclasses.fields(Table)} - {"name"} | {"protocol"}
_SWITCHES = {item.name for item in dataclasses.fields(Protocol)}


def parse_overrides(words: Iterable[str]) -> dict[str, Any]:
    """Read `key=value` words; values are YAML.

    >>> parse_overrides(["batch=200", "tent.lr=1e-4", "methods=[tent, nhl]"])
    {'batch': 200, 'tent.lr': 0.0001, 'methods': ['tent', 'nhl']}
    """
    found = {}
    for word in words:
        key, separator, value = word.partition("=")
        if not separator or not key.strip():
            raise OptionError(f"{word!r} is not of the form key=value, such as batch=200 or methods=[tent,nhl]")
        found[key.strip()] = read_text(value, where=f"the value of {key.strip()}")
    return found


def spell_overrides(overrides: Mapping[str, Any]) -> list[str]:
    """Write a mapping as the words that `parse_overrides` reads as the same.

    >>> spell_overrides({"batch": 200, "methods": ["tent", "nhl"], "label": "1e-3"})
    ['batch=200', 'methods=[tent,nhl]', 'label="1e-3"']
    >>> spell_overrides({"after": False, "methods": ["nhl", {"method": "dua", "metric": "error_full"}]})
    ['after=false', 'methods=[nhl,{method: dua, metric: error_full}]']
    """
    return [f"{key}={_spell(value)}" for key, value in overrides.items()]


def _spell(value: Any) -> str:
    """Lists and mappings as YAML in one line, with plain words where these are read as what is meant."""
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_spell, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_spell(key)}: {_spell(entry)}" for key, entry in value.items()) + "}"
    plain = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        same = read_text(f"[{plain}]", where="") == [value]  # in a list, where a comma would part words
    except OptionError:
        same = False
    return plain if same else json.dumps(value, ensure_ascii=False)


def apply_overrides(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table's file says, with the changes made.

    >>> apply_overrides({"methods": ["source", "tent"]}, {"methods": ["tent"], "batch": 64})
    {'methods': ['tent'], 'protocol': {'batch': 64}}
    """
    changed: dict[str, Any] = copy.deepcopy(dict(values))
    # Lines are chosen first, so that options reach the lines that stay.
    for key in sorted(overrides, key=lambda key: "." in key):
        value = overrides[key]
        head, _, tail = key.removeprefix("protocol.").rpartition(".")
        if not head and tail in _SWITCHES:
            _set_switch(changed, tail, value)
        elif key in ("methods", "models"):
            changed[key] = _chosen(changed.get(key), value, key.removesuffix("s"))
        elif not head:
            if key not in _KEYS:
                raise UnknownNameError("key of a table, or switch,", key, _KEYS | _SWITCHES)
            changed[key] = value
        else:
            _set_on_lines(changed, head, tail, value)
    return changed


def _set_switch(values: dict[str, Any], name: str, value: Any) -> None:
    values["protocol"] = _with(values.get("protocol"), name, value)
    # A line whose own protocol sets this switch means it (the oracle's batch of one), so it stays.


def _with(values: Any, name: str, value: Any) -> Any:
    """Set one value of a mapping; what should be one and is none stays, and is refused when it is checked."""
    return {**(values or {}), name: value} if isinstance(values or {}, Mapping) else values


def _chosen(entries: Any, wanted: Any, kind: str) -> list[Any]:
    existing = entries if isinstance(entries, list) else [entries] if entries else []
    chosen: list[Any] = []
    for name in wanted if isinstance(wanted, list) else [wanted]:
        matching = [entry for entry in existing if isinstance(name, str) and _is_chosen(entry, name, kind)]
        chosen += [entry for entry in matching or [name] if entry not in chosen]
    return chosen


def _set_on_lines(values: dict[str, Any], head: str, tail: str, value: Any) -> None:
    known: list[str] = []
    hit = False
    for kind in ("method", "model"):
        entries = values.get(f"{kind}s")
        lines = entries if isinstance(entries, list) else [entries] if entries else []
        for number, entry in enumerate(lines):
            known += _callings(entry, kind)
            if head in _callings(entry, kind):
                hit = True
                line: dict[str, Any] = {kind: entry} if isinstance(entry, str) else dict(entry)
                lines[number] = line | {tail: value} if kind == "model" else _with_option(line, tail, value)
        if lines:
            values[f"{kind}s"] = lines
    if not hit:
        raise OptionError(f"{head}.{tail}: this table has no method or model {head!r}{nearest(head, set(known))}")


def _with_option(line: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Set an option or switch of a method's line; a factor of its grid then has this level alone."""
    if isinstance(line.get("grid"), Mapping) and name in line["grid"]:
        return line | {"grid": {**line["grid"], name: [value]}}
    place = "protocol" if _is_switch(str(line.get("method")), name) else "options"
    return line | {place: _with(line.get(place), name, value)}


def _is_switch(method: str, name: str) -> bool:
    """Whether `METHOD.name` means the protocol: where both have such a name, the method's option is meant."""
    try:
        return name in _SWITCHES and not hasattr(find(method).options, name)
    except UnknownNameError:  # said later, with everything else that is wrong
        return False


def _is_chosen(entry: Any, name: str, kind: str) -> bool:
    """Whether a line is chosen by a name; that in the paper chooses all lines which share it."""
    return name in _callings(entry, kind) or (isinstance(entry, dict) and name == entry.get("paper"))


def _callings(entry: Any, kind: str) -> list[str]:
    """What a line may be called: `zoo:NAME` and `timm:NAME` also NAME, and by its label."""
    spoken = entry if isinstance(entry, dict) else {kind: entry}
    name, label = spoken.get(kind), spoken.get("label")
    names = [name, name.rpartition(":")[2]] if isinstance(name, str) else []
    return [*names, label] if isinstance(label, str) and label else names

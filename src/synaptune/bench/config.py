"""Tables from YAML files: checked at once, and everything that is wrong said together.

A file is a mapping with these keys; only models, methods and data are required.

    title: CIFAR-10-C at severity 5
    paper: cifar10c                 # the section of paper.toml that stands beside it
    columns: corruption             # or data, severity, mean
    models: [{model: "zoo:resnet26-cifar10", paper: resnet26}]
    methods: [source, {method: tent, options: {lr: 1e-3}}, {method: nhl, grid: {stages: [[1], [1, 2]]}}]
    data: cifar10
    corruptions: benchmark          # or clean, mixed, extra, all, or a list
    severities: [5]
    seeds: [0]
    protocol: {batch: 128}

A method may also have its own `protocol` (changes to the table's), a `metric`, a `label`, and `without`, the
combinations of its `grid` to leave out.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from synaptune.bench.cell import CLEAN, MIXED
from synaptune.bench.paper import printed_table
from synaptune.bench.protocol import Protocol
from synaptune.bench.row import ERRORS
from synaptune.bench.table import ColumnKey, MethodLine, ModelLine, Table
from synaptune.core.method import AdaptOptions
from synaptune.core.registry import configure
from synaptune.errors import OptionError, SynaptuneError, UnknownNameError, nearest
from synaptune.shifts import names as corruption_names

__all__ = ["table_from"]


def table_from(values: Any, *, name: str, where: str) -> Table:
    """Check what a file says, and say everything that is wrong with it at once."""
    return _Reader(where).table(values, name)


class _Reader:
    """Turns plain values into a table and collects what is wrong on the way."""

    def __init__(self, where: str):
        self.where = where
        self.problems: list[str] = []

    def table(self, values: Any, name: str) -> Table:
        if not isinstance(values, dict):
            raise OptionError(f"{self.where}: a table is a mapping of keys to values, not {type(values).__name__}")
        known = {item.name for item in dataclasses.fields(Table)} - {"name"} | {"protocol"}
        self._only(values, known, "key")
        self._kinds(Table, values, "")
        protocol = self._protocol({}, values.get("protocol"), "protocol")
        columns = values.get("columns", "corruption")
        if columns not in get_args(ColumnKey):
            self.problems.append(f"columns must be one of {', '.join(get_args(ColumnKey))}, not {columns!r}")
        table = Table(
            name=name,
            title=str(values.get("title", name)),
            columns=columns,
            models=tuple(self._models(values.get("models"))),
            methods=tuple(self._methods(values.get("methods"), protocol)),
            data=self._texts(values.get("data"), "data"),
            corruptions=tuple(self._corruptions(values.get("corruptions", CLEAN))),
            severities=tuple(self._whole(values.get("severities", [5]), "severities", 1, 5)),
            seeds=tuple(self._whole(values.get("seeds", [0]), "seeds", 0, None)),
            paper=str(values.get("paper", "")),
            notes=self._texts(values["notes"], "notes") if values.get("notes", []) != [] else (),
        )
        if isinstance(values.get("paper", ""), str) and table.paper:
            self._attempt(lambda: printed_table(table.paper), "paper")
        if self.problems:
            raise OptionError(f"{self.where}: " + "; ".join(self.problems))
        return table

    def _models(self, entries: Any) -> Iterator[ModelLine]:
        for number, entry in enumerate(self._list(entries, "models"), start=1):
            values = {"model": entry} if isinstance(entry, str) else entry
            if isinstance(values, dict) and "data" in values:
                values = values | {"data": self._texts(values["data"], f"models[{number}].data")}
            yield from self._line(ModelLine, values, f"models[{number}]", "model")

    def _methods(self, entries: Any, protocol: Mapping[str, Any]) -> Iterator[MethodLine]:
        for number, entry in enumerate(self._list(entries, "methods"), start=1):
            where = f"methods[{number}]"
            if not isinstance(entry, str | dict):
                self.problems.append(f"{where} must be a name or a mapping, not {entry!r}")
                continue
            values: dict[str, Any] = {"method": entry} if isinstance(entry, str) else dict(entry)
            grid, without = values.pop("grid", None) or {}, values.pop("without", None) or []
            if values.get("metric", ERRORS[0]) not in ERRORS:
                self.problems.append(f"{where}: metric must be one of {', '.join(ERRORS)}, not {values['metric']!r}")
            changed = self._protocol(protocol, values.pop("protocol", None), f"{where}.protocol")
            made = self._attempt(lambda changed=changed: Protocol(**changed), where) or Protocol()
            given = self._mapping(values.pop("options", None), f"{where}.options")
            if "factors" in values:
                self.problems.append(f"unknown key of {where} 'factors'; levels stand in grid")
            twice = [option for option in given if isinstance(grid, dict) and option in grid]
            self.problems += [f"{where}: {option} is both an option and in the grid" for option in twice]
            for levels in self._grid(grid, without, where):
                line = values | {"options": given | levels, "protocol": made, "factors": levels}
                for method in self._line(MethodLine, line, where, "method"):
                    found = self._attempt(lambda method=method: configure(method.method, dict(method.options)), where)
                    if found:
                        if problem := _unmeasured(method, found[1]):
                            self.problems.append(f"{where} ({method.title}): {problem}")
                        yield dataclasses.replace(method, paper=method.paper or method.method)

    def _grid(self, grid: Any, without: Any, where: str) -> Iterator[dict[str, Any]]:
        if not isinstance(grid, dict) or not all(isinstance(levels, list) and levels for levels in grid.values()):
            self.problems.append(f"{where}: grid must name a list of levels for each option, not {grid!r}")
            return
        if not isinstance(without, list) or not all(isinstance(rule, dict) and rule for rule in without):
            self.problems.append(f"{where}: without must be a list of mappings of options to levels, not {without!r}")
            return
        for option in dict.fromkeys(option for rule in without for option in rule if option not in grid):
            self.problems.append(f"{where}: without names {option!r}, which is not in the grid")
        for levels in itertools.product(*grid.values()):
            chosen = dict(zip(grid, levels, strict=True))
            if not any(all(chosen.get(key) == value for key, value in rule.items()) for rule in without):
                yield chosen

    def _line(self, kind: type[Any], values: Any, where: str, needed: str) -> Iterator[Any]:
        if not isinstance(values, dict) or not isinstance(values.get(needed), str):
            self.problems.append(f"{where} needs a {needed}, not {values!r}")
            return
        before = len(self.problems)
        self._only(values, {item.name for item in dataclasses.fields(kind)}, f"key of {where}")
        self._kinds(kind, values, f"{where}.")
        if len(self.problems) == before:
            yield kind(**values)

    def _protocol(self, base: Mapping[str, Any], changes: Any, where: str) -> dict[str, Any]:
        changes = self._mapping(changes, where)
        self._only(changes, {item.name for item in dataclasses.fields(Protocol)}, f"key of {where}")
        known = {item.name for item in dataclasses.fields(Protocol)}
        return {**base, **{key: value for key, value in changes.items() if key in known}}

    def _mapping(self, value: Any, where: str) -> dict[str, Any]:
        if value is None:
            return {}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return value
        self.problems.append(f"{where} must be a mapping of names to values, not {value!r}")
        return {}

    def _kinds(self, kind: type[Any], values: Mapping[str, Any], where: str) -> None:
        """Check the fields of a dataclass that are text or a switch."""
        for item in dataclasses.fields(kind):
            value = values.get(item.name)
            if item.name in values and item.type == "str" and not isinstance(value, str):
                self.problems.append(f"{where}{item.name} must be text, not {value!r}; put it in quotes")
            if item.name in values and item.type == "bool" and not isinstance(value, bool):
                self.problems.append(f"{where}{item.name} must be true or false, not {value!r}")

    def _texts(self, value: Any, what: str) -> tuple[str, ...]:
        entries = self._list(value, what)
        for entry in entries:
            if not isinstance(entry, str):
                self.problems.append(f"{what} must be text, not {entry!r}; put it in quotes")
        return tuple(map(str, entries))

    def _corruptions(self, value: Any) -> list[str]:
        if value in ("benchmark", "extra", "all"):
            return list(corruption_names(value))
        chosen = [str(entry) for entry in self._list(value, "corruptions")]
        known = [*corruption_names("all"), CLEAN, MIXED]
        self.problems += [str(UnknownNameError("corruption", entry, known)) for entry in chosen if entry not in known]
        return chosen

    def _whole(self, value: Any, what: str, low: int, high: int | None) -> list[int]:
        numbers = self._list(value, what)
        for number in numbers:
            whole = isinstance(number, int) and not isinstance(number, bool)
            if not whole or number < low or (high is not None and number > high):
                limit = f"from {low} to {high}" if high is not None else f"from {low} on"
                self.problems.append(f"{what} are whole numbers {limit}, not {number!r}")
        return numbers

    def _list(self, value: Any, what: str) -> list[Any]:
        if isinstance(value, str | int) and not isinstance(value, bool):
            return [value]
        if isinstance(value, list) and value:
            return value
        self.problems.append(f"{what} must be a value or a list of values, not {value!r}")
        return []

    def _only(self, values: Mapping[str, Any], known: set[str], what: str) -> None:
        for key in values:
            if key not in known:
                self.problems.append(f"unknown {what} {key!r}{nearest(str(key), known)}")

    def _attempt(self, make: Any, where: str) -> Any:
        try:
            return make()
        except SynaptuneError as error:
            self.problems.append(f"{where}: {error}")
            return None


def _unmeasured(line: MethodLine, options: AdaptOptions) -> str:
    """Say what switch leaves a line without the error that it shows, or "" where none does."""
    protocol, metric = line.protocol, line.metric
    if protocol.horizon is not None and metric in ("error_online", "error_after"):
        return (
            f"horizon measures on the whole set only, so there is no {metric}; say metric: error_full or error_oracle"
        )
    # A method that predicts after its update measures that error anyway.
    missing = {
        "error_after": "" if protocol.after or options.predict == "after" else "after: true",
        "error_full": "" if protocol.full else "full: true",
        "error_oracle": "" if protocol.oracle_every else "oracle_every, the batches between looks at the whole set",
    }.get(metric, "")
    return f"metric {metric} needs {missing} in the protocol of this line or of the table" if missing else ""

"""The protocol stamp: under which switches the numbers of a section came about, in full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from synaptune.report.document import Stamp
from synaptune.report.rows import SWITCHES, ResultRow
from synaptune.report.sections import RowGroup
from synaptune.report.stream_log import Stream
from synaptune.report.wording import listing, spell_option, switch_name, switch_value

__all__ = ["section_stamp", "stream_stamp"]


def section_stamp(group: RowGroup) -> Stamp:
    """Spell the switches, seeds and runs of a section, and every option of every method."""
    rows = group.rows
    # Libraries have a list of their own; delta belongs to the correlated order and means nothing under another.
    apart = {"versions"} if group.switches.get("order") == "correlated" else {"versions", "delta"}
    switches = [(switch_name(name), _value(name, group.switches.get(name))) for name in SWITCHES if name not in apart]
    general = [
        *switches,
        ("seeds", ", ".join(map(str, sorted({row.seed for row in rows})))),
        ("prediction of the method itself", _alternatives(row.predict for row in rows)),
        ("run", _alternatives(row.run for row in rows)),
    ]
    versions = group.switches.get("versions")
    libraries = versions.items() if isinstance(versions, Mapping) else ()
    groups = [("Settings", general), ("Library versions", [(str(name), str(value)) for name, value in libraries])]
    groups += [(f"Options of {method}", _options(group, method)) for method in group.methods]
    groups.append(("Images, by digest of their recipe", [(shift.name, shift.key[1]) for shift in group.shifts]))
    said = [(title, tuple(pair for pair in pairs if pair[1])) for title, pairs in groups]
    return Stamp(tuple((title, pairs) for title, pairs in said if pairs))


def stream_stamp(stream: Stream) -> Stamp:
    """Spell what the log's head says."""
    return Stamp((("Stream", tuple(stream.stamp())),))


def _value(name: str, value: Any) -> str:
    if name == "data" and isinstance(value, list):
        return listing(value, most=20)
    return switch_value(name, value)


def _alternatives(values: Iterable[str]) -> str:
    return ", ".join(sorted({value for value in values if value}))


def _options(group: RowGroup, method: str) -> list[tuple[str, str]]:
    row: ResultRow | None = next((rows[0] for (name, _), rows in group.cells.items() if name == method and rows), None)
    if row is None:
        return []
    # A method's own seed is that of the row, which stands above.
    return [(str(name), spell_option(value)) for name, value in row.options.items() if name != "seed"]

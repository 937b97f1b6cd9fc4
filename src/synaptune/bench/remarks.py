"""Sentences that a table needs beside its numbers: under which switches, what is absent, what must not be compared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from synaptune.bench.protocol import Protocol
from synaptune.bench.row import BEFORE_THE_STREAM, ERRORS, Row
from synaptune.bench.table import Table

__all__ = ["absences", "blanks", "deviations", "mixtures", "omissions", "stamp", "usual_protocol"]


_MOST_LABELS = 3
_STAMPED = ("images", "batch", "order", "reset", "corruption_seed", "threads", "channels_last", "device")


def usual_protocol(table: Table) -> Protocol:
    """Return the protocol that most lines share; other lines say how they differ."""
    return Counter(line.protocol for line in table.methods).most_common(1)[0][0]


def stamp(table: Table, rows: Sequence[Row]) -> str:
    """Spell the switches of the table's usual protocol, seeds and libraries, in a sentence."""
    usual = usual_protocol(table)
    switches = usual.as_dict()
    if usual.images is None:
        counts = {row.images for row in rows if row.status == "ok"}
        switches["images"] = counts.pop() if len(counts) == 1 else "all"
    said = [f"{name} {switches[name]}" for name in _STAMPED]
    seeds = sorted({row.seed for row in rows} or set(table.seeds))
    said.append(f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}")
    libraries = {tuple(sorted(row.versions.items())) for row in rows if row.versions}
    if len(libraries) == 1:
        said += [f"{name} {version}" for name, version in libraries.pop()]
    return ", ".join(said)


def deviations(table: Table) -> Iterator[str]:
    """Say how lines differ from the table's usual protocol, and which error they show instead of the online one."""
    usual = usual_protocol(table).as_dict()
    for line in table.methods:
        changed = [f"{name} {value}" for name, value in line.protocol.as_dict().items() if value != usual[name]]
        shown = [] if line.metric == ERRORS[0] else [f"shows {line.metric}"]
        if changed or shown:
            yield f"{line.title}: {', '.join(shown + changed)}."


def absences(rows: Sequence[Row]) -> Iterator[str]:
    """Say what could not be measured, why, and how many cells that costs."""
    reasons: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.status != "ok":
            reasons[row.status, row.error or ""].append(row)
    for (status, why), members in reasons.items():
        labels = list(dict.fromkeys(row.label for row in members)) if status == "inapplicable" else []
        more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else ""
        what = ", ".join(labels[:_MOST_LABELS]) + more
        where = ", ".join(dict.fromkeys(row.model.removeprefix("zoo:") for row in members))
        count = f"{len(members)} cell{'s' if len(members) > 1 else ''}"
        yield f"{status}: {' '.join(part for part in (what, 'on' if what else '', where) if part)} ({count}): {why}"


def blanks(table: Table, found: Mapping[str, Row]) -> Iterator[str]:
    """Say of lines whose cells were measured without the error that they show, why that is."""
    for line in table.methods:
        cells = (cell.key for model in table.models for cell in table.cells_of(model, line))
        rows = [found[key] for key in cells if key in found and found[key].status == "ok"]
        lacking = [row for row in rows if row.error_of(line.metric) is None]
        if not lacking:
            continue
        batches = max(_batches(row) for row in lacking)
        if line.metric == "error_oracle" and batches < line.protocol.oracle_every:
            why = f"oracle_every is {line.protocol.oracle_every}, and there are only {batches} batches"
        else:
            why = "the method has no such prediction"
        yield f"{line.title}: {line.metric} is blank in {len(lacking)} of {len(rows)} cells: {why}."


def _batches(row: Row) -> int:
    whole = -(-(row.images or 0) // row.batch)
    return whole if row.horizon is None else min(whole, row.horizon)


def mixtures(rows: Sequence[Row]) -> Iterator[str]:
    """Name what differs between rows although the table does not mean it to."""
    ok = [row for row in rows if row.status == "ok"]
    checks = (
        ("weights", lambda row: (row.model, row.weights), lambda row: row.fingerprint),
        (
            "images",
            lambda row: (row.model, row.data, row.corruption, row.severity, row.images),
            lambda row: row.recipe_digest,
        ),
        (
            "the user's files",
            lambda row: (row.model, row.method, row.data),
            lambda row: tuple(sorted((row.files or {}).items())),
        ),
        ("library versions", lambda row: row.run, lambda row: tuple(sorted(row.versions.items()))),
    )
    for what, group, value in checks:
        values: dict[object, set[object]] = defaultdict(set)
        for row in ok:
            values[group(row)].add(value(row))
        if any(len(found) > 1 for found in values.values()):
            yield f"Mixed: rows of this table differ in {what}; measure them again to compare them."


def omissions(rows: Sequence[Row]) -> Iterator[str]:
    """Name files of the data that could not be read, once for each set."""
    events = [(row.data, event) for row in rows for event in row.events or () if event.startswith(BEFORE_THE_STREAM)]
    yield from dict.fromkeys(f"{data}: {event.removeprefix(BEFORE_THE_STREAM)}." for data, event in events)

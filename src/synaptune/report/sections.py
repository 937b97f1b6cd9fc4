"""Sections: rows that may stand in one table, and the switches in which other rows differ from them.

Rows of one section agree in every switch of `rows.SWITCHES`. Inside a section, a line is a method with its options, a
column is a shift, and seeds are repeats. A column is a corruption of one data set; where images are taken as they are
from several data sets (the digits), the data set is the column, and then alone `data` and `images` are no switches.

A row that failed lacks what is only known after measuring (fingerprint, versions, images); it goes to the section that
it agrees with otherwise.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from synaptune.report.rows import CLEAN, MIXED, SWITCHES, ResultRow
from synaptune.report.wording import FAMILIES, long_name, short_name, spell_option

__all__ = ["RowGroup", "Shift", "group_rows", "varying"]

_KNOWN_LATE = ("weights", "fingerprint", "versions", "images")
_COLUMN_SWITCHES = ("data", "images")


@dataclass(frozen=True)
class Shift:
    """A column.

    Attributes:
        key: what rows are matched by: corruption or data set, and which images.
        name: as sentences call it.
        short: as a column is headed.
        family: of corruptions; "" for others.
        stands_apart: whether it stays out of a mean over corruptions: images as they are, or all corruptions mixed.
    """

    key: tuple[str, ...]
    name: str
    short: str
    family: str = ""
    stands_apart: bool = False


@dataclass(frozen=True)
class RowGroup:
    """The rows of one section.

    Attributes:
        switches: what they agree in; `data` is a list where data sets are columns.
        shifts: the columns, in the order of the papers, then of the file.
        methods: labels of the lines, the source first, then in the order of the file.
        cells: rows by method and shift, one for each seed, measured ones before others.
        repeats: how many measured rows were left out because a later one is of the same cell.
    """

    switches: Mapping[str, Any]
    shifts: tuple[Shift, ...]
    methods: tuple[str, ...]
    cells: Mapping[tuple[str, Shift], tuple[ResultRow, ...]]
    repeats: int = 0

    @property
    def rows(self) -> list[ResultRow]:
        """All rows."""
        return [row for members in self.cells.values() for row in members]

    def measured(self, method: str, shift: Shift) -> list[ResultRow]:
        """The rows of a cell that hold a number, one for each seed."""
        return [row for row in self.cells.get((method, shift), ()) if row.is_measured]

    def measured_of(self, method: str) -> list[ResultRow]:
        """All measured rows of a method, in the order of the columns."""
        return [row for shift in self.shifts for row in self.measured(method, shift)]


def group_rows(rows: Sequence[ResultRow]) -> list[RowGroup]:
    """Split rows into sections, in the order in which they come."""
    by_data = _data_sets_are_columns(rows)
    stamps = [_stamp(row, by_data) for row in rows]
    groups: dict[str, list[ResultRow]] = {}
    stamp_of: dict[str, Mapping[str, str]] = {}

    def join(row: ResultRow, stamp: Mapping[str, str]) -> None:
        key = _canonical(stamp)
        stamp_of.setdefault(key, stamp)
        groups.setdefault(key, []).append(row)

    pairs = list(zip(rows, stamps, strict=True))
    for row, stamp in pairs:
        if row.is_measured and row.corruption != CLEAN:
            join(row, stamp)
    # Clean images have no severity: they stand beside each severity that was measured like them.
    others = [pair for pair in pairs if not (pair[0].is_measured and pair[0].corruption != CLEAN)]
    for row, stamp in sorted(others, key=lambda pair: not pair[0].is_measured):
        homes = [key for key, head in stamp_of.items() if _agree(row, stamp, head)]
        for key in homes if row.corruption == CLEAN else homes[:1]:
            groups[key].append(row)
        if not homes:
            join(row, stamp)
    return [_group(members, by_data) for members in groups.values()]


def varying(groups: Sequence[RowGroup]) -> tuple[str, ...]:
    """Name the switches in which sections differ."""
    return tuple(name for name in SWITCHES if len({_canonical(group.switches.get(name)) for group in groups}) > 1)


def _data_sets_are_columns(rows: Sequence[ResultRow]) -> bool:
    images: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        images[str(row.switches["data"])] |= {row.images} if row.images and row.is_measured else set()
    return (
        len(images) > 1
        and all(row.corruption == CLEAN for row in rows)
        and all(len(counts) <= 1 for counts in images.values())
    )


def _stamp(row: ResultRow, by_data: bool) -> dict[str, str]:
    left_out = _COLUMN_SWITCHES if by_data else ()
    return {name: _canonical(value) for name, value in row.switches.items() if name not in left_out}


def _agree(row: ResultRow, stamp: Mapping[str, str], head: Mapping[str, str]) -> bool:
    """Whether a row belongs to a section, as far as it says."""
    differing = {name for name, value in stamp.items() if value != head[name]}
    if row.corruption == CLEAN:
        differing.discard("severity")
    if not row.is_measured:
        differing -= {name for name in _KNOWN_LATE if row.switches[name] in (None, "", {})}
        # Before loading, weights are called by their path, and afterwards by the file's name.
        if _canonical(PurePath(str(row.switches["weights"])).name) == head["weights"]:
            differing.discard("weights")
    return not differing


def _group(rows: Sequence[ResultRow], by_data: bool) -> RowGroup:
    labels = _labels(rows)
    shifts = _shifts(rows, by_data)
    cells: dict[tuple[str, Shift], dict[tuple[int, bool], ResultRow]] = defaultdict(dict)
    repeats = 0
    for row in rows:
        cell, place = cells[labels[_identity(row)], shifts[_shift_key(row, by_data)]], (row.seed, row.is_measured)
        repeats += row.is_measured and place in cell
        cell[place] = row  # a later row of the same cell and seed replaces an earlier one
    chosen = {place: _one_per_seed(found) for place, found in cells.items()}
    switches = dict(rows[0].switches)
    if by_data:
        switches["data"] = list(dict.fromkeys(str(row.switches["data"]) for row in rows))
        switches["images"] = {str(row.switches["data"]): row.images for row in rows if row.is_measured}
    return RowGroup(
        switches=switches,
        shifts=_ordered(set(shifts.values()), rows, shifts, by_data),
        methods=tuple(sorted(dict.fromkeys(labels.values()), key=lambda label: label != "source")),
        cells=chosen,
        repeats=repeats,
    )


def _one_per_seed(found: Mapping[tuple[int, bool], ResultRow]) -> tuple[ResultRow, ...]:
    seeds = sorted({seed for seed, _ in found})
    return tuple(found[seed, True] if (seed, True) in found else found[seed, False] for seed in seeds)


def _identity(row: ResultRow) -> tuple[str, str]:
    """A method with its options; its own seed is the row's."""
    return row.method, _canonical({name: value for name, value in row.options.items() if name != "seed"})


def _labels(rows: Iterable[ResultRow]) -> dict[tuple[str, str], str]:
    """Name each method; where one comes with several option sets, by the options in which they differ."""
    variants: dict[str, dict[tuple[str, str], Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        variants[row.method].setdefault(_identity(row), row.options)
    labels: dict[tuple[str, str], str] = {}
    for method, found in variants.items():
        names = list(dict.fromkeys(name for options in found.values() for name in options if name != "seed"))
        differing = [
            name for name in names if len({_canonical(options.get(name, "")) for options in found.values()}) > 1
        ]
        for identity, options in found.items():
            said = ", ".join(f"{name}={spell_option(options.get(name))}" for name in differing)
            label = f"{method} ({said})" if said else method
            # A method may be called what another one's label says; one label must never stand for two.
            labels[identity] = label if label not in labels.values() else f"{label} #{len(labels) + 1}"
    return labels


def _shift_key(row: ResultRow, by_data: bool) -> tuple[str, str]:
    return (str(row.switches["data"]) if by_data else row.corruption), row.recipe_digest


def _shifts(rows: Sequence[ResultRow], by_data: bool) -> dict[tuple[str, str], Shift]:
    """Make the columns. Other images under the same name are a column of their own."""
    digests: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        name, digest = _shift_key(row, by_data)
        digests[name].setdefault(digest, None)
    shifts = {}
    for name, found in digests.items():
        known = [digest for digest in found if digest] or [""]
        for number, digest in enumerate(known):
            suffix = f" (other images {number + 1})" if number else ""
            shifts[name, digest] = _shift(name, digest, suffix, by_data=by_data)
        # Rows that failed, and rows of older files, do not say which images they are of.
        shifts.setdefault((name, ""), shifts[name, known[0]])
    return shifts


def _shift(name: str, digest: str, suffix: str, *, by_data: bool) -> Shift:
    if by_data:
        return Shift((name, digest), name + suffix, name + suffix)
    family = next((family for family, members in FAMILIES.items() if name in members), "")
    return Shift(
        (name, digest), long_name(name) + suffix, short_name(name) + suffix, family, stands_apart=name in (CLEAN, MIXED)
    )


def _ordered(
    wanted: set[Shift], rows: Sequence[ResultRow], shifts: Mapping[tuple[str, str], Shift], by_data: bool
) -> tuple[Shift, ...]:
    appearance = list(dict.fromkeys(shifts[_shift_key(row, by_data)] for row in rows))
    if rows[0].switches["reset"] == "never":
        return tuple(appearance)
    printed = [name for members in FAMILIES.values() for name in members]

    def place(shift: Shift) -> tuple[int, int]:
        known = printed.index(shift.key[0]) if shift.key[0] in printed else len(printed)
        return (-1 if shift.key[0] == CLEAN else known), appearance.index(shift)

    return tuple(sorted(wanted, key=place))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)

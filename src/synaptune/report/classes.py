"""Predicted classes: how often each is predicted, against how often it is right, or against the source model.

    distance = 1/2 sum_c | p_c - q_c |      p: predicted shares, q: those of labels (or of the source), in percent

A method that collapses predicts few classes: its distance rises long before the whole error tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synaptune.report.error_tables import quantity_table
from synaptune.report.rows import ResultRow
from synaptune.report.sections import RowGroup
from synaptune.report.table import Column, Line, Place, Table
from synaptune.report.wording import count, percent

__all__ = ["ClassShares", "class_distance_table", "class_shares", "share_distance", "share_table"]

MOST_CLASSES = 12


@dataclass(frozen=True)
class ClassShares:
    """Shares of classes, in percent, over all shifts of a section or a whole stream.

    Attributes:
        names: of the classes that are shown, those that moved most.
        reference: what others are compared with: name and shares.
        lines: the same for each method.
        left_out: classes that are not shown.
    """

    names: tuple[str, ...]
    reference: tuple[str, tuple[float, ...]]
    lines: tuple[tuple[str, tuple[float, ...]], ...]
    left_out: int = 0


def share_distance(left: Sequence[float], right: Sequence[float]) -> float:
    """Half the summed difference of two distributions, in percent; counts or shares.

    >>> share_distance([50, 50], [100, 0])
    50.0
    """
    return sum(abs(a - b) for a, b in zip(_shares(left), _shares(right), strict=True)) / 2


def class_distance_table(group: RowGroup) -> Table | None:
    """Lay out, by method and shift, how far predicted shares lie from the labels', else from the source's."""
    has_labels = any(row.labels for row in group.rows)
    source = {(shift.key, row.seed): row for shift in group.shifts for row in group.measured("source", shift)}
    keys = {id(row): shift.key for (_, shift), rows in group.cells.items() for row in rows}

    def distance(row: ResultRow) -> float | None:
        beside = source.get((keys[id(row)], row.seed))
        reference = row.labels if has_labels else beside.predicted if beside is not None else ()
        usable = len(row.predicted) == len(reference) > 0 and sum(row.predicted) > 0 and sum(reference) > 0
        return share_distance(row.predicted, reference) if usable else None

    target = "the labels'" if has_labels else "the source model's"
    return quantity_table(
        group,
        distance,
        title=f"Distance of predicted class shares from {target}, in percent",
        caption="0: every class is predicted as often as there; 100: no class in common.",
        heated=True,
    )


def class_shares(group: RowGroup) -> ClassShares | None:
    """Add up predictions over the columns of a section that every method has, and compare shares."""
    rows = {
        method: {(shift.key, row.seed): row for shift in group.shifts for row in group.measured(method, shift)}
        for method in group.methods
    }
    counted = {method: {key: row for key, row in found.items() if row.predicted} for method, found in rows.items()}
    counted = {method: found for method, found in counted.items() if found}
    if not counted:
        return None
    shared = set.intersection(*(set(found) for found in counted.values()))
    totals = {method: _total([found[key].predicted for key in shared]) for method, found in counted.items()}
    first = next(iter(counted.values()))
    labels = _total([first[key].labels for key in shared])
    reference = ("labels", labels) if labels else ("source", totals.pop("source", ()))
    return choose_classes(reference, totals, next((row.class_names for row in first.values()), ()))


def choose_classes(
    reference: tuple[str, Sequence[float]], totals: Mapping[str, Sequence[float]], names: Sequence[str]
) -> ClassShares | None:
    """Turn counts into shares and keep the classes that moved most; None where counts do not fit each other."""
    name, counts = reference
    lines = {method: _shares(found) for method, found in totals.items() if len(found) == len(counts) and any(found)}
    if not lines or not any(counts):
        return None
    base = _shares(counts)
    moved = [max(abs(shares[number] - base[number]) for shares in lines.values()) for number in range(len(base))]
    largest = sorted(range(len(base)), key=lambda number: -moved[number])[:MOST_CLASSES]
    chosen = sorted(largest)
    said = [names[number] if number < len(names) else f"class {number}" for number in chosen]
    return ClassShares(
        names=tuple(said),
        reference=(name, tuple(base[number] for number in chosen)),
        lines=tuple((method, tuple(shares[number] for number in chosen)) for method, shares in lines.items()),
        left_out=len(base) - len(chosen),
    )


def share_table(shares: ClassShares) -> Table:
    """Lay out shares of classes."""
    lines = [shares.reference, *shares.lines]
    left = f"{count(shares.left_out, 'class', 'classes')} that moved less are left out." if shares.left_out else ""
    return Table(
        title="Predicted share of each class, in percent",
        corner="class",
        columns=tuple(Column(name) for name, _ in lines),
        lines=tuple(
            Line(name, tuple(Place(percent(values[number]), values[number]) for _, values in lines))
            for number, name in enumerate(shares.names)
        ),
        caption=left,
    )


def _shares(counts: Sequence[float]) -> list[float]:
    total = sum(counts)
    return [100 * amount / total if total else 0.0 for amount in counts]


def _total(counts: Sequence[Sequence[int]]) -> list[int]:
    whole = bool(counts) and all(len(found) == len(counts[0]) for found in counts)
    return [sum(column) for column in zip(*counts, strict=True)] if whole else []

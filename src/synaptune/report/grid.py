"""One error of one section as a grid: methods by shifts, with means over the same cells and nothing hidden.

There are four errors (before the update, after it, whole set, oracle); each has a grid of its own. A mean over all
columns exists only for a method that has them all; methods are compared on the columns that both have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from synaptune.report.noise import Estimate, difference, estimate, mean
from synaptune.report.rows import ERROR_KINDS, ErrorKind
from synaptune.report.sections import RowGroup, Shift

__all__ = ["ABOUT_KIND", "Comparison", "Grid", "kinds_in", "primary_kind"]

ABOUT_KIND: dict[ErrorKind, tuple[str, str]] = {
    "error_online": ("Error before the update", "each batch is predicted before the method learns from it"),
    "error_after": ("Error after the update", "each batch is predicted after the method has learnt from it"),
    "error_full": ("Error on the whole set", "the state after the last batch, frozen, predicts all images"),
    "error_oracle": (
        "Oracle: lowest error of any stage",
        "the labels choose when to stop, so nobody can reach this number without them",
    ),
}
"""Title and explanation of each error."""


@dataclass(frozen=True)
class Comparison:
    """A method against another, on the columns that both have.

    Attributes:
        method: the one that is looked at.
        baseline: the one it is compared with.
        shifts: the columns that both have, clean images left out.
        changes: difference in each of them; negative is better.
        left: mean of the method over them.
        right: mean of the baseline over them.
    """

    method: str
    baseline: str
    shifts: tuple[Shift, ...]
    changes: tuple[Estimate, ...]
    left: Estimate
    right: Estimate

    @property
    def change(self) -> Estimate:
        """Difference of the means."""
        return difference(self.left, self.right)

    def where(self, *, better: bool, clear: bool = False) -> list[tuple[Shift, Estimate]]:
        """Columns in which the method is better (or worse), the largest difference first."""
        sign = -1 if better else 1
        found = [
            (shift, delta)
            for shift, delta in zip(self.shifts, self.changes, strict=True)
            if sign * delta.value > 0 and (delta.is_clear or not clear)
        ]
        return sorted(found, key=lambda pair: -abs(pair[1].value))


@dataclass(frozen=True)
class Grid:
    """Errors of one kind."""

    group: RowGroup
    kind: ErrorKind

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The columns."""
        return self.group.shifts

    @property
    def averaged(self) -> tuple[Shift, ...]:
        """Columns that enter a mean: clean images do not, beside corrupted ones."""
        corrupted = tuple(shift for shift in self.shifts if not shift.stands_apart)
        return corrupted or self.shifts

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods that have this error in some column."""
        return tuple(method for method in self.group.methods if self.covered(method))

    def at(self, method: str, shift: Shift) -> Estimate | None:
        """The number of a cell, the mean over seeds, or None."""
        return self._estimates.get((method, shift))

    @cached_property
    def _estimates(self) -> dict[tuple[str, Shift], Estimate]:
        found = {}
        for method, shift in self.group.cells:
            rows = [row for row in self.group.measured(method, shift) if self.kind in row.errors]
            if rows:
                found[method, shift] = estimate([row.errors[self.kind] for row in rows], images=rows[0].images)
        return found

    def covered(self, method: str) -> tuple[Shift, ...]:
        """Columns in which a method has this error."""
        return tuple(shift for shift in self.shifts if self.at(method, shift) is not None)

    def mean(self, method: str, shifts: Sequence[Shift] | None = None) -> Estimate | None:
        """Mean over columns; by default over those averaged columns that the method has."""
        wanted = self.averaged if shifts is None else shifts
        parts = [part for shift in wanted if (part := self.at(method, shift)) is not None]
        return mean(parts) if parts else None

    def is_complete(self, method: str) -> bool:
        """Whether a method has all columns that enter the mean."""
        return set(self.averaged) <= set(self.covered(method))

    def compare(self, method: str, baseline: str) -> Comparison | None:
        """Compare two methods on the averaged columns that both have; None when there are none."""
        shared = tuple(
            shift
            for shift in self.averaged
            if self.at(method, shift) is not None and self.at(baseline, shift) is not None
        )
        left, right = self.mean(method, shared), self.mean(baseline, shared)
        if left is None or right is None:
            return None
        changes = [
            difference(a, b) for shift in shared if (a := self.at(method, shift)) and (b := self.at(baseline, shift))
        ]
        return Comparison(method, baseline, shared, tuple(changes), left, right)

    def ranked(self) -> list[str]:
        """Methods that have all columns, the best first; ties in the order of the section."""
        whole = [method for method in self.methods if self.is_complete(method)]
        means = {method: part.value for method in whole if (part := self.mean(method)) is not None}
        return sorted(means, key=means.__getitem__)


def kinds_in(group: RowGroup) -> tuple[ErrorKind, ...]:
    """Name the errors that were measured somewhere in a section."""
    there = {kind for row in group.rows if row.is_measured for kind in row.errors}
    return tuple(kind for kind in ERROR_KINDS if kind in there)


def primary_kind(group: RowGroup) -> ErrorKind | None:
    """Choose the error that a section is about: the one most methods have, before the update if in doubt.

    An oracle is nobody's result; it is chosen only when there is nothing else.
    """
    there = kinds_in(group)
    honest = tuple(kind for kind in there if kind != "error_oracle")
    return max(honest or there, key=lambda kind: len(Grid(group, kind).methods), default=None)

"""Tables of errors: methods by shifts, the change against a baseline, and other quantities laid out alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from synaptune.report.grid import ABOUT_KIND, Comparison, Grid
from synaptune.report.noise import CLEAR, Estimate
from synaptune.report.rows import ResultRow
from synaptune.report.sections import RowGroup, Shift
from synaptune.report.table import Column, Line, Place, Table
from synaptune.report.wording import NOTHING, change, count, listing, percent

__all__ = ["change_table", "error_table", "quantity_table"]

_STATUS = {"failed": "failed", "missing": "missing", "inapplicable": "n/a"}
_NOISE = f"noise: {CLEAR:g} standard errors, from the number of images and the spread of seeds"


def error_table(grid: Grid) -> Table:
    """Lay out errors by method and shift, with their mean and its noise."""
    methods = [method for method in grid.group.methods if _belongs(grid, method)]
    lines = [_error_line(grid, method) for method in methods]
    can_be_best = grid.kind != "error_oracle" and len(lines) > 1
    places = _mark_best([line.places for line in lines], last=1) if can_be_best else [line.places for line in lines]
    title, about = ABOUT_KIND[grid.kind]
    return Table(
        title=f"{title}, in percent",
        corner="method",
        columns=(*_shift_columns(grid.shifts, heated=True), *_summary_columns(grid)),
        lines=tuple(Line(line.name, marked) for line, marked in zip(lines, places, strict=True)),
        caption=_caption(grid, about),
    )


def change_table(grid: Grid, baseline: str) -> Table | None:
    """Lay out the change of each method against a baseline; None when there is nothing to compare."""
    comparisons = [
        comparison
        for method in grid.methods
        if method != baseline and (comparison := grid.compare(method, baseline)) is not None
    ]
    if not comparisons:
        return None
    return Table(
        title=f"Change against {baseline}, in points",
        corner="method",
        columns=(*_shift_columns(grid.averaged), *_summary_columns(grid, heated=False)),
        lines=tuple(_change_line(grid, comparison) for comparison in comparisons),
        caption=f"Negative is better. In brackets: within noise. {_NOISE[0].upper()}{_NOISE[1:]}.",
    )


def quantity_table(
    group: RowGroup,
    value_of: Callable[[ResultRow], float | None],
    *,
    title: str,
    caption: str = "",
    spell: Callable[[float | None], str] = percent,
    heated: bool = False,
) -> Table | None:
    """Lay out any number of a row by method and shift, with the mean over shifts; None when no row has it."""
    found = {
        method: {
            shift: value for shift in group.shifts if (value := _seed_mean(group, method, shift, value_of)) is not None
        }
        for method in group.methods
    }
    measured = {method: values for method, values in found.items() if values}
    if not measured:
        return None
    averaged = [shift for shift in group.shifts if not shift.stands_apart] or list(group.shifts)
    lines = []
    for method, values in measured.items():
        parts = [values[shift] for shift in averaged if shift in values]
        whole = statistics.fmean(parts) if len(parts) == len(averaged) else None
        numbers = [*(values.get(shift) for shift in group.shifts), whole]
        lines.append(Line(method, tuple(Place(spell(number), number, is_quiet=number is None) for number in numbers)))
    summary = Column(_mean_name(averaged), "mean", is_heated=heated, is_summary=True)
    columns = (*_shift_columns(group.shifts, heated=heated), summary)
    return Table(title=title, corner="method", columns=columns, lines=tuple(lines), caption=caption)


def _seed_mean(
    group: RowGroup, method: str, shift: Shift, value_of: Callable[[ResultRow], float | None]
) -> float | None:
    values = [value for row in group.measured(method, shift) if (value := value_of(row)) is not None]
    return statistics.fmean(values) if values else None


def _belongs(grid: Grid, method: str) -> bool:
    """Whether a method has a line: it has numbers, or all that there is of it is failures."""
    return bool(grid.covered(method)) or not grid.group.measured_of(method)


def _shift_columns(shifts: Sequence[Shift], *, heated: bool = False) -> list[Column]:
    return [Column(shift.name, shift.short, shift.family, is_heated=heated) for shift in shifts]


def _mean_name(averaged: Sequence[Shift]) -> str:
    return f"mean of {len(averaged)}" if len(averaged) > 1 else "mean"


def _summary_columns(grid: Grid, *, heated: bool = True) -> list[Column]:
    return [
        Column(_mean_name(grid.averaged), "mean", is_heated=heated, is_summary=True),
        Column("noise", "± noise", is_summary=True),
    ]


def _error_line(grid: Grid, method: str) -> Line:
    places = [_error_place(grid, method, shift) for shift in grid.shifts]
    return Line(method, (*places, *_mean_places(grid, method)))


def _error_place(grid: Grid, method: str, shift: Shift) -> Place:
    found = grid.at(method, shift)
    if found is not None:
        return Place(percent(found.value), found.value, note=_noise_note(found))
    rows = grid.group.cells.get((method, shift), ())
    failed = next((row for row in rows if row.status != "ok"), None)
    if failed is not None:
        return Place(_STATUS.get(failed.status, failed.status), is_quiet=True, note=failed.problem or failed.status)
    note = "this error was not measured" if rows else "no row"
    return Place(NOTHING, is_quiet=True, note=note)


def _mean_places(grid: Grid, method: str) -> tuple[Place, Place]:
    whole = grid.mean(method)
    if whole is None:
        return Place(NOTHING, is_quiet=True), Place("", is_quiet=True)
    noise = Place(_margin(whole), is_quiet=True)
    if grid.is_complete(method):
        return Place(percent(whole.value), whole.value), noise
    have = len(set(grid.averaged) & set(grid.covered(method)))
    note = f"over {have} of {len(grid.averaged)} columns: not to be compared with the other means"
    return Place(f"{percent(whole.value)} ({have}/{len(grid.averaged)})", is_quiet=True, note=note), noise


def _change_line(grid: Grid, comparison: Comparison) -> Line:
    by_shift: Mapping[Shift, Estimate] = dict(zip(comparison.shifts, comparison.changes, strict=True))
    places = [
        _change_place(by_shift[shift]) if shift in by_shift else Place(NOTHING, is_quiet=True, note="not in both")
        for shift in grid.averaged
    ]
    whole = _change_place(comparison.change)
    if len(by_shift) < len(grid.averaged):
        note = f"over the {count(len(by_shift), 'column')} that both have"
        whole = Place(f"{whole.text} ({len(by_shift)}/{len(grid.averaged)})", is_quiet=True, note=note)
    return Line(comparison.method, (*places, whole, Place(_margin(comparison.change), is_quiet=True)))


def _change_place(found: Estimate) -> Place:
    said = change(found.value)
    if found.is_clear:
        return Place(said, found.value, note=_noise_note(found))
    return Place(f"({said})", found.value, is_quiet=True, note=_noise_note(found))


def _margin(found: Estimate) -> str:
    return "" if found.margin is None else f"±{found.margin:.1f}"


def _noise_note(found: Estimate) -> str:
    noise = "noise unknown" if found.margin is None else f"noise ±{found.margin:.1f}"
    return f"{noise}, {count(found.seeds, 'seed')}" if found.seeds > 1 else noise


def _mark_best(lines: Sequence[tuple[Place, ...]], *, last: int) -> list[tuple[Place, ...]]:
    """Mark the lowest of each column, all that are printed alike; the `last` columns are left out."""
    marked = [list(places) for places in lines]
    for number in range(len(lines[0]) - last):
        values = [places[number].value for places in lines]
        lowest = min((value for value in values if value is not None), default=None)
        if lowest is None or sum(value is not None for value in values) < 2:
            continue
        for places in marked:
            place = places[number]
            if place.value is not None and place.text == percent(lowest):
                places[number] = Place(place.text, place.value, is_best=True, note=place.note)
    return [tuple(places) for places in marked]


def _caption(grid: Grid, about: str) -> str:
    parts = [f"{about[0].upper()}{about[1:]}."]
    apart = [shift.name for shift in grid.shifts if shift not in grid.averaged]
    if apart:
        parts.append(f"The mean is without {listing(apart)}.")
    seeds = {found.seeds for method in grid.methods for shift in grid.shifts if (found := grid.at(method, shift))}
    if seeds and max(seeds) > 1:
        parts.append(f"Each number is the mean over seeds (up to {max(seeds)}).")
    if not all(map(grid.is_complete, grid.methods)):
        parts.append("A mean with a count covers that many columns only.")
    return " ".join(parts)

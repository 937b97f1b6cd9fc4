"""What the errors say, in sentences: each method against the source, and the best against the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from synaptune.metrics.intervals import bootstrap_interval
from synaptune.report.finding import Finding, FindingKind
from synaptune.report.grid import Comparison, Grid
from synaptune.report.noise import Estimate
from synaptune.report.sections import Shift
from synaptune.report.wording import change as signed
from synaptune.report.wording import count, listing, percent, points

__all__ = ["SOURCE", "error_findings", "headline", "noun"]

SOURCE = "source"
_FEWEST_GROUPS = 5


def headline(grid: Grid) -> str:
    """Say in one sentence what a section found."""
    ranked = grid.ranked()
    if not ranked:
        return _incomplete_headline(grid)
    best = ranked[0]
    if SOURCE in ranked and len(ranked) > 1:
        challenger = best if best != SOURCE else ranked[1]
        comparison = grid.compare(challenger, SOURCE)
        assert comparison is not None, "two complete lines share their columns"
        return _against_source(comparison, grid)
    whole = grid.mean(best)
    assert whole is not None, "a complete line has a mean"
    if len(ranked) == 1:
        return f"{best}: {percent(whole.value)} % error{_over(grid)}."
    return f"{best} has the lowest error of {len(ranked)} methods{_over(grid)}: {percent(whole.value)} %."


def error_findings(grid: Grid) -> Iterator[Finding]:
    """Say how each method did against the source, and the best against the next best."""
    if SOURCE in grid.methods:
        for method in grid.methods:
            comparison = grid.compare(method, SOURCE) if method != SOURCE else None
            if comparison is not None:
                yield _verdict(comparison, grid)
    ranked = [method for method in grid.ranked() if method != SOURCE]
    if len(ranked) > 1:
        comparison = grid.compare(ranked[0], ranked[1])
        if comparison is not None:
            yield _lead(comparison, grid)


def noun(grid: Grid, amount: int) -> str:
    """Say how many columns, by what they are."""
    is_data = not any(shift.stands_apart or shift.family for shift in grid.shifts) and isinstance(
        grid.group.switches.get("data"), list
    )
    return count(amount, "data set" if is_data else "corruption")


def _over(grid: Grid) -> str:
    names = [shift.name for shift in grid.averaged]
    return f" on {names[0]}" if len(names) == 1 else f" on average over {noun(grid, len(names))}"


def _incomplete_headline(grid: Grid) -> str:
    if not grid.methods:
        return "No error was measured."
    return (
        f"No method has all {noun(grid, len(grid.averaged))} yet, so there is no mean to compare; "
        "findings are over the cells that are there."
    )


def _against_source(comparison: Comparison, grid: Grid) -> str:
    change, left, right = comparison.change, comparison.left, comparison.right
    over = _over(grid)
    if not change.is_clear:
        return (
            f"No method is clearly different from the source model{over}: {comparison.method} has "
            f"{percent(left.value)} % error, the source {percent(right.value)} %, which is within noise."
        )
    if change.value > 0:
        return (
            f"No method beats the source model{over}: its error is {percent(right.value)} %, the next best, "
            f"{comparison.method}, has {percent(left.value)} %."
        )
    fewer = f", {100 * -change.value / right.value:.0f} % fewer mistakes" if right.value >= 1 else ""
    return (
        f"{comparison.method} lowers the error from {percent(right.value)} % to {percent(left.value)} %{over}: "
        f"{points(change.value)} less{fewer}."
    )


def _verdict(comparison: Comparison, grid: Grid) -> Finding:
    change = comparison.change
    kind: FindingKind = "even" if not change.is_clear else "gain" if change.value < 0 else "loss"
    if len(comparison.shifts) == 1:
        verb = {"even": "left the error as it was", "gain": "lowered the error", "loss": "raised the error"}[kind]
        return Finding(kind, f"{comparison.method} {verb} on {comparison.shifts[0].name}, {_from_to(comparison)}.")
    better, worse = comparison.where(better=True), comparison.where(better=False)
    partial = " that both have" if len(comparison.shifts) < len(grid.averaged) else ""
    total = f"{noun(grid, len(comparison.shifts))}{partial}"
    said = {
        "even": f"left the error as it was (lower on {len(better)} of {total})",
        "gain": f"lowered the error on {len(better)} of {total}",
        "loss": f"raised the error on {len(worse)} of {total}",
    }[kind]
    exceptions = _exceptions(worse if kind != "loss" else better, is_worse=kind != "loss")
    tail = f"; {exceptions}" if exceptions else ""
    return Finding(kind, f"{comparison.method} {said}, on average {_from_to(comparison)}{tail}.")


def _from_to(comparison: Comparison) -> str:
    change = comparison.change
    noise = "" if change.margin is None else f", noise ±{change.margin:.1f}"
    return (
        f"from {percent(comparison.right.value)} % to {percent(comparison.left.value)} % "
        f"({points(change.value)} {'less' if change.value < 0 else 'more'}{noise})"
    )


def _exceptions(found: Sequence[tuple[Shift, Estimate]], *, is_worse: bool) -> str:
    """Name the columns that went the other way, those within noise apart."""
    clear = [
        f"{shift.name} got {'worse' if is_worse else 'better'} by {points(delta.value)}"
        for shift, delta in found
        if delta.is_clear
    ]
    unclear = [shift.name for shift, delta in found if not delta.is_clear and delta.error is not None]
    unknown = [f"{shift.name} by {points(delta.value)}" for shift, delta in found if delta.error is None]
    parts = [listing(clear)] if clear else []
    direction = "worse" if is_worse else "better"
    if unclear:
        parts.append(
            f"{listing(unclear)} got {direction} too, but within noise"
            if clear
            else f"{listing(unclear)} got {direction}, but within noise"
        )
    if unknown:
        parts.append(f"{direction} on {listing(unknown)} (noise unknown: the rows do not say how many images)")
    return "; ".join(parts)


def _lead(comparison: Comparison, grid: Grid) -> Finding:
    change = comparison.change
    better = comparison.where(better=True)
    ahead = f"ahead on {len(better)} of {noun(grid, len(comparison.shifts))}" if len(comparison.shifts) > 1 else ""
    noise = "" if change.margin is None else f"noise ±{change.margin:.1f}"
    interval = _interval(comparison, grid)
    details = ", ".join(part for part in (noise, interval, ahead) if part)
    said = f" ({details})" if details else ""
    if change.is_clear:
        text = f"{comparison.method} is {points(change.value)} below {comparison.baseline}, the next best{said}."
        return Finding("gain", text)
    return Finding(
        "even",
        f"{comparison.method} and {comparison.baseline}, the two best, are {points(change.value)} apart, which is "
        f"within noise{said}: take them for equal.",
    )


def _interval(comparison: Comparison, grid: Grid) -> str:
    """Say how the difference would spread if other columns like these had been chosen."""
    if len(comparison.shifts) < _FEWEST_GROUPS:
        return ""
    groups = []
    for shift, delta in zip(comparison.shifts, comparison.changes, strict=True):
        left, right = (
            {row.seed: row.errors[grid.kind] for row in grid.group.measured(method, shift) if grid.kind in row.errors}
            for method in (comparison.method, comparison.baseline)
        )
        shared = [left[seed] - right[seed] for seed in left.keys() & right.keys()]
        groups.append(shared or [delta.value])
    interval = bootstrap_interval(groups)
    low, high = sorted((-interval.low, -interval.high))
    return f"95 % interval over corruptions {signed(low).lstrip('+')} to {signed(high).lstrip('+')}"

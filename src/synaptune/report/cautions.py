"""What has to be said beside the errors: noise, missing cells, what changed along a stream, cost, calibration."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from synaptune.report.cost import Cost
from synaptune.report.finding import Finding
from synaptune.report.grid import Grid
from synaptune.report.noise import CLEAR, binomial_error
from synaptune.report.rows import ResultRow
from synaptune.report.sections import RowGroup, Shift
from synaptune.report.timeline import batch_sizes
from synaptune.report.verdicts import SOURCE
from synaptune.report.wording import count, listing, number, percent, points

__all__ = [
    "absence_findings",
    "calibration_findings",
    "cost_findings",
    "event_findings",
    "kind_findings",
    "noise_findings",
    "trend_findings",
]

_LARGE_RISE = 2.0
_TREND_CLEAR = 3.0
_FEWEST_BATCHES = 9
_LARGE_EXTRA = 0.05


def noise_findings(grid: Grid) -> Iterator[Finding]:
    """Say how far single cells and means can be off by chance."""
    rows = [row for row in grid.group.rows if row.is_measured and grid.kind in row.errors]
    images = {row.images for row in rows}
    seeds = {row.seed for row in rows}
    if not rows or None in images:
        yield Finding("note", "The rows do not say how many images they are of, so noise is not known.")
        return
    typical = statistics.median(row.errors[grid.kind] for row in rows)
    few = min(amount for amount in images if amount)
    margin = CLEAR * binomial_error(typical, few)
    one = f"A single cell ({count(few, 'image')} at {percent(typical)} % error) is known to ±{margin:.1f} points only"
    if len(seeds) > 1:
        yield Finding("note", f"{one}; numbers are means over up to {len(seeds)} seeds, whose spread is in the noise.")
    elif any(row.seed or row.switches["order"] == "shuffled" for row in rows):
        yield Finding("note", f"{one}. All numbers are of one seed, so what another order would give is not known.")
    else:
        yield Finding("note", f"{one}. There is one order of images, so what another would give is not known.")


def absence_findings(grid: Grid) -> Iterator[Finding]:
    """Say which cells have no number, and what that does to means."""
    group = grid.group
    absent = [row for row in group.rows if row.status != "ok"]
    for status in dict.fromkeys(row.status for row in absent):
        yield Finding("missing", _absence(status, [row for row in absent if row.status == status]))
    places = len(group.methods) * len(group.shifts)
    if len(group.cells) < places:
        opened = places - len(group.cells)
        yield Finding("missing", f"{count(opened, 'cell')} of {places} {'has' if opened == 1 else 'have'} no row.")
    partial = [method for method in grid.methods if not grid.is_complete(method)]
    if partial and len(group.methods) > 1:
        yield Finding(
            "missing",
            f"{listing(partial)} {'lacks' if len(partial) == 1 else 'lack'} columns: "
            f"{'its mean is' if len(partial) == 1 else 'their means are'} over fewer cells, stands apart, and is "
            "compared over shared columns only.",
        )


def trend_findings(group: RowGroup) -> Iterator[Finding]:
    """Say which methods got worse or better from the first to the last third of a stream, beyond the source."""
    for method in group.methods:
        if method == SOURCE:
            continue
        trends = [(shift, *trend) for shift in group.shifts if (trend := _net_trend(group, method, shift)) is not None]
        rises = [
            f"{shift.name} (+{rise:.1f})"
            for shift, rise, error in sorted(trends, key=lambda found: -found[1])
            if rise > max(_LARGE_RISE, _TREND_CLEAR * error)
        ]
        if rises:
            yield Finding(
                "time",
                f"{method} got worse while it ran on {listing(rises)}: points from the first to the last third of the "
                "stream, beyond what the source model shows. That is how a collapse begins.",
            )
        if trends:
            mean = statistics.fmean(rise for _, rise, _ in trends)
            error = math.hypot(*(error for *_, error in trends)) / len(trends)
            if mean < -_TREND_CLEAR * error:
                yield Finding(
                    "time",
                    f"{method} was still learning: its error fell by {points(mean)} from the first to the last third "
                    f"of {'the stream' if len(trends) == 1 else f'the {len(trends)} streams'}, on average.",
                )


def cost_findings(found: Sequence[Cost]) -> Iterator[Finding]:
    """Say what adapting costs in time, passes and memory."""
    plain = next((cost for cost in found if cost.method == SOURCE), None)
    for cost in found:
        if cost.method == SOURCE or cost.ms_p50 is None:
            continue
        parts = [f"{number(cost.ms_p50)} ms per batch"]
        if cost.ratio is not None:
            parts[0] += f", {cost.ratio:.1f} times the source model's"
        if cost.forwards is not None and cost.backwards is not None:
            parts.append(f"{_passes(cost.forwards, 'forward')} and {_passes(cost.backwards, 'backward')} per image")
        if cost.peak_mb is not None and plain is not None and plain.peak_mb is not None:
            extra = cost.peak_mb - plain.peak_mb
            # The peak is that of a whole process; small differences say nothing.
            if extra > _LARGE_EXTRA * plain.peak_mb:
                parts.append(f"{extra:,.0f} MB more peak memory")
        yield Finding("cost", f"{cost.method} takes {'; '.join(parts)}.")


def calibration_findings(group: RowGroup) -> Iterator[Finding]:
    """Say whose confidence fits its accuracy, and whose does not."""
    means = {
        method: statistics.fmean(values)
        for method in group.methods
        if (values := [row.ece for row in group.measured_of(method) if row.ece is not None])
    }
    if SOURCE not in means or len(means) < 2:
        return
    worse = [f"{method} ({percent(value)} %)" for method, value in means.items() if value > means[SOURCE] + 1]
    better = [f"{method} ({percent(value)} %)" for method, value in means.items() if value < means[SOURCE] - 1]
    parts = [f"better with {listing(better)}" if better else "", f"worse with {listing(worse)}" if worse else ""]
    if better or worse:
        text = f"Confidence against accuracy (calibration error, source {percent(means[SOURCE])} %): "
        yield Finding("note", text + ", ".join(part for part in parts if part) + ".")


def kind_findings(grids: Sequence[Grid]) -> Iterator[Finding]:
    """Say how the errors of one method differ from each other, and that an oracle is one."""
    by_kind = {grid.kind: grid for grid in grids}
    online, after = by_kind.get("error_online"), by_kind.get("error_after")
    if online is not None and after is not None:
        gaps = {
            method: left.value - right.value
            for method in online.methods
            if method != SOURCE and (left := after.mean(method)) is not None and (right := online.mean(method))
        }
        said = [
            f"{method} {points(gap)} {'less' if gap < 0 else 'more'}"
            for method, gap in gaps.items()
            if abs(gap) >= 0.05
        ]
        if said:
            yield Finding("note", f"Predicting after the update instead of before it: {listing(said)}.")
    if "error_oracle" in by_kind:
        yield Finding("note", "Oracle numbers need labels to know when to stop. They bound what is possible, no more.")


def event_findings(group: RowGroup) -> Iterator[Finding]:
    """Say what guards and methods reported."""
    for method in group.methods:
        rows = [row for row in group.measured_of(method) if row.events]
        if rows:
            kinds = Counter(_bare(event) for row in rows for event in row.events)
            said = [f"“{text}”{f' ({times} times)' if times > 1 else ''}" for text, times in kinds.most_common(3)]
            yield Finding(
                "note", f"{method} reported something unusual in {count(len(rows), 'cell')}: {listing(said)}."
            )


def _passes(amount: float, direction: str) -> str:
    said = f"{amount:.2f}".rstrip("0").rstrip(".")
    return f"{'no' if said == '0' else said} {direction} pass{'' if said == '1' else 'es'}"


def _absence(status: str, rows: Sequence[ResultRow]) -> str:
    word = {
        "failed": "failed",
        "missing": "could not be measured here, because something is missing",
        "inapplicable": "cannot be measured, because the method does not fit the model",
    }.get(status, f"ended as “{status}”")
    reasons = Counter(row.problem for row in rows if row.problem)
    methods = listing(dict.fromkeys(row.method for row in rows))
    why = f": {reasons.most_common(1)[0][0]}" if reasons else ""
    more = f" (and {count(len(reasons) - 1, 'other reason')})" if len(reasons) > 1 else ""
    return f"{count(len(rows), 'cell')} of {methods} {word}{why.rstrip('.')}{more}."


def _net_trend(group: RowGroup, method: str, shift: Shift) -> tuple[float, float] | None:
    """Rise from the first to the last third, less the source's on the same images, and its standard error."""
    own = _trend(group.measured(method, shift))
    plain = _trend(group.measured(SOURCE, shift))
    if own is None or plain is None:
        return None
    return own[0] - plain[0], math.hypot(own[1], plain[1])


def _trend(rows: Sequence[ResultRow]) -> tuple[float, float] | None:
    row = rows[0] if rows else None
    if row is None or len(row.error_per_batch) < _FEWEST_BATCHES or row.images is None:
        return None
    sizes = batch_sizes(row, len(row.error_per_batch))
    pairs = [(error, size) for error, size in zip(row.error_per_batch, sizes, strict=True) if math.isfinite(error)]
    third = len(pairs) // 3
    if not third:
        return None
    (first, few), (last, many) = _weighted(pairs[:third]), _weighted(pairs[-third:])
    return last - first, math.hypot(binomial_error(first, few), binomial_error(last, many))


def _weighted(pairs: Sequence[tuple[float, int]]) -> tuple[float, int]:
    images = sum(size for _, size in pairs)
    return sum(error * size for error, size in pairs) / images, images


def _bare(event: str) -> str:
    """Leave the batch's number out, so that the same event counts as the same."""
    return re.sub(r"^\d+: ", "", event)

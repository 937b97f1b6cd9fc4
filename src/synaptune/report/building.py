"""From result files to a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from synaptune.errors import DataError
from synaptune.report.cautions import (
    absence_findings,
    calibration_findings,
    cost_findings,
    event_findings,
    kind_findings,
    noise_findings,
    trend_findings,
)
from synaptune.report.classes import class_distance_table, class_shares
from synaptune.report.cost import cost_table, costs
from synaptune.report.document import Bar, Report, Section, Stamp, StreamSection, Summary
from synaptune.report.error_tables import change_table, error_table, quantity_table
from synaptune.report.finding import Finding
from synaptune.report.grid import Grid, kinds_in, primary_kind
from synaptune.report.reading import parse_rows, read_results
from synaptune.report.rows import RowLike
from synaptune.report.sections import RowGroup, group_rows, varying
from synaptune.report.stamps import section_stamp, stream_stamp
from synaptune.report.stream_findings import stream_findings, stream_headline, stream_panels, stream_shares
from synaptune.report.stream_log import Stream
from synaptune.report.table import Column, Line, Place, Table
from synaptune.report.timeline import (
    drift_over_time,
    entropy_over_time,
    error_over_stages,
    error_over_time,
    weight_distance_over_time,
)
from synaptune.report.verdicts import SOURCE, error_findings, headline
from synaptune.report.wording import count, listing, number, switch_name, switch_value

__all__ = ["build_report"]

_UNTITLED = "synaptune report"


def build_report(
    source: str | Path | Iterable[RowLike],
    *,
    streams: Sequence[str | Path] = (),
    title: str | None = None,
    command: str = "",
) -> Report:
    """Compute everything that a page says.

    Args:
        source: rows; or a file of rows, a stream log, or a folder of such files (`*.jsonl`).
        streams: stream logs beside it.
        title: of the page; by default the name of the run.
        command: what makes the numbers again; it is printed with the protocol.

    Raises:
        DataError: a file is not there, or a line is no row; it is named with its number.

    >>> rows = [{"method": "norm", "model": "net", "corruption": "fog", "error_online": 21.5, "images": 1000}]
    >>> build_report(rows).summary.headline
    'norm: 21.5 % error on fog.'
    """
    rows, logs = read_results(source) if isinstance(source, str | Path) else (parse_rows(source), [])
    for path in streams:
        more_rows, more_logs = read_results(path)
        if more_rows:
            raise DataError(f"{path} holds result rows, not a stream log; pass it as the first argument")
        logs += more_logs
    groups = group_rows(rows)
    differing = varying(groups)
    sections = tuple(_section(group, differing) for group in groups)
    stream_sections = tuple(_stream_section(stream) for stream in logs)
    runs = sorted({row.run for row in rows if row.run})
    return Report(
        title=title or (listing(runs) if runs else _UNTITLED),
        summary=_summary(sections, stream_sections, has_rows=bool(rows)),
        remarks=tuple(_remarks(groups, differing)),
        sections=sections,
        streams=stream_sections,
        methods=_all_methods(groups, logs),
        command=command,
    )


def _section(group: RowGroup, differing: Sequence[str]) -> Section:
    kind = primary_kind(group)
    grids = [Grid(group, other) for other in kinds_in(group)]
    grid = Grid(group, kind) if kind else None
    found = costs(group, grid)
    panels = (
        error_over_time(group),
        error_over_stages(group),
        entropy_over_time(group),
        drift_over_time(group),
        weight_distance_over_time(group),
    )
    return Section(
        title=_title(group, differing),
        headline=headline(grid) if grid else "No cell of this section was measured.",
        bars=_bars(grid) if grid else (),
        findings=tuple(_section_findings(group, grid, grids)),
        errors=error_table(grid) if grid else None,
        more_errors=tuple(error_table(other) for other in grids if other.kind != kind),
        change=change_table(grid, SOURCE) if grid and SOURCE in grid.methods else None,
        extras=_extras(group),
        panels=tuple(panel for panel in panels if panel is not None),
        shares=class_shares(group),
        costs=tuple(found),
        cost=cost_table(found, batch=group.switches.get("batch")),
        absent=_absent_table(group),
        stamp=section_stamp(group),
    )


def _section_findings(group: RowGroup, grid: Grid | None, grids: Sequence[Grid]) -> Iterable[Finding]:
    if grid is None:
        empty = RowGroup(group.switches, group.shifts, group.methods, group.cells)
        yield from absence_findings(Grid(empty, "error_online"))
        return
    yield from error_findings(grid)
    yield from absence_findings(grid)
    yield from trend_findings(group)
    yield from cost_findings(costs(group, grid))
    yield from calibration_findings(group)
    yield from kind_findings(grids)
    yield from event_findings(group)
    yield from noise_findings(grid)


def _extras(group: RowGroup) -> tuple[Table, ...]:
    tables = (
        quantity_table(
            group,
            lambda row: row.ece,
            title="Calibration error, in percent",
            caption="How far confidence lies from accuracy, in 15 bins (ECE).",
            heated=True,
        ),
        class_distance_table(group),
        quantity_table(
            group,
            lambda row: row.weight_distance,
            title="Distance of the weights from the source, at the end",
            caption="||w - w0|| / ||w0|| over the tensors that the method adapts.",
            spell=number,
        ),
    )
    return tuple(table for table in tables if table is not None)


def _bars(grid: Grid) -> tuple[Bar, ...]:
    ranked = grid.ranked()
    means = [(method, whole) for method in ranked if (whole := grid.mean(method)) is not None]
    return tuple(
        Bar(method, whole.value, whole.margin, is_best=method == ranked[0] and len(ranked) > 1)
        for method, whole in means
    )


def _title(group: RowGroup, differing: Sequence[str]) -> str:
    data = group.switches.get("data")
    where = listing(data) if isinstance(data, list) else switch_value("data", data) if data else ""
    severity = group.switches.get("severity")
    parts = [str(group.switches["model"]), where, f"severity {severity}" if severity else ""]
    parts += [
        f"{switch_name(name)}: {switch_value(name, group.switches.get(name))}"
        for name in differing
        if name not in ("model", "data", "severity")
    ]
    return ", ".join(part for part in parts if part)


def _absent_table(group: RowGroup) -> Table | None:
    absent = [
        (method, shift.name, row)
        for method in group.methods
        for shift in group.shifts
        for row in group.cells.get((method, shift), ())
        if row.status != "ok"
    ]
    if not absent:
        return None
    lines = [
        Line(
            method, (Place(shift), Place(str(row.seed)), Place(row.status), Place(row.problem or "no reason recorded"))
        )
        for method, shift, row in absent
    ]
    columns = (Column("cell", is_text=True), Column("seed"), Column("state", is_text=True), Column("why", is_text=True))
    return Table("Cells without a number", "method", columns, tuple(lines))


def _stream_section(stream: Stream) -> StreamSection:
    events = [Line(f"{position:,}", (Place(event),)) for position, event in stream.events] + [
        Line(f"{position + 1:,}", (Place("back to the source model"),)) for position in stream.resets
    ]
    events.sort(key=lambda line: int(line.name.replace(",", "")))
    return StreamSection(
        title=stream.title,
        headline=stream_headline(stream),
        findings=tuple(stream_findings(stream)),
        panels=stream_panels(stream),
        shares=stream_shares(stream),
        events=Table("Events", "batch", (Column("what happened", is_text=True),), tuple(events)) if events else None,
        stamp=stream_stamp(stream) if stream.head else Stamp(()),
    )


def _summary(sections: Sequence[Section], streams: Sequence[StreamSection], *, has_rows: bool) -> Summary:
    parts: list[Section | StreamSection] = [*sections, *streams]
    if not parts:
        return Summary("This run has no rows yet.", ("`synaptune bench` adds a row for every cell that it measures.",))
    if len(parts) == 1:
        return Summary(parts[0].headline)
    what = "protocols" if has_rows and sections else "streams"
    lead = f"{count(len(parts), 'section')} follow, of different {what}: read each by itself."
    return Summary(lead, tuple(f"{part.title}: {part.headline}" for part in parts))


def _remarks(groups: Sequence[RowGroup], differing: Sequence[str]) -> Iterable[Finding]:
    if len(groups) > 1:
        names = listing([switch_name(name) for name in differing], most=20)
        yield Finding(
            "protocol",
            f"The rows differ in protocol ({names}), so they are shown in {len(groups)} sections; nothing is averaged "
            "or compared across them.",
        )
    repeats = sum(group.repeats for group in groups)
    if repeats:
        yield Finding(
            "note",
            f"{count(repeats, 'row')} {'repeats' if repeats == 1 else 'repeat'} an earlier cell; the last one counts.",
        )
    others = [shift.name for group in groups for shift in group.shifts if "(other images" in shift.name]
    if others:
        yield Finding(
            "protocol",
            f"Some rows were measured on other images under the same name ({listing(others)}): they have columns of "
            "their own.",
        )


def _all_methods(groups: Sequence[RowGroup], logs: Sequence[Stream]) -> tuple[str, ...]:
    named = [*(method for group in groups for method in group.methods), *(stream.method for stream in logs)]
    return tuple(sorted(dict.fromkeys(named), key=lambda method: method != SOURCE))

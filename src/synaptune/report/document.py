"""The report as a value: everything that a page says, before anyone decides how it looks.

`build_report` computes it from rows; `synaptune.report.html.page` and `synaptune.report.markdown` show it.
"""

from __future__ import annotations

from dataclasses import dataclass

from synaptune.report.classes import ClassShares
from synaptune.report.cost import Cost
from synaptune.report.finding import Finding
from synaptune.report.table import Table
from synaptune.report.timeline import PanelGroup

__all__ = ["Bar", "Report", "Section", "Stamp", "StreamSection", "Summary"]


@dataclass(frozen=True)
class Bar:
    """A mean error beside others of its section.

    Attributes:
        name: of the method.
        value: mean error in percent.
        margin: noise to both sides, None where it is not known.
        is_best: whether it is the lowest.
    """

    name: str
    value: float
    margin: float | None
    is_best: bool


@dataclass(frozen=True)
class Stamp:
    """The protocol in full: names and values, in groups."""

    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclass(frozen=True)
class Summary:
    """What stands on top.

    Attributes:
        headline: the gain in one sentence.
        notes: what must be read with it.
    """

    headline: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """Rows that may be compared with each other.

    Attributes:
        title: model and data, and what tells this section from others.
        headline: its gain in one sentence.
        bars: mean errors, best first.
        findings: sentences.
        errors: the table of errors, the one that the section is about.
        more_errors: tables of the other errors.
        change: change against the source.
        extras: further tables by method and shift: calibration, class distance, weight distance.
        panels: drawings over time.
        shares: predicted classes.
        costs: what each method costs.
        cost: the same as a table.
        absent: cells without a number, with reasons.
        stamp: protocol.
    """

    title: str
    headline: str
    bars: tuple[Bar, ...]
    findings: tuple[Finding, ...]
    errors: Table | None
    more_errors: tuple[Table, ...]
    change: Table | None
    extras: tuple[Table, ...]
    panels: tuple[PanelGroup, ...]
    shares: ClassShares | None
    costs: tuple[Cost, ...]
    cost: Table | None
    absent: Table | None
    stamp: Stamp

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables, in the order of reading."""
        found = (self.errors, self.change, *self.more_errors, *self.extras, self.cost, self.absent)
        return tuple(table for table in found if table is not None)


@dataclass(frozen=True)
class StreamSection:
    """A stream log.

    Attributes:
        title: method and model.
        headline: what it was, in one sentence.
        findings: sentences.
        panels: drawings over time.
        shares: predicted classes, first and last third.
        events: what was unusual, by batch.
        stamp: what adapted which model, how.
    """

    title: str
    headline: str
    findings: tuple[Finding, ...]
    panels: tuple[PanelGroup, ...]
    shares: ClassShares | None
    events: Table | None
    stamp: Stamp


@dataclass(frozen=True)
class Report:
    """Everything that a page says.

    Attributes:
        title: of the page.
        summary: what stands on top.
        remarks: what concerns the whole run; sections and streams have findings of their own.
        sections: rows that may be compared, one section for each protocol.
        streams: stream logs.
        methods: labels of all methods, which decide their colours.
        command: what makes the numbers again, "" where it is not known.
    """

    title: str
    summary: Summary
    remarks: tuple[Finding, ...] = ()
    sections: tuple[Section, ...] = ()
    streams: tuple[StreamSection, ...] = ()
    methods: tuple[str, ...] = ()
    command: str = ""

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables of all sections."""
        return tuple(table for section in self.sections for table in section.tables)

    @property
    def parts(self) -> tuple[Section | StreamSection, ...]:
        """Sections and streams, in the order of reading."""
        return (*self.sections, *self.streams)

    @property
    def series(self) -> tuple[PanelGroup, ...]:
        """All drawings over time."""
        return tuple(group for part in self.parts for group in part.panels)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The remarks on the run and the findings of each part."""
        return (*self.remarks, *(finding for part in self.parts for finding in part.findings))

"""The report in Markdown, for documentation and pull requests: the same sentences and tables, no drawings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from synaptune.report.document import Report, Section, Stamp, StreamSection
from synaptune.report.finding import Finding
from synaptune.report.table import Table, escape_markdown

__all__ = ["to_markdown"]


def to_markdown(report: Report, *, level: int = 1) -> str:
    """Return the report in Markdown.

    Args:
        report: what to show.
        level: of the first heading, to fit into a document.
    """
    blocks = [f"{'#' * level} {escape_markdown(report.title)}", f"**{escape_markdown(report.summary.headline)}**"]
    blocks += _bullets([*report.summary.notes, *(finding.text for finding in report.remarks)])
    for part in report.parts:
        blocks.append(f"{'#' * (level + 1)} {escape_markdown(part.title)}")
        if len(report.parts) > 1:
            blocks.append(escape_markdown(part.headline))
        blocks += _findings(part.findings)
        for table in _tables(part):
            blocks += _table(table)
        blocks += _stamp(part.stamp)
    if report.command:
        # A fence longer than any run of backticks inside cannot be closed by the command.
        fence = "`" * (max(map(len, _backticks(report.command)), default=0) + 3)
        blocks.append(f"{fence}sh\n{report.command}\n{fence}")
    return "\n\n".join(blocks) + "\n"


def _tables(part: Section | StreamSection) -> tuple[Table, ...]:
    if isinstance(part, Section):
        return part.tables
    return (part.events,) if part.events is not None else ()


def _table(table: Table) -> Iterator[str]:
    yield f"**{escape_markdown(table.title)}**"
    yield table.as_markdown()
    if table.caption:
        yield escape_markdown(table.caption)


def _findings(findings: Sequence[Finding]) -> list[str]:
    return _bullets([finding.text for finding in findings])


def _bullets(texts: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {escape_markdown(text)}" for text in texts)] if texts else []


def _stamp(stamp: Stamp) -> Iterator[str]:
    for title, pairs in stamp.groups:
        said = "; ".join(f"{escape_markdown(name)}: {escape_markdown(value)}" for name, value in pairs)
        yield f"*{escape_markdown(title)}.* {said}."


def _backticks(text: str) -> list[str]:
    return [run for run in "".join(letter if letter == "`" else " " for letter in text).split(" ") if run]

"""`synaptune report RUN`: a page about a run of the bench, or about a stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synaptune.cli.output import JsonFlag, QuietFlag, output_of
from synaptune.cli.rendered import write_rendered
from synaptune.errors import OptionError

if TYPE_CHECKING:
    from synaptune.report import Finding, Report

__all__ = ["app"]

app = typer.Typer(add_completion=False)


@app.command()
def report(
    ctx: typer.Context,
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="A file of rows, a stream log, or a folder of such files (*.jsonl).", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="File to write; by default beside RUN, - for stdout."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown instead of HTML, without drawings.")] = False,
    streams: Annotated[
        list[Path] | None,
        typer.Option("--stream", metavar="FILE", help="A stream log to show on the same page (repeatable)."),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Title; by default the name of the run.")] = None,
    command: Annotated[
        str, typer.Option("--command", help="What makes these numbers again, to be printed with the protocol.")
    ] = "",
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Write one self-contained page: tables, drawings, what was found, cost, protocol."""
    from synaptune.report import build_report, to_html, to_markdown, write_html

    output = output_of(ctx, quiet=quiet, as_json=json)
    to_stdout = out is not None and str(out) == "-"
    if to_stdout and output.as_json:
        raise OptionError("stdout cannot hold both the page and the JSON document; name a file with --out")
    built = build_report(run, streams=streams or (), title=title, command=command)
    if to_stdout:
        print(to_markdown(built) if markdown else to_html(built), end="")
        return
    path = out or _beside(run, ".md" if markdown else ".html")
    if path.resolve() in {place.resolve() for place in (run, *(streams or ()))}:
        raise OptionError(f"{path} is what the report is about; name another file with --out")
    if markdown:
        write_rendered(path, to_markdown(built))
    else:
        write_html(built, path)
    output.result(_document(built, path), lambda: print(path))
    output.note(built.summary.headline)


def _beside(run: Path, ending: str) -> Path:
    return run / f"report{ending}" if run.is_dir() else run.with_suffix(ending)


def _document(report: Report, path: Path) -> dict[str, Any]:
    return {
        "report": path.as_posix(),
        "title": report.title,
        "headline": report.summary.headline,
        "remarks": [_plain(finding) for finding in report.remarks],
        "sections": [
            {
                "title": part.title,
                "headline": part.headline,
                "findings": [_plain(finding) for finding in part.findings],
            }
            for part in report.parts
        ],
    }


def _plain(finding: Finding) -> dict[str, str]:
    return {"kind": finding.kind, "text": finding.text}

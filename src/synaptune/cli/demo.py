"""`synaptune demo`: the main job on what is bundled, as a table, a sentence and a page."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synaptune.cli.bench_progress import RunDisplay
from synaptune.cli.output import JsonFlag, Output, QuietFlag, output_of
from synaptune.errors import SynaptuneError

if TYPE_CHECKING:
    from synaptune.bench import Run
    from synaptune.bench.sheet import Line

__all__ = ["app"]

app = typer.Typer(add_completion=False)


@app.command()
def demo(
    ctx: typer.Context,
    images: Annotated[
        int, typer.Option("--images", min=1, max=2000, help="How many of the 2,000 bundled images.")
    ] = 2000,
    workers: Annotated[
        int | None, typer.Option("--workers", min=0, help="Processes; 0 for none. By default as the cores allow.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the report.")] = Path(
        "runs/demo"
    ),
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Adapt the bundled model to five shifts of the bundled images; print a table, write an HTML report."""
    from synaptune.bench import run_table
    from synaptune.report import build_report, write_html

    output = output_of(ctx, quiet=quiet, as_json=json)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as scratch, RunDisplay(output, "adapting") as display:
        # A demo measures each time: rows of an earlier one are no demonstration.
        rows = Path(scratch) / "demo.jsonl"
        run = run_table(
            "demo",
            overrides={"images": images},
            out=rows,
            workers=workers,
            on_progress=display,
        )
        _require_complete(run)
        kept = rows.replace(out / "demo.jsonl")
    page = out / "report.html"
    write_html(build_report(kept, title="synaptune demo", command=f"synaptune demo --images {images}"), page)
    lines = {line.label: line for block in run.sheet.blocks for line in block.lines}
    output.result(_document(lines, kept, page), lambda: _show(output, lines, page))


def _require_complete(run: Run) -> None:
    bad = [row for row in run.rows if row.status != "ok"]
    if bad:
        raise SynaptuneError(f"{len(bad)} cells of the demo failed; the first: {bad[0].error}")


def _document(lines: dict[str, Line], rows: Path, page: Path) -> dict[str, Any]:
    return {
        "error_percent": {
            label: {column: entry.ours for column, entry in line.entries.items()} | {"mean": line.mean.ours}
            for label, line in lines.items()
        },
        "gain": _gain(lines),
        "rows": rows.as_posix(),
        "report": page.as_posix(),
    }


def _show(output: Output, lines: dict[str, Line], page: Path) -> None:
    columns = list(next(iter(lines.values())).entries)
    rows = [
        (label, *(f"{line.entries[column].ours:.1f}" for column in columns), f"{line.mean.ours:.1f}")
        for label, line in lines.items()
    ]
    output.table(("error in %", *columns, "mean"), rows)
    print(_gain(lines))
    print(f"Report: {page}")


def _gain(lines: dict[str, Line]) -> str:
    source, nhl = lines["source"], lines["nhl"]
    assert source.mean.ours is not None
    assert nhl.mean.ours is not None
    better = sum((nhl.entries[name].ours or 0) < (source.entries[name].ours or 0) for name in source.entries)
    return (
        f"NHL took the mean error from {source.mean.ours:.1f} % to {nhl.mean.ours:.1f} %, lower on {better} of "
        f"{len(source.entries)} shifts, without a label; synaptune.adapt(model) does the same for yours."
    )

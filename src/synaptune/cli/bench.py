"""`synaptune bench TABLE`: a table of the paper, of one's own, or of what the command line names; and comparisons."""

from __future__ import annotations

import json as json_format
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from synaptune.cli.bench_compare import compare
from synaptune.cli.bench_progress import RunDisplay
from synaptune.cli.output import JsonFlag, Output, QuietFlag, output_of
from synaptune.cli.rendered import RenderOption, form_of, write_rendered
from synaptune.errors import OptionError

if TYPE_CHECKING:
    from synaptune.bench import Run

__all__ = ["app"]

_DEFAULT = "run"


class _Tables(TyperGroup):
    """`bench TABLE` is `bench run TABLE`; the other commands are called by their names."""

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        if args and args[0] in self.commands:
            return super().make_context(info_name, args, parent, **extra)
        return self.commands[_DEFAULT].make_context(info_name, args, parent, **extra)


app = typer.Typer(
    cls=_Tables, add_completion=False, help="Measure tables of the paper, or any models x methods x shifts x protocol."
)
app.command("compare")(compare)


def _complete_table(incomplete: str) -> list[str]:
    from synaptune.bench import table_names

    return [name for name in (*table_names(), "list", "compare") if name.startswith(incomplete)]


@app.command(
    "run",
    epilog="`bench TABLE` is short for `bench run TABLE`; `bench list` tells the tables, and `bench compare A.jsonl "
    "B.jsonl` puts runs side by side.",
)
def run_table(
    ctx: typer.Context,
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE",
            help="A table by name, or a YAML file; without one, --model, --method and --data say what is measured.",
            autocompletion=_complete_table,
            show_default=False,
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Changes: batch=200, images=2000, methods=tent, tent.lr=1e-4, NAME.weights=FILE; lists are [0,1,2].",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File of rows, continued if it exists; by default results/TABLE.jsonl."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=0, help="Processes; 0 for none. By default as many as the cores allow."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=0, help="Measure so many cells now; 0 measures none and shows what is there."),
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Measure cells again that failed.")] = False,
    reuse: Annotated[
        list[Path] | None,
        typer.Option(
            "--reuse",
            metavar="FILE",
            help="Rows of another run (repeatable): its cells with the very same switches are not measured again.",
        ),
    ] = None,
    rendered: RenderOption = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="MODEL", help="Model (repeatable): zoo:NAME, FILE.py:FUNCTION, ..."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option("--weights", "-w", metavar="FILE", help="Weights of the one --model.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option("--method", "-m", help="Method (repeatable).")] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", help="Data set (repeatable): a name, `sample`, or FILE.py:FUNCTION."),
    ] = None,
    corruptions: Annotated[
        list[str] | None,
        typer.Option("--corruptions", "-c", metavar="NAME[,NAME]", help="clean, benchmark, mixed, or corruptions."),
    ] = None,
    severity: Annotated[
        list[int] | None, typer.Option("--severity", min=1, max=5, help="Severity (repeatable) [5].")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option("--seed", min=0, help="Seed (repeatable) [0].")] = None,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Measure a table and print it beside the paper's numbers; stopped, the same command goes on.

    Ends with status 1 if a cell failed or nothing could be measured.
    """
    from synaptune import bench
    from synaptune.bench.tables import rows_file

    output = output_of(ctx, quiet=quiet, as_json=json)
    named, spelled = (None, [table, *(words or ())]) if table and _is_change(table) else (table, list(words or ()))
    changes = _changes(
        spelled,
        models=_models(model, weights),
        methods=method,
        data=data,
        corruptions=_corruptions(corruptions),
        severities=severity,
        seeds=seed,
    )
    if named is None and not changes:
        _list(output)
        return
    form = form_of(rendered)
    path = out or rows_file(named)
    display = RunDisplay(output, path.stem)
    try:
        with display:
            run = bench.run_table(
                named,
                overrides=changes,
                out=path,
                workers=workers,
                limit=limit,
                retry_failed=retry_failed,
                reuse=reuse or (),
                on_progress=display,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(display.interrupted(path)) from None
    if rendered is not None:
        write_rendered(rendered, bench.render(run, form))
    output.result(_document(run), lambda: _show(run))
    states = _states(run)
    output.note(_what_is_next(run, states, rendered))
    if states["failed"] or (not states["ok"] and limit != 0):
        raise typer.Exit(1)


def _is_change(word: str) -> bool:
    return "=" in word


def _changes(words: Iterable[str], **named: list[Any] | str | None) -> dict[str, Any]:
    """Options are another spelling of `KEY=VALUE`."""
    from synaptune.bench.overrides import parse_overrides

    changes = parse_overrides(words)
    for key, value in named.items():
        if value is not None and key in changes:
            raise OptionError(f"{key} is given twice, as an option and as {key}=...")
        if value is not None:
            changes[key] = value
    return changes


def _models(models: Sequence[str] | None, weights: str | None) -> list[Any] | None:
    if weights is None:
        return list(models) if models else None
    if models is None or len(models) != 1:
        raise OptionError("--weights belongs to one --model; for tables and several models say NAME.weights=FILE")
    return [{"model": models[0], "weights": weights}]


def _corruptions(given: Sequence[str] | None) -> list[str] | str | None:
    if not given:
        return None
    names = [name.strip() for entry in given for name in entry.split(",") if name.strip()]
    return names[0] if len(names) == 1 else names  # "benchmark" alone stands for all of its corruptions


def _states(run: Run) -> Counter[str]:
    states = Counter({"ok": 0, "failed": 0, "missing": 0, "inapplicable": 0})
    states.update(row.status for row in run.rows)
    states["open"] = len(run.table.cells()) - len(run.rows)
    return states


def _document(run: Run) -> dict[str, Any]:
    from synaptune.bench import render

    sheet = json_format.loads(render(run, "json"))
    return {
        "table": run.table.name,
        "out": run.path.as_posix(),
        "cells": dict(_states(run)),
        **sheet,
        "rows": [json_format.loads(row.to_json()) for row in run.rows],
    }


def _show(run: Run) -> None:
    from synaptune.bench import render

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(render(run, "text", width=width), end="")


def _what_is_next(run: Run, states: Counter[str], rendered: Path | None) -> str:
    said = [f"rows in {run.path}" + (f", table in {rendered}" if rendered else "")]
    if states["open"]:
        said.append(f"{states['open']:,} cells are left; the same command goes on")
    if states["failed"]:
        said.append(f"{states['failed']:,} cells failed; --retry-failed measures them again")
    if states["missing"]:
        said.append("how to get what is missing stands under the table; MODEL.weights=FILE names a weights file")
    if states["ok"]:
        said.append(f"synaptune report {run.path} makes a page of them")
    return "; ".join(said)


@app.command("list")
def list_tables(ctx: typer.Context, quiet: QuietFlag = False, json: JsonFlag = False) -> None:
    """List the tables that come with the package."""
    _list(output_of(ctx, quiet=quiet, as_json=json))


def _list(output: Output) -> None:
    from synaptune.bench import load_table, printed_table, table_names

    tables = [load_table(name) for name in table_names()]
    sources = [printed_table(table.paper).source if table.paper else "" for table in tables]
    document = [
        {
            "name": table.name,
            "title": table.title,
            "paper": source,
            "models": [line.model for line in table.models],
            "methods": [line.title for line in table.methods],
            "cells": len(table.cells()),
        }
        for table, source in zip(tables, sources, strict=True)
    ]
    rows = [(str(entry["name"]), str(entry["title"]), str(entry["paper"]), f"{entry['cells']:,}") for entry in document]
    output.result(document, lambda: output.table(("table", "what it shows", "in the paper", "cells"), rows))
    output.note("synaptune bench TABLE measures one; synaptune bench --help tells how to change it.")

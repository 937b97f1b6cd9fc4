"""`synaptune bench compare`: runs, or methods of one, side by side under one protocol."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from synaptune.cli.output import JsonFlag, QuietFlag, output_of
from synaptune.cli.rendered import RenderOption, form_of, write_rendered
from synaptune.errors import OptionError

if TYPE_CHECKING:
    from synaptune.bench import Row
    from synaptune.bench.pairing import Across
    from synaptune.bench.row import ErrorKey

__all__ = ["compare"]


def compare(
    ctx: typer.Context,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files of rows.", show_default=False)],
    across: Annotated[
        str | None,
        typer.Option(
            "--across",
            metavar="method|run",
            help="What is put side by side: by default runs, or methods of a single one.",
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="The side that the others are compared with; else the first.")
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", help="error_online, error_after, error_full or error_oracle.")
    ] = "error_online",
    mix: Annotated[
        list[str] | None,
        typer.Option(
            "--mix",
            metavar="SWITCH[,SWITCH]",
            help="Switches that may differ within a pair, or `all` (refused otherwise).",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="KEY=VALUE",
            help="Rows to take (repeatable): method=tent, corruption=[fog,snow], batch=128, horizon=null, ...",
        ),
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Coverage of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option("--resamples", min=1, help="Bootstrap samples.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the bootstrap.")] = 0,
    rendered: RenderOption = None,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Compare runs, or methods of one run: paired differences with intervals, under one protocol."""
    from synaptune import bench
    from synaptune.bench.selection import read_conditions

    output = output_of(ctx, quiet=quiet, as_json=json)
    form = form_of(rendered)
    comparison = bench.compare(
        _runs(files),
        across=cast("Across | None", across),
        baseline=baseline,
        metric=cast("ErrorKey", metric),
        mix=[name.strip() for entry in mix or () for name in entry.split(",")],
        where=read_conditions(where or ()),
        level=level,
        resamples=resamples,
        seed=seed,
    )
    if rendered is not None:
        write_rendered(rendered, bench.render_comparison(comparison, form))
    output.result(dataclasses.asdict(comparison), lambda: print(bench.render_comparison(comparison, "text"), end=""))


def _runs(files: Sequence[Path]) -> dict[str, list[Row]]:
    """Rows by the name of the file, or its path where two files have one name."""
    from synaptune.bench import read_rows

    counts = Counter(file.stem for file in files)
    runs = {(file.stem if counts[file.stem] == 1 else str(file)): read_rows(file) for file in files}
    if len(runs) < len(files):
        raise OptionError("a file is named twice; every run stands once in a comparison")
    return runs

"""`synaptune figure NAME`: the paper's figures, drawn from runs and models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synaptune.cli.bench_progress import RunDisplay
from synaptune.cli.output import JsonFlag, QuietFlag, output_of

if TYPE_CHECKING:
    from synaptune.bench.figures import Drawing

__all__ = ["app"]

app = typer.Typer(add_completion=False)


def _complete(incomplete: str) -> list[str]:
    from synaptune.bench.figures import figure_names

    return [name for name in figure_names() if name.startswith(incomplete)]


@app.command()
def figure(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="features|batches|density|overview",
            help="Feature maps after the first convolution; error in the course of adapting; distribution of features; "
            "a run in one picture.",
            autocompletion=_complete,
            show_default=False,
        ),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Changes: model=zoo:resnet20-cifar10, images=500, corruption=fog; for batches as of a table.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder of the files.")] = Path(
        "results/figures"
    ),
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=0, help="Processes for batches; 0 for none. By default as the cores allow."),
    ] = None,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Draw a figure of the paper, or a run in one picture: PNG, SVG, and its numbers as JSON.

    A stopped `batches` goes on.
    """
    from synaptune.bench.figures import run_figure

    output = output_of(ctx, quiet=quiet, as_json=json)
    display = RunDisplay(output, f"figure {name}")
    try:
        with display:
            drawing = run_figure(
                name, overrides=words or (), out=out, workers=workers, on_progress=display, on_step=display.say
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(display.interrupted(out / "batches.jsonl" if display.last else None)) from None
    document = {
        "figure": drawing.name,
        "files": [path.as_posix() for path in drawing.paths],
        "command": drawing.command,
        "numbers": drawing.numbers,
    }
    output.result(document, lambda: _show(drawing))


def _show(drawing: Drawing) -> None:
    for path in drawing.paths:
        print(path)

"""`synaptune corrupt SRC DST`: the common corruptions for any folder or array of images, deterministic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from synaptune.cli.output import JsonFlag, QuietFlag, output_of
from synaptune.cli.picture_choice import parse_size
from synaptune.errors import OptionError

__all__ = ["app"]

app = typer.Typer(add_completion=False)


def _complete(incomplete: str) -> list[str]:
    from synaptune.shifts import names

    return [name for name in names("all") if name.startswith(incomplete)]


@app.command()
def corrupt(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(metavar="SRC", help="Folder of images, .npy array, or a data set by name.", show_default=False),
    ],
    destination: Annotated[Path, typer.Argument(metavar="DST", help="Folder to write.", show_default=False)],
    corruption: Annotated[
        list[str] | None,
        typer.Option(
            "--corruption",
            "-c",
            help="Corruption (repeatable); by default the 15 of the benchmark.",
            autocompletion=_complete,
        ),
    ] = None,
    severity: Annotated[
        list[int] | None,
        typer.Option("--severity", "-s", min=1, max=5, help="Severity (repeatable); by default all five."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Chooses the random streams.")] = 0,
    layout: Annotated[
        str | None,
        typer.Option("--layout", metavar="tree|arrays", help="Files as ImageNet-C, or arrays as CIFAR-10-C."),
    ] = None,
    labels: Annotated[Path | None, typer.Option("--labels", metavar="FILE", help="Labels of a .npy source.")] = None,
    fit: Annotated[
        str | None, typer.Option("--fit", metavar="N|HxW", help="Bring files to this size first (crop of the centre).")
    ] = None,
    shorter: Annotated[
        int | None, typer.Option("--shorter", help="With --fit: scale the shorter side to this before the crop.")
    ] = None,
    parameters: Annotated[
        int | None,
        typer.Option(
            "--parameters", metavar="32|64|224", help="Parameters published for this size, whatever the images'."
        ),
    ] = None,
    lossless: Annotated[bool, typer.Option("--lossless", help="PNG files instead of JPEG of quality 85.")] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Threads; the result does not depend on it.")] = 1,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Write corrupted copies of images, laid out as the published sets are; an interrupted run goes on where it was."""
    from synaptune.corrupting import write_corrupted
    from synaptune.data.decode import Fit
    from synaptune.shifts import SEVERITIES, names
    from synaptune.shifts.presets import Size

    output = output_of(ctx, quiet=quiet, as_json=json)
    if layout not in (None, "tree", "arrays"):
        raise OptionError(f"--layout must be tree or arrays, not {layout!r}")
    if parameters not in (None, 32, 64, 224):
        raise OptionError(f"--parameters must be 32, 64 or 224, not {parameters}")
    if shorter is not None and fit is None:
        raise OptionError("--shorter says how --fit scales; name the size too, such as --fit 224 --shorter 256")
    wanted = parse_size(fit, name="--fit")
    with output.progress("corrupting") as report:
        done = write_corrupted(
            source,
            destination,
            corruptions=corruption or names(),
            severities=severity or SEVERITIES,
            seed=seed,
            size=cast("Size | None", parameters),
            layout=cast('Literal["tree", "arrays"] | None', layout),
            labels=labels,
            fit=None if wanted is None else Fit(*wanted, shorter=shorter),
            lossless=lossless,
            workers=workers,
            progress=lambda at, total: report(at, total, "images"),
        )
    output.summary(done.as_dict(), str(done))

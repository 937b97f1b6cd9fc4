"""`synaptune train NAME`: source models from the zoo's networks, resumable, with the rotation head where it has one."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synaptune.cli.model_choice import DeviceOption, choose_device
from synaptune.cli.output import JsonFlag, Output, QuietFlag, Reporter, output_of
from synaptune.cli.settings import parse_settings
from synaptune.cli.stop_signals import StopSignals
from synaptune.errors import DataError, OptionError

if TYPE_CHECKING:
    from synaptune.models.training_loop import Progress
    from synaptune.models.training_recipe import TrainingRecipe

__all__ = ["app"]

app = typer.Typer(add_completion=False)

_ENDED_BY_SIGNAL = 128
"""What shells add to the number of the signal that ended a program."""


def _complete(incomplete: str) -> list[str]:
    from synaptune.models import zoo

    return [name for name in zoo.names() if name.startswith(incomplete)]


@app.command()
def train(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A network of the zoo.", autocompletion=_complete, show_default=False),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for checkpoint and result.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            "-d",
            help="Data set by name, or a folder with a folder per class; by default what the network's card names.",
        ),
    ] = None,
    test_data: Annotated[
        str | None, typer.Option("--test-data", help="The same for the test images; by default the set's own.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="NAME=VALUE", help="An option of the recipe (repeatable): epochs=10 ..."),
    ] = None,
    show_recipe: Annotated[
        bool, typer.Option("--show-recipe", help="Tell the options of the recipe, with their values here, and end.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--images", min=1, help="Train on so many only, drawn evenly from the classes by the recipe's seed."
        ),
    ] = None,
    stop_after: Annotated[
        int | None, typer.Option("--stop-after", min=1, help="Stop at this step; the same command goes on.")
    ] = None,
    evaluate_every: Annotated[
        int | None, typer.Option("--evaluate-every", min=1, help="Steps between two tests; by default an epoch.")
    ] = None,
    full_precision: Annotated[
        bool, typer.Option("--full-precision", help="Store weights in 32 bits instead of 16.")
    ] = False,
    device: DeviceOption = "auto",
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Train a source model and write it with its card; stopped, the same command goes on with the same bits.

    Ctrl-C and SIGTERM end it after the step at hand with status 130 and 143; beyond that it saves itself each minute.
    """
    from synaptune.cli.training_data import has_test_split, load_images, named_by, numbered
    from synaptune.models import zoo
    from synaptune.models.image_set import drawn_evenly
    from synaptune.models.source_recipes import data_for, recipe_for
    from synaptune.models.source_training import train_source

    output = output_of(ctx, quiet=quiet, as_json=json)
    name = name.removeprefix("zoo:")
    card = zoo.card(name)
    recipe = recipe_for(name)
    recipe = recipe.replace(**parse_settings(type(recipe), settings or ()))
    if show_recipe:
        output.result(recipe.as_dict(), lambda: _show_recipe(output, recipe))
        return
    if out is None:
        raise typer.BadParameter("checkpoint and result need a folder: name it with --out")
    data = data or data_for(name)
    if data is None:
        raise OptionError(f"{name} ({card.trained_on or 'no data set named'}) has no training data here; name --data")
    found = load_images(data, "train", card, with_margin=recipe.augmentation == "resized_crop")
    named = named_by(found, card)
    chosen = found if limit is None else found.select(drawn_evenly(found.labels, limit, seed=recipe.seed))
    images = numbered(chosen, named)
    has_test = test_data is not None or has_test_split(data)
    test = numbered(load_images(test_data or data, "test", card), named) if has_test else None
    with _alone_in(out), output.progress(f"training {name}") as report, StopSignals() as stop:
        shown = _Shown(report)
        done = train_source(
            name,
            images,
            out,
            test=test,
            recipe=recipe,
            class_names=named.class_names,
            num_classes=named.num_classes,
            half=not full_precision,
            device=choose_device(device),
            command=f"synaptune {shlex.join(sys.argv[1:])}",
            evaluate_every=evaluate_every,
            stop_after=stop_after,
            should_stop=lambda: stop.received is not None,
            on_progress=shown,
        )
    if done is None:
        _say_where_it_stopped(output, out, shown.last, stop.received)
        return
    written = out / f"{name}.safetensors"
    error = "" if done.error is None else f", test error {done.error:.2f} %"
    document = {"finished": True, "out": str(written), "error": done.error, "rotation_error": done.rotation_error}
    output.summary(document, f"{written}{error}")
    output.note(f"use it as zoo:{name} --weights {shlex.quote(str(written))}")


def _show_recipe(output: Output, recipe: TrainingRecipe) -> None:
    values = recipe.as_dict()
    rows = [
        (name, kind, ",".join(map(str, value)) if isinstance(value := values[name], list) else str(value), text)
        for name, kind, _, text in recipe.describe()
    ]
    output.table(("option", "type", "value", "meaning"), rows)


@contextmanager
def _alone_in(out: Path) -> Iterator[None]:
    """Keep other runs out of the folder: two would overwrite each other's checkpoints."""
    from synaptune.data.file_lock import hold

    with ExitStack() as held:
        try:
            held.enter_context(hold(out / ".lock", sleep=time.sleep, patience=0))
        except DataError:
            raise DataError(f"another run trains in {out}; wait for its end, or name another folder") from None
        yield


class _Shown:
    """Shows progress as it is reported, each time with the test error that was measured last."""

    def __init__(self, report: Reporter):
        self._report, self._error = report, ""
        self.last: Progress | None = None

    def __call__(self, now: Progress) -> None:
        self.last = now
        if now.test_error is not None:
            self._error = f" test error {100 * now.test_error:.2f} %"
        loss = "" if now.loss is None else f"loss {now.loss:.3f}, "
        self._report(now.step, now.total_steps, f"{loss}{now.images_per_second:,.0f} images/s{self._error}")


def _say_where_it_stopped(output: Output, out: Path, last: Progress | None, by: signal.Signals | None) -> None:
    at = "" if last is None else f" after step {last.step:,} of {last.total_steps:,}"
    text = f"{at}; the same command goes on from {out}"
    if by is None:
        output.summary({"finished": False, "out": str(out)}, f"stopped{text}")
    elif by is signal.SIGINT:
        raise KeyboardInterrupt(f"interrupted{text}")
    else:
        print(f"ended by {by.name}{text}", file=sys.stderr)
        raise typer.Exit(_ENDED_BY_SIGNAL + by)

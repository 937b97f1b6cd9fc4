"""`synaptune predict MODEL IMAGES...`: one's own images to a table, adapting as they stream."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synaptune.cli.model_choice import (
    ClassesOption,
    ClassifierOption,
    DeviceOption,
    FirstConvOption,
    MethodOption,
    ModelArgument,
    NumClassesOption,
    RandomWeightsFlag,
    SetOption,
    StageOption,
    WeightsOption,
    choose_device,
    choose_layout,
    choose_options,
    open_model,
    read_class_names,
)
from synaptune.cli.output import JsonFlag, Output, QuietFlag, Reporter, output_of
from synaptune.cli.picture_choice import MeanOption, SizeOption, StdOption, choose_preprocessing
from synaptune.errors import DataError, OptionError

if TYPE_CHECKING:
    from synaptune.core.adapter import Adapter
    from synaptune.models import LoadedModel
    from synaptune.predicting import Labels, PredictionRun, Preprocessing, Progress, RowMaker
    from synaptune.predicting.table import Format, Table

__all__ = ["app"]

app = typer.Typer(add_completion=False)

_FOLDERS = "folders"


@app.command()
def predict(
    ctx: typer.Context,
    model: ModelArgument,
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGES...",
            help="Folders, files, patterns ('**/*.jpg'), videos; - for a list on stdin.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Table to write (.csv, .jsonl, .parquet); else to stdout."),
    ] = None,
    method: MethodOption = "nhl",
    settings: SetOption = None,
    weights: WeightsOption = None,
    batch_size: Annotated[int, typer.Option("--batch-size", "-b", min=1, help="Images per step.")] = 64,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="Classes to list, the likeliest first.")] = 1,
    classes: ClassesOption = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="FILE|folders",
            help="True classes for scoring (lines NAME,LABEL), or the names of the folders. Never used to adapt.",
        ),
    ] = None,
    compare_source: Annotated[
        bool, typer.Option("--compare-source", help="Also predict with the unadapted model, and count differences.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", metavar="FILE", help="Go on from the adapted state in FILE, if it is there, and save it there."
        ),
    ] = None,
    save_every: Annotated[int, typer.Option("--save-every", min=1, help="Batches between two savings of it.")] = 20,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="Add entropy, drift and predicted classes of every batch to FILE (.jsonl), for `synaptune report`.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after the images that are in the table.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the table if it exists.")] = False,
    form: Annotated[
        str | None, typer.Option("--format", metavar="csv|jsonl|parquet", help="Format, if the ending does not tell.")
    ] = None,
    size: SizeOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    shuffle: Annotated[
        int | None,
        typer.Option(
            "--shuffle", metavar="SEED", help="Take the files in random order (needed where folders are classes)."
        ),
    ] = None,
    every: Annotated[int, typer.Option("--every", min=1, help="Take every n-th frame of a video.")] = 1,
    random_weights: RandomWeightsFlag = False,
    num_classes: NumClassesOption = None,
    first_conv: FirstConvOption = None,
    stage: StageOption = None,
    classifier: ClassifierOption = None,
    device: DeviceOption = "auto",
    workers: Annotated[int, typer.Option("--workers", min=1, help="Threads that read images.")] = 2,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Predict images while adapting to them; rows are written as they come, and a stopped run can be resumed."""
    from synaptune.api import adapt
    from synaptune.callbacks import JsonlCallback
    from synaptune.predicting import DeferredInterrupts, PredictionRun, RowMaker, find_items
    from synaptune.predicting.journal import Journal

    output = output_of(ctx, quiet=quiet, as_json=json)
    _check(out, resume=resume, overwrite=overwrite, as_json=output.as_json)
    chosen = _format(out, form)
    items = find_items(images, stdin=sys.stdin, every=every, shuffle=shuffle)
    if items.folders > 1 and method != "source":
        output.note(
            f"images come from {items.folders} folders, one after the other; if these are classes, adapting to one at "
            "a time does harm: --shuffle SEED"
        )
    options = choose_options(method, settings)
    loaded = open_model(model, weights=weights, random_weights=random_weights, num_classes=num_classes)
    preprocessing = choose_preprocessing(loaded.model, loaded.card, size=size, mean=mean, std=std)
    if loaded.card.normalisation == "unknown" and mean is None:
        output.note(f"{model}: which normalisation it expects is not known; it gets images in [0, 1] (--mean, --std)")
    names = read_class_names(classes, loaded.card.class_names)
    maker = RowMaker(class_names=names, top_k=top_k, labels=_labels(labels, names), with_source=compare_source)
    where = choose_device(device)
    network = loaded.model.to(where)
    source = copy.deepcopy(network).eval() if compare_source else None
    callbacks = [] if log is None else [JsonlCallback(log, class_names=names or None)]
    layout = choose_layout(first_conv, stage, classifier)
    with adapt(network, method, **options, layout=layout, callbacks=callbacks) as adapter:
        about = _settings(model, loaded, adapter, preprocessing, batch_size=batch_size)
        run = PredictionRun(
            adapter,
            preprocessing=preprocessing,
            rows=maker,
            table=_table(out, maker, chosen, resume=resume),
            journal=Journal(out, about) if out is not None else None,
            state=state,
            source=source,
            batch_size=batch_size,
            save_every=save_every,
            workers=workers,
            device=where,
        )
        try:
            run.prepare(resume=resume)
            _say_how_it_begins(output, run, state, resume=resume)
            with DeferredInterrupts() as interrupts, output.progress("predicting", total=items.total) as report:
                run.run(items, on_batch=lambda now: _show(report, now, items.total), whole=interrupts.whole)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_how_to_go_on(run, out, state)) from None
        finally:
            nothing = run.withdraw()
    if nothing:
        raise DataError(f"none of the images could be read: {'; '.join(str(run.report).splitlines()[1:])}")
    _conclude(output, run, out, state)


def _check(out: Path | None, *, resume: bool, overwrite: bool, as_json: bool) -> None:
    if out is None and as_json:
        raise typer.BadParameter("stdout cannot hold both the table and the JSON document; name a table with --out")
    if out is None and (resume or overwrite):
        raise typer.BadParameter("--resume and --overwrite need a table: name it with --out")
    if resume and overwrite:
        raise typer.BadParameter("--resume and --overwrite contradict each other")
    if out is not None and out.exists() and not (resume or overwrite):
        raise DataError(f"{out} exists; go on with --resume, replace it with --overwrite, or name another file")


def _labels(given: str | None, names: tuple[str, ...]) -> Labels | None:
    from synaptune.predicting import read_labels
    from synaptune.predicting.labels import FolderLabels

    if given is None:
        return None
    return FolderLabels(names) if given == _FOLDERS else read_labels(given, names)


def _format(out: Path | None, form: str | None) -> Format:
    """The format of the table; that it can be written is made sure of before a model is loaded."""
    from synaptune.predicting.table import FORMATS, format_of

    chosen = next((known for known in FORMATS if known == form), None)
    if form is not None and chosen is None:
        raise OptionError(f"--format must be one of {', '.join(FORMATS)}, not {form!r}")
    return format_of(out, chosen) if out is not None else chosen or "csv"


def _table(out: Path | None, maker: RowMaker, form: Format, *, resume: bool) -> Table:
    from synaptune.predicting import open_table
    from synaptune.predicting.table import StreamTable

    if out is None:
        return StreamTable(maker.columns, form=form)
    return open_table(out, maker.columns, form=form, resume=resume)


def _settings(
    spec: str, loaded: LoadedModel, adapter: Adapter, preprocessing: Preprocessing, *, batch_size: int
) -> dict[str, Any]:
    """What decides the predictions, and has to be the same when a run is resumed."""
    import torch

    from synaptune._version import __version__

    return {
        "model": spec,
        "weights": loaded.card.weights,
        "fingerprint": adapter.fingerprint,
        "method": adapter.info.name,
        "options": adapter.options.as_dict(),
        "preprocessing": preprocessing.as_dict(),
        "batch_size": batch_size,
        "synaptune": __version__,
        "torch": torch.__version__,
    }


def _say_how_it_begins(output: Output, run: PredictionRun, state: Path | None, *, resume: bool) -> None:
    begun = run.summary.resumed
    if state is not None and run.adapter.steps:
        output.note(f"adapted state taken from {state} ({_batches(run.adapter.steps)})")
    elif resume and begun:
        output.note("no adapted state was kept (--state FILE does): adapting starts from the source model again")
    if begun:
        output.note(f"{begun:,} images are in the table already")


def _show(report: Reporter, now: Progress, total: int | None) -> None:
    drift = "" if now.record.drift is None else f" drift {now.record.drift:.2f}"
    report(now.images, total, f"{now.images_per_second:,.1f} images/s entropy {now.record.entropy:.2f}{drift}")


def _batches(number: int) -> str:
    return f"{number:,} batch{'es' * (number != 1)}"


def _how_to_go_on(run: PredictionRun, out: Path | None, state: Path | None) -> str:
    begun = f"interrupted after {run.summary.images:,} images; "
    if out is None:
        return f"{begun}with --out FILE it could be resumed"
    if not run.table.images and not run.summary.images:
        return "interrupted before the first batch; nothing was written"
    kept = "" if state is not None else " (what was learnt is lost; --state FILE keeps it)"
    return f"{begun}what is in {out} is whole; the same command with --resume goes on{kept}"


def _conclude(output: Output, run: PredictionRun, out: Path | None, state: Path | None) -> None:
    summary, report = run.summary, run.report
    lines = [
        f"{summary.images:,} images in {summary.seconds:,.1f} s "
        f"({summary.images / max(summary.seconds, 1e-9):,.1f} images/s), {_batches(summary.batches)}, "
        f"method {run.adapter.info.name}"
    ]
    if summary.entropy is not None:
        drift = "" if summary.drift is None else f", drift at the end {summary.drift:.2f} source deviations"
        lines.append(f"mean entropy {summary.entropy:.3f} nats{drift}")
    if summary.disagreement is not None:
        lines.append(f"the unadapted model says otherwise on {100 * summary.disagreement:.1f} % of the images")
    if summary.error is not None:
        beside = "" if summary.source_error is None else f" (unadapted: {summary.source_error:.2f} %)"
        lines.append(f"error {summary.error:.2f} % of {summary.labelled:,} labelled images{beside}")
    lines += [f"{count:,}x {event}" for event, count in summary.events.items()]
    lines += str(report).splitlines()[1:]
    if out is not None:
        lines.append(f"predictions in {out}{'' if state is None else f', adapted state in {state}'}")
    files = {"out": None if out is None else str(out), "state": None if state is None else str(state)}
    if out is None:
        output.note("\n".join(lines))
    else:
        output.summary({**summary.as_dict(), **files}, "\n".join(lines))

"""`synaptune export MODEL --state FILE`: the adapted model as a plain one, in a file that runs elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synaptune.cli.model_choice import (
    ClassifierOption,
    FirstConvOption,
    ModelArgument,
    NumClassesOption,
    RandomWeightsFlag,
    StageOption,
    WeightsOption,
    choose_layout,
    open_model,
)
from synaptune.cli.output import JsonFlag, QuietFlag, output_of
from synaptune.cli.picture_choice import MeanOption, SizeOption, StdOption, choose_preprocessing, read_batch
from synaptune.errors import OptionError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from synaptune.core.layout import Layout
    from synaptune.core.state_file import About
    from synaptune.export import Format
    from synaptune.models import Card
    from synaptune.predicting import Preprocessing

__all__ = ["app"]

app = typer.Typer(add_completion=False)


@app.command()
def export(
    ctx: typer.Context,
    model: ModelArgument,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File to write.", show_default=False)],
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="FILE", help="Adapted state (predict --state); without: the model as it is."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="onnx|torch-export|torchscript|safetensors",
            help="Format; by default told by the ending: .onnx, .pt2, .ts, .safetensors.",
        ),
    ] = None,
    images: Annotated[
        list[str] | None,
        typer.Option(
            "--images",
            metavar="IMAGES",
            help="Representative images, whose statistics the plain model gets (methods that use those of the batch).",
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option("--batch-size", "-b", min=1, help="How many of them to take.")] = 64,
    fixed_batch: Annotated[
        bool, typer.Option("--fixed-batch", help="Fix the batch size instead of leaving it open.")
    ] = False,
    weights: WeightsOption = None,
    random_weights: RandomWeightsFlag = False,
    num_classes: NumClassesOption = None,
    size: SizeOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    first_conv: FirstConvOption = None,
    stage: StageOption = None,
    classifier: ClassifierOption = None,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Freeze an adapted model into ONNX, torch.export, TorchScript or safetensors, checked by reading it back."""
    from synaptune import export as exporting

    output = output_of(ctx, quiet=quiet, as_json=json)
    form = _format(to, out)
    loaded = open_model(model, weights=weights, random_weights=random_weights, num_classes=num_classes)
    preprocessing = choose_preprocessing(loaded.model, loaded.card, size=size, mean=mean, std=std)
    batch = read_batch(images, preprocessing, count=batch_size) if images else None
    sample = _sample(preprocessing, batch_size if fixed_batch else 2) if batch is None else batch
    plain = loaded.model.eval()
    card = replace(loaded.card, name=model)
    if state is not None:
        layout = choose_layout(first_conv, stage, classifier)
        plain, about = _freeze(loaded.model, state, batch, layout)
        card = _adapted(card, about)
    file = exporting.export(
        plain, sample, out, format=form, dynamic_batch=not fixed_batch, metadata={"card": card.to_json()}
    )
    checked = "" if file.difference is None else f", outputs equal to {file.difference:.1g}"
    document = {
        "out": str(file.path),
        "format": file.format,
        "bytes": file.bytes,
        "difference": file.difference,
        "batch_sizes": list(file.batch_sizes),
        "input": preprocessing.as_dict(),
    }
    output.summary(document, f"{file.path}: {file.format}, {file.bytes / 1e6:,.1f} MB{checked}")
    if file.difference is None:
        output.note("not read back: onnxruntime is not installed")


def _format(to: str | None, out: Path) -> Format:
    from synaptune.export import ENDINGS

    chosen = ENDINGS.get(out.suffix.lower()) if to is None else next((f for f in ENDINGS.values() if f == to), None)
    if chosen is None:
        known = ", ".join(f"{form} ({ending})" for ending, form in ENDINGS.items())
        raise OptionError(f"no format for {to or out.name!r}; choose one with --to, or by the ending: {known}")
    return chosen


def _sample(preprocessing: Preprocessing, count: int) -> Tensor:
    import torch

    shape = (count, preprocessing.channels, *preprocessing.size)
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def _freeze(model: nn.Module, state: Path, batch: Tensor | None, layout: Layout | None) -> tuple[nn.Module, About]:
    from synaptune.api import adapt
    from synaptune.cli.state_choice import about_state
    from synaptune.errors import SynaptuneError

    about = about_state(state)
    with adapt(model, about.method, **about.options, layout=layout) as adapter:
        adapter.load(state)
        try:
            return adapter.freeze(batch), about
        except SynaptuneError as error:
            if batch is not None:
                raise
            raise OptionError(
                f"{about.method} normalises by the statistics of the batch, which a plain model does not have: name "
                "images like those it will see, --images FOLDER"
            ) from error


def _adapted(card: Card, about: About) -> Card:
    notes = f"adapted by {about.method} on {about.steps} batches (synaptune)"
    return replace(card, error=None, error_on="", notes="; ".join(filter(None, (card.notes, notes))))

"""`synaptune doctor MODEL`: one screen about a model, before anything is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from synaptune.cli.model_choice import (
    ClassifierOption,
    DeviceOption,
    FirstConvOption,
    ModelArgument,
    NumClassesOption,
    RandomWeightsFlag,
    StageOption,
    WeightsOption,
    choose_device,
    choose_layout,
    open_model,
)
from synaptune.cli.output import JsonFlag, QuietFlag, output_of
from synaptune.cli.picture_choice import SizeOption, choose_preprocessing, read_batch

if TYPE_CHECKING:
    from torch import Tensor

    from synaptune.predicting import Preprocessing

__all__ = ["app"]

app = typer.Typer(add_completion=False)


@app.command()
def doctor(
    ctx: typer.Context,
    model: ModelArgument,
    images: Annotated[
        list[str] | None,
        typer.Argument(metavar="[IMAGES]...", help="Images to run it on; otherwise noise of the right form."),
    ] = None,
    weights: WeightsOption = None,
    random_weights: RandomWeightsFlag = False,
    num_classes: NumClassesOption = None,
    batch_size: Annotated[int, typer.Option("--batch-size", "-b", min=1, help="Images per batch.")] = 16,
    size: SizeOption = None,
    run: Annotated[bool, typer.Option("--run/--no-run", help="Run the model, to measure costs.")] = True,
    first_conv: FirstConvOption = None,
    stage: StageOption = None,
    classifier: ClassifierOption = None,
    device: DeviceOption = "auto",
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Tell what adapts in a model, what cannot and why, what it costs, and what to do. Changes nothing."""
    from synaptune.diagnosis import Expectation
    from synaptune.diagnosis import doctor as examine

    output = output_of(ctx, quiet=quiet, as_json=json)
    loaded = open_model(model, weights=weights, random_weights=random_weights, num_classes=num_classes)
    preprocessing = choose_preprocessing(loaded.model, loaded.card, size=size)
    where = choose_device(device)
    sample = None
    if run or images:
        batch = read_batch(images, preprocessing, count=batch_size) if images else _noise(preprocessing, batch_size)
        sample = batch.to(where)
    found = examine(
        loaded.model.to(where),
        sample,
        layout=choose_layout(first_conv, stage, classifier),
        expects=Expectation.from_card(loaded.card),
    )
    output.result({"spec": model, **found.as_dict()}, lambda: print(found))


def _noise(preprocessing: Preprocessing, count: int) -> Tensor:
    """Noise that looks to the model like pictures: every value from black to white, then normalised."""
    import torch

    shape = (count, preprocessing.channels, *preprocessing.size)
    noise = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    if preprocessing.mean:
        mean, std = torch.tensor(preprocessing.mean), torch.tensor(preprocessing.std)
        noise = (noise - mean.view(1, -1, 1, 1)) / std.view(1, -1, 1, 1)
    return noise

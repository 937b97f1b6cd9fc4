"""From a name of the zoo to a trained file with its card: what `synaptune train` does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from synaptune.models import zoo
from synaptune.models.card import Card
from synaptune.models.evaluation import error_on, rotation_error_on
from synaptune.models.image_set import ImageSet
from synaptune.models.rotation import RotationModel
from synaptune.models.source_recipes import recipe_for
from synaptune.models.training_loop import Progress, TrainingResult, train
from synaptune.models.training_recipe import TrainingRecipe
from synaptune.models.weights import as_stored, write_weights

__all__ = ["save_trained", "train_source"]


def train_source(
    name: str,
    data: ImageSet,
    directory: Path,
    *,
    test: ImageSet | None = None,
    recipe: TrainingRecipe | None = None,
    class_names: Sequence[str] | None = None,
    num_classes: int | None = None,
    half: bool = True,
    device: str | torch.device = "cpu",
    command: str = "",
    evaluate_every: int | None = None,
    stop_after: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Card | None:
    """Train a network of the zoo and write `NAME.safetensors`, `NAME.json` and `NAME.md` into `directory`.

    The run goes on from the directory's checkpoint if there is one. Labels are output indices already (for digits:
    index = (digit - 1) mod 10).

    Args:
        name: of the zoo; one that ends in `-rotation` has a rotation head, which the recipe must train.
        data: the training set.
        directory: for the checkpoint and the results.
        test: images for the card's error.
        recipe: by default `recipe_for(name)`.
        class_names: by output index; by default the zoo's, where their number fits.
        num_classes: outputs of the network; by default as many as there are class names, or else labels.
        half: store weights in half precision; the card's error is then that of the stored weights.
        device: where to train.
        command: how the user started this, for the card.
        evaluate_every: steps between two measurements of the test error; one epoch by default.
        stop_after: stop at this step with a checkpoint, and return None.
        should_stop: asked before each step; True is as if `stop_after` were the step.
        on_progress: called every few seconds, with each measurement, and when the run stops.
    """
    recipe = recipe or recipe_for(name)
    classes = num_classes or len(class_names or ()) or data.num_classes
    known = zoo.card(name)
    names = tuple(class_names or (known.class_names if len(known.class_names) == classes else ()))
    result = train(
        _untrained(name, classes, recipe.seed).to(device),
        data,
        recipe=recipe,
        test=test,
        directory=directory,
        network=name,
        size=known.input_size,
        evaluate_every=evaluate_every,
        stop_after=stop_after,
        should_stop=should_stop,
        on_progress=on_progress,
    )
    if result is None:
        return None
    card = dataclasses.replace(
        known,
        num_classes=classes,
        class_names=names,
        label_map=known.label_map if names == known.class_names else (),
        origin="trained with synaptune",
        licence="",
        url="",
        file="",
        notes="",
    )
    return save_trained(
        result,
        directory / f"{name}.safetensors",
        card=card,
        data=data,
        recipe=recipe,
        test=test,
        half=half,
        command=command,
    )


def save_trained(
    result: TrainingResult,
    path: Path,
    *,
    card: Card,
    data: ImageSet,
    recipe: TrainingRecipe,
    test: ImageSet | None = None,
    half: bool = True,
    command: str = "",
) -> Card:
    """Round the weights as they are stored, measure them, and write them with the completed card."""
    model = result.model
    stored = {key: as_stored(value, half=half) for key, value in model.state_dict().items()}
    model.load_state_dict(stored)
    training: dict[str, Any] = {
        "training_images": len(data),
        "training_data_digest": data.digest(),
        "steps": result.steps,
        "images_per_second": round(result.images_per_second, 1),
        "devices": ", ".join(result.devices),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "command": command,
        **recipe.as_dict(),
    }
    finished = dataclasses.replace(
        card,
        trained_on=data.name,
        weights=path.name,
        error=None if test is None else _percent(error_on(model, test)),
        error_on="" if test is None else test.name,
        rotation_error=_rotation_percent(model, test, recipe),
        training=training,
    )
    write_weights(path, stored, card=finished)
    return finished


def _untrained(name: str, classes: int, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return zoo.create(name, pretrained=False, num_classes=classes)


def _rotation_percent(model: nn.Module, test: ImageSet | None, recipe: TrainingRecipe) -> float | None:
    if test is None or not recipe.rotation_share or not isinstance(model, RotationModel):
        return None
    return _percent(rotation_error_on(model, test))


def _percent(share: float) -> float:
    return round(100 * share, 3)

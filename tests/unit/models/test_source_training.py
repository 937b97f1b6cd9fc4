"""From a name of the zoo to a file: what is written loads again, and its card tells the truth about it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from synaptune.errors import UnknownNameError
from synaptune.models import Card, PreactResNet, RotationModel, load_model, zoo
from synaptune.models.evaluation import classification_error, rotation_error
from synaptune.models.image_set import ImageSet
from synaptune.models.source_recipes import RECIPES, data_for, recipe_for
from synaptune.models.source_training import train_source
from synaptune.models.training_recipe import TrainingRecipe
from synaptune.models.zoo import ZooEntry


@pytest.fixture
def tiny_zoo(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of the zoo that trains in a second."""
    entry = ZooEntry(
        card=Card(
            name="tiny-rotation",
            num_classes=10,
            mean=(0.5, 0.5, 0.5),
            std=(0.5, 0.5, 0.5),
            normalisation="inside",
            error=5.0,
            error_on="something else",
            url="https://example.org",
            label_map=tuple(range(10))[::-1],
            notes="save it under the one given here",
        ),
        build=lambda classes: RotationModel(PreactResNet(8, num_classes=classes)),
    )
    monkeypatch.setitem(zoo._ENTRIES, "tiny-rotation", entry)


def colours(count: int, *, seed: int = 0) -> ImageSet:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    images = rng.integers(0, 150, (count, 16, 16, 3)).astype(np.uint8)
    images[np.arange(count), :, :, labels] += 60
    return ImageSet.from_arrays(images, labels, name=f"colours {seed}")


RECIPE = TrainingRecipe(epochs=3, batch_size=16, lr=0.05, rotation_share=0.5, recalibration_images=40)


@pytest.mark.usefixtures("tiny_zoo")
@pytest.mark.parametrize("half", [True, False])
def test_written_weights_load_and_have_the_error_of_their_card(tmp_path: Path, half: bool) -> None:
    test = colours(40, seed=1)
    card = train_source(
        "tiny-rotation",
        colours(64),
        tmp_path,
        test=test,
        recipe=RECIPE,
        class_names=("red", "green", "blue"),
        half=half,
        command="some command",
    )
    assert card is not None
    loaded = load_model("zoo:tiny-rotation", tmp_path / "tiny-rotation.safetensors")
    assert isinstance(loaded.model, RotationModel)
    assert loaded.card.error == card.error
    assert loaded.card.error == pytest.approx(100 * classification_error(loaded.model, test.images, test.labels))
    assert loaded.card.rotation_error == pytest.approx(100 * rotation_error(loaded.model, test.images), abs=1e-3)
    assert (loaded.card.class_names, loaded.card.error_on) == (("red", "green", "blue"), "colours 1")
    assert loaded.card.num_classes == 3
    assert (loaded.card.url, loaded.card.notes, loaded.card.label_map) == ("", "", ())
    assert loaded.card.training["command"] == "some command"
    assert loaded.card.training["rotation_share"] == 0.5
    beside = json.loads((tmp_path / "tiny-rotation.json").read_text())
    assert beside["training"]["steps"] == 12
    assert "| command | some command |" in (tmp_path / "tiny-rotation.md").read_text()


@pytest.mark.usefixtures("tiny_zoo")
def test_a_stopped_run_writes_no_result_and_goes_on(tmp_path: Path) -> None:
    data, test = colours(64), colours(20, seed=1)
    whole = train_source("tiny-rotation", data, tmp_path / "a", test=test, recipe=RECIPE)
    assert train_source("tiny-rotation", data, tmp_path / "b", test=test, recipe=RECIPE, stop_after=5) is None
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["checkpoint.safetensors"]
    resumed = train_source("tiny-rotation", data, tmp_path / "b", test=test, recipe=RECIPE)
    assert whole is not None
    assert resumed is not None
    one, other = (tmp_path / part / "tiny-rotation.safetensors" for part in ("a", "b"))
    first = load_model("zoo:tiny-rotation", one).model.state_dict()
    second = load_model("zoo:tiny-rotation", other).model.state_dict()
    assert all(torch.equal(value, second[name]) for name, value in first.items())


@pytest.mark.usefixtures("tiny_zoo")
def test_initial_weights_follow_the_seed_and_leave_the_global_state_alone(tmp_path: Path) -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    train_source("tiny-rotation", colours(32), tmp_path, recipe=RECIPE.replace(epochs=1))
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("name", [name for name in zoo.names() if "imagenet" not in name])
def test_recipes_train_what_the_names_of_the_zoo_promise(name: str) -> None:
    with torch.device("meta"):
        model: nn.Module = zoo.entry(name).build(10)
    recipe = recipe_for(name)
    assert isinstance(model, RotationModel) == (recipe.rotation_share > 0)
    if name.endswith("augmix"):
        assert (recipe.augmentation, recipe.jsd_weight) == ("augmix", 12.0)
    if name.startswith("digits"):
        assert recipe.augmentation == "crop", "a mirrored digit is no digit"
    data = data_for(name)
    assert data is not None
    assert data in name.split("-")


def test_every_recipe_is_that_of_a_network() -> None:
    assert set(RECIPES) <= set(zoo.names())


def test_a_network_without_a_recipe_of_its_own_gets_the_defaults() -> None:
    assert recipe_for("resnet56-cifar10") == TrainingRecipe()
    with pytest.raises(UnknownNameError):
        recipe_for("resnet57-cifar10")

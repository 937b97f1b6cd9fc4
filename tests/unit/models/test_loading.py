"""`load_model`: specifications of models, cards from other libraries, and the user's own file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from synaptune.errors import IncompatibleModelError, OptionError, UnknownNameError, WeightsError
from synaptune.models import Normalised, load_model

FACTORY = """
from dataclasses import dataclass
import torch

@dataclass
class Size:
    width: int = 4

def make_model():
    return torch.nn.Sequential(torch.nn.Conv2d(3, Size().width, 3), torch.nn.Flatten(), torch.nn.LazyLinear(5))

def tiny():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))

def needs_size(size):
    return torch.nn.Linear(size, 2)

def not_a_model():
    return {"a": 1}

number = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my_model.py"
    path.write_text(FACTORY)
    return path


def test_torchvision_card_tells_size_and_normalisation() -> None:
    pytest.importorskip("torchvision")
    loaded = load_model("torchvision:resnet18", pretrained=False)
    assert type(loaded.model).__module__ == "torchvision.models.resnet"
    assert not loaded.model.training
    card = loaded.card
    assert (card.input_size, card.resize, card.interpolation) == ((224, 224), 256, "bilinear")
    assert card.mean == (0.485, 0.456, 0.406)
    assert card.normalisation == "outside"
    assert card.weights == "random"
    assert card.error is None
    assert card.class_names[0] == "tench"


def test_torchvision_file_loads_and_makes_no_claims(tmp_path: Path) -> None:
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    other = torchvision.models.resnet18(num_classes=7)
    torch.save(other.state_dict(), tmp_path / "resnet18.pth")
    loaded = load_model("torchvision:resnet18", tmp_path / "resnet18.pth", num_classes=7)
    images = torch.rand(1, 3, 64, 64)
    assert torch.equal(loaded.model(images), other.eval()(images))
    assert (loaded.card.error, loaded.card.num_classes, loaded.card.class_names) == (None, 7, ())


def test_torchvision_weights_by_tag_are_fetched_by_address_and_said_when_they_cannot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torchvision")
    asked = []

    def refuse(url: str, **options: object) -> None:
        asked.append((url, options["weights_only"], options["check_hash"]))
        raise OSError("no route")

    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", refuse)
    with pytest.raises(WeightsError, match=r"could not be fetched from https.*no route.*--weights FILE"):
        load_model("torchvision:resnet18", "IMAGENET1K_V1")
    assert asked == [("https://download.pytorch.org/models/resnet18-f37072fd.pth", True, True)]


def test_torchvision_card_carries_the_published_error(monkeypatch: pytest.MonkeyPatch) -> None:
    torchvision = pytest.importorskip("torchvision")
    tensors = torchvision.models.resnet18().state_dict()
    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", lambda *args, **options: tensors)
    card = load_model("torchvision:resnet18").card
    assert (card.error, card.weights) == (30.242, "IMAGENET1K_V1")


def test_unknown_names_of_torchvision_are_answered_with_the_nearest() -> None:
    pytest.importorskip("torchvision")
    with pytest.raises(UnknownNameError, match="did you mean resnet18"):
        load_model("torchvision:resnet17", pretrained=False)
    with pytest.raises(UnknownNameError, match="IMAGENET1K_V1"):
        load_model("torchvision:resnet18", "IMAGENET1K_V9")


def test_timm_card_tells_size_crop_and_normalisation() -> None:
    pytest.importorskip("timm")
    loaded = load_model("timm:tf_efficientnet_lite0.in1k", pretrained=False)
    card = loaded.card
    assert (card.input_size, card.resize, card.interpolation) == ((224, 224), 256, "bicubic")
    assert (card.mean, card.std) == ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert card.normalisation == "outside"


def test_timm_tells_the_classes_of_imagenet_where_its_weights_are_of_it() -> None:
    pytest.importorskip("timm")
    names = load_model("timm:tf_efficientnet_lite0", pretrained=False).card.class_names
    assert (names[0], names[47], names[999]) == ("tench", "African chameleon", "toilet tissue")
    assert names[134] == "crane (n02012849)"
    assert len(set(names)) == 1000
    assert load_model("timm:tf_efficientnet_lite0", pretrained=False, num_classes=5).card.class_names == ()


def test_timm_names_and_tags_are_checked() -> None:
    pytest.importorskip("timm")
    with pytest.raises(UnknownNameError, match="timm model"):
        load_model("timm:resnet_nothing", pretrained=False)
    with pytest.raises(UnknownNameError, match="a1_in1k"):
        load_model("timm:resnet18.a9_in1k", pretrained=False)


def test_timm_file_loads(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    other = timm.create_model("test_resnet", num_classes=5)
    state = {f"module.{name}": value for name, value in other.state_dict().items()}
    torch.save({"state_dict": state}, tmp_path / "t.pt")
    loaded = load_model("timm:test_resnet", tmp_path / "t.pt", num_classes=5)
    images = torch.rand(1, 3, 64, 64)
    assert torch.equal(loaded.model(images), other.eval()(images))


def test_normalised_puts_the_cards_constants_in_front() -> None:
    pytest.importorskip("torchvision")
    torch.manual_seed(0)
    plain = load_model("torchvision:resnet18", pretrained=False)
    torch.manual_seed(0)
    wrapped = load_model("torchvision:resnet18", pretrained=False, normalised=True)
    assert isinstance(wrapped.model, Normalised)
    assert wrapped.card.normalisation == "inside"
    images = torch.rand(1, 3, 64, 64)
    mean, std = (torch.tensor(part).view(1, 3, 1, 1) for part in (plain.card.mean, plain.card.std))
    torch.testing.assert_close(wrapped.model(images), plain.model((images - mean) / std))


def test_normalised_leaves_the_zoo_alone() -> None:
    loaded = load_model("zoo:resnet20-cifar10", pretrained=False, normalised=True)
    assert not isinstance(loaded.model, Normalised)


def test_users_file_makes_the_model(file: Path, tmp_path: Path) -> None:
    loaded = load_model(f"{file}:tiny")
    assert loaded.card.num_classes == 3
    assert loaded.card.normalisation == "unknown"
    torch.save(loaded.model.state_dict(), tmp_path / "tiny.pt")
    again = load_model(f"{file}:tiny", tmp_path / "tiny.pt")
    assert torch.equal(again.model(torch.ones(1, 3, 2, 2)), loaded.model(torch.ones(1, 3, 2, 2)))


@pytest.mark.parametrize("attribute", ["model", "module", "net"])
def test_names_that_look_like_a_wrappers_prefix_stay_when_they_are_the_models_own(
    tmp_path: Path, attribute: str
) -> None:
    (tmp_path / "wrapped.py").write_text(
        "import torch\n"
        "class Wrapped(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        f"        self.{attribute} = torch.nn.Linear(4, 2)\n"
        "    def forward(self, x):\n"
        f"        return self.{attribute}(x)\n"
    )
    spec = f"{tmp_path}/wrapped.py:Wrapped"
    first = load_model(spec).model
    torch.save(first.state_dict(), tmp_path / "own.pt")
    torch.save({"state_dict": {f"module.{k}": v for k, v in first.state_dict().items()}}, tmp_path / "parallel.pt")
    for file in ("own.pt", "parallel.pt"):
        again = load_model(spec, tmp_path / file).model
        assert torch.equal(again(torch.ones(1, 4)), first(torch.ones(1, 4)))


def test_users_file_may_use_dataclasses_and_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_mine.py").write_text("import torch\ndef layer():\n    return torch.nn.Linear(2, 2)\n")
    (tmp_path / "outer.py").write_text("from neighbour_of_mine import layer\ndef make():\n    return layer()\n")
    assert isinstance(load_model(f"{tmp_path}/outer.py:make").model, nn.Linear)


@pytest.mark.parametrize(
    ("ending", "kind", "said"),
    [
        ("", OptionError, "name the function that makes the model"),
        (":", OptionError, "name the function that makes the model"),
        (":tinny", UnknownNameError, "did you mean tiny"),
        (":needs_size", OptionError, "called without arguments"),
        (":not_a_model", IncompatibleModelError, "returned dict"),
        (":number", IncompatibleModelError, "number is a int"),
    ],
)
def test_what_is_wrong_with_a_users_file_is_said(file: Path, ending: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        load_model(f"{file}{ending}")


def test_a_users_file_that_fails_keeps_its_cause(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(OptionError, match="failed with ModuleNotFoundError") as caught:
        load_model(f"{tmp_path}/broken.py:make")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    with pytest.raises(OptionError, match="there is no file"):
        load_model(f"{tmp_path}/absent.py:make")


def test_normalised_refuses_to_guess(file: Path) -> None:
    with pytest.raises(OptionError, match="normalisation is not known"):
        load_model(f"{file}:tiny", normalised=True)


def test_a_bare_name_is_answered_with_the_zoos() -> None:
    with pytest.raises(UnknownNameError, match="did you mean zoo:resnet20-cifar10"):
        load_model("resnet20-cifar10")
    with pytest.raises(UnknownNameError, match="did you mean timm:resnet18"):
        load_model("resnet18")


def test_weights_without_pretraining_are_refused() -> None:
    with pytest.raises(OptionError, match="contradict"):
        load_model("zoo:resnet20-cifar10", "x.pt", pretrained=False)

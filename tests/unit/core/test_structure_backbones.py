"""The paper's backbones: structure alone finds what their authors call blocks, and what the zoo declares."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from synaptune.core.layout import declared_layout
from synaptune.core.structure import find_anatomy
from synaptune.models.digit_net import DigitNet
from synaptune.models.normalise import Normalised
from synaptune.models.resnet26 import PreactResNet
from synaptune.models.resnet_cifar import ResNetCifar
from synaptune.models.rotation import RotationModel
from synaptune.models.wide_resnet import WideResNet

LAYERS = (("layer1",), ("layer2",), ("layer3",))
BLOCKS = (("block1",), ("block2",), ("block3",))

Parts = tuple[str, str | None, tuple[tuple[str, ...], ...], str, int, int]

# first convolution, norm after it, stages, classifier, normalisation layers, batch norms among them
BACKBONES: dict[str, tuple[Callable[[], nn.Module], Parts]] = {
    "resnet20": (lambda: ResNetCifar(20), ("conv1", "bn1", LAYERS, "linear", 19, 19)),
    "resnet56": (lambda: ResNetCifar(56), ("conv1", "bn1", LAYERS, "linear", 55, 55)),
    "wrn-28-10": (lambda: WideResNet(28, 10), ("conv1", None, BLOCKS, "fc", 25, 25)),
    "wrn-40-2": (
        lambda: WideResNet(40, 2, mean=(0.5,) * 3, std=(0.5,) * 3),
        ("conv1", None, BLOCKS, "fc", 37, 37),
    ),
    "resnet26-bn": (lambda: PreactResNet(26), ("conv1", None, LAYERS, "fc", 25, 25)),
    "resnet26-gn": (lambda: PreactResNet(26, norm="group"), ("conv1", None, LAYERS, "fc", 25, 0)),
    "svhn-net": (
        lambda: DigitNet(32),
        (
            "features.0",
            "features.1",
            (
                ("features.4", "features.5"),
                ("features.9", "features.10", "features.13", "features.14"),
                ("features.18", "features.19", "features.22", "features.23"),
                ("features.27", "features.28"),
            ),
            "classifier.0",
            7,
            7,
        ),
    ),
}


def _build(name: str) -> nn.Module:
    with torch.device("meta"):
        return BACKBONES[name][0]()


def _undeclared(model: nn.Module) -> nn.Module:
    """Hide what the model says of itself, so that structure has to tell."""
    model.synaptune_layout = None  # type: ignore[assignment]
    return model


@pytest.mark.parametrize("name", BACKBONES)
def test_structure_alone_finds_the_parts(name: str) -> None:
    found = find_anatomy(_undeclared(_build(name)))
    assert (
        found.first_conv,
        found.stem_norm,
        found.stages,
        found.classifier,
        len(found.norms),
        len(found.batch_norms),
    ) == BACKBONES[name][1]


@pytest.mark.parametrize("name", BACKBONES)
def test_declared_layout_says_the_same_as_structure(name: str) -> None:
    assert declared_layout(_build(name)).stages is not None
    assert find_anatomy(_build(name)) == find_anatomy(_undeclared(_build(name)))


@pytest.mark.parametrize("declares", [True, False])
def test_normalisation_around_a_backbone_only_prefixes_its_names(declares: bool) -> None:
    with torch.device("meta"):
        inner: nn.Module = ResNetCifar(20)
        model = Normalised(inner if declares else _undeclared(inner), (0.5,) * 3, (0.5,) * 3)
    found = find_anatomy(model)
    assert (found.first_conv, found.stem_norm, found.classifier) == ("model.conv1", "model.bn1", "model.linear")
    assert found.stages == (("model.layer1",), ("model.layer2",), ("model.layer3",))
    assert ("named by" in found.how["stages"]) is declares


def test_rotation_head_is_not_taken_for_the_classifier_or_a_stage() -> None:
    with torch.device("meta"):
        model = RotationModel(PreactResNet(26))
    declared = find_anatomy(model)
    _undeclared(model.net)
    found = find_anatomy(_undeclared(model))
    assert found == declared
    assert (found.first_conv, found.classifier) == ("net.conv1", "net.fc")
    assert found.stages == (("net.layer1",), ("net.layer2",), ("net.layer3",))


def test_stages_one_and_two_of_the_digit_net_hold_convolutions_only() -> None:
    model = _build("svhn-net")
    found = find_anatomy(model).stage_parameters(model, (1, 2))
    assert set(found) == {f"features.{i}.{part}" for i in (4, 9, 13) for part in ("weight", "bias")}
    assert find_anatomy(model).dropouts == tuple(f"features.{i}" for i in (3, 7, 12, 16, 21, 25, 30))

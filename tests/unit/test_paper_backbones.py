"""The paper's networks, built and adapted: each takes the methods that fit it, and comes back whole."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import synaptune as st
from synaptune.errors import IncompatibleModelError
from synaptune.models import zoo
from tests.support.state import differences, portrait

ANY = ("nhl", "nhl-1", "nhl-123", "hebb-conv1", "bp-conv1", "modulator-12", "nhl-tuned")
STATISTICS = ("norm", "norm-partial", "norm-running", "dua")

# name -> (methods that fit, methods that must say why they do not)
BACKBONES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "resnet20-cifar10": ((*ANY, *STATISTICS, "tent"), ("nhl-1234", "ttt")),
    "resnet56-cifar10": (("nhl", "tent"), ("nhl-1234", "ttt")),
    "wrn-28-10-cifar10": (("nhl",), ("nhl-1234", "ttt")),
    "wrn-40-2-cifar10-augmix": (("nhl", "tent", "dua"), ("nhl-1234", "ttt")),
    "wrn-40-2-cifar10": (("nhl",), ("nhl-1234", "ttt")),
    "wrn-40-2-cifar100-augmix": (("nhl",), ("nhl-1234", "ttt")),
    "resnet26-cifar10": ((*ANY, *STATISTICS, "tent"), ("nhl-1234", "ttt")),
    "resnet26-cifar10-rotation": (("nhl", "tent", "ttt"), ("nhl-1234",)),
    "resnet26-gn-cifar10": (("nhl", "hebb-conv1"), ("tent", "norm", "dua", "ttt")),
    "resnet26-gn-cifar10-rotation": (("nhl", "ttt"), ("tent", "norm", "dua")),
    "digits-svhn": ((*ANY, *STATISTICS), ("tent", "ttt")),
    "digits-mnist": (("nhl", "norm"), ("tent", "ttt")),
}
FIT = [(name, method) for name, (fitting, _) in BACKBONES.items() for method in fitting]
REFUSED = [(name, method) for name, (_, refused) in BACKBONES.items() for method in refused]


def build(name: str) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return zoo.create(name, pretrained=False).train()


def images(seed: int) -> Tensor:
    return torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(seed))


def test_every_cifar_and_digit_network_of_the_zoo_is_here() -> None:
    alike = {"resnet32-cifar10", "resnet44-cifar10", "resnet110-cifar10", "resnet26-cifar10-dua"}
    assert set(zoo.names()) - alike - {"efficientnet-lite0-imagenet"} == set(BACKBONES)


@pytest.mark.parametrize(("name", "method"), FIT)
def test_backbones_adapt_and_come_back_whole(name: str, method: str) -> None:
    model = build(name)
    before = portrait(model)
    options = {"copies": 2} if method in ("dua", "ttt") else {}
    with st.adapt(model, method, **options) as adapter:
        active = [part.training for part in model.modules() if isinstance(part, nn.Dropout)]
        for seed in range(2):
            assert torch.isfinite(adapter(images(seed))).all()
        assert not any(active), "dropout is on"
        moved = {
            key.removeprefix("tensor ") for key in differences(before, portrait(model)) if key.startswith("tensor ")
        }
        touches = adapter.method.touches(model, adapter.anatomy)
        assert moved <= touches.parameters | touches.buffers
        if touches.parameters:
            assert moved & touches.parameters
    assert differences(before, portrait(model)) == []


@pytest.mark.parametrize(("name", "method"), REFUSED)
def test_what_does_not_fit_a_backbone_says_what_does(name: str, method: str) -> None:
    model = build(name)
    before = portrait(model)
    with pytest.raises(IncompatibleModelError, match=r"Use method=|Stages found: 1:"):
        st.adapt(model, method)
    assert differences(before, portrait(model)) == []


@pytest.mark.parametrize("name", BACKBONES)
def test_doctor_shows_a_backbone_on_one_screen(name: str) -> None:
    lines = str(st.doctor(build(name))).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


def test_dropout_of_the_digit_net_stays_off_where_train_mode_would_switch_it_on() -> None:
    model = build("digits-svhn")
    drops = [part for part in model.modules() if isinstance(part, nn.Dropout)]
    assert len(drops) == 7
    assert all(part.training for part in drops)
    seen: list[bool] = []
    for part in drops:
        part.register_forward_pre_hook(lambda module, args: seen.append(module.training))
    with st.adapt(model, "nhl") as adapter:
        adapter(images(0))
    assert len(seen) == 7
    assert not any(seen)
    assert all(part.training for part in drops)

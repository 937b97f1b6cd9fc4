"""Networks that people use, with random weights: they really adapt, only where they should, and come back exactly."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

import synaptune as st
from synaptune.errors import IncompatibleModelError

NO_BATCH_NORM = r"tent adapts batch normalisation, and \w+ has none: .*norms='all'"


@dataclass(frozen=True)
class Network:
    """How to build a network, how small its images may be, and what it is made of."""

    name: str
    size: int
    first_conv: str
    stages: int
    batch_norm: bool = True
    steps: int = 2
    batch: int = 2

    def build(self) -> nn.Module:
        library, _, name = self.name.partition(":")
        builder: Callable[[], nn.Module]
        if library == "torchvision":
            models = pytest.importorskip("torchvision.models")
            options = {"image_size": self.size} if name.startswith("vit") else {}
            builder = lambda: models.get_model(name, weights=None, num_classes=10, **options)  # noqa: E731
        else:
            timm = pytest.importorskip("timm")
            options = {"img_size": self.size} if name.startswith("vit") else {}
            builder = lambda: timm.create_model(name, num_classes=10, **options)  # noqa: E731
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what other libraries say while building is not under test
            torch.manual_seed(0)
            model = builder().eval()
            for parameter in model.parameters():
                if parameter.dim() == 2 and not parameter.detach().any():
                    # torchvision starts a transformer's head at zero, where no gradient gets through.
                    nn.init.normal_(parameter, std=0.1)
            return model

    def images(self, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.rand(self.batch, 3, self.size, self.size, generator=generator)


NETWORKS = [
    Network("torchvision:resnet18", 48, "conv1", 4),
    Network("torchvision:resnet50", 48, "conv1", 4),
    Network("torchvision:mobilenet_v3_small", 48, "features.0.0", 4),
    Network("torchvision:convnext_tiny", 48, "features.0.0", 4, batch_norm=False),
    Network("torchvision:efficientnet_b0", 48, "features.0.0", 5),
    Network("torchvision:vgg16_bn", 32, "features.0", 5, steps=1),
    Network("torchvision:densenet121", 48, "features.conv0", 4),
    Network("torchvision:vit_b_16", 32, "conv_proj", 4, batch_norm=False, steps=1),
    Network("timm:resnet18", 48, "conv1", 4),
    Network("timm:resnet50", 48, "conv1", 4),
    Network("timm:tf_efficientnet_lite0", 48, "conv_stem", 5),
    Network("timm:vit_tiny_patch16_224", 64, "patch_embed.proj", 4, batch_norm=False),
    Network("timm:convnext_atto", 48, "stem.0", 4, batch_norm=False),
    Network("timm:resnet50_gn", 48, "conv1", 4, batch_norm=False),
    Network("timm:mobilenetv4_conv_small", 48, "conv_stem", 4),
    Network("timm:regnetx_002", 48, "stem.conv", 4),
]
each_network = pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)


def _copy(model: nn.Module) -> dict[str, Tensor]:
    tensors = (*model.named_parameters(), *model.named_buffers())
    return {name: tensor.detach().clone() for name, tensor in tensors}


def _changed(before: dict[str, Tensor], model: nn.Module) -> set[str]:
    after = {name: tensor.detach() for name, tensor in (*model.named_parameters(), *model.named_buffers())}
    assert after.keys() == before.keys()
    return {name for name, tensor in after.items() if not _same_bits(tensor, before[name])}


def _same_bits(left: Tensor, right: Tensor) -> bool:
    whole = left.reshape(-1).contiguous().view(torch.uint8)
    return whole.equal(right.reshape(-1).contiguous().view(torch.uint8))


def _flags(model: nn.Module) -> list[object]:
    modes = [(name, module.training, len(module._forward_pre_hooks)) for name, module in model.named_modules()]
    return [modes, [(name, p.requires_grad, p.grad) for name, p in model.named_parameters()]]


def _adapt_and_return(network: Network, method: str) -> tuple[set[str], st.Adapter]:
    """Adapt a network; check that nothing else moved, and that it comes back; return what moved."""
    model = network.build()
    before, flags = _copy(model), _flags(model)
    adapter = st.adapt(model, method)
    allowed = adapter.method.touches(model, adapter.anatomy)
    for seed in range(network.steps):
        assert torch.isfinite(adapter(network.images(seed))).all()
    moved = _changed(before, model)
    assert moved <= allowed.parameters | allowed.buffers
    adapter.detach()
    assert _changed(before, model) == set()
    assert _flags(model) == flags
    return moved, adapter


@each_network
def test_nhl_moves_the_first_convolution_and_two_stages_and_nothing_else(network: Network) -> None:
    moved, adapter = _adapt_and_return(network, "nhl")
    anatomy = adapter.anatomy
    assert anatomy.first_conv == network.first_conv
    assert len(anatomy.stages) == network.stages
    assert f"{network.first_conv}.weight" in moved
    tuned = anatomy.stage_parameters(adapter.model, (1, 2))
    weights = {name for name, parameter in tuned.items() if parameter.dim() > 1}
    assert weights <= moved
    assert moved <= {f"{network.first_conv}.weight", *tuned}


@each_network
def test_tent_moves_scale_and_shift_or_says_why_not(network: Network) -> None:
    if not network.batch_norm:
        with pytest.raises(IncompatibleModelError, match=NO_BATCH_NORM):
            st.adapt(network.build(), "tent")
        return
    moved, adapter = _adapt_and_return(network, "tent")
    affine = {f"{name}.{leaf}" for name in adapter.anatomy.batch_norms for leaf in ("weight", "bias")}
    assert moved
    assert moved <= affine
    assert {name for name in affine if name.endswith("weight")} <= moved


@each_network
def test_doctor_fits_one_screen(network: Network) -> None:
    lines = str(st.doctor(network.build())).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100

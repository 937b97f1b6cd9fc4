"""What is found from the modules alone is what a real forward pass does: order, input, output, resolution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from synaptune.core.layers import is_mixing, is_normalisation
from synaptune.core.structure import find_anatomy
from synaptune.models.digit_net import DigitNet
from synaptune.models.resnet26 import PreactResNet
from synaptune.models.resnet_cifar import ResNetCifar
from synaptune.models.wide_resnet import WideResNet


def _torchvision(name: str) -> nn.Module:
    models = pytest.importorskip("torchvision").models
    return models.get_model(name, weights=None, **({"init_weights": False} if name == "googlenet" else {}))


def _timm(name: str, **options: object) -> nn.Module:
    return pytest.importorskip("timm").create_model(name, **options)


MODELS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "resnet20": (lambda: ResNetCifar(20), 32),
    "wrn-16-1": (lambda: WideResNet(16, 1), 32),
    "resnet26-gn": (lambda: PreactResNet(26, norm="group"), 32),
    "svhn-net": (lambda: DigitNet(8), 32),
    "torchvision resnet18": (lambda: _torchvision("resnet18"), 64),
    "torchvision mobilenet_v3_small": (lambda: _torchvision("mobilenet_v3_small"), 64),
    "torchvision shufflenet_v2_x0_5": (lambda: _torchvision("shufflenet_v2_x0_5"), 64),
    "torchvision squeezenet1_1": (lambda: _torchvision("squeezenet1_1"), 64),
    "torchvision densenet121": (lambda: _torchvision("densenet121"), 64),
    "torchvision googlenet": (lambda: _torchvision("googlenet"), 64),
    "timm tf_efficientnet_lite0": (lambda: _timm("tf_efficientnet_lite0"), 64),
    "timm mobilenetv4_conv_small": (lambda: _timm("mobilenetv4_conv_small"), 64),
    "timm convnext_atto": (lambda: _timm("convnext_atto"), 64),
    "timm regnetx_002": (lambda: _timm("regnetx_002"), 64),
    "timm vit_tiny_patch16_224": (lambda: _timm("vit_tiny_patch16_224", img_size=64), 64),
    "timm test_resnet": (lambda: _timm("test_resnet"), 64),  # a stem of several convolutions
}


@dataclass
class Recording:
    """Names of the modules in the order in which they were entered and left, and the sizes of what went through."""

    entered: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    inputs: dict[str, torch.Size] = field(default_factory=dict)
    layers: list[str] = field(default_factory=list)


def _record(model: nn.Module, size: int) -> Recording:
    seen = Recording()

    def watch(name: str, module: nn.Module) -> None:
        def before(_: nn.Module, args: tuple[object, ...]) -> None:
            seen.entered.append(name)
            if args and isinstance(args[0], Tensor):
                seen.inputs[name] = args[0].shape
            if is_mixing(module) or is_normalisation(module):
                seen.layers.append(name)

        module.register_forward_pre_hook(before)
        module.register_forward_hook(lambda *_: seen.left.append(name))

    for name, module in model.named_modules():
        watch(name, module)
    images = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.eval()(images)
    return seen


@pytest.mark.parametrize("name", MODELS)
def test_forward_pass_meets_the_parts_in_the_order_found(name: str) -> None:
    build, size = MODELS[name]
    model = build()
    if hasattr(model, "synaptune_layout"):
        model.synaptune_layout = None
    found = find_anatomy(model)
    seen = _record(model, size)

    mixing = [layer for layer in seen.layers if is_mixing(model.get_submodule(layer))]
    assert mixing[0] == found.first_conv
    assert seen.inputs[mixing[0]][1] == 3
    assert mixing[-1] == found.classifier
    if found.stem_norm is not None:
        assert seen.layers[seen.layers.index(found.first_conv) + 1] == found.stem_norm

    modules = [module for stage in found.stages for module in stage]
    assert [seen.entered.index(module) for module in modules] == sorted(map(seen.entered.index, modules))
    for earlier, later in pairwise(modules):
        assert seen.left.index(earlier) < seen.left.index(later)

    # Nothing that learns stands between two parts of the stages without being in them.
    learning = [layer for layer in seen.layers if next(model.get_submodule(layer).parameters(), None) is not None]
    inside = [any(layer == m or layer.startswith(f"{m}.") for m in modules) for layer in learning]
    first, last = inside.index(True), len(inside) - inside[::-1].index(True)
    assert all(inside[first:last])

    widths = [seen.inputs[stage[0]][-1] for stage in found.stages if len(seen.inputs[stage[0]]) == 4]
    assert widths == sorted(widths, reverse=True)

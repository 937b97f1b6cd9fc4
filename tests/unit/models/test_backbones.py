"""The backbones compute what their papers say: compared with plain functions over the published tensors."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synaptune.core.layout import declared_layout
from synaptune.errors import OptionError
from synaptune.models import DigitNet, Normalised, PreactResNet, ResNetCifar, RotationModel, WideResNet
from synaptune.models.digit_net import DIGIT_NAMES, INDEX_OF_DIGIT
from synaptune.models.resnet_cifar import PaddedSlice

from . import published

Tensors = dict[str, Tensor]


def images(count: int = 2, *, seed: int = 1) -> Tensor:
    return torch.rand(count, 3, 32, 32, generator=torch.Generator().manual_seed(seed))


def norm(x: Tensor, t: Tensors, name: str) -> Tensor:
    return F.batch_norm(
        x, t[f"{name}.running_mean"], t[f"{name}.running_var"], t.get(f"{name}.weight"), t.get(f"{name}.bias")
    )


def load(model: nn.Module, tensors: Tensors) -> nn.Module:
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    assert not unexpected
    assert all(name.endswith("num_batches_tracked") for name in missing)
    return model.eval()


def test_resnet20_equals_the_papers_formula() -> None:
    t = published.tensors(published.akamaster(20))
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x = (images() - mean.view(3, 1, 1)) / std.view(3, 1, 1)
    x = F.relu(norm(F.conv2d(x, t["conv1.weight"], padding=1), t, "bn1"))
    for stage in (1, 2, 3):
        for block in range(3):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = F.relu(norm(F.conv2d(x, t[f"{name}.conv1.weight"], stride=stride, padding=1), t, f"{name}.bn1"))
            y = norm(F.conv2d(y, t[f"{name}.conv2.weight"], padding=1), t, f"{name}.bn2")
            if stride == 2:
                zeros = torch.zeros(len(x), y.shape[1] // 4, *y.shape[2:])
                x = torch.cat([zeros, x[:, :, ::2, ::2], zeros], 1)
            x = F.relu(x + y)
    expected = x.mean((2, 3)) @ t["linear.weight"].T + t["linear.bias"]
    torch.testing.assert_close(load(ResNetCifar(20), t)(images()), expected)


@pytest.mark.parametrize("group_norm", [False, True])
def test_resnet26_equals_the_formula_of_the_pre_activation_layout(group_norm: bool) -> None:
    t = published.tensors(published.ttt_net(group_norm=group_norm))

    def normed(x: Tensor, name: str) -> Tensor:
        if group_norm:
            return F.group_norm(x, 8, t[f"{name}.weight"], t[f"{name}.bias"])
        return norm(x, t, name)

    x = F.conv2d((images() - 0.5) / 0.5, t["conv1.weight"], padding=1)
    for stage in (1, 2, 3):
        for block in range(4):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = F.conv2d(F.relu(normed(x, f"{name}.bn1")), t[f"{name}.conv1.weight"], stride=stride, padding=1)
            y = F.conv2d(F.relu(normed(y, f"{name}.bn2")), t[f"{name}.conv2.weight"], padding=1)
            if stride == 2:
                pooled = F.avg_pool2d(x, 2)
                x = torch.cat([pooled, torch.zeros_like(pooled)], 1)
            x = x + y
    features = F.avg_pool2d(F.relu(normed(x, "bn")), 8).flatten(1)
    expected = features @ t["fc.weight"].T + t["fc.bias"]
    model = load(PreactResNet(26, norm="group" if group_norm else "batch"), t)
    torch.testing.assert_close(model(images()), expected)


@pytest.mark.parametrize("normalised", [False, True])
def test_wide_resnet_projects_behind_the_first_norm_and_relu(normalised: bool) -> None:
    t = published.tensors(published.wide(10, 2, classes=10))
    x = F.conv2d((images() - 0.5) / 0.5 if normalised else images(), t["conv1.weight"], padding=1)
    for stage in (1, 2, 3):
        name, stride = f"block{stage}.layer.0", 1 if stage == 1 else 2
        a = F.relu(norm(x, t, f"{name}.bn1"))
        y = F.relu(norm(F.conv2d(a, t[f"{name}.conv1.weight"], stride=stride, padding=1), t, f"{name}.bn2"))
        x = F.conv2d(a, t[f"{name}.convShortcut.weight"], stride=stride)
        x = x + F.conv2d(y, t[f"{name}.conv2.weight"], padding=1)
    expected = F.relu(norm(x, t, "bn1")).mean((2, 3)) @ t["fc.weight"].T + t["fc.bias"]
    constants = (0.5, 0.5, 0.5) if normalised else None
    model = load(WideResNet(10, 2, mean=constants, std=constants), t)
    torch.testing.assert_close(model(images()), expected)


def test_wide_block_of_equal_width_adds_the_raw_input() -> None:
    model = WideResNet(16, 1).eval()
    block = model.block2.layer[1]
    block.conv2.weight.data.zero_()
    features = torch.randn(2, 32, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(block(features), features)


def test_digit_net_equals_the_published_sequence() -> None:
    t = published.tensors(published.playground_svhn())
    x = (images() - 0.5) / 0.5
    for place, padding, pooled in ((0, 1, 0), (4, 1, 1), (9, 1, 0), (13, 1, 1), (18, 1, 0), (22, 1, 1), (27, 0, 1)):
        x = F.conv2d(x, t[f"features.{place}.weight"], t[f"features.{place}.bias"], padding=padding)
        x = F.relu(norm(x, t, f"features.{place + 1}"))
        x = F.max_pool2d(x, 2) if pooled else x
    expected = x.flatten(1) @ t["classifier.0.weight"].T + t["classifier.0.bias"]
    torch.testing.assert_close(load(DigitNet(), t)(images()), expected)


def test_digit_net_drops_activations_in_training_only() -> None:
    model = DigitNet(4)
    drops = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    assert [drop.p for drop in drops] == [0.3] * 7
    model.eval()
    assert torch.equal(model(images()), model(images()))


def test_digit_index_nine_stands_for_zero() -> None:
    assert [DIGIT_NAMES[INDEX_OF_DIGIT[digit]] for digit in range(10)] == [str(digit) for digit in range(10)]
    assert INDEX_OF_DIGIT[0] == 9


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        (ResNetCifar(20), 269_722),
        (ResNetCifar(56), 853_018),
        (PreactResNet(26), 366_938),
        (WideResNet(40, 2), 2_243_546),
        (DigitNet(), 584_746),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else str(value),
)
def test_parameter_count_is_that_of_the_published_network(model: nn.Module, parameters: int) -> None:
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_wrn_28_10_has_the_published_36_million_parameters() -> None:
    with torch.device("meta"):
        model = WideResNet(28, 10)
    assert sum(parameter.numel() for parameter in model.parameters()) == 36_479_194


def test_padded_slice_puts_zeros_on_both_sides() -> None:
    out = PaddedSlice(2)(torch.arange(1.0, 33.0).view(1, 2, 4, 4))
    assert out.shape == (1, 4, 2, 2)
    assert out[0, 0].abs().sum() == 0
    assert out[0, 3].abs().sum() == 0
    assert out[0, 1].flatten().tolist() == [1, 3, 9, 11]


@pytest.mark.parametrize(
    "model",
    [
        ResNetCifar(8),
        PreactResNet(8),
        WideResNet(10, 1),
        DigitNet(4),
        RotationModel(PreactResNet(8)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_declared_layout_names_modules_of_the_network(model: nn.Module) -> None:
    layout = declared_layout(model).resolved(model)
    assert isinstance(model.get_submodule(layout.first_conv or ""), nn.Conv2d)
    assert model.get_submodule(layout.classifier or "").weight.shape[0] == model(images(2)).shape[1]


@pytest.mark.parametrize("build", [lambda: ResNetCifar(21), lambda: PreactResNet(27), lambda: WideResNet(27, 1)])
def test_impossible_depth_is_refused(build: object) -> None:
    with pytest.raises(OptionError, match="depth must be"):
        build()  # type: ignore[operator]


def test_rotation_head_is_a_copy_and_shares_the_first_layers() -> None:
    model = RotationModel(PreactResNet(8)).eval()
    before = model(images()).clone()
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.add_(0.1)
    assert torch.equal(model(images()), before)
    turns = model.rotation_logits(images()).clone()
    with torch.no_grad():
        model.net.conv1.weight.mul_(0.5)
    assert not torch.equal(model(images()), before)
    assert not torch.equal(model.rotation_logits(images()), turns)


def test_rotation_head_starts_like_the_classifiers_third_stage() -> None:
    net = PreactResNet(8)
    model = RotationModel(net)
    assert torch.equal(model.head.layer3[0].conv1.weight, net.layer3[0].conv1.weight)
    assert model.head.layer3[0].conv1.weight is not net.layer3[0].conv1.weight


def test_normalisation_is_not_saved_with_the_weights() -> None:
    assert not [name for name in PreactResNet(8).state_dict() if "normalise" in name]


EXPORTED = [
    ResNetCifar(8),
    PreactResNet(8),
    PreactResNet(8, norm="group"),
    WideResNet(10, 1, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)),
    DigitNet(4),
    RotationModel(PreactResNet(8)),
    Normalised(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(3600, 2)), (0.5,) * 3, (0.2,) * 3),
]


@pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")  # torch's word on scripting, which users still do
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("model", EXPORTED, ids=lambda model: type(model).__name__)
def test_backbone_can_be_scripted_and_exported(model: nn.Module) -> None:
    model = model.eval()
    expected = model(images())
    torch.testing.assert_close(torch.jit.script(model)(images()), expected)
    torch.testing.assert_close(torch.export.export(model, (images(),)).module()(images()), expected)

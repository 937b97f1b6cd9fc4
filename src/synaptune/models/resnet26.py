"""ResNet-26 for 32x32 images: the pre-activation layout that TTT and DUA share, and NHL measures on.

A first convolution with nothing behind it, three stages of N = 4 blocks (depth 6N + 2) with 16, 32 and 64
channels, a final normalisation and ReLU. Where a stage halves the resolution, the shortcut is an average pool
with zeros for the new channels, so it has no parameters.

Papers: Sun et al., Test-Time Training, ICML 2020 (layout, rotation head); Mirza et al., DUA, CVPR 2022.
We differ in one point: input normalisation happens inside, so the model takes images in [0, 1]. The average pool
covers whatever is left of the image, which equals the published 8x8 pool for 32x32 input. Parameter names are the
published ones, so checkpoints of both projects load.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synaptune.errors import OptionError
from synaptune.models.normalise import HALF, Normalise

__all__ = ["PreactBlock", "PreactResNet", "Shortcut", "resnet26"]

NormLayer = Callable[[int], nn.Module]


class Shortcut(nn.Module):
    """Bring the identity path to a stage's smaller resolution and larger width, without parameters."""

    def __init__(self, planes_in: int, planes_out: int, stride: int):
        super().__init__()
        self.pool = nn.AvgPool2d(stride)
        self.extra_planes = planes_out - planes_in

    def forward(self, features: Tensor) -> Tensor:
        # F.pad counts from the last dimension: nothing for width and height, zeros behind the channels.
        return F.pad(self.pool(features), (0, 0, 0, 0, 0, self.extra_planes))


class PreactBlock(nn.Module):
    """Norm, ReLU, convolution, twice, added to the (possibly down-sampled) input."""

    def __init__(self, planes_in: int, planes_out: int, norm: NormLayer, stride: int = 1):
        super().__init__()
        self.bn1 = norm(planes_in)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(planes_in, planes_out, 3, stride=stride, padding=1, bias=False)
        self.bn2 = norm(planes_out)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes_out, planes_out, 3, padding=1, bias=False)
        changes_shape = stride != 1 or planes_in != planes_out
        self.downsample = Shortcut(planes_in, planes_out, stride) if changes_shape else None

    def forward(self, features: Tensor) -> Tensor:
        residual = self.conv1(self.relu1(self.bn1(features)))
        residual = self.conv2(self.relu2(self.bn2(residual)))
        identity = features if self.downsample is None else self.downsample(features)
        total: Tensor = identity + residual
        return total


class PreactResNet(nn.Module):
    """The pre-activation CIFAR ResNet of TTT and DUA.

    Shapes: images in [0, 1], (batch, 3, 32, 32), to logits (batch, num_classes).

    Args:
        depth: 6N + 2 for N blocks per stage.
        width: factor on the channels of the stages; the first convolution always has 16.
        num_classes: number of logits.
        norm: normalisation layers: batch statistics, or 8 groups.
        mean: what is subtracted from the images in [0, 1].
        std: what they are then divided by.

    >>> import torch
    >>> PreactResNet(num_classes=10).eval()(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    synaptune_layout: ClassVar[dict[str, object]] = {
        "first_conv": "conv1",
        "stages": (("layer1",), ("layer2",), ("layer3",)),
        "classifier": "fc",
    }

    def __init__(
        self,
        depth: int = 26,
        width: int = 1,
        *,
        num_classes: int = 10,
        norm: Literal["batch", "group"] = "batch",
        mean: Sequence[float] = HALF,
        std: Sequence[float] = HALF,
    ):
        super().__init__()
        if depth < 8 or (depth - 2) % 6:
            raise OptionError(f"depth must be 6N + 2 (8, 14, 20, 26, 32, ...), got {depth}")
        blocks = (depth - 2) // 6
        make_norm: NormLayer = nn.BatchNorm2d if norm == "batch" else partial(nn.GroupNorm, 8)
        self.normalise = Normalise(mean, std)
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.layer1 = _stage(16, 16 * width, blocks, make_norm, stride=1)
        self.layer2 = _stage(16 * width, 32 * width, blocks, make_norm, stride=2)
        self.layer3 = _stage(32 * width, 64 * width, blocks, make_norm, stride=2)
        self.bn = make_norm(64 * width)
        self.relu = nn.ReLU(inplace=True)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64 * width, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                fan_out = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
                nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))

    def shared_features(self, images: Tensor) -> Tensor:
        """Features after the second stage, up to which a rotation head shares the network."""
        features: Tensor = self.layer2(self.layer1(self.conv1(self.normalise(images))))
        return features

    def forward(self, images: Tensor) -> Tensor:
        features = self.relu(self.bn(self.layer3(self.shared_features(images))))
        logits: Tensor = self.fc(torch.flatten(self.avgpool(features), 1))
        return logits


def resnet26(
    *,
    num_classes: int = 10,
    norm: Literal["batch", "group"] = "batch",
    mean: Sequence[float] = HALF,
    std: Sequence[float] = HALF,
) -> PreactResNet:
    """ResNet-26 with random weights."""
    return PreactResNet(26, num_classes=num_classes, norm=norm, mean=mean, std=std)


def _stage(planes_in: int, planes_out: int, blocks: int, norm: NormLayer, *, stride: int) -> nn.Sequential:
    first = PreactBlock(planes_in, planes_out, norm, stride)
    return nn.Sequential(first, *(PreactBlock(planes_out, planes_out, norm) for _ in range(blocks - 1)))

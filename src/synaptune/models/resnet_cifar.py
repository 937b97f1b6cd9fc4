"""The original CIFAR ResNets (20, 32, 44, 56, 110 layers), with shortcuts that have no parameters.

Three stages of N post-activation blocks (depth 6N + 2) with 16, 32 and 64 channels. Where a stage halves the
resolution, the identity path takes every second pixel and puts zero channels on both sides ("option A").

Paper: He et al., Deep Residual Learning, CVPR 2016. Parameter names are those of the checkpoints of
akamaster/pytorch_resnet_cifar10 (BSD-2-Clause), whose published errors these networks reproduce exactly.
We differ in one point: input normalisation happens inside, so the model takes images in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from synaptune.errors import OptionError
from synaptune.models.normalise import IMAGENET_MEAN, IMAGENET_STD, Normalise

__all__ = ["PaddedSlice", "ResNetBlock", "ResNetCifar"]


class PaddedSlice(nn.Module):
    """Every second pixel, between zero channels: the parameter-free shortcut, called option A in the paper."""

    def __init__(self, extra_planes: int):
        super().__init__()
        self.extra_planes = extra_planes

    def forward(self, features: Tensor) -> Tensor:
        before = self.extra_planes // 2
        return F.pad(features[:, :, ::2, ::2], (0, 0, 0, 0, before, self.extra_planes - before))


class ResNetBlock(nn.Module):
    """Two convolutions with norms, added to the input, then ReLU."""

    def __init__(self, planes_in: int, planes_out: int, stride: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(planes_in, planes_out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes_out)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes_out, planes_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes_out)
        changes_shape = stride != 1 or planes_in != planes_out
        self.shortcut = PaddedSlice(planes_out - planes_in) if changes_shape else nn.Identity()
        self.relu2 = nn.ReLU(inplace=True)

    def forward(self, features: Tensor) -> Tensor:
        residual = self.relu1(self.bn1(self.conv1(features)))
        residual = self.bn2(self.conv2(residual))
        activated: Tensor = self.relu2(residual + self.shortcut(features))
        return activated


class ResNetCifar(nn.Module):
    """A CIFAR ResNet of depth 6N + 2.

    Shapes: images in [0, 1], (batch, 3, 32, 32), to logits (batch, num_classes).

    Args:
        depth: 20, 32, 44, 56, 110, or any other 6N + 2.
        num_classes: number of logits.
        mean: what is subtracted from the images in [0, 1]; the published checkpoints took ImageNet's.
        std: what they are then divided by.

    >>> import torch
    >>> ResNetCifar(20).eval()(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    synaptune_layout: ClassVar[dict[str, object]] = {
        "first_conv": "conv1",
        "stages": (("layer1",), ("layer2",), ("layer3",)),
        "classifier": "linear",
    }

    def __init__(
        self,
        depth: int,
        *,
        num_classes: int = 10,
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
    ):
        super().__init__()
        if depth < 8 or (depth - 2) % 6:
            raise OptionError(f"depth must be 6N + 2 (20, 32, 44, 56, 110, ...), got {depth}")
        blocks = (depth - 2) // 6
        self.normalise = Normalise(mean, std)
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = _stage(16, 16, blocks, stride=1)
        self.layer2 = _stage(16, 32, blocks, stride=2)
        self.layer3 = _stage(32, 64, blocks, stride=2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.linear = nn.Linear(64, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, images: Tensor) -> Tensor:
        features = self.relu(self.bn1(self.conv1(self.normalise(images))))
        features = self.layer3(self.layer2(self.layer1(features)))
        logits: Tensor = self.linear(self.flatten(self.pool(features)))
        return logits


def _stage(planes_in: int, planes_out: int, blocks: int, *, stride: int) -> nn.Sequential:
    first = ResNetBlock(planes_in, planes_out, stride)
    return nn.Sequential(first, *(ResNetBlock(planes_out, planes_out) for _ in range(blocks - 1)))

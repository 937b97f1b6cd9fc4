"""Wide ResNets 28-10 and 40-2 for 32x32 images, as RobustBench publishes them.

A first convolution with nothing behind it, three stages of N pre-activation blocks (depth 6N + 4) with 16, 32 and
64 times `widen` channels, a final norm and ReLU. In a block that changes the width, the shortcut is a 1x1
convolution behind the block's first norm and ReLU; in the others it is the raw input.

Papers: Zagoruyko & Komodakis, Wide Residual Networks, BMVC 2016; Hendrycks et al., AugMix, ICLR 2020;
Croce et al., RobustBench, NeurIPS 2021. Parameter names are RobustBench's. Its `Standard` takes raw images in
[0, 1]; its `Hendrycks2020AugMix_WRN` normalises by (x - 0.5) / 0.5 inside, and so do we.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from synaptune.errors import OptionError
from synaptune.models.normalise import Normalise

__all__ = ["WideBlock", "WideResNet"]


class WideBlock(nn.Module):
    """Norm, ReLU, convolution, twice, added to the input, or to its projection where the width changes."""

    def __init__(self, planes_in: int, planes_out: int, stride: int = 1):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(planes_in)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(planes_in, planes_out, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes_out)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes_out, planes_out, 3, padding=1, bias=False)
        self.convShortcut = (
            None if planes_in == planes_out else nn.Conv2d(planes_in, planes_out, 1, stride=stride, bias=False)
        )

    def forward(self, features: Tensor) -> Tensor:
        activated = self.relu1(self.bn1(features))
        residual = self.conv2(self.relu2(self.bn2(self.conv1(activated))))
        identity = features if self.convShortcut is None else self.convShortcut(activated)
        total: Tensor = identity + residual
        return total


class _Stage(nn.Module):
    """The blocks of one stage; a module of its own only because the published parameter names have it."""

    def __init__(self, planes_in: int, planes_out: int, blocks: int, stride: int):
        super().__init__()
        first = WideBlock(planes_in, planes_out, stride)
        self.layer = nn.Sequential(first, *(WideBlock(planes_out, planes_out) for _ in range(blocks - 1)))

    def forward(self, features: Tensor) -> Tensor:
        out: Tensor = self.layer(features)
        return out


class WideResNet(nn.Module):
    """A wide ResNet of depth 6N + 4.

    Shapes: images in [0, 1], (batch, 3, 32, 32), to logits (batch, num_classes).

    Args:
        depth: 28, 40, or any other 6N + 4.
        widen: factor on the channels 16, 32, 64 of the stages.
        num_classes: number of logits.
        mean: what is subtracted from the images in [0, 1]; None for raw images.
        std: what they are then divided by.

    >>> import torch
    >>> WideResNet(10, 1).eval()(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    synaptune_layout: ClassVar[dict[str, object]] = {
        "first_conv": "conv1",
        "stages": (("block1",), ("block2",), ("block3",)),
        "classifier": "fc",
    }

    def __init__(
        self,
        depth: int,
        widen: int,
        *,
        num_classes: int = 10,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ):
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise OptionError(f"depth must be 6N + 4 (10, 16, 28, 40, ...), got {depth}")
        if (mean is None) != (std is None):
            raise OptionError("give both mean and std, or neither for a network that takes raw images")
        blocks = (depth - 4) // 6
        self.normalise = nn.Identity() if mean is None or std is None else Normalise(mean, std)
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.block1 = _Stage(16, 16 * widen, blocks, stride=1)
        self.block2 = _Stage(16 * widen, 32 * widen, blocks, stride=2)
        self.block3 = _Stage(32 * widen, 64 * widen, blocks, stride=2)
        self.bn1 = nn.BatchNorm2d(64 * widen)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(64 * widen, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                fan_out = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
                nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))
        nn.init.zeros_(self.fc.bias)

    def forward(self, images: Tensor) -> Tensor:
        features = self.block3(self.block2(self.block1(self.conv1(self.normalise(images)))))
        logits: Tensor = self.fc(self.flatten(self.pool(self.relu(self.bn1(features)))))
        return logits

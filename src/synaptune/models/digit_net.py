"""The digit network of pytorch-playground, with which the paper measures SVHN to MNIST, MNIST-M and USPS.

Seven 3x3 convolutions with bias, each followed by batch norm *without* scale and shift, ReLU and dropout:

    c c M 2c 2c M 4c 4c M 8c(unpadded) M  linear,   c = 32, M = 2x2 max pool

Code: aaron-xichen/pytorch-playground (MIT), whose parameter names these are. We differ in one point: the input
normalisation (x - 0.5) / 0.5 happens inside.

Output k stands for the digit (k + 1) mod 10, because the published network was trained on SVHN's raw labels 1 to
10 minus one. The card's `label_map` says this, and the network that we train on MNIST keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from synaptune.models.normalise import HALF, Normalise

__all__ = ["DIGIT_NAMES", "INDEX_OF_DIGIT", "DigitNet"]

INDEX_OF_DIGIT = tuple((digit - 1) % 10 for digit in range(10))
DIGIT_NAMES = tuple(str((index + 1) % 10) for index in range(10))

# Per layer: channels as a multiple of the width, padding, and whether a max pool follows.
_LAYERS = (
    (1, 1, False),
    (1, 1, True),
    (2, 1, False),
    (2, 1, True),
    (4, 1, False),
    (4, 1, True),
    (8, 0, True),
)


class DigitNet(nn.Module):
    """Convolutional network for 32x32 images of digits.

    Shapes: images in [0, 1], (batch, 3, 32, 32), to logits (batch, num_classes). Grey images come as three equal
    channels.

    Args:
        width: channels of the first convolution.
        num_classes: number of logits.
        dropout: share of activations that training drops after every convolution.
        mean: what is subtracted from the images in [0, 1].
        std: what they are then divided by.

    >>> import torch
    >>> DigitNet(4).eval()(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    # A stage ends where the resolution halves; the first convolution and its norm belong to none.
    synaptune_layout: ClassVar[dict[str, object]] = {
        "first_conv": "features.0",
        "stages": (
            ("features.4", "features.5"),
            ("features.9", "features.10", "features.13", "features.14"),
            ("features.18", "features.19", "features.22", "features.23"),
            ("features.27", "features.28"),
        ),
        "classifier": "classifier.0",
    }

    def __init__(
        self,
        width: int = 32,
        *,
        num_classes: int = 10,
        dropout: float = 0.3,
        mean: Sequence[float] = HALF,
        std: Sequence[float] = HALF,
    ):
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for multiple, padding, pooled in _LAYERS:
            layers += [
                nn.Conv2d(channels, multiple * width, 3, padding=padding),
                nn.BatchNorm2d(multiple * width, affine=False),
                nn.ReLU(),
                nn.Dropout(dropout),
            ]
            layers += [nn.MaxPool2d(2)] if pooled else []
            channels = multiple * width
        self.normalise = Normalise(mean, std)
        self.features = nn.Sequential(*layers)
        self.flatten = nn.Flatten()
        self.classifier = nn.Sequential(nn.Linear(channels, num_classes))

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.flatten(self.features(self.normalise(images))))
        return logits

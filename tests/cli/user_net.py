"""What a user brings: a network and images in a file of their own, which knows nothing of the tests."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

import synaptune as st
from synaptune.data import DataSet

CLASSES = 5
IMAGES = 48


def _stage(width_in: int, width: int, *, stride: int = 2) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(width_in, width, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
    )


class Net(nn.Module):
    """Convolution, normalisation, three stages, linear; for (batch, 3, 8, 8)."""

    def __init__(self, classes: int = CLASSES) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(6)
        self.one = _stage(6, 8, stride=1)
        self.two = _stage(8, 8)
        self.three = _stage(8, 12)
        self.out = nn.Linear(12, classes)

    def forward(self, images: Tensor) -> Tensor:
        features = torch.relu(self.stem_norm(self.stem(images)))
        features = self.three(self.two(self.one(features)))
        logits: Tensor = self.out(features.mean(dim=(2, 3)))
        return logits


def make_net() -> nn.Module:
    """Random weights, with statistics as if they had been gathered on other images."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        net = Net()
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                assert module.running_mean is not None
                assert module.running_var is not None
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
    return net.eval()


def make_plain_net() -> nn.Module:
    """A network without anything that adapts by statistics."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))


def make_wrong_net() -> nn.Module:
    """A network that breaks on every image."""
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.Flatten(), nn.Linear(7, CLASSES)).eval()


def make_images() -> DataSet:
    """Noise, labelled as the network sees it with batch statistics, but for one image in four."""
    rng = np.random.default_rng(7)
    images = rng.integers(0, 256, (IMAGES, 8, 8, 3)).astype(np.uint8)
    with st.adapt(make_net(), "norm") as adapter:
        labels = adapter(torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255).argmax(dim=1).numpy()
    labels = np.where(np.arange(IMAGES) % 4 == 0, (labels + 1) % CLASSES, labels)
    return DataSet("noise", "test", images, labels, tuple("abcde"))

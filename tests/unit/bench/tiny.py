"""A tiny model and tiny data for runs in tests; worker processes load both from this file."""

from __future__ import annotations

import os
import random
import signal

import numpy as np
import torch
from torch import nn

import synaptune as st
from synaptune.data import DataSet
from tests.support.models import CLASSES, build

MODEL = f"{__file__}:make_model"
OTHER_MODEL = f"{__file__}:make_other_model"
ROTATION_MODEL = f"{__file__}:make_rotation_model"
DEADLY_MODEL = f"{__file__}:make_deadly_model"
GROUP_NORM_MODEL = f"{__file__}:make_group_norm_model"
RANDOM_MODEL = f"{__file__}:make_random_model"
BROKEN_MODEL = f"{__file__}:make_broken_model"
DATA = f"{__file__}:make_data"
BROKEN_DATA = f"{__file__}:make_broken_data"


def make_model() -> nn.Module:
    return build("bn", seed=2)


def make_other_model() -> nn.Module:
    return build("bn", seed=3)


def make_random_model() -> nn.Module:
    """Draw weights from the global generator, and a seed for the others from that of Python."""
    model = build("bn", seed=random.randrange(100))
    torch.nn.init.normal_(next(model.parameters()))
    return model


def make_broken_model() -> nn.Module:
    raise ValueError("this network was never finished")


def make_broken_data() -> DataSet:
    raise ZeroDivisionError("this data set was never finished")


def make_group_norm_model() -> nn.Module:
    return build("gn")


def make_rotation_model() -> nn.Module:
    return build("rotation")


class Deadly(nn.Module):
    """Kills the process that runs it, as the kernel does to a process without memory."""

    def __init__(self) -> None:
        super().__init__()
        self.net = build("bn")

    def forward(self, images: object) -> object:
        os.kill(os.getpid(), signal.SIGKILL)
        return self.net(images)


def make_deadly_model() -> nn.Module:
    return Deadly()


def make_data() -> DataSet:
    """Noise, labelled as the tiny model sees it under batch statistics, but for one image in five."""
    rng = np.random.default_rng(7)
    images = rng.integers(0, 256, (50, 8, 8, 3)).astype(np.uint8)
    with st.adapt(make_model(), "norm") as adapter:
        labels = adapter(torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255).argmax(dim=1).numpy()
    labels = np.where(rng.uniform(size=50) < 0.2, rng.integers(0, CLASSES, 50), labels)
    return DataSet("tiny", "test", images, labels, tuple("abcde"))

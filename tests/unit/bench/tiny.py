"""A tiny model and tiny data for runs in tests; worker processes load both from this file."""

from __future__ import annotations

import os
import signal

import numpy as np
from torch import nn

from synaptune.data import DataSet
from tests.support.models import CLASSES, build

MODEL = f"{__file__}:make_model"
OTHER_MODEL = f"{__file__}:make_other_model"
ROTATION_MODEL = f"{__file__}:make_rotation_model"
DEADLY_MODEL = f"{__file__}:make_deadly_model"
GROUP_NORM_MODEL = f"{__file__}:make_group_norm_model"
DATA = f"{__file__}:make_data"


def make_model() -> nn.Module:
    return build("bn")


def make_other_model() -> nn.Module:
    return build("bn", seed=5)


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
    rng = np.random.default_rng(7)
    labels = rng.integers(0, CLASSES, 50)
    noise = rng.integers(0, 256, (50, 8, 8, 3))
    images = (0.5 * noise + 25 * labels[:, None, None, None]).astype(np.uint8)
    return DataSet("tiny", "test", images, labels, tuple("abcde"))

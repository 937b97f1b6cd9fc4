"""What kind of layer a module is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from synaptune.core import layers
from synaptune.core.structure import find_anatomy


class Remembering(nn.Module):
    """A block that keeps the stride of its convolution as an attribute, as torchvision's do."""

    def __init__(self) -> None:
        super().__init__()
        self.stride = 2
        self.conv = nn.Conv2d(4, 4, 3, stride=2)


class DropPath(nn.Module):
    """Named as timm names it, and without a class of torch above it."""


class InheritingDropPath(DropPath):
    pass


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.Conv1d(3, 4, 3), True),
        (nn.Conv3d(3, 4, 3), True),
        (nn.ConvTranspose2d(3, 4, 3), False),
        (nn.Linear(3, 4), False),
    ],
)
def test_convolution(module: nn.Module, expected: bool) -> None:
    assert layers.is_convolution(module) is expected


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.Conv2d(3, 8, 4, stride=4), True),
        (nn.Conv2d(3, 8, (4, 2), stride=(4, 2)), True),
        (nn.Conv2d(3, 8, 3, stride=2), False),  # overlapping patches
        (nn.Conv2d(3, 8, 1), False),
        (nn.MaxPool2d(2), False),
    ],
)
def test_patch_embedding(module: nn.Module, expected: bool) -> None:
    assert layers.is_patch_embedding(module) is expected


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.Conv2d(3, 3, 1), True),
        (nn.Conv2d(1, 3, 1), True),
        (nn.Conv2d(3, 3, 3), False),
        (nn.Conv2d(3, 8, 1), False),
        (nn.Conv2d(8, 3, 1), False),
        (nn.Linear(3, 3), False),
    ],
)
def test_recolouring(module: nn.Module, expected: bool) -> None:
    assert layers.recolours_image(module) is expected


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.Conv2d(3, 4, 3, stride=(1, 2)), True),
        (nn.Conv2d(3, 4, 3), False),
        (nn.ConvTranspose2d(3, 4, 3, stride=2), False),  # raises it
        (nn.MaxPool2d(2), True),
        (nn.AvgPool1d((2,)), True),
        (nn.MaxPool2d(3, stride=1, padding=1), False),
        (nn.AdaptiveAvgPool2d(1), False),
        (Remembering(), False),
        (nn.ReLU(), False),
    ],
)
def test_reduction_of_resolution(module: nn.Module, expected: bool) -> None:
    assert layers.reduces_resolution(module) is expected


@pytest.mark.parametrize(
    ("module", "is_norm", "is_batch_norm"),
    [
        (nn.BatchNorm1d(4), True, True),
        (nn.SyncBatchNorm(4), True, True),
        (nn.BatchNorm2d(4, affine=False), True, True),
        (nn.InstanceNorm2d(4), True, False),
        (nn.GroupNorm(2, 4), True, False),
        (nn.LayerNorm(4), True, False),
        (nn.RMSNorm(4), True, False),
        (nn.PReLU(4), False, False),
        (nn.Linear(4, 1), False, False),
        (nn.Conv2d(1, 4, 1), False, False),
    ],
)
def test_normalisation(module: nn.Module, is_norm: bool, is_batch_norm: bool) -> None:
    assert layers.is_normalisation(module) is is_norm
    assert layers.is_batch_norm(module) is is_batch_norm


@pytest.mark.parametrize(
    "module",
    [nn.Dropout(), nn.Dropout2d(), nn.AlphaDropout(), nn.FeatureAlphaDropout(), DropPath(), InheritingDropPath()],
)
def test_dropout(module: nn.Module) -> None:
    assert layers.is_dropout(module)
    assert not layers.is_dropout(nn.Identity())


def _holding(*shape: int) -> nn.Module:
    module = nn.Module()
    module.kernel = nn.Parameter(torch.zeros(shape))
    return module


@pytest.mark.parametrize(
    ("module", "mixes", "is_linear", "widths"),
    [
        (nn.Linear(3, 4), True, True, (3, 4)),
        (nn.Conv2d(3, 4, 1), True, False, (3, 4)),
        (nn.ConvTranspose2d(3, 4, 1), True, False, (3, 4)),
        (_holding(4, 3), True, True, (3, 4)),
        (_holding(4, 3, 5, 5), True, False, (3, 4)),
        (_holding(1, 4, 1, 1), False, False, (None, None)),  # a layer scale
        (nn.Embedding(7, 4), False, False, (None, None)),  # looks positions up, mixes nothing
        (nn.LayerNorm((5, 4)), False, False, (4, 4)),
        (nn.GroupNorm(2, 4), False, False, (4, 4)),
    ],
)
def test_mixing_and_widths(
    module: nn.Module, mixes: bool, is_linear: bool, widths: tuple[int | None, int | None]
) -> None:
    assert (layers.is_mixing(module), layers.is_linear(module)) == (mixes, is_linear)
    assert (layers.input_width(module), layers.output_width(module)) == widths


def test_norm_of_another_width_is_not_the_norm_of_the_first_convolution() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.PixelShuffle(2), nn.BatchNorm2d(2), nn.Conv2d(2, 8, 3), nn.Linear(8, 5)
    )
    assert find_anatomy(model).stem_norm is None

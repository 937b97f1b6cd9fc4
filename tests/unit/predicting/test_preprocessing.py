"""Preprocessing equals what torchvision's evaluation transforms do, and refuses nonsense."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from synaptune.errors import OptionError
from synaptune.predicting import Preprocessing


def _picture(width: int, height: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(("width", "height"), [(64, 64), (100, 61), (61, 100), (33, 200), (40, 40), (20, 31)])
@pytest.mark.parametrize("name", ["ResNet18_Weights", "EfficientNet_B0_Weights", "MobileNet_V3_Small_Weights"])
def test_equals_the_transforms_of_torchvision(width: int, height: int, name: str) -> None:
    models = pytest.importorskip("torchvision.models")
    preset = getattr(models, name).DEFAULT.transforms(crop_size=32, resize_size=40)
    ours = Preprocessing(
        size=(32, 32),
        resize=40,
        interpolation=preset.interpolation.value,
        mean=tuple(preset.mean),
        std=tuple(preset.std),
    )
    picture = _picture(width, height)
    torch.testing.assert_close(ours(picture), preset(Image.fromarray(picture)), rtol=0, atol=1e-6)


def test_a_picture_of_the_right_size_is_only_scaled() -> None:
    picture = _picture(8, 8)
    expected = torch.from_numpy(picture).permute(2, 0, 1) / 255
    assert torch.equal(Preprocessing(size=(8, 8))(picture), expected)


@pytest.mark.parametrize(("width", "height"), [(9, 30), (30, 9), (5, 5), (100, 7)])
def test_without_resize_the_picture_covers_the_input(width: int, height: int) -> None:
    assert Preprocessing(size=(12, 7))(_picture(width, height)).shape == (3, 12, 7)


def test_another_size_shows_the_same_part_of_the_picture() -> None:
    changed = Preprocessing(size=(224, 224), resize=256).changed(size=(112, 112), mean=(0.5,), std=(0.2,))
    assert (changed.size, changed.resize, changed.mean, changed.std) == ((112, 112), 128, (0.5,), (0.2,))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"size": (0, 8)}, "positive"),
        ({"size": (8, 8), "resize": 7}, "at least 8"),
        ({"size": (8, 8), "interpolation": "cubic"}, "bicubic"),
        ({"size": (8, 8), "mean": (0.5,)}, "one per channel"),
        ({"size": (8, 8), "mean": (0.5,), "std": (0.0,)}, "std must be positive"),
        ({"size": (8, 8), "mean": (float("nan"),), "std": (1.0,)}, "finite"),
    ],
)
def test_nonsense_is_refused_by_name(options: dict[str, object], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        Preprocessing(**options)  # type: ignore[arg-type]


def test_the_card_decides_whether_normalisation_is_ours_to_do() -> None:
    card = pytest.importorskip("synaptune.models.card").Card
    outside = card(name="a", num_classes=2, mean=(0.5,), std=(0.2,), normalisation="outside", resize=40)
    inside = card(name="a", num_classes=2, mean=(0.5,), std=(0.2,), normalisation="inside")
    assert Preprocessing.from_card(outside).mean == (0.5,)
    assert Preprocessing.from_card(outside).resize == 40
    assert Preprocessing.from_card(inside).mean == ()


def test_a_network_for_grey_pictures_gets_one_channel() -> None:
    grey = Preprocessing(size=(8, 8), mean=(0.5,), std=(0.5,), channels=1)(_picture(8, 8))
    expected = torch.from_numpy(np.array(Image.fromarray(_picture(8, 8)).convert("L"))) / 255
    torch.testing.assert_close(grey, (expected[None] - 0.5) / 0.5)

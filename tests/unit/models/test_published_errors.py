"""Real weights on the real CIFAR-10 test set: exactly the errors that their cards state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from synaptune import data
from synaptune.errors import DataError
from synaptune.models import RotationModel, load_model, zoo
from synaptune.models.evaluation import classification_error, rotation_error
from synaptune.models.image_set import ImageSet


@pytest.fixture(scope="module")
def cifar10() -> ImageSet:
    try:
        test = data.load("cifar10")
    except DataError as error:
        pytest.skip(str(error))
    return ImageSet.from_arrays(np.asarray(test.images[:]), test.labels, name="CIFAR-10 test")


def test_bundled_network_is_right_on_the_bundled_images() -> None:
    sample = data.sample()
    images = torch.from_numpy(np.array(sample.images[:500]))
    loaded = load_model("zoo:resnet26-cifar10")
    error = classification_error(loaded.model, images, torch.from_numpy(np.array(sample.labels[:500])))
    assert loaded.card.error is not None
    # 500 images: two standard errors of a binomial at nine percent are 2.6 points.
    assert abs(100 * error - loaded.card.error) < 2.6
    assert loaded.card.weights == "bundled"


def test_bundled_network_with_head_has_the_same_classifier() -> None:
    plain = load_model("zoo:resnet26-cifar10")
    with_head = load_model("zoo:resnet26-cifar10-rotation")
    assert isinstance(with_head.model, RotationModel)
    images = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert torch.equal(plain.model(images), with_head.model(images))
    assert with_head.card.rotation_error is not None
    assert plain.card.error == with_head.card.error


def test_bundled_files_are_below_a_megabyte_each() -> None:
    folder = Path(zoo.__file__).parent / "weights"
    for file in zoo.entry("resnet26-cifar10-rotation").bundled:
        assert (folder / file).stat().st_size < 1_000_000


@pytest.mark.data
@pytest.mark.slow
def test_bundled_network_has_the_error_of_its_card(cifar10: ImageSet) -> None:
    loaded = load_model("zoo:resnet26-cifar10")
    error = classification_error(loaded.model, cifar10.images, cifar10.labels)
    assert round(100 * error, 2) == loaded.card.error
    assert error <= 0.09


@pytest.mark.data
@pytest.mark.slow
def test_bundled_rotation_head_has_the_error_of_its_card(cifar10: ImageSet) -> None:
    loaded = load_model("zoo:resnet26-cifar10-rotation")
    assert isinstance(loaded.model, RotationModel)
    error = rotation_error(loaded.model, cifar10.images[:2000])
    assert loaded.card.rotation_error is not None
    # 8,000 turned images: two standard errors at a fifth are 0.9 points.
    assert abs(100 * error - loaded.card.rotation_error) < 1.0


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("name", "expected"), [("resnet20-cifar10", 827), ("resnet56-cifar10", 661)])
def test_akamaster_networks_have_exactly_their_published_errors(name: str, expected: int, cifar10: ImageSet) -> None:
    if zoo.find_weights(name) is None:
        pytest.skip(f"{zoo.entry(name).card.file} is not in a weights folder")
    model = zoo.create(name)
    wrong = round(classification_error(model, cifar10.images, cifar10.labels) * len(cifar10))
    assert wrong == expected

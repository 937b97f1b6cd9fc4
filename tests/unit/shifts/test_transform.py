"""The transform: every kind of image and sample, and the same result as `corrupt`."""

from __future__ import annotations

import copy
import pickle
from typing import NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from synaptune.errors import InputError, OptionError, UnknownNameError
from synaptune.shifts import Corrupt, CorruptionRecipe, corrupt
from synaptune.shifts.transform import content_indices


class Sample(NamedTuple):
    image: torch.Tensor
    label: int


@pytest.fixture
def batch(images: NDArray[np.uint8]) -> torch.Tensor:
    return torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()


def test_batches_single_tensors_and_pictures_agree(images: NDArray[np.uint8], batch: torch.Tensor) -> None:
    transform = Corrupt("fog", 4, seed=2)
    expected = corrupt(images, "fog", 4, seed=2, indices=content_indices(images))
    together = transform(batch)
    assert together.shape == batch.shape
    assert together.dtype == torch.uint8
    assert together.is_contiguous()
    assert np.array_equal(together.permute(0, 2, 3, 1).numpy(), expected)
    for number in range(len(images)):
        assert torch.equal(transform(batch[number]), together[number])
        picture = transform(Image.fromarray(images[number]))
        assert picture.mode == "RGB"
        assert np.array_equal(np.asarray(picture), expected[number])


def test_given_indices_are_those_of_corrupt(images: NDArray[np.uint8], batch: torch.Tensor) -> None:
    result = Corrupt("snow", 3)(batch, indices=range(6))
    assert np.array_equal(result.permute(0, 2, 3, 1).numpy(), corrupt(images, "snow", 3))
    picture = Corrupt("snow", 3)(Image.fromarray(images[2]), indices=[2])
    assert np.array_equal(np.asarray(picture), corrupt(images, "snow", 3)[2])
    with pytest.raises(InputError, match="nested sample"):
        Corrupt("snow", 3)((batch, 1), indices=range(6))


def test_grey_and_palette_pictures_become_rgb() -> None:
    grey = Image.new("L", (40, 20), 100)
    result = Corrupt("brightness", 1)(grey)
    assert result.size == (40, 20)
    assert result.getpixel((0, 0)) == (112, 112, 112)
    assert Corrupt("brightness", 1)(grey.convert("P")).mode == "RGB"


def test_the_input_is_left_alone(batch: torch.Tensor) -> None:
    before = batch.clone()
    Corrupt("gaussian_noise", 5)(batch)
    assert torch.equal(batch, before)


def test_labels_and_everything_else_pass_through(batch: torch.Tensor) -> None:
    transform = Corrupt("contrast", 5)
    expected = transform(batch[0])
    labels, second = torch.tensor([1, 2]), batch[1]
    image, label = transform(batch[0], 7)
    assert torch.equal(image, expected)
    assert label == 7
    sample = transform({"image": batch[0], "label": labels, "path": "a.png", "extra": [second, None]})
    assert torch.equal(sample["image"], expected)
    assert sample["label"] is labels
    assert sample["path"] == "a.png"
    assert sample["extra"][0] is second  # a second bare tensor may be a mask
    named = transform(Sample(batch[0], 3))
    assert isinstance(named, Sample)
    assert torch.equal(named.image, expected)


def test_marked_images_are_preferred_to_bare_tensors(batch: torch.Tensor) -> None:
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    transform = Corrupt("contrast", 5)
    marked, mask, bare = tv_tensors.Image(batch[0]), tv_tensors.Mask(batch[1, 0]), batch[1]
    result = transform({"bare": bare, "mask": mask, "image": marked})
    assert type(result["image"]) is tv_tensors.Image
    assert torch.equal(result["image"].as_subclass(torch.Tensor), transform(batch[0]))
    assert result["bare"] is bare
    assert result["mask"] is mask
    many = transform(tv_tensors.Image(batch))
    assert type(many) is tv_tensors.Image
    assert many.shape == batch.shape


def test_it_works_within_torchvisions_compose(images: NDArray[np.uint8]) -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    pipeline = v2.Compose([v2.Resize(40), Corrupt("pixelate", 3), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    result, label = pipeline(Image.fromarray(images[0]), 3)
    assert result.shape == (3, 40, 40)
    assert result.dtype == torch.float32
    assert 0 <= float(result.min()) <= float(result.max()) <= 1
    assert label == 3


class Pictures(Dataset[torch.Tensor]):
    def __init__(self, batch: torch.Tensor):
        self.batch = batch
        self.transform = Corrupt("gaussian_noise", 5)

    def __len__(self) -> int:
        return len(self.batch)

    def __getitem__(self, index: int) -> torch.Tensor:
        result: torch.Tensor = self.transform(self.batch[index])
        return result


@pytest.mark.slow
def test_workers_and_order_do_not_matter(batch: torch.Tensor) -> None:
    dataset = Pictures(batch)
    expected = torch.stack([dataset[index] for index in range(6)])
    loader = DataLoader(dataset, batch_size=4, num_workers=2, multiprocessing_context="spawn")
    assert torch.equal(torch.cat(list(loader)), expected)
    assert torch.equal(torch.stack([dataset[index] for index in reversed(range(6))]).flip(0), expected)


def test_equal_images_look_equal_and_others_do_not(batch: torch.Tensor) -> None:
    twice = torch.stack([batch[0], batch[0], batch[1]])
    noisy = Corrupt("gaussian_noise", 5)(twice).int() - twice.int()
    assert torch.equal(noisy[0], noisy[1])
    assert not torch.equal(noisy[0], noisy[2])


def test_it_copies_pickles_and_says_what_it_is() -> None:
    transform = Corrupt("frost", 2, seed=5, size=64)
    assert transform.recipe == CorruptionRecipe.of("frost", 2, seed=5, size=64)
    assert "frost/2 size=64 seed=5" in repr(transform)
    for again in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform))):
        assert again.recipe == transform.recipe
    assert not list(transform.parameters())


def test_bad_options_are_refused_at_once() -> None:
    with pytest.raises(UnknownNameError, match="did you mean fog"):
        Corrupt("fogg", 1)
    with pytest.raises(OptionError, match="severity"):
        Corrupt("fog", 0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (torch.zeros(3, 32, 32), r"a float32 tensor \(3, 32, 32\)"),
        (torch.zeros(1, 32, 32, dtype=torch.uint8), r"a uint8 tensor \(1, 32, 32\)"),
        (torch.zeros(2, 32, 32, 3, dtype=torch.uint8), r"\(2, 32, 32, 3\)"),
        ({"label": 3}, "given int"),
        ((), "given nothing"),
    ],
)
def test_a_sample_without_an_image_is_refused(wrong: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Corrupt("fog", 1)(wrong)


@pytest.mark.parametrize("kind", [np.uint16, np.int32, np.float32])
def test_pictures_of_more_than_8_bits_are_refused_and_not_cut_off(kind: type[np.generic]) -> None:
    deep = Image.fromarray(np.full((32, 32), 30_000).astype(kind))
    with pytest.raises(InputError, match=r"pictures of 8 bits, not of Pillow's mode .*scale it first"):
        Corrupt("fog", 5)(deep)

"""Images for `synaptune train`: of the catalogue or of folders, cut as the card asks, numbered as its outputs.

Photographs in folders are resized and cut as `synaptune predict` does it. Images that take more memory than
`IN_MEMORY` are read batch by batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from synaptune.bench.numbering import numbering_for
from synaptune.data import DataSet, LazyImages, as_digits, entries, load, read_images
from synaptune.data.decode import Fit
from synaptune.errors import OptionError
from synaptune.models.image_set import ImageSet
from synaptune.predicting import Preprocessing

if TYPE_CHECKING:
    from synaptune.models import Card
    from synaptune.predicting.preprocessing import Interpolation

__all__ = ["has_test_split", "load_images", "named_by", "numbered"]

IN_MEMORY = 2 << 30
"""Bytes of pixels up to which images are loaded at once: 14,000 of 224x224."""


def load_images(name: str, split: str, card: Card, *, with_margin: bool = False) -> DataSet:
    """The images of a folder or of the catalogue, in the size of the network.

    Args:
        name: a folder with a folder per class, or a data set.
        split: of the data set.
        card: of the network.
        with_margin: photographs in folders keep what their card's resize has around the crop.
    """
    if Path(name).expanduser().is_dir():
        return read_images(Path(name), fit=_fit(card, with_margin=with_margin), labels="folders")
    found = load(name, split)
    if found.size == card.input_size:
        return found
    if found.classes == tuple("0123456789") and card.input_size[0] == card.input_size[1]:
        return as_digits(found, "digit", size=card.input_size[0])
    raise OptionError(
        f"images of {name} are {found.size[0]}x{found.size[1]}, {card.name} takes "
        f"{card.input_size[0]}x{card.input_size[1]}; they do not belong together"
    )


def has_test_split(name: str) -> bool:
    """Whether a data set of the catalogue has images to test on."""
    return any(entry.name == name and not {"test", "val"}.isdisjoint(entry.splits) for entry in entries())


def named_by(data: DataSet, card: Card) -> Card:
    """The network's card, with the classes of the training data where these are others."""
    if not data.classes or set(data.classes) == set(card.class_names):
        return card
    return replace(card, class_names=data.classes, num_classes=len(data.classes), label_map=())


def numbered(found: DataSet, named: Card) -> ImageSet:
    """A data set with labels numbered as the network's outputs."""
    name = f"{found.name} {found.split}".strip()
    if isinstance(found.images, LazyImages) and math.prod(found.images.shape) > IN_MEMORY:
        return ImageSet.from_source(found.images, numbering_for(found, named).numpy()[found.labels], name=name)
    whole = found.in_memory()
    return ImageSet.from_arrays(whole.images[:], numbering_for(whole, named).numpy()[whole.labels], name=name)


@dataclass(frozen=True)
class _AsPredicted(Fit):
    """Resize and crop of `synaptune predict`, with the interpolation that the card names."""

    interpolation: Interpolation = "bilinear"

    def apply(self, image: Image.Image) -> Image.Image:
        pixels = np.asarray(image)
        size = (self.height, self.width)
        cut = Preprocessing(size=size, resize=self.shorter, interpolation=self.interpolation).cut(pixels)
        return image if cut is pixels else Image.fromarray(cut)


def _fit(card: Card, *, with_margin: bool) -> Fit:
    usual = Preprocessing.from_card(card)
    if with_margin and usual.resize is not None:
        return _AsPredicted(usual.resize, usual.resize, interpolation=usual.interpolation)
    return _AsPredicted(*usual.size, shorter=usual.resize, interpolation=usual.interpolation)

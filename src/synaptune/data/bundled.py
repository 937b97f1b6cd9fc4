"""The bundled sample: the first 2,000 test images of CIFAR-10, lossless, in their official order.

One WebP picture of 4 x 500 tiles (3.4 MB) and a line of 2,000 digits; see `sample/README.md` for their origin.
"""

from __future__ import annotations

import io
from importlib import resources

import numpy as np
from PIL import Image

from synaptune.data import class_names
from synaptune.data.dataset import DataSet
from synaptune.data.recipe import Recipe
from synaptune.errors import OptionError

__all__ = ["SAMPLE_SIZE", "sample"]

SAMPLE_SIZE = 2_000
_COLUMNS, _SIDE = 4, 32


def sample(count: int = SAMPLE_SIZE) -> DataSet:
    """Load the first `count` images of the bundled sample; needs no network and no data folder.

    >>> from synaptune.data import sample
    >>> sample(8)
    DataSet(cifar10-sample/test: 8 images of 32x32, 10 classes)
    >>> few = sample(3)
    >>> [few.classes[label] for label in few.labels]
    ['cat', 'ship', 'ship']
    """
    if not 1 <= count <= SAMPLE_SIZE:
        raise OptionError(
            f"the bundled sample has {SAMPLE_SIZE:,} images; count must lie between 1 and that, not {count}"
        )
    folder = resources.files("synaptune.data").joinpath("sample")
    picture = np.asarray(Image.open(io.BytesIO(folder.joinpath("images.webp").read_bytes())).convert("RGB"))
    tiles = picture.reshape(-1, _SIDE, _COLUMNS, _SIDE, 3).transpose(0, 2, 1, 3, 4).reshape(-1, _SIDE, _SIDE, 3)
    digits = folder.joinpath("labels.txt").read_text("ascii").strip()
    return DataSet(
        name="cifar10-sample",
        split="test",
        images=tiles[:count],
        labels=np.frombuffer(digits.encode(), np.uint8)[:count].astype(np.int64) - ord("0"),
        classes=class_names.CIFAR10,
        origin=Recipe.of(read="bundled", source="CIFAR-10 test images in official order, the first ones"),
    )

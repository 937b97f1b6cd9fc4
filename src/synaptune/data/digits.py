"""The digit transfer SVHN -> MNIST, MNIST-M, USPS: three channels, 32x32, and one label map for all.

The published SVHN network counts its classes from digit 1 on: index = (digit - 1) mod 10, so index 9 is digit 0. The
same map serves the other sets. Images of another size are scaled with Pillow's bilinear filter, as torchvision's
`Resize` does for pictures. The network's own scaling, (x - 0.5) / 0.5, travels with its weights and is not done here.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from PIL import Image

from synaptune.data.dataset import UNLABELLED, DataSet
from synaptune.data.images import Pixels, Positions
from synaptune.data.recipe import Recipe
from synaptune.errors import InputError

__all__ = ["LabelMap", "as_digits"]

LabelMap = Literal["digit", "svhn-net"]


def as_digits(dataset: DataSet, labels: LabelMap = "svhn-net", *, size: int = 32) -> DataSet:
    """Prepare a digit set for the network that was trained on SVHN.

    Args:
        dataset: labels are the digits 0 to 9; grey images have three equal channels already.
        labels: "svhn-net" maps digit d to (d - 1) mod 10, "digit" leaves d.
        size: side of the images afterwards.

    >>> import numpy as np
    >>> from synaptune.data import DataSet, as_digits
    >>> sevens = DataSet("toy", "test", np.zeros((1, 28, 28, 3), np.uint8), np.array([7]), tuple("0123456789"))
    >>> ready = as_digits(sevens)
    >>> ready.labels.tolist(), ready.classes[6], ready.size
    ([6], '7', (32, 32))
    """
    if dataset.classes != tuple("0123456789"):
        raise InputError(
            f"{dataset.name} is not a set of digits: its classes are {', '.join(dataset.classes) or 'unknown'}"
        )
    if labels == "svhn-net":
        mapped = np.where(dataset.labels == UNLABELLED, UNLABELLED, (dataset.labels - 1) % 10)
        dataset = dataset.relabel(mapped, tuple("1234567890"), note="(digit - 1) mod 10")
    if dataset.size == (size, size):
        return dataset

    def resize(pixels: Pixels, positions: Positions) -> Pixels:  # noqa: ARG001
        return np.stack(
            [np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR)) for image in pixels]
        )

    return dataset.map(resize, recipe=Recipe.of(resize=size, filter="bilinear"), size=(size, size))

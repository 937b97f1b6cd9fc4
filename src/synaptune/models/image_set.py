"""Labelled images as two plain arrays: what training and evaluation take, whatever they were read from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from synaptune.errors import InputError

__all__ = ["ImageSet", "drawn_evenly"]


@dataclass(frozen=True)
class ImageSet:
    """Images and labels in memory, checked once.

    Attributes:
        images: uint8, (n, height, width, 3).
        labels: int64, (n,), from 0.
        name: how cards and messages call the set.

    >>> import numpy as np
    >>> ImageSet.from_arrays(np.zeros((2, 8, 8, 3), np.uint8), np.array([0, 1]), name="toy").num_classes
    2
    """

    images: Tensor
    labels: Tensor
    name: str

    @classmethod
    def from_arrays(cls, images: npt.NDArray[np.uint8], labels: npt.NDArray[Any], *, name: str) -> ImageSet:
        """Check the arrays and take them over without a copy where their memory allows it."""
        images, labels = np.asarray(images), np.asarray(labels)
        problems = []
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3:
            problems.append(f"images must be uint8 (n, height, width, 3), got {images.dtype} {tuple(images.shape)}")
        if not np.issubdtype(labels.dtype, np.integer) or labels.shape != images.shape[:1]:
            problems.append(f"labels must be one integer per image, got {labels.dtype} {tuple(labels.shape)}")
        elif len(labels) == 0:
            problems.append("there is no image in it")
        elif labels.min() < 0:
            problems.append(f"labels must start at 0, got {labels.min()}")
        if problems:
            raise InputError(f"{name}: " + "; ".join(problems))
        # torch warns about read-only memory (memory maps, np.frombuffer), hence the copy in that case.
        pixels = np.ascontiguousarray(images if images.flags.writeable else images.copy())
        return cls(torch.from_numpy(pixels), torch.from_numpy(labels.astype(np.int64)), name)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_classes(self) -> int:
        """Highest label plus one."""
        return int(self.labels.max()) + 1

    def digest(self) -> str:
        """Short hash of pixels and labels, by which a resumed run knows that its data is the same."""
        total = hashlib.sha256(repr(tuple(self.images.shape)).encode())
        total.update(self.images.numpy().data)
        total.update(self.labels.numpy().data)
        return total.hexdigest()[:16]


def drawn_evenly(labels: npt.NDArray[np.int64], count: int, *, seed: int) -> npt.NDArray[np.int64]:
    """Draw `count` positions, equally many of each label as far as there are, in rising order.

    >>> labels = np.array([0, 0, 0, 0, 1, 1, 2])
    >>> np.bincount(labels[drawn_evenly(labels, 5, seed=0)]).tolist()
    [2, 2, 1]
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    turn = np.empty(len(labels), np.int64)  # of each image among those of its label
    for label in np.unique(labels):
        own = order[labels[order] == label]
        turn[own] = np.arange(len(own))
    chosen: npt.NDArray[np.int64] = np.sort(order[np.argsort(turn[order], kind="stable")][:count])
    return chosen

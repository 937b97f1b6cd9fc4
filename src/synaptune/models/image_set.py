"""Labelled images: what training and evaluation take, whatever they were read from.

Images lie in memory, or are read batch by batch where they are too many. The second way gives the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from synaptune.errors import InputError

__all__ = ["ImageSet", "ImageSource", "drawn_evenly"]


class ImageSource(Protocol):
    """Images that are read when they are asked for, as `synaptune.data.LazyImages` are."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(n, height, width, 3)."""

    def read(self, positions: npt.NDArray[np.int64], /) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        """Pixels of the images that could be read, and which of those asked for these are."""

    def fingerprint(self) -> str:
        """A digest that changes when any pixel does."""


@dataclass(frozen=True)
class ImageSet:
    """Images and labels, checked once.

    Attributes:
        images: uint8, (n, height, width, 3); a tensor, or what they are read from.
        labels: int64, (n,), from 0.
        name: how cards and messages call the set.

    >>> import numpy as np
    >>> ImageSet.from_arrays(np.zeros((2, 8, 8, 3), np.uint8), np.array([0, 1]), name="toy").num_classes
    2
    """

    images: Tensor | ImageSource
    labels: Tensor
    name: str

    @classmethod
    def from_arrays(cls, images: npt.NDArray[np.uint8], labels: npt.NDArray[Any], *, name: str) -> ImageSet:
        """Check the arrays and take them over without a copy where their memory allows it."""
        images, labels = np.asarray(images), np.asarray(labels)
        problems = []
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3:
            problems.append(f"images must be uint8 (n, height, width, 3), got {images.dtype} {tuple(images.shape)}")
        problems += _label_problems(labels, images.shape[:1])
        if problems:
            raise InputError(f"{name}: " + "; ".join(problems))
        # torch warns about read-only memory (memory maps, np.frombuffer), hence the copy in that case.
        pixels = np.ascontiguousarray(images if images.flags.writeable else images.copy())
        return cls(torch.from_numpy(pixels), torch.from_numpy(labels.astype(np.int64)), name)

    @classmethod
    def from_source(cls, source: ImageSource, labels: npt.NDArray[Any], *, name: str) -> ImageSet:
        """Images that are read batch by batch; those that cannot be read are left out of theirs."""
        if problems := _label_problems(labels, source.shape[:1]):
            raise InputError(f"{name}: " + "; ".join(problems))
        return cls(source, torch.from_numpy(labels.astype(np.int64)), name)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return int(self.images.shape[1]), int(self.images.shape[2])

    def to(self, device: torch.device) -> ImageSet:
        """The set with batches on this device, and all of it if it lies in memory."""
        images = self.images.to(device) if isinstance(self.images, Tensor) else self.images
        return replace(self, images=images, labels=self.labels.to(device))

    def batch(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Images and labels at these positions, but for images that cannot be read."""
        device = self.labels.device
        if isinstance(self.images, Tensor):
            here = positions.to(device)
            return self.images[here], self.labels[here]
        pixels, readable = self.images.read(positions.numpy())
        if not readable.any():
            raise InputError(f"{self.name}: none of {len(positions)} images of a batch can be read any more")
        return torch.from_numpy(pixels).to(device), self.labels[positions[torch.from_numpy(readable)].to(device)]

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The whole set in order."""
        for positions in torch.arange(len(self)).split(size):
            yield self.batch(positions)

    @property
    def num_classes(self) -> int:
        """Highest label plus one."""
        return int(self.labels.max()) + 1

    def digest(self) -> str:
        """Short hash of pixels and labels, by which a resumed run knows that its data is the same."""
        total = hashlib.sha256(repr(tuple(self.images.shape)).encode())
        total.update(
            self.images.numpy().data if isinstance(self.images, Tensor) else self.images.fingerprint().encode()
        )
        total.update(self.labels.numpy().data)
        return total.hexdigest()[:16]


def _label_problems(labels: npt.NDArray[Any], wanted: tuple[int, ...]) -> list[str]:
    if not np.issubdtype(labels.dtype, np.integer) or labels.shape != wanted:
        return [f"labels must be one integer per image, got {labels.dtype} {tuple(labels.shape)}"]
    if len(labels) == 0:
        return ["there is no image in it"]
    return [f"labels must start at 0, got {labels.min()}"] if labels.min() < 0 else []


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

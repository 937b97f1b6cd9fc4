"""The value that every reader returns: images, labels, class names, and where they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from synaptune.data.images import (
    Images,
    LazyImages,
    MappedImages,
    Pixels,
    Positions,
    SelectedImages,
    content_fingerprint,
)
from synaptune.data.recipe import Json, Recipe
from synaptune.data.report import ReadReport
from synaptune.errors import InputError

__all__ = ["UNLABELLED", "DataSet"]

UNLABELLED = -1
"""The label of an image whose class is not known."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Images of one size with their labels, checked once; the pixels may still lie on disk.

    Attributes:
        name: what the set is called in messages and tables.
        split: "train", "test", "val" or "".
        images: uint8, (n, height, width, 3); an array, a memory map or `LazyImages`.
        labels: int64, (n,); -1 where the class is not known.
        classes: class names by label.
        origin: how the images came about, apart from their content.

    >>> import numpy as np
    >>> from synaptune.data import DataSet
    >>> tiny = DataSet("toy", "test", np.zeros((3, 8, 8, 3), np.uint8), np.array([0, 1, 0]), ("cat", "dog"))
    >>> tiny
    DataSet(toy/test: 3 images of 8x8, 2 classes)
    >>> tiny.take(2).labels.tolist()
    [0, 1]
    """

    name: str
    split: str
    images: Images
    labels: npt.NDArray[np.int64]
    classes: tuple[str, ...] = ()
    origin: Recipe = field(default_factory=Recipe.of)
    reading: Callable[[], ReadReport] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        images = self.images
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3:
            raise InputError(
                f"{self.name}: images must be uint8 (n, height, width, 3), not {images.dtype} {tuple(images.shape)}"
                f"{_advice(images)}"
            )
        labels = np.array(self.labels, np.int64)
        if labels.shape != (len(images),):
            raise InputError(f"{self.name}: {len(images)} images but labels of shape {labels.shape}")
        highest = int(labels.max(initial=UNLABELLED))
        if int(labels.min(initial=0)) < UNLABELLED or (self.classes and highest >= len(self.classes)):
            allowed = (
                f"lie between -1 (unknown) and {len(self.classes) - 1}" if self.classes else "be -1 (unknown) or more"
            )
            raise InputError(f"{self.name}: labels must {allowed}, found {int(labels.min())} to {highest}")
        labels.flags.writeable = False
        object.__setattr__(self, "labels", labels)

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        where = f"{self.name}/{self.split}" if self.split else self.name
        height, width = self.size
        known = f"{len(self.classes)} classes" if self.is_labelled else "no labels"
        return f"DataSet({where}: {len(self):,} images of {height}x{width}, {known})"

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return int(self.images.shape[1]), int(self.images.shape[2])

    @property
    def is_labelled(self) -> bool:
        """Whether every image has a label."""
        return len(self) > 0 and bool((self.labels != UNLABELLED).all())

    @property
    def report(self) -> ReadReport:
        """What happened so far while files were read: skipped and converted images with reasons."""
        return self.reading() if self.reading else ReadReport(found=len(self))

    @cached_property
    def pixels_fingerprint(self) -> str:
        """Digest of the pixels alone."""
        return content_fingerprint(self.images)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of pixels, labels and class names."""
        digest = hashlib.sha256(self.pixels_fingerprint.encode())
        digest.update(self.labels.astype("<i8").tobytes())
        digest.update("\0".join(self.classes).encode())
        return digest.hexdigest()

    @cached_property
    def recipe(self) -> Recipe:
        """Name, size, origin and content, as a protocol stamp needs them. Reads all pixels, once."""
        return Recipe.of(
            data=self.name, split=self.split, images=len(self), origin=self.origin, content=self.fingerprint
        )

    def take(self, count: int) -> DataSet:
        """Return the first `count` images."""
        return self.select(range(min(count, len(self))))

    def select(self, positions: Sequence[int] | npt.NDArray[Any]) -> DataSet:
        """Return the images at these positions, in this order; no pixel is copied yet."""
        chosen = np.arange(len(self), dtype=np.int64)[np.asarray(positions, dtype=np.int64)]
        images: Images
        if len(chosen) and isinstance(self.images, np.ndarray) and (np.diff(chosen) == 1).all():
            images = self.images[chosen[0] : chosen[-1] + 1]
        else:
            images = SelectedImages(self.images, chosen)
        return replace(self, images=images, labels=self.labels[chosen])

    def map(
        self,
        function: Callable[[Pixels, Positions], Pixels],
        *,
        recipe: Recipe,
        size: tuple[int, int] | None = None,
        **changes: Any,
    ) -> DataSet:
        """Return the set with every batch of pixels sent through `function` when it is read."""
        images = MappedImages(
            self.images, function, recipe=recipe, size=size, source_fingerprint=lambda: self.pixels_fingerprint
        )
        origin = Recipe.of(of=self.origin, then=recipe)
        return replace(self, images=images, origin=origin, **changes)

    def relabel(self, labels: npt.NDArray[np.int64], classes: tuple[str, ...], *, note: str) -> DataSet:
        """Return the same images under other labels and class names."""
        plain: dict[str, Json] = {"labels": note}
        return replace(self, labels=labels, classes=classes, origin=Recipe.of(of=self.origin, then=Recipe.of(**plain)))

    def in_memory(self) -> DataSet:
        """Return the set with all pixels loaded, without images that cannot be read."""
        if not isinstance(self.images, LazyImages):
            return replace(self, images=np.array(self.images))
        pixels, readable = self.images.read(np.arange(len(self), dtype=np.int64))
        return replace(self, images=pixels, labels=self.labels[readable])


def _advice(images: Images) -> str:
    """Say how to make images of an array that is nearly one."""
    match tuple(images.shape):
        case _ if images.dtype != np.uint8:
            return "; bring the values to 0..255 and convert them with astype(numpy.uint8)"
        case (_, _, 3):
            return "; a single image needs a leading axis: images[None]"
        case (_, _, _):
            return "; grey images need three channels: numpy.repeat(images[..., None], 3, axis=-1)"
        case (_, _, _, 1):
            return "; grey images need three channels: numpy.repeat(images, 3, axis=-1)"
        case (_, 3, _, _):
            return "; channels come last: images.transpose(0, 2, 3, 1)"
        case (_, _, _, 4):
            return "; leave the transparency out: images[..., :3]"
        case _:
            return ""

"""Shifted images made here: a clean set under a corruption, kept on disk or computed whenever they are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from synaptune.data.dataset import DataSet
from synaptune.data.images import MappedImages, Pixels, Positions
from synaptune.data.made import KeptImages, made_folder
from synaptune.data.progress import Listener, silent
from synaptune.data.recipe import Recipe
from synaptune.errors import OptionError
from synaptune.shifts import CorruptionRecipe, corrupt

__all__ = ["Corruption", "NamedCorruption", "corrupted"]


class Corruption(Protocol):
    """A deterministic shift of single images; anything with these two can be used."""

    @property
    def recipe(self) -> Recipe:
        """Everything that the result depends on, apart from the clean image and its index."""
        ...

    def __call__(self, images: Pixels, indices: Positions) -> Pixels:
        """Corrupt uint8 images (k, height, width, 3); `indices` say which images of the set they are."""
        ...


@dataclass(frozen=True)
class NamedCorruption:
    """One of the common corruptions of `synaptune.shifts`.

    >>> print(NamedCorruption("fog", 5))
    fog-5
    """

    name: str
    severity: int
    seed: int = 0

    @property
    def recipe(self) -> Recipe:
        return Recipe.of(**CorruptionRecipe.of(self.name, self.severity, seed=self.seed).as_dict())

    def __call__(self, images: Pixels, indices: Positions) -> Pixels:
        return corrupt(images, self.name, self.severity, seed=self.seed, indices=indices)

    def __str__(self) -> str:
        return f"{self.name}-{self.severity}"


def corrupted(
    dataset: DataSet,
    corruption: str | Corruption,
    severity: int | None = None,
    *,
    seed: int = 0,
    cache: bool = True,
    root: str | Path | None = None,
    progress: Listener = silent,
) -> DataSet:
    """Return a set with every image corrupted; nothing is computed before pixels are read.

    Args:
        dataset: the clean images; position in the set is the index that the corruption's randomness hangs on.
        corruption: a name of `synaptune.shifts`, or any `Corruption`.
        severity: 1 to 5, with a name.
        seed: of the randomness, with a name.
        cache: keep the result on disk; the first reading then makes all of it. Without, each reading computes anew.
        root: data root for what is kept.
        progress: told how far the making is.

    >>> import numpy as np
    >>> from synaptune.data import DataSet
    >>> clean = DataSet("toy", "test", np.full((2, 32, 32, 3), 100, np.uint8), np.array([0, 1]), ("cat", "dog"))
    >>> brighter = corrupted(clean, "brightness", 1, cache=False)
    >>> brighter.images[0, 0, 0].tolist(), brighter.labels.tolist()
    ([112, 112, 112], [0, 1])
    """
    if isinstance(corruption, str):
        if severity is None:
            raise OptionError(f"corrupted(..., {corruption!r}) needs a severity from 1 to 5")
        corruption = NamedCorruption(corruption, severity, seed)
    recipe = corruption.recipe
    images = MappedImages(
        dataset.images, corruption, recipe=recipe, source_fingerprint=lambda: dataset.pixels_fingerprint
    )
    kept = KeptImages(images, made_folder(root), progress) if cache else images
    return replace(dataset, images=kept, origin=Recipe.of(of=dataset.origin, then=recipe))

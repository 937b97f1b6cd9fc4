"""Images that need not lie in memory: joined, selected or computed when they are asked for.

A data set's images are either an array (often a memory map) or a `LazyImages`. Both give uint8 pixels of shape
(k, height, width, 3) for `images[positions]`, so consumers seldom care. Where single files may turn out to be
damaged, use `read_pixels`, which says for every image whether it could be read.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from synaptune.data.recipe import Recipe
from synaptune.errors import BadImageError, InputError

__all__ = [
    "Images",
    "JoinedImages",
    "LazyImages",
    "MappedImages",
    "Pixels",
    "PixelsRead",
    "Positions",
    "SelectedImages",
    "content_fingerprint",
    "read_pixels",
]

Pixels: TypeAlias = npt.NDArray[np.uint8]
Positions: TypeAlias = npt.NDArray[np.int64]

_CHUNK = 512
"""Images that are hashed or copied at once: 1.5 MB at 32x32, 75 MB at 224x224."""


class PixelsRead(NamedTuple):
    """What came of an attempt to read images.

    Attributes:
        pixels: uint8, (readable, height, width, 3): only those that could be read.
        readable: bool, one for each position that was asked for.
    """

    pixels: Pixels
    readable: npt.NDArray[np.bool_]


class LazyImages(ABC):
    """Images that are made when they are asked for; behaves like a read-only uint8 array of rank four."""

    ndim: Literal[4] = 4
    dtype = np.dtype(np.uint8)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int, int]:
        """(number, height, width, 3)."""

    @abstractmethod
    def read(self, positions: Positions) -> PixelsRead:
        """Give the images at these positions, leaving out those that cannot be read."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A digest that changes when any pixel does."""

    def __len__(self) -> int:
        return self.shape[0]

    @overload
    def __getitem__(self, key: SupportsIndex) -> Pixels: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | npt.NDArray[Any]) -> Pixels: ...
    def __getitem__(self, key: Any) -> Pixels:
        """Images at an index, a slice, a list of indices or a mask; raises if one cannot be read.

        Further indices after a comma apply to the pixels: `images[3, 0, 0]`.
        """
        if isinstance(key, tuple):
            inside = key[1:] if np.ndim(np.empty(len(self), np.bool_)[key[0]]) == 0 else (slice(None), *key[1:])
            picked: Pixels = self[key[0]][inside]
            return picked
        positions = np.arange(len(self), dtype=np.int64)[key]
        pixels, readable = self.read(np.atleast_1d(positions))
        if not readable.all():
            bad = np.atleast_1d(positions)[~readable]
            raise BadImageError(
                f"{len(bad)} of {readable.size} images cannot be read, the first at position {bad[0]} "
                f"({self.describe(int(bad[0]))}); `read_pixels` skips such images"
            )
        return pixels[0] if np.ndim(positions) == 0 else pixels

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("lazy images have no array to share; use numpy.asarray without copy=False")
        pixels = self[:]
        return pixels if dtype is None else pixels.astype(dtype, copy=False)

    def describe(self, position: int) -> str:
        """Name the image at a position for a message."""
        return f"image {position}"


Images: TypeAlias = Pixels | LazyImages


def read_pixels(images: Images, positions: Positions) -> PixelsRead:
    """Read images of either kind; what cannot be read is left out and marked.

    >>> import numpy as np
    >>> pixels, readable = read_pixels(np.zeros((4, 2, 2, 3), np.uint8), np.array([3, 0]))
    >>> pixels.shape, readable.tolist()
    ((2, 2, 2, 3), [True, True])
    """
    if isinstance(images, LazyImages):
        return images.read(positions)
    return PixelsRead(np.asarray(images[positions]), np.ones(len(positions), np.bool_))


def content_fingerprint(images: Images) -> str:
    """Digest of shape and pixels (of an array), or what lazy images say of themselves."""
    if isinstance(images, LazyImages):
        return images.fingerprint()
    digest = hashlib.sha256(repr(tuple(map(int, images.shape))).encode())
    for start in range(0, len(images), _CHUNK):
        digest.update(np.ascontiguousarray(images[start : start + _CHUNK]).data)
    return digest.hexdigest()


class JoinedImages(LazyImages):
    """Several arrays one after the other, as if they were one; nothing is copied until it is read.

    >>> import numpy as np
    >>> joined = JoinedImages([np.full((2, 1, 1, 3), value, np.uint8) for value in (7, 8)])
    >>> joined.shape, joined[[3, 0]][:, 0, 0, 0].tolist()
    ((4, 1, 1, 3), [8, 7])
    """

    def __init__(self, parts: Sequence[Images]):
        if not parts or len({tuple(part.shape[1:]) for part in parts}) != 1:
            raise InputError("arrays to join must exist and have images of one size")
        self._parts = tuple(parts)
        self._starts = np.cumsum([0, *(len(part) for part in parts)])

    @property
    def shape(self) -> tuple[int, int, int, int]:
        _, height, width, channels = self._parts[0].shape
        return int(self._starts[-1]), int(height), int(width), int(channels)

    def read(self, positions: Positions) -> PixelsRead:
        part_of = np.searchsorted(self._starts, positions, side="right") - 1
        pixels = np.empty((len(positions), *self.shape[1:]), np.uint8)
        readable = np.zeros(len(positions), np.bool_)
        for number in np.unique(part_of):
            (where,) = np.nonzero(part_of == number)
            found = read_pixels(self._parts[number], positions[where] - self._starts[number])
            readable[where] = found.readable
            pixels[where[found.readable]] = found.pixels
        return PixelsRead(pixels if readable.all() else pixels[readable], readable)

    def fingerprint(self) -> str:
        # The same digest as of one array with these pixels, so that the way of storage does not count.
        if any(isinstance(part, LazyImages) for part in self._parts):
            return _digest("joined", *(content_fingerprint(part) for part in self._parts))
        digest = hashlib.sha256(repr(self.shape).encode())
        for part in self._parts:
            for start in range(0, len(part), _CHUNK):
                digest.update(np.ascontiguousarray(part[start : start + _CHUNK]).data)
        return digest.hexdigest()


class SelectedImages(LazyImages):
    """Some images of another source, in a given order."""

    def __init__(self, images: Images, positions: Positions):
        self._images, self._positions = images, positions

    @property
    def shape(self) -> tuple[int, int, int, int]:
        _, height, width, channels = self._images.shape
        return len(self._positions), int(height), int(width), int(channels)

    def read(self, positions: Positions) -> PixelsRead:
        return read_pixels(self._images, self._positions[positions])

    def fingerprint(self) -> str:
        chosen = hashlib.sha256(self._positions.astype("<i8").tobytes()).hexdigest()
        return _digest("selected", content_fingerprint(self._images), chosen)

    def describe(self, position: int) -> str:
        inner = int(self._positions[position])
        return self._images.describe(inner) if isinstance(self._images, LazyImages) else f"image {inner}"


class MappedImages(LazyImages):
    """Another source's images after a function of (pixels, positions) that does not change their number.

    The function must be deterministic; its recipe, with the fingerprint of the source, names the result.
    """

    def __init__(
        self,
        images: Images,
        function: Callable[[Pixels, Positions], Pixels],
        *,
        recipe: Recipe,
        size: tuple[int, int] | None = None,
        source_fingerprint: Callable[[], str] | None = None,
    ):
        self._images, self._function, self._recipe = images, function, recipe
        # Whoever has measured the source already can say so; hashing gigabytes twice takes minutes.
        self._source_fingerprint = source_fingerprint or (lambda: content_fingerprint(images))
        self._size = size or (int(images.shape[1]), int(images.shape[2]))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self._images), *self._size, 3

    def read(self, positions: Positions) -> PixelsRead:
        pixels, readable = read_pixels(self._images, positions)
        if not len(pixels):
            return PixelsRead(np.empty((0, *self.shape[1:]), np.uint8), readable)
        return PixelsRead(self._function(pixels, positions[readable]), readable)

    def fingerprint(self) -> str:
        return _digest("mapped", self._source_fingerprint(), self._recipe.digest)

    def describe(self, position: int) -> str:
        return self._images.describe(position) if isinstance(self._images, LazyImages) else f"image {position}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()

"""One counter-based random stream per image, so that no image's noise depends on its neighbours.

A Philox 4x64 generator is a keyed function of a counter. The key is a hash of (seed, corruption, severity); the
256-bit counter holds the image's index and the number of the draw, and counts blocks within it:

    key = blake2b(seed, corruption, severity),   counter = (block, draw, index, 0)

Image 17 therefore gets the same numbers alone, in any batch, in any order and in any worker. Only the raw bits
come from NumPy, which promises never to change them; everything after that is integer arithmetic, table look-up or
single IEEE operations, so a seed gives the same pixels on every machine.

Salmon, Moraes, Dror and Shaw, *Parallel Random Numbers: As Easy as 1, 2, 3* (SC 2011).
"""

from __future__ import annotations

import functools
import hashlib
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ImageStreams", "normal_quantiles"]

_HALF_WORD = 1 << 16


class ImageStreams:
    """The random streams of a batch of images, drawn from in step.

    Every call draws the same amount for each image and moves all streams on to a fresh place.

    >>> both = ImageStreams(np.array([4, 9]), seed=0, name="fog", severity=3).words(3)
    >>> alone = ImageStreams(np.array([9]), seed=0, name="fog", severity=3).words(3)
    >>> bool((both[1] == alone[0]).all())
    True
    """

    def __init__(self, indices: NDArray[Any], *, seed: int, name: str, severity: int):
        self._indices = np.asarray(indices).astype(np.uint64)
        digest = hashlib.blake2b(f"{seed}/{name}/{severity}".encode(), digest_size=16).digest()
        self._key = np.frombuffer(digest, dtype="<u8").astype(np.uint64)
        self._draw = 0
        self._bits = np.random.Philox(0)

    def __len__(self) -> int:
        return len(self._indices)

    def _raw(self, count: int) -> NDArray[np.uint64]:
        """Draw `count` 64-bit words for each image."""
        rows = np.empty((len(self), count), dtype="<u8")
        counter = np.array([0, self._draw, 0, 0], dtype=np.uint64)
        # Setting the state of one generator costs a tenth of making a new one.
        state: Any = {
            "bit_generator": "Philox",
            "state": {"counter": counter, "key": self._key},
            "buffer": np.zeros(4, dtype=np.uint64),
            "buffer_pos": 4,
            "has_uint32": 0,
            "uinteger": 0,
        }
        for row, index in zip(rows, self._indices, strict=True):
            counter[2] = index
            self._bits.state = state
            row[:] = self._bits.random_raw(count)
        self._draw += 1
        return rows

    def words(self, count: int) -> NDArray[np.uint32]:
        """Draw `count` uniform 32-bit integers for each image: (batch, count)."""
        return self._raw((count + 1) // 2).view("<u4")[:, :count]

    def half_words(self, count: int) -> NDArray[np.uint16]:
        """Draw `count` uniform 16-bit integers for each image: (batch, count)."""
        return self._raw((count + 3) // 4).view("<u2")[:, :count]

    def uniform(self, count: int, low: float, high: float) -> NDArray[np.float64]:
        """Draw real numbers in (low, high), on a grid of 2**32 steps."""
        grid: NDArray[np.float64] = self.words(count).astype(np.float64) + 0.5
        return low + grid * ((high - low) / 2.0**32)

    def signed(self, count: int) -> NDArray[np.float32]:
        """Draw real numbers in (-1, 1), on a grid of 2**16 steps, the cheap form for whole fields."""
        return (self.half_words(count).astype(np.float32) - np.float32(32767.5)) * np.float32(2.0**-15)

    def normal(self, count: int) -> NDArray[np.float32]:
        """Draw standard normal numbers from a table of 2**16 quantiles (so none beyond 4.3)."""
        return normal_quantiles().take(self.half_words(count))


@functools.cache
def normal_quantiles() -> NDArray[np.float32]:
    """Return the standard normal quantiles at the centres of 2**16 equally probable bins."""
    inverse = NormalDist().inv_cdf
    lower = np.array([inverse((k + 0.5) / _HALF_WORD) for k in range(_HALF_WORD // 2)], dtype=np.float32)
    table = np.concatenate([lower, -lower[::-1]])
    table.flags.writeable = False
    return table

"""Linear filters whose result does not depend on the order of summation.

Pixels are small integers. When filter weights are multiples of `2**-bits`, every product and every partial sum is
a multiple of `2**-bits` too, and as long as it fits the mantissa (24 bits in float32, 53 in float64) floating point
adds without rounding. Matrix multiplication is then exact, whatever blocking, thread count, batch size or BLAS
library is used: this is what makes blurs bit-identical everywhere at the speed of a matrix product.

    float32: 8 bits of pixel + 16 bits of weight <= 24    (one pass)
    float64: 16 bits of field + 18 + 18 bits of weight <= 53    (two separable passes)

Weights are non-negative and sum to exactly one, so a flat image stays as it is.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Border",
    "border_indices",
    "filter_matrix",
    "gaussian_kernel",
    "quantise_weights",
    "smooth_planes",
    "to_bytes",
    "to_images",
    "to_planes",
]

Border = Literal["edge", "reflect", "mirror"]

SEPARABLE_BITS = 18
SINGLE_PASS_BITS = 16

# Float noise below an integer must not cost a whole grey level when the published truncation is applied.
_TRUNCATION_GUARD = 2.0**-10


def to_bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Clip to [0, 255] and truncate, as the published generators do; may overwrite `values`."""
    values += values.dtype.type(_TRUNCATION_GUARD)
    np.clip(values, 0, 255, out=values)
    return values.astype(np.uint8)


def to_planes(images: NDArray[np.uint8], dtype: type[np.floating[Any]]) -> NDArray[Any]:
    """Turn (batch, h, w, c) bytes into (batch, c, h, w) floats."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).astype(dtype)


def to_images(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Turn (batch, c, h, w) into contiguous (batch, h, w, c)."""
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def border_indices(positions: NDArray[np.integer[Any]], size: int, border: Border) -> NDArray[np.int64]:
    """Map positions outside [0, size) to the pixel that stands in for them, however far outside they are.

    edge: a a | a b c | c c,  reflect: b a | a b c | c b,  mirror: c b | a b c | b a.

    >>> positions = np.arange(-2, 5)
    >>> [border_indices(positions, 3, border).tolist() for border in ("edge", "reflect", "mirror")]
    [[0, 0, 0, 1, 2, 2, 2], [1, 0, 0, 1, 2, 2, 1], [2, 1, 0, 1, 2, 1, 0]]
    """
    positions = positions.astype(np.int64)
    if border == "edge" or size == 1:
        return np.clip(positions, 0, size - 1)
    last = 2 * size - 1 if border == "reflect" else 2 * size - 2
    folded: NDArray[np.int64] = np.mod(positions, 2 * size if border == "reflect" else 2 * size - 2)
    return np.minimum(folded, last - folded, out=folded)


def quantise_weights(weights: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    """Round non-negative weights to multiples of `2**-bits` that sum to exactly one (largest remainders).

    >>> quantise_weights(np.array([1.0, 1.0, 1.0]), bits=3).tolist()
    [0.375, 0.375, 0.25]
    """
    exact = weights.ravel() * (2.0**bits / weights.sum())
    units: NDArray[np.float64] = np.floor(exact)
    missing = round(2**bits - units.sum())
    units[np.argsort(units - exact, kind="stable")[:missing]] += 1
    return (units * 2.0**-bits).reshape(weights.shape)


def gaussian_kernel(sigma: float, truncate: float = 4.0) -> NDArray[np.float64]:
    """Return the weights of a sampled Gaussian, cut at `truncate` standard deviations."""
    reach = int(truncate * sigma + 0.5)
    if reach == 0:
        return np.ones(1)
    weights = np.array([math.exp(-0.5 * (step / sigma) ** 2) for step in range(-reach, reach + 1)])
    return quantise_weights(weights, SEPARABLE_BITS)


def filter_matrix(size: int, kernel: NDArray[np.float64], border: Border) -> NDArray[np.float64]:
    """Return the (size, size) matrix that filters a line of pixels, its border folded in."""
    reach = len(kernel) // 2
    rows = np.arange(size)[:, None]
    columns = border_indices(rows + np.arange(-reach, reach + 1), size, border)  # (size, taps)
    matrix = np.zeros((size, size))
    np.add.at(matrix, (np.broadcast_to(rows, columns.shape), columns), kernel)
    return matrix


@functools.lru_cache(maxsize=64)
def _gaussian_matrix(size: int, sigma: float, truncate: float, border: Border) -> NDArray[np.float64]:
    matrix = filter_matrix(size, gaussian_kernel(sigma, truncate), border)
    matrix.flags.writeable = False
    return matrix


def smooth_planes(
    planes: NDArray[np.float64], sigma: float, *, border: Border, truncate: float = 4.0
) -> NDArray[np.float64]:
    """Blur the last two axes by a Gaussian, exactly for values of at most 16 bits."""
    if int(truncate * sigma + 0.5) == 0:
        return planes
    height, width = planes.shape[-2:]
    across = planes @ _gaussian_matrix(width, sigma, truncate, border).T
    smooth: NDArray[np.float64] = np.matmul(_gaussian_matrix(height, sigma, truncate, border), across)
    return smooth

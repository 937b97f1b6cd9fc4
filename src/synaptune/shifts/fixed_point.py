"""Linear filters whose result does not depend on the order of summation.

Pixels are small integers. When filter weights are multiples of `2**-bits`, every product and every partial sum is
a multiple of `2**-bits` too, and as long as it fits the mantissa (24 bits in float32, 53 in float64) floating point
adds without rounding. Matrix multiplication is then exact, whatever blocking, thread count, batch size or BLAS
library is used: this is what makes blurs bit-identical everywhere at the speed of a matrix product.

    float32: 8 bits of pixel + 16 bits of weight <= 24    (one pass)
    float64: 16 bits of field + 18 + 18 bits of weight <= 53    (two separable passes)

A Fourier transform does round, but by far less than half of the last bit; rounding its result to a multiple of
`2**-bits` gives the exact sum again. So each filter may take whichever way is fastest for the size of the image.

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
    "correlate",
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

# Lines up to this length are filtered by one matrix, which is kept for the next images.
_SHORT = 512

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
    rows, reach = np.arange(size), len(kernel) // 2
    matrix = np.zeros((size, size))
    for tap, weight in enumerate(kernel):
        matrix[rows, border_indices(rows + (tap - reach), size, border)] += weight
    return matrix


def smooth_planes(
    planes: NDArray[np.float64], sigma: float, *, border: Border, truncate: float = 4.0
) -> NDArray[np.float64]:
    """Blur the last two axes by a Gaussian, exactly for values of at most 16 bits."""
    if int(truncate * sigma + 0.5) == 0:
        return planes
    across = _smooth_lines(planes, sigma, truncate, border)
    return _smooth_lines(across.swapaxes(-1, -2), sigma, truncate, border).swapaxes(-1, -2)


def correlate(
    planes: NDArray[np.floating[Any]], kernel: NDArray[np.float64], *, bits: int, border: Border
) -> NDArray[np.float64]:
    """Filter bytes (..., h, w) by a square kernel whose weights are multiples of `2**-bits`, by Fourier transform.

    Exact: at 24 bits the largest error seen, for any size, is below a hundred-thousandth of the last bit.
    """
    reach, (height, width) = len(kernel) // 2, planes.shape[-2:]
    tall, wide = (_smooth_number(length + 2 * reach) for length in (height, width))
    rows = border_indices(np.arange(-reach, height + reach), height, border)
    columns = border_indices(np.arange(-reach, width + reach), width, border)
    response = np.conj(np.fft.rfft2(kernel * 2.0**bits, (tall, wide)))
    filtered = np.empty(planes.shape)
    for place in np.ndindex(planes.shape[:-2]):  # one plane at a time: photographs are large
        padded = planes[place].take(rows, axis=0).take(columns, axis=1)
        spectrum = np.fft.rfft2(padded, (tall, wide))
        spectrum *= response
        filtered[place] = np.rint(np.fft.irfft2(spectrum, (tall, wide))[:height, :width])
    filtered *= 2.0**-bits
    return filtered


def _smooth_lines(planes: NDArray[np.float64], sigma: float, truncate: float, border: Border) -> NDArray[np.float64]:
    """Blur the last axis: short lines by one matrix, long ones block by block, each with what lies around it."""
    size = planes.shape[-1]
    if size <= _SHORT:
        return planes @ _gaussian_matrix(size, sigma, truncate, border).T
    kernel = gaussian_kernel(sigma, truncate)
    reach = len(kernel) // 2
    block = max(_SHORT // 2, 2 * reach)
    if block >= size:
        return planes @ filter_matrix(size, kernel, border).T
    padded = planes.take(border_indices(np.arange(-reach, size + reach), size, border), axis=-1)
    band = np.zeros((block + 2 * reach, block))
    for column in range(block):
        band[column : column + len(kernel), column] = kernel
    smooth = np.empty_like(planes)
    for start in range(0, size, block):
        width = min(block, size - start)
        around = padded[..., start : start + width + 2 * reach]
        smooth[..., start : start + width] = around @ band[: width + 2 * reach, :width]
    return smooth


@functools.lru_cache(maxsize=64)
def _gaussian_matrix(size: int, sigma: float, truncate: float, border: Border) -> NDArray[np.float64]:
    matrix = filter_matrix(size, gaussian_kernel(sigma, truncate), border)
    matrix.flags.writeable = False
    return matrix


def _smooth_number(length: int) -> int:
    """Return the next length without prime factors above 5, for which Fourier transforms are fast."""
    while True:
        rest = length
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
        length += 1

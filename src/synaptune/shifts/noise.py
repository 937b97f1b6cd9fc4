"""Noise that acts on each byte on its own: Gaussian, shot, impulse and speckle noise.

Such noise is fully described by a 256 x 256 table, the probability of each output byte given the input byte. The
table is computed from the published formula, truncation to bytes included, and sampled by the alias method with one
32-bit word per byte. This is exact up to 2**-24 in probability, needs no normal or Poisson numbers, and costs the same
for all four.

    gaussian  x + s z        shot  Poisson(c x) / c        impulse  0 or 1 with probability a        speckle  x + s x z

Walker, *An efficient method for generating discrete random variables* (ACM TOMS 1977); the tables are filled as in
Marsaglia, *Generating discrete random variables in a computer* (CACM 1963). The published generators draw real
numbers instead (Hendrycks and Dietterich, ICLR 2019).
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from synaptune.shifts.presets import Amount
from synaptune.shifts.randomness import ImageStreams

__all__ = ["gaussian_noise", "impulse_noise", "shot_noise", "speckle_noise"]

_BUCKET = 1 << 24
_Table = tuple[NDArray[np.uint32], NDArray[np.uint8]]


def gaussian_noise(images: NDArray[np.uint8], level: Amount, streams: ImageStreams) -> NDArray[np.uint8]:
    """Add normal noise of standard deviation `level`, as a share of the full range."""
    return _sample(images, _gaussian_table(level.value), streams)


def shot_noise(images: NDArray[np.uint8], level: Amount, streams: ImageStreams) -> NDArray[np.uint8]:
    """Count photons: white is a mean of `level` of them."""
    return _sample(images, _shot_table(level.value), streams)


def impulse_noise(images: NDArray[np.uint8], level: Amount, streams: ImageStreams) -> NDArray[np.uint8]:
    """Replace a share `level` of all values, each channel on its own, by black or white."""
    return _sample(images, _impulse_table(level.value), streams)


def speckle_noise(images: NDArray[np.uint8], level: Amount, streams: ImageStreams) -> NDArray[np.uint8]:
    """Add normal noise in proportion to the value."""
    return _sample(images, _speckle_table(level.value), streams)


def _sample(images: NDArray[np.uint8], table: _Table, streams: ImageStreams) -> NDArray[np.uint8]:
    """Draw one output byte for each input byte: the low 8 bits choose a bucket, the high 24 its side."""
    threshold, alias = table
    words = streams.words(images[0].size)
    bucket = words.astype(np.uint8)
    entry = (images.reshape(words.shape).astype(np.uint16) << 8) | bucket
    words >>= 8
    return np.where(words < threshold.take(entry), bucket, alias.take(entry)).reshape(images.shape)


@functools.lru_cache(maxsize=32)
def _gaussian_table(sigma: float) -> _Table:
    rows = [_truncated_normal_row(float(value), 255 * sigma) for value in range(256)]
    return _alias_table(np.array(rows))


@functools.lru_cache(maxsize=32)
def _speckle_table(sigma: float) -> _Table:
    rows = [_truncated_normal_row(float(value), value * sigma) for value in range(256)]
    return _alias_table(np.array(rows))


@functools.lru_cache(maxsize=32)
def _shot_table(photons: float) -> _Table:
    counts = np.arange(math.ceil(photons))  # more photons than white has are white
    outputs = np.floor(counts / photons * 255).astype(np.int64)
    log_factorials = np.array([math.lgamma(count + 1) for count in counts])
    rows = np.zeros((256, 256))
    rows[0, 0] = 1
    for value in range(1, 256):
        mean = photons * value / 255
        masses = np.exp(counts * math.log(mean) - mean - log_factorials)
        rows[value] = np.bincount(outputs, weights=masses, minlength=256)
        rows[value, 255] += max(0.0, 1 - masses.sum())
    return _alias_table(rows)


@functools.lru_cache(maxsize=32)
def _impulse_table(share: float) -> _Table:
    rows = np.eye(256) * (1 - share)
    rows[:, 0] += share / 2
    rows[:, 255] += share / 2
    return _alias_table(rows)


def _truncated_normal_row(mean: float, deviation: float) -> NDArray[np.float64]:
    """Return P(output byte) of a normal value that is clipped to [0, 255] and truncated."""
    row = np.zeros(256)
    if deviation == 0:
        row[int(mean)] = 1
        return row
    scale = 1 / (deviation * math.sqrt(2))
    below = np.array([0.5 * math.erfc((mean - edge) * scale) for edge in range(1, 256)])  # P(value < edge)
    return np.diff(below, prepend=0.0, append=1.0)


def _alias_table(rows: NDArray[np.float64]) -> _Table:
    """Fill 256 equal buckets per row: each keeps its own outcome up to a threshold, and gives the rest away."""
    left = np.stack([_whole_units(row) for row in rows])
    threshold = np.full((256, 256), _BUCKET, dtype=np.int64)
    alias = np.tile(np.arange(256), (256, 1))
    every = np.arange(256)
    for _ in range(255):
        poor, rich = left.argmin(axis=1), left.argmax(axis=1)
        need = _BUCKET - left[every, poor]
        # A full bucket has nothing to ask for; it must keep the side that was filled before.
        open_rows = need > 0
        row, poor, rich, need = every[open_rows], poor[open_rows], rich[open_rows], need[open_rows]
        threshold[row, poor] = _BUCKET - need
        alias[row, poor] = rich
        left[row, rich] -= need
        left[row, poor] = _BUCKET
    return threshold.astype(np.uint32).ravel(), alias.astype(np.uint8).ravel()


def _whole_units(row: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round probabilities to multiples of 2**-32 that sum to exactly one."""
    units = np.floor(row * 2.0**32 + 0.5).astype(np.int64)
    units[row.argmax()] += 2**32 - units.sum()
    return units

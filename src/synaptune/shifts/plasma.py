"""The diamond-square fractal: cloudy height maps, for a whole batch at a time.

Starting from one corner of a torus, the centre of every square becomes the mean of its corners plus noise, then the
centre of every side the mean of its four neighbours plus noise; the step halves and the noise shrinks.

Fournier, Fussell and Carpenter, *Computer rendering of stochastic models* (CACM 1982), in the variant of the
published corruption generators, whose borders wrap around.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synaptune.shifts.randomness import ImageStreams

__all__ = ["plasma"]

_FIRST_WIBBLE = 100.0


def plasma(streams: ImageStreams, side: int, decay: float) -> NDArray[np.float64]:
    """Return one wrapped diamond-square fractal per image, scaled to [0, 1]: (batch, side, side).

    Every octave halves the step and divides the roughness by `decay` twice: the published code multiplies the
    range of its noise by the same number again.
    """
    batch = len(streams)
    heights = np.zeros((batch, side, side))
    noise = streams.signed(side * side - 1)
    used = 0
    wibble, step = _FIRST_WIBBLE, side
    while step >= 2:
        cells, half = side // step, step // 2
        count = cells * cells
        rough = noise[:, used : used + 3 * count].reshape(batch, 3, cells, cells) * (wibble * wibble)
        used += 3 * count
        corner = heights[:, ::step, ::step]
        below = np.roll(corner, -1, axis=1)
        right = np.roll(corner, -1, axis=2)
        centre = (corner + below + right + np.roll(below, -1, axis=2)) / 4 + rough[:, 0]
        heights[:, half::step, half::step] = centre
        heights[:, ::step, half::step] = (centre + np.roll(centre, 1, axis=1) + corner + right) / 4 + rough[:, 1]
        heights[:, half::step, ::step] = (centre + np.roll(centre, 1, axis=2) + corner + below) / 4 + rough[:, 2]
        step = half
        wibble /= decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    heights /= heights.max(axis=(1, 2), keepdims=True)
    return heights

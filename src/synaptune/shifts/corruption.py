"""The corruptions by name, and the function that applies one to a batch.

The 15 of the benchmark and the 4 that its authors keep for tuning; see `presets` for sizes and strengths and
`randomness` for why the result of an image depends on nothing but the image, its index and the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from synaptune.errors import InputError, OptionError, UnknownNameError
from synaptune.shifts import blur, digital, noise, weather
from synaptune.shifts.presets import SIZES, Size, strength_of
from synaptune.shifts.randomness import ImageStreams
from synaptune.shifts.spatter import spatter

__all__ = ["CORRUPTIONS", "EXTRA_CORRUPTIONS", "SEVERITIES", "check_request", "corrupt", "names"]

Kind = Literal["benchmark", "extra", "all"]
Apply = Callable[[NDArray[np.uint8], Any, ImageStreams], NDArray[np.uint8]]

_BENCHMARK: Mapping[str, Apply] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "defocus_blur": blur.defocus_blur,
    "glass_blur": blur.glass_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "brightness": weather.brightness,
    "contrast": digital.contrast,
    "elastic_transform": digital.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
}
_EXTRA: Mapping[str, Apply] = {
    "speckle_noise": noise.speckle_noise,
    "gaussian_blur": blur.gaussian_blur,
    "spatter": spatter,
    "saturate": digital.saturate,
}

CORRUPTIONS: tuple[str, ...] = tuple(_BENCHMARK)
"""The 15 corruptions of the benchmark, in its order."""
EXTRA_CORRUPTIONS: tuple[str, ...] = tuple(_EXTRA)
"""The 4 on which a method may be tuned."""
SEVERITIES: tuple[int, ...] = (1, 2, 3, 4, 5)

# Values that are worked on at once: 64 images at 32 x 32, one at 224 x 224; more falls out of the processor's cache.
_CHUNK_VALUES = 200_000


def names(kind: Kind = "benchmark") -> tuple[str, ...]:
    """Return the names of the corruptions: of the benchmark, the extra ones, or all 19.

    >>> names("extra")
    ('speckle_noise', 'gaussian_blur', 'spatter', 'saturate')
    """
    try:
        return {
            "benchmark": CORRUPTIONS,
            "extra": EXTRA_CORRUPTIONS,
            "all": CORRUPTIONS + EXTRA_CORRUPTIONS,
        }[kind]
    except KeyError:
        raise OptionError(f"kind must be 'benchmark', 'extra' or 'all', not {kind!r}") from None


def corrupt(
    images: NDArray[np.uint8],
    name: str,
    severity: int,
    *,
    seed: int = 0,
    indices: Sequence[int] | NDArray[np.integer[Any]] | None = None,
    size: Size | None = None,
) -> NDArray[np.uint8]:
    """Corrupt a batch of images.

    The result for one image depends on its pixels, its index and the seed, not on the rest of the batch.

    Args:
        images: uint8, (batch, height, width, 3), RGB; left as it is.
        name: one of `names("all")`.
        severity: 1 (mild) to 5.
        seed: chooses the random streams.
        indices: which images these are, (batch,), not negative; by default 0, 1, 2, ...
        size: take the published parameters for images of 32, 64 or 224 pixels as they are. By default the nearest
            ones are taken, and lengths are scaled to the shorter side of the images.

    Returns:
        uint8, of the same shape.

    >>> clean = np.full((2, 32, 32, 3), 100, np.uint8)
    >>> corrupt(clean, "brightness", 1)[0, 0, 0].tolist()
    [112, 112, 112]
    >>> both, last = corrupt(clean, "fog", 5), corrupt(clean[1:], "fog", 5, indices=[1])
    >>> bool((both[1] == last[0]).all())
    True
    """
    apply = check_request(name, severity, seed=seed, size=size)
    _check_images(images)
    where = _checked_indices(indices, len(images))
    height, width = images.shape[1:3]
    strength = strength_of(name, severity, height=height, width=width, size=size)
    corrupted = np.empty(images.shape, dtype=np.uint8)
    chunk = max(1, _CHUNK_VALUES // (height * width * 3))
    for start in range(0, len(images), chunk):
        part = np.s_[start : start + chunk]
        streams = ImageStreams(where[part], seed=seed, name=name, severity=severity)
        corrupted[part] = apply(np.ascontiguousarray(images[part]), strength, streams)
    return corrupted


def check_request(name: str, severity: int, *, seed: int, size: Size | None) -> Apply:
    """Return the function behind a name, or raise if name or options cannot be used."""
    apply = _BENCHMARK.get(name) or _EXTRA.get(name)
    if apply is None:
        raise UnknownNameError("corruption", name, names("all"))
    if severity not in SEVERITIES:
        raise OptionError(f"severity goes from 1 (mild) to 5 (severe), not {severity!r}")
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
        raise OptionError(f"seed must be a whole number, not {seed!r}")
    if size is not None and size not in SIZES:
        raise OptionError(
            f"size names the published table, 32, 64 or 224, not {size!r}; leave it out for images of other sizes"
        )
    return apply


def _check_images(images: NDArray[Any]) -> None:
    if not isinstance(images, np.ndarray):
        raise InputError(
            f"corrupt takes a NumPy array, not {type(images).__name__}; for tensors and PIL images use Corrupt"
        )
    if images.dtype != np.uint8:
        raise InputError(
            f"images must be uint8 (0 to 255), not {images.dtype}; corrupt them before scaling or normalising"
        )
    if images.ndim != 4 or images.shape[-1] != 3 or 0 in images.shape[1:]:
        raise InputError(
            f"images must have shape (batch, height, width, 3), not {tuple(images.shape)}; "
            "a single image needs a leading axis, images[None], a grey one three channels"
        )


def _checked_indices(indices: Sequence[int] | NDArray[np.integer[Any]] | None, count: int) -> NDArray[np.integer[Any]]:
    if indices is None:
        return np.arange(count)
    where = np.asarray(indices)
    if count == 0 and where.size == 0:
        return np.arange(0)
    if where.shape != (count,) or where.dtype.kind not in "iu" or (where.size and where.min() < 0):
        raise InputError(
            f"indices must be {count} whole numbers from 0 on, one for each image, "
            f"not {where.dtype} of shape {where.shape}"
        )
    return where

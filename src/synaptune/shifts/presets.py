"""The strengths of every corruption: the published constants, per image size and severity.

The numbers are facts taken from the generators of CIFAR-C (32), Tiny-ImageNet-C (64) and ImageNet-C (224) by
Hendrycks and Dietterich, *Benchmarking Neural Network Robustness to Common Corruptions and Perturbations*
(ICLR 2019; hendrycks/robustness, `make_cifar_c.py`, `make_tinyimagenet_c.py`, `make_imagenet_c.py`, Apache-2.0).

Images of another size use the table of the nearest published size. Their lengths in pixels (blur widths, motion,
displacements, grain of textures) are multiplied by `side / published side`, so the picture looks equally bad
at every resolution; amplitudes, probabilities and JPEG quality stay. At a published size the factor is one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self

import numpy as np

__all__ = [
    "LEVELS",
    "SIZES",
    "Amount",
    "Defocus",
    "Elastic",
    "Fog",
    "Frost",
    "Glass",
    "Motion",
    "Pixelate",
    "Saturate",
    "Size",
    "Smooth",
    "Snow",
    "Spatter",
    "Strength",
    "Zoom",
    "nearest_size",
    "strength_of",
]

Size = Literal[32, 64, 224]
SIZES: tuple[Size, ...] = (32, 64, 224)


class Strength(Protocol):
    """The parameters of one corruption at one severity."""

    def scaled(self, factor: float) -> Self:
        """Return the parameters for images whose side is `factor` times the published one."""
        ...


@dataclass(frozen=True)
class Amount:
    """One number without a length: a noise level, a contrast, a quality."""

    value: float

    def scaled(self, factor: float) -> Self:
        return self


@dataclass(frozen=True)
class Smooth:
    """A Gaussian blur: standard deviation in pixels."""

    sigma: float

    def scaled(self, factor: float) -> Self:
        return replace(self, sigma=self.sigma * factor)


@dataclass(frozen=True)
class Defocus:
    """A disk of `radius` pixels whose edge is softened by a Gaussian of `alias_sigma`."""

    radius: float
    alias_sigma: float

    def scaled(self, factor: float) -> Self:
        return replace(self, radius=self.radius * factor)


@dataclass(frozen=True)
class Glass:
    """Blur, move every pixel by up to `reach` for some `rounds`, blur again."""

    sigma: float
    reach: int
    rounds: int

    def scaled(self, factor: float) -> Self:
        return replace(self, sigma=self.sigma * factor, reach=max(1, round(self.reach * factor)))


@dataclass(frozen=True)
class Motion:
    """A one-sided Gaussian streak: `radius` bounds its length, `sigma` sets its decay."""

    radius: float
    sigma: float

    def scaled(self, factor: float) -> Self:
        return replace(self, radius=self.radius * factor, sigma=self.sigma * factor)


@dataclass(frozen=True)
class Zoom:
    """The zoom factors that are averaged: from 1 in steps towards `stop`.

    Where rounding makes `arange` reach `stop` (1.06 and 1.11), it counts, as it did for the published data.
    """

    stop: float
    step: float

    @property
    def factors(self) -> tuple[float, ...]:
        return tuple(float(factor) for factor in np.arange(1, self.stop, self.step))

    def scaled(self, factor: float) -> Self:
        return self


@dataclass(frozen=True)
class Snow:
    """A layer of zoomed, thresholded and wind-blown noise over a whitened image."""

    mean: float
    spread: float
    zoom: float
    threshold: float
    radius: float
    sigma: float
    keep: float

    def scaled(self, factor: float) -> Self:
        flakes = max(1.0, self.zoom * factor)
        return replace(self, zoom=flakes, radius=self.radius * factor, sigma=self.sigma * factor)


@dataclass(frozen=True)
class Frost:
    """Image and ice texture, weighted and added; `texture_scale` resizes the published photographs."""

    image_weight: float
    ice_weight: float
    texture_scale: float

    def scaled(self, factor: float) -> Self:
        return replace(self, texture_scale=self.texture_scale * factor)


@dataclass(frozen=True)
class Fog:
    """Thickness of the haze, and how fast its roughness decays from one octave to the next."""

    thickness: float
    decay: float

    def scaled(self, factor: float) -> Self:
        return self


@dataclass(frozen=True)
class Spatter:
    """Drops of water (`mud` false) or of mud (`mud` true), cut from smoothed noise by a threshold."""

    mean: float
    spread: float
    sigma: float
    threshold: float
    opacity: float
    mud: bool

    def scaled(self, factor: float) -> Self:
        # For mud the fifth published number is a blur width, for water it is an opacity.
        opacity = self.opacity * factor if self.mud else self.opacity
        return replace(self, sigma=self.sigma * factor, opacity=opacity)


@dataclass(frozen=True)
class Saturate:
    """Saturation becomes `gain * saturation + offset`."""

    gain: float
    offset: float

    def scaled(self, factor: float) -> Self:
        return self


@dataclass(frozen=True)
class Elastic:
    """Displacement `amplitude` and smoothness `sigma` of the field, `jitter` of the affine map; all in pixels."""

    amplitude: float
    sigma: float
    jitter: float

    def scaled(self, factor: float) -> Self:
        return replace(self, amplitude=self.amplitude * factor, sigma=self.sigma * factor, jitter=self.jitter * factor)


@dataclass(frozen=True)
class Pixelate:
    """The share of the pixels of a side that is left."""

    share: float

    def scaled(self, factor: float) -> Self:
        return replace(self, share=min(1.0, self.share / factor))


Five = tuple[Strength, Strength, Strength, Strength, Strength]


def _amounts(*values: float) -> Five:
    a, b, c, d, e = (Amount(value) for value in values)
    return a, b, c, d, e


def _smooths(*values: float) -> Five:
    a, b, c, d, e = (Smooth(value) for value in values)
    return a, b, c, d, e


def _zooms(*values: tuple[float, float]) -> Five:
    a, b, c, d, e = (Zoom(stop, step) for stop, step in values)
    return a, b, c, d, e


def _pixelates(*values: float) -> Five:
    a, b, c, d, e = (Pixelate(value) for value in values)
    return a, b, c, d, e


def _elastics(side: int, *values: tuple[float, float, float]) -> Five:
    """Read the published triples, which are given as shares of the image side."""
    a, b, c, d, e = (Elastic(side * alpha, side * sigma, side * jitter) for alpha, sigma, jitter in values)
    return a, b, c, d, e


_CIFAR: dict[str, Five] = {
    "gaussian_noise": _amounts(0.04, 0.06, 0.08, 0.09, 0.10),
    "shot_noise": _amounts(500, 250, 100, 75, 50),
    "impulse_noise": _amounts(0.01, 0.02, 0.03, 0.05, 0.07),
    "speckle_noise": _amounts(0.06, 0.1, 0.12, 0.16, 0.2),
    "gaussian_blur": _smooths(0.4, 0.6, 0.7, 0.8, 1),
    "defocus_blur": (Defocus(0.3, 0.4), Defocus(0.4, 0.5), Defocus(0.5, 0.6), Defocus(1, 0.2), Defocus(1.5, 0.1)),
    "glass_blur": (Glass(0.05, 1, 1), Glass(0.25, 1, 1), Glass(0.4, 1, 1), Glass(0.25, 1, 2), Glass(0.4, 1, 2)),
    "motion_blur": (Motion(6, 1), Motion(6, 1.5), Motion(6, 2), Motion(8, 2), Motion(9, 2.5)),
    "zoom_blur": _zooms((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    "snow": (
        Snow(0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        Snow(0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        Snow(0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        Snow(0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        Snow(0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    "frost": (
        Frost(1, 0.2, 0.2),
        Frost(1, 0.3, 0.2),
        Frost(0.9, 0.4, 0.2),
        Frost(0.85, 0.4, 0.2),
        Frost(0.75, 0.45, 0.2),
    ),
    "fog": (Fog(0.2, 3), Fog(0.5, 3), Fog(0.75, 2.5), Fog(1, 2), Fog(1.5, 1.75)),
    "spatter": (
        Spatter(0.62, 0.1, 0.7, 0.7, 0.5, mud=False),
        Spatter(0.65, 0.1, 0.8, 0.7, 0.5, mud=False),
        Spatter(0.65, 0.3, 1, 0.69, 0.5, mud=False),
        Spatter(0.65, 0.1, 0.7, 0.69, 0.6, mud=True),
        Spatter(0.65, 0.1, 0.5, 0.68, 0.6, mud=True),
    ),
    "brightness": _amounts(0.05, 0.1, 0.15, 0.2, 0.3),
    "contrast": _amounts(0.75, 0.5, 0.4, 0.3, 0.15),
    "saturate": (Saturate(0.3, 0), Saturate(0.1, 0), Saturate(1.5, 0), Saturate(2, 0.1), Saturate(2.5, 0.2)),
    "elastic_transform": _elastics(
        32, (0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)
    ),
    "pixelate": _pixelates(0.95, 0.9, 0.85, 0.75, 0.65),
    "jpeg_compression": _amounts(80, 65, 58, 50, 40),
}

_TINY_IMAGENET: dict[str, Five] = {
    "gaussian_noise": _amounts(0.04, 0.08, 0.12, 0.15, 0.18),
    "shot_noise": _amounts(250, 100, 50, 30, 15),
    "impulse_noise": _amounts(0.01, 0.02, 0.05, 0.08, 0.14),
    "speckle_noise": _amounts(0.15, 0.2, 0.25, 0.3, 0.35),
    "gaussian_blur": _smooths(0.5, 0.75, 1, 1.25, 1.5),
    "defocus_blur": (Defocus(0.5, 0.6), Defocus(1, 0.1), Defocus(1.5, 0.1), Defocus(2.5, 0.01), Defocus(3, 0.1)),
    "glass_blur": (Glass(0.1, 1, 1), Glass(0.5, 1, 1), Glass(0.6, 1, 2), Glass(0.7, 2, 1), Glass(0.9, 2, 2)),
    "motion_blur": (Motion(10, 1), Motion(10, 1.5), Motion(10, 2), Motion(10, 2.5), Motion(12, 3)),
    "zoom_blur": _zooms((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    "snow": (
        Snow(0.1, 0.2, 1, 0.6, 8, 3, 0.8),
        Snow(0.1, 0.2, 1, 0.5, 10, 4, 0.8),
        Snow(0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
        Snow(0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
        Snow(0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
    ),
    "frost": (
        Frost(1, 0.3, 0.3),
        Frost(0.9, 0.4, 0.3),
        Frost(0.8, 0.45, 0.3),
        Frost(0.75, 0.5, 0.3),
        Frost(0.7, 0.55, 0.3),
    ),
    "fog": (Fog(0.4, 3), Fog(0.7, 3), Fog(1, 2.5), Fog(1.5, 2), Fog(2, 1.75)),
    "spatter": (
        Spatter(0.62, 0.1, 0.7, 0.7, 0.6, mud=False),
        Spatter(0.65, 0.1, 0.8, 0.7, 0.6, mud=False),
        Spatter(0.65, 0.3, 1, 0.69, 0.6, mud=False),
        Spatter(0.65, 0.1, 0.7, 0.68, 0.6, mud=True),
        Spatter(0.65, 0.1, 0.5, 0.67, 0.6, mud=True),
    ),
    "brightness": _amounts(0.1, 0.2, 0.3, 0.4, 0.5),
    "contrast": _amounts(0.4, 0.3, 0.2, 0.1, 0.05),
    "saturate": (Saturate(0.3, 0), Saturate(0.1, 0), Saturate(2, 0), Saturate(5, 0.1), Saturate(30, 0.2)),
    "elastic_transform": _elastics(
        64, (0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03), (0.16, 0.03, 0.02)
    ),
    "pixelate": _pixelates(0.9, 0.8, 0.7, 0.6, 0.5),
    "jpeg_compression": _amounts(65, 58, 50, 40, 25),
}

_IMAGENET: dict[str, Five] = {
    "gaussian_noise": _amounts(0.08, 0.12, 0.18, 0.26, 0.38),
    "shot_noise": _amounts(60, 25, 12, 5, 3),
    "impulse_noise": _amounts(0.03, 0.06, 0.09, 0.17, 0.27),
    "speckle_noise": _amounts(0.15, 0.2, 0.35, 0.45, 0.6),
    "gaussian_blur": _smooths(1, 2, 3, 4, 6),
    "defocus_blur": (Defocus(3, 0.1), Defocus(4, 0.5), Defocus(6, 0.5), Defocus(8, 0.5), Defocus(10, 0.5)),
    "glass_blur": (Glass(0.7, 1, 2), Glass(0.9, 2, 1), Glass(1, 2, 3), Glass(1.1, 3, 2), Glass(1.5, 4, 2)),
    "motion_blur": (Motion(10, 3), Motion(15, 5), Motion(15, 8), Motion(15, 12), Motion(20, 15)),
    "zoom_blur": _zooms((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    "snow": (
        Snow(0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        Snow(0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        Snow(0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        Snow(0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        Snow(0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
    "frost": (
        Frost(1, 0.4, 1),
        Frost(0.8, 0.6, 1),
        Frost(0.7, 0.7, 1),
        Frost(0.65, 0.7, 1),
        Frost(0.6, 0.75, 1),
    ),
    "fog": (Fog(1.5, 2), Fog(2, 2), Fog(2.5, 1.7), Fog(2.5, 1.5), Fog(3, 1.4)),
    "spatter": (
        Spatter(0.65, 0.3, 4, 0.69, 0.6, mud=False),
        Spatter(0.65, 0.3, 3, 0.68, 0.6, mud=False),
        Spatter(0.65, 0.3, 2, 0.68, 0.5, mud=False),
        Spatter(0.65, 0.3, 1, 0.65, 1.5, mud=True),
        Spatter(0.67, 0.4, 1, 0.65, 1.5, mud=True),
    ),
    "brightness": _amounts(0.1, 0.2, 0.3, 0.4, 0.5),
    "contrast": _amounts(0.4, 0.3, 0.2, 0.1, 0.05),
    "saturate": (Saturate(0.3, 0), Saturate(0.1, 0), Saturate(2, 0), Saturate(5, 0.1), Saturate(20, 0.2)),
    # 244, not 224, stands in the published generator; the data were made with it.
    "elastic_transform": _elastics(
        244, (2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)
    ),
    "pixelate": _pixelates(0.6, 0.5, 0.4, 0.3, 0.25),
    "jpeg_compression": _amounts(25, 18, 15, 10, 7),
}

LEVELS: Mapping[Size, Mapping[str, Five]] = {32: _CIFAR, 64: _TINY_IMAGENET, 224: _IMAGENET}


def nearest_size(height: int, width: int) -> Size:
    """Return the published size whose side is nearest, as a ratio, to the shorter side of the image.

    >>> nearest_size(28, 28), nearest_size(96, 96), nearest_size(480, 640)
    (32, 64, 224)
    """
    side = max(1, min(height, width))
    return min(SIZES, key=lambda size: abs(math.log(side / size)))


def strength_of(name: str, severity: int, *, height: int, width: int, size: Size | None = None) -> Strength:
    """Return the parameters of a corruption for images of `height` x `width` pixels.

    With `size`, the published table is taken as it is, whatever the images; without, the nearest table is
    taken and its lengths are scaled to the shorter side.

    >>> strength_of("motion_blur", 1, height=224, width=224)
    Motion(radius=10.0, sigma=3.0)
    >>> strength_of("motion_blur", 1, height=448, width=600)
    Motion(radius=20.0, sigma=6.0)
    >>> strength_of("motion_blur", 1, height=448, width=600, size=224)
    Motion(radius=10, sigma=3)
    """
    if size is not None:
        return LEVELS[size][name][severity - 1]
    table = nearest_size(height, width)
    return LEVELS[table][name][severity - 1].scaled(min(height, width) / table)

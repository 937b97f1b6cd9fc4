"""Weather: snow, frost, fog and brightness.

    snow        keep x + (1 - keep) max(x, 1.5 grey + 0.5) + flakes + flakes turned by 180 degrees
    frost       a x + b ice,  ice a random window of one of five photographs
    fog         (x + c plasma) m / (m + c),  m the largest value of the image, plasma a diamond-square fractal
    brightness  V + c in HSV

Formulas of Hendrycks and Dietterich, *Benchmarking Neural Network Robustness to Common Corruptions and Perturbations*
(ICLR 2019).
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from synaptune.shifts.fixed_point import to_bytes
from synaptune.shifts.ice import ice_textures
from synaptune.shifts.motion import blur_along
from synaptune.shifts.plasma import plasma
from synaptune.shifts.presets import Amount, Fog, Frost, Snow
from synaptune.shifts.randomness import ImageStreams
from synaptune.shifts.resampling import clipped_zoom, zoom_window

__all__ = ["brightness", "fog", "frost", "snow"]


def brightness(images: NDArray[np.uint8], level: Amount, streams: ImageStreams) -> NDArray[np.uint8]:  # noqa: ARG001
    """Raise the value of HSV; hue and saturation stay, so a pixel is scaled by new over old value."""
    red, green, blue = (images[..., channel] for channel in range(3))
    value = np.maximum(np.maximum(red, green), blue)
    entry = (value.astype(np.uint16) << 8)[..., None] | images
    return _brightened(level.value).take(entry)


@functools.lru_cache(maxsize=32)
def _brightened(step: float) -> NDArray[np.uint8]:
    """Return the table (value of the pixel, value of the channel) -> new channel, flat."""
    value = np.arange(256.0)[:, None]
    raised = np.minimum(value + 255 * step, 255.0)
    # Black has no hue; it becomes grey.
    ratio = np.where(value > 0, np.arange(256.0) / np.maximum(value, 1), 1.0)
    return to_bytes(raised * ratio).ravel()


def fog(images: NDArray[np.uint8], level: Fog, streams: ImageStreams) -> NDArray[np.uint8]:
    """Lay a cloud over the image and bring the result back into range."""
    height, width = images.shape[1:3]
    side = 1 << (max(height, width, 2) - 1).bit_length()
    haze = plasma(streams, side, level.decay)[:, :height, :width, None].astype(np.float32)
    haze *= np.float32(255 * level.thickness)
    brightest = images.max(axis=(1, 2, 3), keepdims=True) / 255.0
    haze = images + haze
    haze *= (brightest / (brightest + level.thickness)).astype(np.float32)
    return to_bytes(haze)


def frost(images: NDArray[np.uint8], level: Frost, streams: ImageStreams) -> NDArray[np.uint8]:
    """Add a random window of a photograph of ice."""
    height, width = images.shape[1:3]
    textures = ice_textures(level.texture_scale, height, width)
    frosted = images.astype(np.float32)
    frosted *= np.float32(level.image_weight)
    for target, (choice, down, right) in zip(frosted, streams.words(3).tolist(), strict=True):
        texture = textures[choice * len(textures) >> 32]
        top = down * max(1, texture.shape[0] - height) >> 32
        left = right * max(1, texture.shape[1] - width) >> 32
        window = texture.window(top, left, height, width).astype(np.float32)
        window *= np.float32(level.ice_weight)
        target += window
    return to_bytes(frosted)


def snow(images: NDArray[np.uint8], level: Snow, streams: ImageStreams) -> NDArray[np.uint8]:
    """Whiten the image and let flakes fall over it, blown along a direction of its own."""
    flakes = _flakes(images.shape[1:3], level, streams)
    angles = streams.uniform(1, -135, -45)[:, 0]
    blown = blur_along(flakes[..., None], angles, radius=level.radius, sigma=level.sigma)
    fallen = (blown.astype(np.uint16) + blown[:, ::-1, ::-1]).astype(np.float32)

    pixels = images.astype(np.float32)
    grey = pixels[..., :1] * np.float32(0.299)
    grey += pixels[..., 1:2] * np.float32(0.587)
    grey += pixels[..., 2:] * np.float32(0.114)
    grey *= np.float32(1.5)
    grey += np.float32(127.5)
    whitened = np.maximum(pixels, grey)
    whitened *= np.float32(1 - level.keep)
    pixels *= np.float32(level.keep)
    pixels += whitened
    pixels += fallen
    return to_bytes(pixels)


def _flakes(shape: tuple[int, ...], level: Snow, streams: ImageStreams) -> NDArray[np.uint8]:
    """Return the layer of flakes before the wind: (batch, h, w)."""
    height, width = shape
    (_, tall), (_, wide) = zoom_window(height, level.zoom), zoom_window(width, level.zoom)
    # Only the window that is enlarged is ever seen, so only its noise is drawn.
    grain = streams.normal(tall * wide) * np.float32(level.spread) + np.float32(level.mean)
    grain = np.ascontiguousarray(grain.T).reshape(tall, wide, len(streams))
    layer = clipped_zoom(grain, level.zoom, height=height, width=width)
    layer[layer < level.threshold] = 0
    layer *= np.float32(255)
    return np.ascontiguousarray(to_bytes(layer).transpose(2, 0, 1))

"""Training augmentation as operations on whole batches of uint8 images.

Every random number comes from the generator that is passed in, so a batch depends on its seed alone and not on
what was drawn before: this is what makes a training run resumable at any step. The generator is on the CPU wherever
the images are, so every device sees the same augmentation.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from synaptune.functional.augmentation import quarter_turns

__all__ = ["random_crop", "random_mirror", "random_resized_crop", "random_rotation", "rotate", "to_float"]

_AREAS = (0.08, 1.0)  # of the part, as a share of the image
_RATIOS = (3 / 4, 4 / 3)  # of its width to its height
_TRIES = 10


def to_float(images: Tensor) -> Tensor:
    """Images in [0, 1] for the network: uint8 (batch, h, w, c) to float (batch, c, h, w), channels innermost."""
    return images.permute(0, 3, 1, 2).float().div_(255)


def random_crop(images: Tensor, generator: torch.Generator, *, padding: int) -> Tensor:
    """Shift each image by up to `padding` pixels in both directions; what comes in is black.

    Shapes: uint8 (batch, h, w, c) in and out.
    """
    if padding == 0:
        return images
    count, height, width, channels = images.shape
    padded = images.new_zeros(count, height + 2 * padding, width + 2 * padding, channels)
    padded[:, padding : padding + height, padding : padding + width] = images
    corners = torch.randint(0, 2 * padding + 1, (2, count), generator=generator)
    rows = (corners[0, :, None] + torch.arange(height)).to(images.device)  # (batch, h)
    columns = (corners[1, :, None] + torch.arange(width)).to(images.device)  # (batch, w)
    index = torch.arange(count, device=images.device)
    return padded[index[:, None, None], rows[:, :, None], columns[:, None, :]]


def random_resized_crop(images: Tensor, generator: torch.Generator, *, size: tuple[int, int]) -> Tensor:
    """Scale a random part of each image to `size`: the usual augmentation of photographs (Szegedy et al., 2015).

    Area and proportions are drawn as torchvision does; sampling is bilinear. Shapes: uint8 (batch, h, w, c) in and out.
    """
    count, height, width, channels = images.shape
    boxes = _parts(count, height, width, generator).to(images.device)
    top, left, tall, wide = (boxes / torch.tensor([height, width, height, width], device=images.device)).unbind(1)
    zero = torch.zeros_like(top)
    # From the output's coordinates, -1 to 1, to the image's.
    matrices = torch.stack([wide, zero, 2 * left + wide - 1, zero, tall, 2 * top + tall - 1], 1).view(count, 2, 3)
    grid = F.affine_grid(matrices, [count, channels, *size], align_corners=False)
    pixels = images.permute(0, 3, 1, 2).float()
    scaled = F.grid_sample(pixels, grid, padding_mode="border", align_corners=False)
    return scaled.round().clamp(0, 255).byte().permute(0, 2, 3, 1).contiguous()


def _parts(count: int, height: int, width: int, generator: torch.Generator) -> Tensor:
    """Top, left, height and width of a random part of each image, in pixels, (count, 4)."""
    area = height * width * torch.empty(_TRIES, count).uniform_(*_AREAS, generator=generator)
    ratio = torch.empty(_TRIES, count).uniform_(*map(math.log, _RATIOS), generator=generator).exp()
    tall, wide = (area / ratio).sqrt().round().clamp_min(1), (area * ratio).sqrt().round().clamp_min(1)
    fits = (tall <= height) & (wide <= width)
    first = fits.long().argmax(0, keepdim=True)
    tall, wide = tall.gather(0, first)[0], wide.gather(0, first)[0]
    # Where none fits, as in very long images: the whole one.
    none = ~fits.any(0)
    tall, wide = tall.masked_fill(none, height), wide.masked_fill(none, width)
    places = torch.rand(2, count, generator=generator)
    top, left = (places[0] * (height - tall + 1)).floor(), (places[1] * (width - wide + 1)).floor()
    return torch.stack([top, left, tall, wide], 1)


def random_mirror(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror each image, left to right, with probability one half. Shapes: (batch, h, w, c) in and out."""
    mirrored = torch.rand(len(images), generator=generator) < 0.5
    return torch.where(mirrored.to(images.device)[:, None, None, None], images.flip(2), images)


def rotate(images: Tensor, quarters: Tensor) -> Tensor:
    """Turn each image counter-clockwise by its number of quarters. Shapes: square (batch, h, w, c), (batch,)."""
    return quarter_turns(images.permute(0, 3, 1, 2), quarters).permute(0, 2, 3, 1)


def random_rotation(images: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Turn each image by a random number of quarters; returns the images and the numbers."""
    quarters = torch.randint(0, 4, (len(images),), generator=generator)
    return rotate(images, quarters), quarters

"""Training augmentation as operations on whole batches of uint8 images.

Every random number comes from the generator that is passed in, so a batch depends on its seed alone and not on
what was drawn before: this is what makes a training run resumable at any step. The generator is on the CPU wherever
the images are, so every device sees the same augmentation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from synaptune.functional.augmentation import quarter_turns

__all__ = ["random_crop", "random_mirror", "random_rotation", "rotate", "to_float"]


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

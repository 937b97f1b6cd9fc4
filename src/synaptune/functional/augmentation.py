"""Random crops, flips and quarter turns of a batch, drawn from a given generator."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["crop_and_flip", "quarter_turns"]


def crop_and_flip(images: Tensor, *, padding: int, generator: torch.Generator) -> Tensor:
    """Pad with zeros, crop back to the same size at a random place, mirror half of the images.

    Args:
        images: (batch, channels, height, width).
        padding: pixels added on every side.
        generator: where the draws come from; on the CPU.
    """
    batch, _, height, width = images.shape
    padded = F.pad(images, (padding, padding, padding, padding))
    cpu = generator.device  # whatever the caller has made the default
    top = torch.randint(0, 2 * padding + 1, (batch, 1), generator=generator, device=cpu)
    left = torch.randint(0, 2 * padding + 1, (batch, 1), generator=generator, device=cpu)
    mirrored = torch.rand(batch, 1, generator=generator, device=cpu) < 0.5
    columns = torch.arange(width, device=cpu).expand(batch, width)
    columns = torch.where(mirrored, width - 1 - columns, columns) + left  # (batch, width)
    rows = torch.arange(height, device=cpu) + top  # (batch, height)
    index = torch.arange(batch, device=cpu)
    device = images.device
    picked = padded[index.to(device)[:, None, None], :, rows.to(device)[:, :, None], columns.to(device)[:, None, :]]
    return picked.permute(0, 3, 1, 2).contiguous()


def quarter_turns(images: Tensor, turns: Tensor) -> Tensor:
    """Rotate each image counter-clockwise by its number of quarter turns; oblong ones can only be turned by halves.

    >>> image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> quarter_turns(image, torch.tensor([1])).flatten().tolist()
    [2.0, 4.0, 1.0, 3.0]
    """
    turned = images.clone()
    for count in (1, 2, 3):
        chosen = turns == count
        if bool(chosen.any()):
            at = chosen.to(images.device)
            turned[at] = torch.rot90(images[at], count, dims=(2, 3))
    return turned

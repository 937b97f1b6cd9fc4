"""AugMix: mixing chains of simple image operations, as operations on whole batches.

    mixed = (1 - m) x + m sum_i w_i chain_i(x),   w ~ Dirichlet(1, ..., 1),  m ~ Beta(1, 1)

Each chain applies one to three operations, drawn with replacement: autocontrast, equalise, posterise, solarise,
rotate, shear and translate in both directions; none of them is among the corruptions that robustness is measured
on. Their strength is `level` out of 10, with level ~ U(0.1, severity). The consistency loss is

    JSD = mean_i KL(p_i || mean p)   over the predictions for the clean and two mixed images.

Paper: Hendrycks et al., AugMix, ICLR 2020; ranges of the operations as in its code (google-research/augmix). We
differ in how: each operation runs once on all images of the batch that drew it, geometry goes through one affine
grid with bilinear sampling and black outside, and chains stay on uint8 like the original's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["augmix", "jensen_shannon", "operations"]

Operation = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Takes uint8 images (n, c, h, w), levels (n,) in [0, 10] and signs (n,) of +-1; gives images."""


def augmix(images: Tensor, generator: torch.Generator, *, severity: int = 3, width: int = 3) -> Tensor:
    """Mix each image with augmented versions of itself.

    Shapes: uint8 (batch, h, w, c) to float in [0, 1], (batch, c, h, w).

    Args:
        images: cropped and mirrored already.
        generator: on the CPU; all that is random comes from it.
        severity: highest level of the operations, 1 to 10.
        width: number of chains.
    """
    pixels = images.permute(0, 3, 1, 2)
    count = len(pixels)
    # Gamma(1) is the exponential distribution; normalised draws of it are a Dirichlet(1, ..., 1).
    draws = -torch.rand(count, width, generator=generator).clamp_min(1e-12).log()
    weights = draws / draws.sum(1, keepdim=True)
    share = torch.rand(count, generator=generator)  # Beta(1, 1) is uniform
    weights, share = weights.to(pixels.device), share.to(pixels.device)
    total = torch.zeros(pixels.shape, dtype=torch.float32, device=pixels.device)
    for chain in range(width):
        augmented = _chain(pixels, generator, severity=severity)
        total += weights[:, chain, None, None, None] * augmented.float()
    share = share[:, None, None, None]
    mixed = ((1 - share) * pixels.float() + share * total) / 255
    return mixed.contiguous(memory_format=torch.channels_last)


def jensen_shannon(logits: Sequence[Tensor]) -> Tensor:
    """Mean Jensen-Shannon divergence between predictions for the same images; zero where they agree.

    >>> import torch
    >>> same = torch.tensor([[2.0, -1.0]])
    >>> abs(jensen_shannon([same, same, same]).item()) < 1e-6
    True
    """
    # From logarithms alone: the derivative of p log p is not finite once p is so small that it is stored as zero.
    logs = torch.stack([row.log_softmax(1) for row in logits])
    # The lower bound keeps classes that all predictions call impossible from pulling.
    log_mean = (logs.logsumexp(0) - math.log(len(logits))).clamp_min(math.log(1e-7))
    return (logs.exp() * (logs - log_mean)).sum(2).mean()


def _chain(pixels: Tensor, generator: torch.Generator, *, severity: int) -> Tensor:
    """Apply one to three random operations to each image."""
    count, steps = len(pixels), 3
    depths = torch.randint(1, steps + 1, (count,), generator=generator)
    choices = torch.randint(0, len(_OPERATIONS), (steps, count), generator=generator)
    levels = 0.1 + (severity - 0.1) * torch.rand(steps, count, generator=generator)
    signs = torch.randint(0, 2, (steps, count), generator=generator) * 2 - 1
    device = pixels.device
    result = pixels.clone()
    for step in range(steps):
        active = depths > step
        for number, operation in enumerate(_OPERATIONS.values()):
            drawn = (active & (choices[step] == number)).nonzero()[:, 0]
            if len(drawn):
                here = drawn.to(device)
                result[here] = operation(result[here], levels[step, drawn].to(device), signs[step, drawn].to(device))
    return result


def autocontrast(pixels: Tensor, level: Tensor, sign: Tensor) -> Tensor:  # noqa: ARG001
    """Stretch each channel so that its darkest value becomes 0 and its brightest 255."""
    lowest, highest = pixels.amin((2, 3), keepdim=True).float(), pixels.amax((2, 3), keepdim=True).float()
    stretched = (pixels - lowest) * (255 / (highest - lowest).clamp_min(1))
    return torch.where(highest > lowest, stretched, pixels.float()).clamp(0, 255).byte()


def equalise(pixels: Tensor, level: Tensor, sign: Tensor) -> Tensor:  # noqa: ARG001
    """Flatten the histogram of each channel: a value goes to the share of darker pixels."""
    count, channels, height, width = pixels.shape
    flat = pixels.reshape(count * channels, -1).long()
    histogram = flat.new_zeros(count * channels, 256).scatter_add_(1, flat, torch.ones_like(flat))
    cumulative = histogram.cumsum(1)
    # As in Pillow: the brightest occupied bin does not count, and one 255th of the rest is a step.
    occupied = histogram > 0
    brightest = 255 - occupied.flip(1).long().argmax(1)
    last = histogram.gather(1, brightest[:, None])
    step = (height * width - last) // 255
    table = ((cumulative - histogram + step // 2) // step.clamp_min(1)).clamp(0, 255)
    table = torch.where(step > 0, table, torch.arange(256, device=pixels.device))
    return table.gather(1, flat).byte().view(count, channels, height, width)


def posterise(pixels: Tensor, level: Tensor, sign: Tensor) -> Tensor:  # noqa: ARG001
    """Keep the four highest bits, or up to four fewer at the highest level."""
    dropped = (4 + (level * 4 / 10).int()).clamp(0, 8)
    mask = (0xFF << dropped) & 0xFF
    return pixels & mask.byte()[:, None, None, None]


def solarise(pixels: Tensor, level: Tensor, sign: Tensor) -> Tensor:  # noqa: ARG001
    """Invert what is brighter than a threshold, which falls from 256 with the level."""
    threshold = 256 - (level * 256 / 10).int()
    return torch.where(pixels.int() < threshold[:, None, None, None], pixels, 255 - pixels)


def rotate(pixels: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    """Turn by up to 30 degrees."""
    angle = sign * (level * 30 / 10).int() * math.pi / 180
    zero = torch.zeros_like(angle)
    return _affine(pixels, angle.cos(), -angle.sin(), zero, angle.sin(), angle.cos(), zero)


def shear_x(pixels: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    """Shift each row sideways in proportion to its height, by up to 0.3 pixels per row."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _affine(pixels, one, sign * level * 0.3 / 10, zero, zero, one, zero)


def shear_y(pixels: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    """Shift each column up or down in proportion to its place, by up to 0.3 pixels per column."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _affine(pixels, one, zero, zero, sign * level * 0.3 / 10, one, zero)


def translate_x(pixels: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    """Shift sideways by up to a third of the width."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    # The affine grid spans two units over the width.
    shift = 2 * sign * (level * (pixels.shape[3] / 3) / 10).int() / pixels.shape[3]
    return _affine(pixels, one, zero, shift, zero, one, zero)


def translate_y(pixels: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    """Shift up or down by up to a third of the height."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    shift = 2 * sign * (level * (pixels.shape[2] / 3) / 10).int() / pixels.shape[2]
    return _affine(pixels, one, zero, zero, zero, one, shift)


def _affine(pixels: Tensor, *entries: Tensor) -> Tensor:
    """Sample where the 2x3 matrices point to, bilinearly; black outside."""
    matrices = torch.stack([entry.float() for entry in entries], 1).view(-1, 2, 3)
    grid = F.affine_grid(matrices, list(pixels.shape), align_corners=False)
    return F.grid_sample(pixels.float(), grid, align_corners=False).round().clamp(0, 255).byte()


_OPERATIONS: dict[str, Operation] = {
    "autocontrast": autocontrast,
    "equalise": equalise,
    "posterise": posterise,
    "rotate": rotate,
    "solarise": solarise,
    "shear_x": shear_x,
    "shear_y": shear_y,
    "translate_x": translate_x,
    "translate_y": translate_y,
}


def operations() -> dict[str, Operation]:
    """The operations that chains are drawn from, by name."""
    return dict(_OPERATIONS)

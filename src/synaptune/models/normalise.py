"""Input normalisation as a part of the model, so that it travels with the weights.

    y = (x - mean) / std,  per channel,  x in [0, 1]

A network that is fed with the wrong mean or standard deviation still runs, and is silently worse by many points.
Every model of this package therefore takes plain images in [0, 1] and normalises them itself. The constants are
buffers that are not saved: they belong to the architecture's entry in the zoo, and published checkpoints, which
do not know them, load without special cases.
"""

# No postponed annotations here: TorchScript reads those of the buffers, and cannot resolve them as text.
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from synaptune.errors import OptionError

__all__ = ["HALF", "IMAGENET_MEAN", "IMAGENET_STD", "Normalise", "Normalised"]

HALF = (0.5, 0.5, 0.5)
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class Normalise(nn.Module):
    """Subtract a mean and divide by a standard deviation, per channel.

    Shapes: (batch, channels, height, width) in and out.

    >>> import torch
    >>> Normalise((0.5,), (0.25,))(torch.full((1, 1, 1, 1), 0.75)).item()
    1.0
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]):
        super().__init__()
        if len(mean) != len(std) or not mean:
            raise OptionError(f"mean has {len(mean)} values and std has {len(std)}; give one of each per input channel")
        if any(not value > 0 for value in std):
            raise OptionError(f"std must be positive in every channel, got {tuple(std)}")
        self.register_buffer("mean", torch.tensor(tuple(mean)).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(tuple(std)).view(1, -1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return (images - self.mean) / self.std

    def extra_repr(self) -> str:
        rounded = [[round(value, 4) for value in part.flatten().tolist()] for part in (self.mean, self.std)]
        return f"mean={rounded[0]}, std={rounded[1]}"


class Normalised(nn.Module):
    """A model that expects normalised input, behind its normalisation: takes images in [0, 1].

    The wrapped model is the attribute `model`; its own code and parameters stay as they are.
    """

    def __init__(self, model: nn.Module, mean: Sequence[float], std: Sequence[float]):
        super().__init__()
        self.normalise = Normalise(mean, std)
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.model(self.normalise(images))
        return logits

"""From the pixels of one picture to what the network takes: resize, crop, scale to [0, 1], normalise.

    x = (crop(resize(pixels)) / 255 - mean) / std

What the evaluation transforms of torchvision and timm do, with Pillow's antialiasing; the constants come with the
weights. Feeding other ones is the commonest way to lose many points in silence, so overriding them is explicit.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from synaptune.errors import OptionError

if TYPE_CHECKING:
    from synaptune.data.images import Pixels
    from synaptune.models.card import Card

__all__ = ["Interpolation", "Preprocessing"]

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """How pictures become network input.

    Attributes:
        size: height and width of the input.
        resize: length that the shorter side is brought to before the centre is cut out; None: just enough to cover.
        interpolation: how to resize.
        mean: per channel, subtracted; empty: pictures go in as they are in [0, 1].
        std: per channel, divided by.
        channels: 3, or 1 for networks that take grey pictures.

    >>> pixels = np.full((40, 60, 3), 255, np.uint8)
    >>> Preprocessing(size=(8, 8), mean=(0.5,), std=(0.25,))(pixels).unique()
    tensor([2.])
    """

    size: tuple[int, int]
    resize: int | None = None
    interpolation: Interpolation = "bilinear"
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    channels: Literal[1, 3] = 3

    def __post_init__(self) -> None:
        problems = []
        if min(self.size) < 1:
            problems.append(f"size must be positive, not {self.size}")
        if self.resize is not None and self.resize < min(self.size):
            problems.append(
                f"resize must be at least {min(self.size)}, the shorter side of the crop, not {self.resize}"
            )
        if self.interpolation not in get_args(Interpolation):
            known = ", ".join(get_args(Interpolation))
            problems.append(f"interpolation must be one of {known}, not {self.interpolation!r}")
        if self.channels not in (1, 3):
            problems.append(f"channels must be 1 or 3, not {self.channels}")
        if len(self.mean) != len(self.std) or len(self.mean) not in (0, 1, self.channels):
            problems.append(
                f"mean and std need one value each, or one per channel ({self.channels}), not {self.mean}, {self.std}"
            )
        if any(not value > 0 for value in self.std) or not all(map(math.isfinite, (*self.mean, *self.std))):
            problems.append(f"std must be positive, and both finite; not {self.mean} and {self.std}")
        if problems:
            raise OptionError(f"preprocessing: {'; '.join(problems)}")

    @classmethod
    def from_card(cls, card: Card, *, channels: Literal[1, 3] = 3) -> Self:
        """Take what a model's card says; without a word on normalisation there, pictures go in as they are."""
        outside = card.normalisation == "outside"
        known = card.interpolation in get_args(Interpolation)
        return cls(
            size=card.input_size,
            resize=None if card.resize is None else max(card.resize, min(card.input_size)),
            # timm has models that were trained with a random choice of methods; bilinear is the middle of these.
            interpolation=card.interpolation if known else "bilinear",  # type: ignore[arg-type]  # checked above
            mean=card.mean if outside else (),
            std=card.std if outside else (),
            channels=channels,
        )

    def changed(
        self,
        *,
        size: tuple[int, int] | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> Self:
        """Return a copy with some of it overridden; another size keeps the share of the picture that the crop shows."""
        changes: dict[str, Any] = {}
        if size is not None:
            share = None if self.resize is None else self.resize / min(self.size)
            changes |= {"size": size, "resize": None if share is None else round(share * min(size))}
        if mean is not None:
            changes["mean"] = tuple(mean)
        if std is not None:
            changes["std"] = tuple(std)
        return dataclasses.replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(self).items()
        }

    def __call__(self, pixels: Pixels) -> Tensor:
        """Shapes: uint8 (height, width, 3) to float (channels, height, width)."""
        cut = self.cut(pixels)
        if self.channels == 1:
            cut = np.asarray(Image.fromarray(cut).convert("L"))[:, :, None]
        image = torch.from_numpy(np.array(cut)).permute(2, 0, 1).float().div_(255)
        if self.mean:
            image.sub_(torch.tensor(self.mean).view(-1, 1, 1)).div_(torch.tensor(self.std).view(-1, 1, 1))
        return image.contiguous()

    def cut(self, pixels: Pixels) -> Pixels:
        """Resize a picture and cut out its centre. Shapes: uint8 (height, width, 3) in and out."""
        height, width = self.size
        if pixels.shape[:2] == self.size and self.resize is None:
            return pixels
        image = Image.fromarray(pixels)
        method = Image.Resampling[self.interpolation.upper()]
        image = image.resize(self._scaled_size(image.width, image.height), method)
        # Python rounds halves to even here, as torchvision's CenterCrop does.
        left, top = round((image.width - width) / 2), round((image.height - height) / 2)
        return np.asarray(image.crop((left, top, left + width, top + height)))

    def _scaled_size(self, width: int, height: int) -> tuple[int, int]:
        """The picture's new width and height: large enough for the crop, proportions kept."""
        if self.resize is None:
            scale = max(self.size[0] / height, self.size[1] / width)
            return max(self.size[1], round(width * scale)), max(self.size[0], round(height * scale))
        # The longer side is cut, not rounded, as torchvision's Resize does.
        short = self.resize
        scaled = (short, int(short * height / width)) if width <= height else (int(short * width / height), short)
        return max(scaled[0], self.size[1]), max(scaled[1], self.size[0])

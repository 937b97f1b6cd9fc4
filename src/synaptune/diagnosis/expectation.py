"""Which input a model expects, as far as anything about it tells; and whether a sample looks like it.

A network fed with the wrong mean or standard deviation runs on and is silently worse by many points, so what is
known is said, and what is not known is said too. In this order: the model normalises its input itself; timm's
`pretrained_cfg`, which travels with the model; the metadata of torchvision's weights for the model's family.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import EnumMeta
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from synaptune.models.card import Card

__all__ = ["Expectation", "expected_input", "sample_problems"]

_CHANNELS = (1, 3, 4)
# Pictures seldom reach the very ends; what lies this far outside of the range cannot be one (interpolation overshoots).
_SLACK = 0.1


@dataclass(frozen=True)
class Expectation:
    """What a model wants to be fed with.

    Attributes:
        source: who says so; for an unknown expectation, what to do about it.
        size: (channels, height, width), where known.
        mean: per channel, of images in [0, 1], to be subtracted before the model; None where unknown.
        std: per channel, to be divided by.
        normalises_itself: the model takes images in [0, 1] and does the rest.
    """

    source: str
    size: tuple[int, int, int] | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    normalises_itself: bool = False

    @classmethod
    def from_card(cls, card: Card) -> Expectation | None:
        """Take what a model's card says; None if it says nothing about normalisation."""
        if card.normalisation == "unknown":
            return None
        return cls(
            f"the card of {card.name}",
            size=(len(card.mean) or 3, *card.input_size),
            mean=card.mean or None,
            std=card.std or None,
            normalises_itself=card.normalisation in ("inside", "none"),
        )

    @property
    def is_known(self) -> bool:
        """Whether the range of values is known."""
        return self.normalises_itself or (self.mean is not None and self.std is not None)

    @property
    def range(self) -> tuple[float, float] | None:
        """Lowest and highest value that black and white can have in any channel."""
        if self.normalises_itself:
            return 0.0, 1.0
        if self.mean is None or self.std is None:
            return None
        pairs = list(zip(self.mean, self.std, strict=True))
        return min(-mean / std for mean, std in pairs), max((1 - mean) / std for mean, std in pairs)

    def __str__(self) -> str:
        if not self.is_known:
            return f"unknown: {self.source}"
        size = "" if self.size is None else f"{'x'.join(map(str, self.size))}, "
        if self.normalises_itself:
            return f"{size}images in [0, 1]; {self.source}"
        return f"{size}(x - {_spell(self.mean)}) / {_spell(self.std)}; {self.source}"


def expected_input(model: nn.Module) -> Expectation:
    """Look for what tells which input `model` expects.

    >>> print(expected_input(nn.Linear(2, 2)))
    unknown: nothing in the model tells; feed it what it was trained on
    """
    for finder in (_own_normalisation, _timm_config, _torchvision_weights):
        found = finder(model)
        if found is not None:
            return found
    return Expectation("nothing in the model tells; feed it what it was trained on")


def _own_normalisation(model: nn.Module) -> Expectation | None:
    for name, module in model.named_modules():
        mean, std = _numbers(getattr(module, "mean", None)), _numbers(getattr(module, "std", None))
        # Models of timm carry `mean` nowhere; a random distribution has no parameters but is no module either.
        if mean and std and len(mean) == len(std) and len(mean) in _CHANNELS:
            where = f"its part {name!r}" if name else "the model itself"
            return Expectation(f"{where} normalises them", mean=mean, std=std, normalises_itself=True)
    return None


def _timm_config(model: nn.Module) -> Expectation | None:
    for module in model.modules():
        config = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
        if not isinstance(config, Mapping):
            continue
        mean, std, size = (_numbers(config.get(key)) for key in ("mean", "std", "input_size"))
        if mean and std:
            tag = config.get("tag") or ""
            name = ".".join(filter(None, (config.get("architecture"), tag)))
            shape = tuple(map(int, size)) if size else ()
            return Expectation(
                f"timm's pretrained_cfg{f' of {name}' if name else ''}",
                size=(shape[0], shape[1], shape[2]) if len(shape) == 3 else None,
                mean=mean,
                std=std,
            )
    return None


def _torchvision_weights(model: nn.Module) -> Expectation | None:
    """What all published weights of the model's family agree on; a torchvision model does not know which it has."""
    for module in model.modules():
        home = type(module).__module__
        if home.startswith("torchvision.models.") and home in sys.modules:
            found = {(_numbers(t.mean), _numbers(t.std)) for t in _published_transforms(sys.modules[home])}
            if len(found) == 1:
                mean, std = found.pop()
                return Expectation(
                    f"all of torchvision's weights for {type(module).__name__} (if yours are among them)",
                    mean=mean,
                    std=std,
                )
    return None


def _published_transforms(module: Any) -> Iterator[Any]:
    for enum in vars(module).values():
        if not isinstance(enum, EnumMeta):
            continue
        members: Iterator[Any] = iter(enum)
        for member in members:
            transforms = getattr(member.value, "transforms", None)
            if callable(transforms):
                made = transforms()
                if hasattr(made, "mean") and hasattr(made, "std"):
                    yield made


def sample_problems(sample: Tensor, expects: Expectation, *, channels: int | None) -> list[tuple[str, str]]:
    """Compare a batch with what the model expects; return (topic, sentence) for each thing that is wrong.

    Args:
        sample: a batch of floating point images.
        expects: what the model wants.
        channels: what its first convolution takes.
    """
    problems = []
    if sample.dim() != 4:
        problems.append(("sample-shape", f"the sample has shape {tuple(sample.shape)}; images are (batch, C, H, W)"))
    elif channels is not None and sample.shape[1] != channels:
        last = sample.shape[3] == channels
        hint = "; channels come last in it: sample.permute(0, 3, 1, 2)" if last else ""
        problems.append(
            ("sample-shape", f"the sample has {sample.shape[1]} channels, the first convolution takes {channels}{hint}")
        )
    elif expects.size is not None and tuple(sample.shape[2:]) != expects.size[1:]:
        size, trained = ("x".join(map(str, shape)) for shape in (sample.shape[2:], expects.size[1:]))
        problems.append(("sample-size", f"the sample is {size}; the weights were evaluated at {trained}"))
    if not bool(torch.isfinite(sample).all()):
        problems.append(("sample-range", "the sample holds NaN or infinity"))
    elif expects.range is not None:
        problems += _range_problems(float(sample.min()), float(sample.max()), expects)
    return problems


def _range_problems(low: float, high: float, expects: Expectation) -> list[tuple[str, str]]:
    assert expects.range is not None
    least, most = expects.range
    values = f"values from {low:.3g} to {high:.3g}"
    if high > 20:
        fix = "divide by 255" if expects.normalises_itself else "divide by 255, then normalise"
        return [("sample-range", f"the sample has {values}: it looks like 0..255; {fix}")]
    if low < least - _SLACK or high > most + _SLACK:
        wanted = f"expected are {least:.3g} to {most:.3g}"
        twice = "; it looks normalised already, which the model does itself" if expects.normalises_itself else ""
        return [("sample-range", f"the sample has {values}; {wanted}{twice}")]
    if not expects.normalises_itself and low >= 0 and high <= 1 and least < -0.5:
        return [("sample-range", f"the sample has {values}: it looks as if mean and std had not been applied")]
    return []


def _numbers(value: Any) -> tuple[float, ...] | None:
    if isinstance(value, Tensor):
        return tuple(value.detach().flatten().tolist()) if 0 < value.numel() <= max(_CHANNELS) else None
    if isinstance(value, Sequence) and value and all(isinstance(entry, int | float) for entry in value):
        return tuple(map(float, value))
    return None


def _spell(values: tuple[float, ...] | None) -> str:
    assert values is not None
    shown = [f"{value:.4g}" for value in values]
    return shown[0] if len(set(shown)) == 1 else f"({', '.join(shown)})"

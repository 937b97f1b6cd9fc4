"""What a training run does, as one frozen value; and its learning rate as a pure function.

One-cycle (Smith & Topin, 2018): the rate rises linearly from lr / 25 to lr during the warm-up share, then falls
along half a cosine to lr / 1000. Step (He et al., 2016): lr, times gamma at each milestone.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints

from synaptune.errors import OptionError

__all__ = ["Recipe", "learning_rate"]

ONE_CYCLE_START = 1 / 25
ONE_CYCLE_END = 1 / 1000


BELOW_ONE = math.nextafter(1, 0)
ABOVE_ZERO = math.nextafter(0, 1)
LARGEST = sys.float_info.max
_RANGES = {
    "epochs": (1, LARGEST, "at least 1"),
    "batch_size": (1, LARGEST, "at least 1"),
    "lr": (ABOVE_ZERO, LARGEST, "positive and finite"),
    "momentum": (0, BELOW_ONE, "in [0, 1)"),
    "weight_decay": (0, LARGEST, "finite and not negative"),
    "warm_up": (0, BELOW_ONE, "in [0, 1)"),
    "gamma": (ABOVE_ZERO, LARGEST, "positive and finite"),
    "label_smoothing": (0, BELOW_ONE, "in [0, 1)"),
    "ema_decay": (0, BELOW_ONE, "in [0, 1)"),
    "crop_padding": (0, LARGEST, "not negative"),
    "augmix_severity": (1, 10, "from 1 to 10"),
    "augmix_width": (1, LARGEST, "at least 1"),
    "jsd_weight": (0, LARGEST, "finite and not negative"),
    "rotation_share": (0, 1, "in [0, 1]"),
    "rotation_weight": (0, LARGEST, "finite and not negative"),
    "recalibration_images": (0, LARGEST, "not negative"),
}


def _option(default: object, text: str) -> Any:  # a dataclass field takes the type of its annotation
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train: optimiser, schedule, augmentation, precision, seed.

    >>> Recipe(epochs=2).schedule
    'one_cycle'
    """

    epochs: int = _option(30, "passes over the training set")
    batch_size: int = _option(128, "images per step; the incomplete last batch of an epoch is left out")
    lr: float = _option(0.1, "highest learning rate of SGD")
    momentum: float = _option(0.9, "Nesterov momentum of SGD; 0 for none")
    weight_decay: float = _option(5e-4, "weight decay on all parameters")
    schedule: Literal["one_cycle", "step"] = _option("one_cycle", "how the learning rate changes")
    warm_up: float = _option(0.2, "share of the steps in which the one-cycle rate rises")
    milestones: tuple[int, ...] = _option((), "epochs at which the step schedule multiplies the rate by gamma")
    gamma: float = _option(0.1, "factor of the step schedule")
    label_smoothing: float = _option(0.0, "share of the target spread evenly over the classes")
    ema_decay: float = _option(0.0, "decay of the averaged weights, which are the result; 0: no average")
    augmentation: Literal["none", "crop_flip", "crop", "augmix"] = _option(
        "crop_flip", "none, shifted crop and mirror, shifted crop alone (digits), or crop, mirror and AugMix"
    )
    crop_padding: int = _option(4, "pixels of zeros around the image from which the crop is taken")
    augmix_severity: int = _option(3, "strength of AugMix's operations, 1 to 10")
    augmix_width: int = _option(3, "chains that AugMix mixes")
    jsd_weight: float = _option(
        0.0, "weight of AugMix's consistency loss between the clean and two mixed views; 0: one mixed view"
    )
    rotation: Literal["random", "expand"] = _option(
        "random", "one random quarter turn for each image of the share, or all four"
    )
    rotation_share: float = _option(0.0, "share of each batch that also trains the rotation head; 0: no head")
    rotation_weight: float = _option(1.0, "weight of the rotation loss")
    precision: Literal["float32", "bfloat16"] = _option("float32", "arithmetic of the convolutions")
    channels_last: bool = _option(True, "memory layout with the channels innermost, faster on CPUs")
    recalibration_images: int = _option(
        10_000, "training images from which the norm layers' statistics are taken at the end; 0: keep running"
    )
    seed: int = _option(0, "of order, augmentation, rotation, dropout")

    def __post_init__(self) -> None:
        problems = [*self._unknown_words(), *self._values_out_of_range()]
        if self.jsd_weight and self.augmentation != "augmix":
            problems.append("jsd_weight needs augmentation='augmix'")
        if list(self.milestones) != sorted(set(self.milestones)):
            problems.append(f"milestones must rise, got {self.milestones}")
        if problems:
            raise OptionError("recipe: " + "; ".join(problems))

    def _unknown_words(self) -> Iterator[str]:
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if get_origin(kind) is Literal and value not in get_args(kind):
                yield f"{name} must be one of {', '.join(get_args(kind))}, got {value!r}"

    def _values_out_of_range(self) -> Iterator[str]:
        for name, (lowest, highest, wording) in _RANGES.items():
            value = getattr(self, name)
            # Not the opposite comparison, so that NaN is refused too.
            if not lowest <= value <= highest:
                yield f"{name} must be {wording}, got {value}"

    def to_json(self) -> str:
        """The recipe as one line of JSON, equal for equal recipes."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """The recipe that `to_json` wrote."""
        values = json.loads(text)
        known = {item.name for item in dataclasses.fields(cls)}
        if unknown := sorted(set(values) - known):
            raise OptionError(f"recipe: unknown options {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        values["milestones"] = tuple(values.get("milestones", ()))
        return cls(**values)


def learning_rate(step: int, total_steps: int, *, recipe: Recipe) -> float:
    """The learning rate of step `step` (from 0) of `total_steps`.

    >>> recipe = Recipe(epochs=1, lr=1.0, warm_up=0.5)
    >>> [round(learning_rate(step, 5, recipe=recipe), 3) for step in range(5)]
    [0.04, 0.52, 1.0, 0.5, 0.001]
    """
    if recipe.schedule == "step":
        epoch = step * recipe.epochs // total_steps
        return recipe.lr * recipe.gamma ** sum(epoch >= milestone for milestone in recipe.milestones)
    position = step / max(1, total_steps - 1)
    if position < recipe.warm_up:
        return recipe.lr * (ONE_CYCLE_START + (1 - ONE_CYCLE_START) * position / recipe.warm_up)
    fall = (position - recipe.warm_up) / (1 - recipe.warm_up)
    return recipe.lr * (ONE_CYCLE_END + (1 - ONE_CYCLE_END) * (1 + math.cos(math.pi * fall)) / 2)

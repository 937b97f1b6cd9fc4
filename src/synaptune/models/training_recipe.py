"""What a training run does, as one frozen value; and its learning rate as a pure function.

One-cycle (Smith & Topin, 2018): the rate rises linearly from lr / 25 to lr during the warm-up share, then falls
along half a cosine to lr / 1000. Step (He et al., 2016): lr, times gamma at each milestone.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Literal

from synaptune.errors import OptionError
from synaptune.options import Options, option

__all__ = ["TrainingRecipe", "learning_rate"]

ONE_CYCLE_START = 1 / 25
ONE_CYCLE_END = 1 / 1000
BELOW_ONE = math.nextafter(1, 0)


@dataclass(frozen=True, kw_only=True)
class TrainingRecipe(Options):
    """How to train: optimiser, schedule, augmentation, precision, seed.

    >>> TrainingRecipe(epochs=2).schedule
    'one_cycle'
    """

    epochs: int = option(30, "passes over the training set", at_least=1)
    batch_size: int = option(128, "images per step; an epoch's incomplete last batch is left out", at_least=1)
    lr: float = option(0.1, "highest learning rate of SGD", above=0)
    momentum: float = option(0.9, "Nesterov momentum of SGD; 0 for none", at_least=0, at_most=BELOW_ONE)
    weight_decay: float = option(5e-4, "weight decay on all parameters", at_least=0)
    schedule: Literal["one_cycle", "step"] = option("one_cycle", "how the learning rate changes")
    warm_up: float = option(0.2, "share of the steps in which the one-cycle rate rises", at_least=0, at_most=BELOW_ONE)
    milestones: tuple[int, ...] = option((), "epochs at which the step schedule multiplies the rate by gamma")
    gamma: float = option(0.1, "factor of the step schedule", above=0)
    label_smoothing: float = option(
        0.0, "share of the target spread evenly over the classes", at_least=0, at_most=BELOW_ONE
    )
    ema_decay: float = option(
        0.0, "decay of the averaged weights, which are the result; 0: no average", at_least=0, at_most=BELOW_ONE
    )
    augmentation: Literal["none", "crop", "crop_flip", "augmix", "resized_crop"] = option(
        "crop_flip",
        "none; shifted crop (digits); crop and mirror; crop, mirror and AugMix; a part of a photograph and mirror",
    )
    crop_padding: int = option(4, "pixels of black around the image from which the crop is taken", at_least=0)
    augmix_severity: int = option(3, "strength of AugMix's operations", at_least=1, at_most=10)
    augmix_width: int = option(3, "chains that AugMix mixes", at_least=1)
    jsd_weight: float = option(
        0.0, "weight of AugMix's consistency loss (its authors: 12); 0: train on one mixed view", at_least=0
    )
    rotation: Literal["random", "expand"] = option(
        "random", "one random quarter turn for each image of the share, or all four"
    )
    rotation_share: float = option(
        0.0, "share of each batch that also trains the rotation head; 0: no head", at_least=0, at_most=1
    )
    rotation_weight: float = option(1.0, "weight of the rotation loss", at_least=0)
    precision: Literal["float32", "bfloat16"] = option("float32", "arithmetic of convolutions and linear layers")
    channels_last: bool = option(True, "memory layout with the channels innermost, faster on CPUs")
    recalibration_images: int = option(
        10_000, "training images that give the batch norms' statistics at the end; 0: as they ran", at_least=0
    )
    seed: int = option(0, "of order, augmentation, rotation and dropout", at_least=0)

    def contradictions(self) -> list[str]:
        problems = []
        if self.jsd_weight and self.augmentation != "augmix":
            problems.append("jsd_weight needs augmentation='augmix'")
        if list(self.milestones) != sorted(set(self.milestones)):
            problems.append(f"milestones must rise, not {self.milestones}")
        return problems

    def to_json(self) -> str:
        """The recipe as one line of JSON, equal for equal recipes."""
        return json.dumps(self.as_dict(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> TrainingRecipe:
        """The recipe that `to_json` wrote."""
        values = json.loads(text)
        known = {item.name for item in dataclasses.fields(cls)}
        if unknown := sorted(set(values) - known):
            raise OptionError(f"recipe: unknown options {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        return cls(**values)


def learning_rate(step: int, total_steps: int, *, recipe: TrainingRecipe) -> float:
    """The learning rate of step `step` (from 0) of `total_steps`.

    >>> recipe = TrainingRecipe(epochs=1, lr=1.0, warm_up=0.5)
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

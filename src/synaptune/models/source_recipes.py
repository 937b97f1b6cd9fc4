"""How the zoo's networks are trained: recipe and data set by name, so that a name gets what it promises.

Those for `resnet26-cifar10-rotation`, `digits-mnist` and `wrn-40-2-cifar10` are the ones that our own weights were made
with; networks of the same kind share them. Every other network gets the defaults.
"""

from __future__ import annotations

from synaptune.models import zoo
from synaptune.models.training_recipe import TrainingRecipe

__all__ = ["RECIPES", "data_for", "recipe_for"]

_WITH_ROTATION = TrainingRecipe(
    epochs=40,
    batch_size=128,
    lr=0.2,
    warm_up=0.2,
    label_smoothing=0.05,
    ema_decay=0.998,
    rotation_share=0.25,
    rotation_weight=0.5,
)
# Not mirrored: a digit is another sign then, or none.
_DIGITS = TrainingRecipe(
    epochs=4, batch_size=128, lr=0.05, warm_up=0.2, augmentation="crop", crop_padding=2, precision="bfloat16"
)
_WITH_AUGMIX = TrainingRecipe(
    epochs=45, batch_size=512, lr=0.3, warm_up=0.1, augmentation="augmix", jsd_weight=12.0, precision="bfloat16"
)

RECIPES: dict[str, TrainingRecipe] = {
    "resnet26-cifar10-rotation": _WITH_ROTATION,
    "resnet26-gn-cifar10-rotation": _WITH_ROTATION,
    "digits-mnist": _DIGITS,
    "digits-svhn": _DIGITS,
    "wrn-40-2-cifar10": _WITH_AUGMIX,
    "wrn-40-2-cifar10-augmix": _WITH_AUGMIX,
    "wrn-40-2-cifar100-augmix": _WITH_AUGMIX,
    "efficientnet-lite0-imagenet": TrainingRecipe(augmentation="resized_crop"),
}
"""Recipes by the zoo's names; `TrainingRecipe.replace` changes single options."""

# ImageNet's is missing: the catalogue has its validation images only.
_DATA = {"CIFAR-10 train": "cifar10", "CIFAR-100 train": "cifar100", "MNIST train": "mnist", "SVHN train": "svhn"}


def recipe_for(name: str) -> TrainingRecipe:
    """The recipe of a zoo model; those without one of their own get the defaults."""
    zoo.entry(name)
    return RECIPES.get(name, TrainingRecipe())


def data_for(name: str) -> str | None:
    """The data set that a zoo model is trained on, by its name in the catalogue; None where it has none.

    >>> data_for("digits-mnist"), data_for("wrn-40-2-cifar100-augmix")
    ('mnist', 'cifar100')
    """
    return _DATA.get(zoo.card(name).trained_on)

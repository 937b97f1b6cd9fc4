"""Models of torchvision by name, with the card that its metadata gives. torchvision is imported only here."""

from __future__ import annotations

from types import ModuleType
from typing import Any
from urllib.error import URLError

import torch
from torch import nn

from synaptune.errors import IncompatibleModelError, UnknownNameError, WeightsError
from synaptune.models.card import Card
from synaptune.models.normalise import IMAGENET_MEAN, IMAGENET_STD
from synaptune.models.weights import fit_tensors

__all__ = ["build"]


def build(name: str, tag: str | None, *, pretrained: bool, num_classes: int | None = None) -> tuple[nn.Module, Card]:
    """Make a torchvision classifier.

    Args:
        name: torchvision's, such as `resnet18`.
        tag: one of its weights, such as `IMAGENET1K_V1`; None for its default, "" for the caller's own file.
        pretrained: whether to load weights at all.
        num_classes: other than 1,000, for random weights or the caller's own file.
    """
    library = _library()
    known = library.list_models(module=library)
    if name not in known:
        raise UnknownNameError("torchvision classifier", name, known)
    chosen = _weights(library, name, tag)
    options = {} if num_classes is None else {"num_classes": num_classes}
    model: nn.Module = library.get_model(name, weights=None, **options).eval()
    loads = pretrained and tag != ""
    if loads and chosen is not None:
        _download_into(model, chosen, name)
    return model, _card(name, chosen, loaded=loads, num_classes=num_classes)


def _library() -> ModuleType:
    try:
        from torchvision import models
    except ImportError as error:
        raise IncompatibleModelError(
            "torchvision:NAME needs torchvision; install it with pip install 'synaptune[models]'"
        ) from error
    return models  # type: ignore[no-any-return]  # torchvision has no types


def _weights(library: ModuleType, name: str, tag: str | None) -> Any:
    """The member of torchvision's enumeration of weights; its default if none is named."""
    known = library.get_model_weights(name)
    if not tag:
        return getattr(known, "DEFAULT", None)
    if tag not in known.__members__:
        raise UnknownNameError(f"weights of torchvision:{name}", tag, known.__members__)
    return known[tag]


def _download_into(model: nn.Module, chosen: Any, name: str) -> None:
    try:
        tensors = torch.hub.load_state_dict_from_url(
            chosen.url, map_location="cpu", weights_only=True, check_hash=True, progress=True
        )
    except (URLError, OSError, RuntimeError) as error:
        raise WeightsError(
            f"the weights of torchvision:{name} could not be fetched from {chosen.url} ({error}); download them "
            "elsewhere and give the file with weights=FILE (--weights FILE), or do without: pretrained=False "
            "(--random-weights)"
        ) from error
    fit_tensors(model, tensors, source=chosen.url, name=f"torchvision:{name}")


def _card(name: str, chosen: Any, *, loaded: bool, num_classes: int | None) -> Card:
    meta = {} if chosen is None else chosen.meta
    # What torchvision's own transforms do: resize the shorter side, crop, scale to [0, 1], normalise.
    preset = None if chosen is None else chosen.transforms()
    crop = int(preset.crop_size[0]) if preset is not None else 224
    metrics = meta.get("_metrics", {}).get("ImageNet-1K", {})
    categories = tuple(meta.get("categories", ()))
    fits = num_classes is None or num_classes == len(categories)
    return Card(
        name=f"torchvision:{name}",
        architecture=name,
        trained_on="ImageNet-1K train" if loaded else "",
        num_classes=num_classes or len(categories) or 1000,
        class_names=categories if fits else (),
        input_size=(crop, crop),
        mean=tuple(preset.mean) if preset is not None else IMAGENET_MEAN,
        std=tuple(preset.std) if preset is not None else IMAGENET_STD,
        normalisation="outside",
        resize=int(preset.resize_size[0]) if preset is not None else 256,
        interpolation=preset.interpolation.value if preset is not None else "bilinear",
        weights=chosen.name if loaded and chosen is not None else "random",
        url=chosen.url if loaded and chosen is not None else "",
        origin=str(meta.get("recipe", "")),
        licence="BSD-3-Clause" if loaded else "",
        error=round(100 - metrics["acc@1"], 3) if loaded and "acc@1" in metrics else None,
        error_on="ImageNet-1K validation" if loaded and metrics else "",
    )

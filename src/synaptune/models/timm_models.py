"""Models of timm by name, with the card that its configuration gives. timm is imported only here."""

from __future__ import annotations

import re
from collections import Counter
from types import ModuleType
from typing import Any

from torch import nn

from synaptune.errors import IncompatibleModelError, UnknownNameError, WeightsError
from synaptune.models.card import Card

__all__ = ["build"]

_IMAGENET_CLASSES = 1000


def build(name: str, *, pretrained: bool, num_classes: int | None = None) -> tuple[nn.Module, Card]:
    """Make a timm model.

    Args:
        name: timm's, such as `resnet18`, or with the tag of one of its weights, `resnet18.a1_in1k`.
        pretrained: whether to load weights, which timm downloads.
        num_classes: other than that of the weights.
    """
    library = _library()
    architecture, _, tag = name.partition(".")
    if not library.is_model(architecture):
        raise UnknownNameError("timm model", architecture, library.list_models())
    tags = [full.partition(".")[2] for full in library.list_pretrained(f"{architecture}.*")]
    if tag and tag not in tags:
        raise UnknownNameError(f"weights of timm:{architecture}", tag, tags)
    options = {} if num_classes is None else {"num_classes": num_classes}
    try:
        model: nn.Module = library.create_model(name, pretrained=pretrained, **options).eval()
    except Exception as error:
        if not pretrained:
            raise
        raise WeightsError(
            f"the weights of timm:{name} could not be fetched ({type(error).__name__}: {str(error).split('. ')[0]}); "
            "download them elsewhere and give the file with weights=FILE (--weights FILE), or do without: "
            "pretrained=False (--random-weights)"
        ) from error
    return model, _card(name, model, loaded=pretrained, num_classes=num_classes)


def _library() -> ModuleType:
    try:
        import timm
    except ImportError as error:
        raise IncompatibleModelError("timm:NAME needs timm; install it with pip install 'synaptune[models]'") from error
    return timm


def _card(name: str, model: nn.Module, *, loaded: bool, num_classes: int | None) -> Card:
    config: dict[str, Any] = getattr(model, "pretrained_cfg", None) or {}
    size = tuple(config.get("input_size", (3, 224, 224)))[1:]
    crop_share = float(config.get("crop_pct") or 1.0)
    tag = config.get("tag") or "default"
    classes = num_classes or int(config.get("num_classes", 1000))
    home = config.get("url") or config.get("hf_hub_id") or ""
    return Card(
        name=f"timm:{name}",
        architecture=str(config.get("architecture", name)),
        num_classes=classes,
        class_names=_class_names(tag, classes),
        input_size=(int(size[0]), int(size[1])),
        mean=tuple(config.get("mean", ())),
        std=tuple(config.get("std", ())),
        normalisation="outside" if config.get("mean") else "unknown",
        # timm gives the share of the resized image that the crop keeps.
        resize=int(size[0] / crop_share),
        interpolation=str(config.get("interpolation", "bilinear")),
        weights=tag if loaded else "random",
        url=str(home) if loaded else "",
        origin=str(config.get("origin_url", "")) if loaded else "",
        licence=str(config.get("license", "")) if loaded else "",
    )


def _class_names(tag: str, classes: int) -> tuple[str, ...]:
    """The classes of ImageNet-1K, where the tag of the weights says that they were trained on it last."""
    if classes != _IMAGENET_CLASSES or not re.search(r"(^|_)in1k($|_)", tag):
        return ()
    from timm.data.imagenet_info import ImageNetInfo

    info = ImageNetInfo()
    names = [text.partition(", ")[0] for text in info.label_descriptions()]
    often = Counter(names)
    # Two cranes and two maillots: a name must stand for one class.
    return tuple(
        name if often[name] == 1 else f"{name} ({info.index_to_label_name(place)})" for place, name in enumerate(names)
    )

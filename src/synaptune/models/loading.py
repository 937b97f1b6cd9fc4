"""From what a user writes to a model and its card: `zoo:NAME`, `torchvision:NAME`, `timm:NAME`, `FILE.py:factory`.

A model comes back in eval mode, as the plain module that its library makes. Models of torchvision and timm expect
normalised input, and their card says by which constants; `normalised=True` puts the normalisation in front, so
that every model takes images in [0, 1] alike.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from synaptune.errors import OptionError, UnknownNameError
from synaptune.models import zoo
from synaptune.models.card import Card
from synaptune.models.checkpoint_file import read_checkpoint
from synaptune.models.normalise import Normalised
from synaptune.models.published_formats import tensors_for
from synaptune.models.user_file import model_from_file
from synaptune.models.weights import fit_tensors

__all__ = ["LoadedModel", "load_model"]


@dataclass(frozen=True)
class LoadedModel:
    """A model in eval mode and what is known about it."""

    model: nn.Module
    card: Card


def load_model(
    spec: str,
    weights: str | Path | None = None,
    *,
    pretrained: bool = True,
    num_classes: int | None = None,
    normalised: bool = False,
) -> LoadedModel:
    """Make the model that `spec` names and load its weights.

    Args:
        spec: `zoo:NAME`, `torchvision:NAME`, `timm:NAME`, or `FILE.py:factory`, a function without arguments in a
            Python file of the user's, which is executed.
        weights: a safetensors or torch file; for torchvision also the name of one of its weights. By default the
            bundled or found weights of the zoo, or the library's own, which it downloads.
        pretrained: False for random weights.
        num_classes: for models that are to be trained, or whose weights file has another number.
        normalised: put the normalisation that the card asks for in front of the model.

    Raises:
        UnknownNameError: the library has no model of that name.
        WeightsError: the weights are missing, damaged, or those of another model.

    >>> load_model("zoo:resnet20-cifar10", pretrained=False).card.input_size
    (32, 32)
    """
    if weights is not None and not pretrained:
        raise OptionError(f"{spec}: weights={str(weights)!r} and pretrained=False contradict each other")
    library, separator, name = spec.partition(":")
    if separator and library in _LIBRARIES:
        loaded = _LIBRARIES[library](name, weights, pretrained, num_classes)
    elif _names_a_file(spec):
        loaded = _from_file(spec, weights, pretrained, num_classes)
    else:
        bare = "NAME" if separator else spec  # who leaves the library out is told how the name is written with it
        known = [*(f"zoo:{known}" for known in zoo.names()), f"torchvision:{bare}", f"timm:{bare}", "FILE.py:factory"]
        raise UnknownNameError("model", spec, known)
    if normalised and loaded.card.normalisation == "outside":
        card = dataclasses.replace(loaded.card, normalisation="inside")
        return LoadedModel(Normalised(loaded.model, card.mean, card.std).eval(), card)
    if normalised and loaded.card.normalisation == "unknown":
        raise OptionError(f"{spec}: its normalisation is not known; wrap it in synaptune.models.Normalised yourself")
    return loaded


def _from_zoo(name: str, weights: str | Path | None, pretrained: bool, num_classes: int | None) -> LoadedModel:
    return LoadedModel(*zoo.load(name, weights=weights, pretrained=pretrained, num_classes=num_classes))


def _from_torchvision(name: str, weights: str | Path | None, pretrained: bool, num_classes: int | None) -> LoadedModel:
    from synaptune.models import torchvision_models  # an optional library

    model, card = torchvision_models.build(name, _tag(weights), pretrained=pretrained, num_classes=num_classes)
    return _with_file(model, card, weights) if _is_file(weights) else LoadedModel(model, card)


def _from_timm(name: str, weights: str | Path | None, pretrained: bool, num_classes: int | None) -> LoadedModel:
    from synaptune.models import timm_models  # an optional library

    download = pretrained and weights is None
    model, card = timm_models.build(name, pretrained=download, num_classes=num_classes)
    return LoadedModel(model, card) if weights is None else _with_file(model, card, weights)


def _from_file(spec: str, weights: str | Path | None, pretrained: bool, num_classes: int | None) -> LoadedModel:
    if num_classes is not None or not pretrained:
        raise OptionError(f"{spec}: the factory decides num_classes and pretrained; leave them out")
    model = model_from_file(spec).eval()
    declared = getattr(model, "synaptune_card", None)
    outputs = next((m.out_features for m in reversed(list(model.modules())) if isinstance(m, nn.Linear)), 0)
    card = declared if isinstance(declared, Card) else Card(name=spec, num_classes=outputs, weights=spec)
    return LoadedModel(model, card) if weights is None else _with_file(model, card, weights)


_LIBRARIES: dict[str, Callable[[str, str | Path | None, bool, int | None], LoadedModel]] = {
    "zoo": _from_zoo,
    "torchvision": _from_torchvision,
    "timm": _from_timm,
}


def _with_file(model: nn.Module, card: Card, weights: str | Path | None) -> LoadedModel:
    assert weights is not None
    checkpoint = read_checkpoint(weights)
    fit_tensors(model, tensors_for(model, checkpoint), source=str(weights), name=card.name)
    if text := checkpoint.metadata.get("card"):
        return LoadedModel(model, dataclasses.replace(Card.from_json(text, where=str(weights)), weights=str(weights)))
    blank = dataclasses.replace(card, weights=str(weights), error=None, error_on="", url="", licence="")
    return LoadedModel(model, blank)


def _is_file(weights: str | Path | None) -> bool:
    """Whether `weights` means a file rather than a tag such as IMAGENET1K_V2."""
    if weights is None or isinstance(weights, Path):
        return weights is not None
    return any(mark in weights for mark in "./\\") or Path(weights).exists()


def _tag(weights: str | Path | None) -> str | None:
    if weights is None:
        return None
    return "" if _is_file(weights) else str(weights)


def _names_a_file(spec: str) -> bool:
    path, _, factory = spec.rpartition(":")
    return path.endswith(".py") or (not factory.isidentifier() and spec.endswith(".py"))

"""The zoo: the paper's backbones by name, each with a card, and where its weights are found.

Weights are looked for in this order: a file that the caller names, a file bundled with the package, the published
file name in a folder `weights` under `SYNAPTUNE_DATA` (by default `~/.cache/synaptune`), under `SYNAPTUNE_SHARED`, or
under `../shared/data` beside a source checkout.
Nothing is downloaded: the publishers' homes are file-sharing pages that change; the error names the page, or the
command that trains the network where the weights are our own.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from synaptune.errors import IncompatibleModelError, OptionError, UnknownNameError, WeightsError
from synaptune.models.card import Card
from synaptune.models.checkpoint_file import Checkpoint, read_checkpoint
from synaptune.models.published_formats import tensors_for
from synaptune.models.weights import fit_tensors, mismatches

__all__ = ["ZooEntry", "card", "create", "entry", "find_weights", "load", "names", "register", "weight_folders"]


@dataclass(frozen=True, kw_only=True)
class ZooEntry:
    """One model of the zoo.

    Attributes:
        card: what is known about its weights.
        build: makes the network with random weights, for a number of classes.
        bundled: file names in the package's weights folder that together hold the tensors; empty if none are bundled.
    """

    card: Card
    build: Callable[[int], nn.Module]
    bundled: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name in the zoo."""
        return self.card.name


_ENTRIES: dict[str, ZooEntry] = {}


def register(new: ZooEntry) -> ZooEntry:
    """Add a model to the zoo; a name can be taken once."""
    if new.name in _ENTRIES:
        raise OptionError(f"the zoo already has a model {new.name!r}; choose another name")
    _ENTRIES[new.name] = new
    return new


def names() -> tuple[str, ...]:
    """Names of all models of the zoo, sorted."""
    return tuple(sorted(_ENTRIES))


def entry(name: str) -> ZooEntry:
    """The model of this name; an unknown one is answered with the nearest."""
    if name not in _ENTRIES:
        raise UnknownNameError("zoo model", name, _ENTRIES)
    return _ENTRIES[name]


def card(name: str) -> Card:
    """What is known about a model's weights.

    >>> card("resnet20-cifar10").error
    8.27
    """
    return entry(name).card


def create(
    name: str, *, weights: str | Path | None = None, pretrained: bool = True, num_classes: int | None = None
) -> nn.Module:
    """A model of the zoo in eval mode, that takes float images in [0, 1].

    Args:
        name: one of `names()`.
        weights: a file to load; by default the bundled or found one.
        pretrained: False for random weights.
        num_classes: for models that are to be trained, or whose weights file does not say how many classes it has; by
            default what the file's own card says, or else the zoo's.

    >>> create("resnet20-cifar10", pretrained=False, num_classes=7).linear.out_features
    7
    """
    return load(name, weights=weights, pretrained=pretrained, num_classes=num_classes)[0]


def load(
    name: str, *, weights: str | Path | None = None, pretrained: bool = True, num_classes: int | None = None
) -> tuple[nn.Module, Card]:
    """As `create`, together with the card of the weights that were really loaded."""
    found = entry(name)
    if weights is not None and not pretrained:
        raise OptionError(f"{name}: weights={str(weights)!r} and pretrained=False contradict each other")
    known = found.card.num_classes
    if not pretrained:
        classes = num_classes or known
        blank = dataclasses.replace(found.card, num_classes=classes, weights="random", error=None, rotation_error=None)
        return found.build(classes).eval(), blank
    if weights is None and num_classes not in (None, known):
        raise OptionError(
            f"{name} has weights for {known} classes, not {num_classes}; give a weights file, or "
            "pretrained=False for random weights"
        )
    checkpoint, origin = _checkpoint(found, weights)
    own = _own_card(checkpoint)
    classes = num_classes or (own.num_classes if own else known)
    model = found.build(classes).eval()
    fit_tensors(
        model,
        tensors_for(model, checkpoint),
        source=str(checkpoint.path),
        name=f"zoo:{name}",
        suggest=lambda: _others_that_fit(name, checkpoint),
    )
    if own is not None:
        return model, dataclasses.replace(own, name=name, weights=origin, num_classes=classes)
    return model, _card_of(found.card, checkpoint, origin=origin, classes=classes)


def find_weights(name: str) -> Path | None:
    """The published file of a model's weights in the data folders, if it is there."""
    file = entry(name).card.file
    if not file:
        return None
    places = (folder / file for folder in weight_folders())
    return next((place for place in places if place.is_file()), None)


def weight_folders() -> tuple[Path, ...]:
    """Folders in which published files are looked for; they need not exist. The first is the user's own."""
    folders = [Path(os.environ.get("SYNAPTUNE_DATA") or "~/.cache/synaptune").expanduser() / "weights"]
    checkout = Path(__file__).resolve().parents[3]
    if named := os.environ.get("SYNAPTUNE_SHARED"):
        folders += [Path(named).expanduser() / "data" / "weights", Path(named).expanduser() / "weights"]
    elif (checkout / "pyproject.toml").is_file():
        folders.append(checkout.parent / "shared" / "data" / "weights")
    if (checkout / "pyproject.toml").is_file():
        folders.append(checkout / "weights")
    return tuple(folders)


def _checkpoint(found: ZooEntry, weights: str | Path | None) -> tuple[Checkpoint, str]:
    """Read the weights, and say where they came from."""
    if weights is not None:
        return read_checkpoint(weights), str(weights)
    if found.bundled:
        return _bundled(found), "bundled"
    place = find_weights(found.name)
    if place is None:
        raise WeightsError(_how_to_get(found.card))
    return read_checkpoint(place), str(place)


def _bundled(found: ZooEntry) -> Checkpoint:
    tensors: dict[str, Tensor] = {}
    metadata: dict[str, str] = {}
    folder = importlib.resources.files("synaptune.models") / "weights"
    for file in found.bundled:
        with importlib.resources.as_file(folder / file) as path:
            part = read_checkpoint(path)
        tensors |= part.content
        metadata = metadata or dict(part.metadata)
    return Checkpoint(Path(found.bundled[0]), tensors, metadata)


def _how_to_get(card: Card) -> str:
    home = f" It is published as {card.file} at {card.url}." if card.url else ""
    if not card.url and card.file:  # ours, and too large for the package
        home = f" `synaptune train {card.name} --out FOLDER` makes them, as FOLDER/{card.file}."
    put = f" Save it in {weight_folders()[0]}, or name it with weights=FILE (--weights FILE)." if card.file else ""
    return (
        f"there are no weights for zoo:{card.name} on this machine.{home}{put} "
        "pretrained=False (--random-weights) gives random ones."
    )


def _own_card(checkpoint: Checkpoint) -> Card | None:
    """The card that the file was written with; those of other programs have none."""
    text = checkpoint.metadata.get("card")
    return Card.from_json(text, where=str(checkpoint.path)) if text else None


def _card_of(card: Card, checkpoint: Checkpoint, *, origin: str, classes: int) -> Card:
    """The zoo's card for a file that has none of its own, without claims about a file that the zoo does not know."""
    if checkpoint.path.name == card.file:
        return dataclasses.replace(card, weights=origin)
    return dataclasses.replace(
        card,
        weights=origin,
        num_classes=classes,
        class_names=card.class_names if classes == card.num_classes else (),
        error=None,
        rotation_error=None,
        error_on="",
        origin="",
        licence="",
        url="",
        file="",
    )


def _others_that_fit(name: str, checkpoint: Checkpoint) -> list[str]:
    """Models to load the checkpoint as instead; none if the one that was asked for is right but for its classes."""
    fitting = list(_fitting(checkpoint))
    return [] if name in fitting else [f"zoo:{other}" for other in fitting]


def _fitting(checkpoint: Checkpoint) -> Iterator[str]:
    """Names of the models that the checkpoint's tensors would fit."""
    own = _own_card(checkpoint)
    for name, other in _ENTRIES.items():
        try:
            with torch.device("meta"):
                skeleton = other.build(own.num_classes if own else other.card.num_classes)
            tensors = tensors_for(skeleton, checkpoint)
        except (WeightsError, IncompatibleModelError):  # another layout, or an optional library is not installed
            continue
        if not mismatches(skeleton.state_dict(), tensors):
            yield name

"""What a network sees after each kind of adaptation: features at one place, for the same images.

Views, in this order: the clean images in the source model (the reference), then the shifted ones in the source model,
in a model after each method, and in the oracle that learnt from labels. All adapt on the stream once and are then
looked at with their state frozen.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from synaptune.api import adapt
from synaptune.bench.cell import CLEAN, MIXED, Cell
from synaptune.bench.conditions import settings
from synaptune.bench.protocol import Protocol
from synaptune.bench.sources import Subject, load_subject
from synaptune.bench.supervised import SupervisedOracle
from synaptune.core.structure import Anatomy
from synaptune.errors import InputError
from synaptune.metrics import Tally
from synaptune.options import Options, option

__all__ = ["CLEAN_VIEW", "FigureOptions", "View", "make_views"]

CLEAN_VIEW = "clean"
ORACLE = "oracle"

_MOST_VALUES = 20_000


@dataclass(frozen=True, kw_only=True)
class FigureOptions(Options):
    """What a figure of features shows."""

    title: str = option("", "heading")
    model: str = option("zoo:resnet26-cifar10", "the network")
    weights: str = option("", "weights file; empty: the network's own")
    data: str = option("cifar10", "data set")
    corruption: str = option("gaussian_noise", "the shift")
    severity: int = option(5, "its severity", at_least=1, at_most=5)
    methods: tuple[str, ...] = option(("source", "tent", "nhl"), "methods, in the order of the panels")
    images: int = option(2000, "images that are adapted on and looked at", at_least=2)
    batch: int = option(128, "images per batch", at_least=2)
    place: Literal["first_conv", "classifier"] = option(
        "first_conv", "where features are taken: after the first convolution, or in front of the classifier"
    )
    channels: int = option(8, "how many channels are shown", at_least=1)
    image: int = option(0, "which image is shown (features)", at_least=0)
    oracle_lr: float = option(1e-3, "step size of the supervised oracle", above=0)
    threads: int = option(1, "threads of torch", at_least=1)
    seed: int = option(0, "of methods that draw", at_least=0)


@dataclass(frozen=True)
class View:
    """Features of the images in one state of the network.

    Attributes:
        name: "clean", a method, or "oracle".
        values: features by channel, (channels, values): every image, and places where there are several.
        maps: feature maps of the shown image, (channels, height, width), or None in front of the classifier.
        image: the shown image itself, (height, width, 3), in [0, 1].
        error: top-1 error in percent on the images that are looked at.
    """

    name: str
    values: npt.NDArray[np.float32]
    maps: npt.NDArray[np.float32] | None
    image: npt.NDArray[np.float32]
    error: float


def make_views(options: FigureOptions, *, on_step: Callable[[str], None] | None = None) -> list[View]:
    """Adapt and look.

    Args:
        options: what, and under which conditions.
        on_step: told what is being done.
    """
    say = on_step or _silent
    if options.image >= options.images:
        raise InputError(f"image {options.image} is not among the first {options.images}")
    if options.corruption in (CLEAN, MIXED):
        raise InputError(f"these figures hold one shift against clean images; {options.corruption!r} is none")
    shifted = _cell(options, options.corruption, options.severity)
    with settings(shifted):
        say("the clean images in the source model")
        clean_subject = load_subject(_cell(options, CLEAN, 0))
        views = [_looked_at(CLEAN_VIEW, "source", clean_subject, options)]
        subject = load_subject(shifted)
        for method in options.methods:
            say(f"{options.corruption} after {method}")
            views.append(_looked_at(method, method, subject, options))
        say(f"{options.corruption} after learning from labels")
        views.append(_oracle_view(subject, options))
    return views


def _silent(text: str) -> None:
    """Tell nobody."""


def _cell(options: FigureOptions, corruption: str, severity: int) -> Cell:
    return Cell.of(
        model=options.model,
        weights=options.weights,
        method="source",
        data=options.data,
        corruption=corruption,
        severity=severity,
        seed=options.seed,
        protocol=Protocol(images=options.images, batch=options.batch, threads=options.threads),
    )


def _looked_at(name: str, method: str, subject: Subject, options: FigureOptions) -> View:
    """Adapt by a method over the stream, then look."""
    model = copy.deepcopy(subject.loaded.model)
    with adapt(model, method, **_seeded(method, options)) as adapter:
        if method != "source":
            for batch in subject.stream:
                adapter(batch.images)
        return _view(name, model, adapter.anatomy, adapter.predict, subject, options)


def _oracle_view(subject: Subject, options: FigureOptions) -> View:
    oracle = SupervisedOracle(subject.loaded.model, lr=options.oracle_lr)
    for batch in subject.stream:
        oracle.learn(batch.images, subject.numbering[subject.stream.labels[batch.index]])
    return _view(ORACLE, oracle.model, oracle.anatomy, oracle.predict, subject, options)


def _seeded(method: str, options: FigureOptions) -> dict[str, Any]:
    from synaptune.core.registry import find

    return {"seed": options.seed} if hasattr(find(method).options, "seed") else {}


def _view(
    name: str,
    model: nn.Module,
    anatomy: Anatomy,
    predict: Callable[[Tensor], Tensor],
    subject: Subject,
    options: FigureOptions,
) -> View:
    tally, values, maps, shown = Tally(), [], None, None
    seen = 0
    for batch in subject.stream:
        with _watching(model, anatomy, options.place) as features:
            tally.add(predict(batch.images), subject.numbering[subject.stream.labels[batch.index]])
        found = features[0]  # (batch, channels) or (batch, channels, height, width)
        if seen <= options.image < seen + len(found):
            shown = batch.images[options.image - seen].permute(1, 2, 0).numpy()
            maps = found[options.image - seen].numpy() if found.dim() == 4 else None
        values.append(found.transpose(0, 1).flatten(1))
        seen += len(found)
    assert shown is not None
    return View(name, _thinned(torch.cat(values, dim=1)), maps, shown, tally.error)


@contextmanager
def _watching(model: nn.Module, anatomy: Anatomy, place: str) -> Iterator[list[Tensor]]:
    """Collect what the first convolution gives, or what the classifier gets."""
    seen: list[Tensor] = []

    def after(*called: Any) -> None:
        seen.append(called[-1].detach().float().cpu())  # (module, inputs, output)

    def before(*called: Any) -> None:
        seen.append(called[1][0].detach().float().cpu())  # (module, inputs)

    if place == "first_conv":
        handle = model.get_submodule(anatomy.require_first_conv()).register_forward_hook(after)
    else:
        handle = model.get_submodule(anatomy.require_classifier()).register_forward_pre_hook(before)
    try:
        yield seen
    finally:
        handle.remove()


def _thinned(values: Tensor) -> npt.NDArray[np.float32]:
    """Keep every k-th value, the same ones in every view."""
    step = -(-values.shape[1] // _MOST_VALUES)
    thinned: npt.NDArray[np.float32] = values[:, ::step].contiguous().numpy()
    return thinned

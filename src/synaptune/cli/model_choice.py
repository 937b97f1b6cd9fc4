"""MODEL and what belongs to it on every command line: weights, parts named by hand, device, method with settings."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import getproxies

import typer

from synaptune.errors import OptionError

if TYPE_CHECKING:
    import torch

    from synaptune.core.layout import Layout
    from synaptune.models import LoadedModel

__all__ = [
    "ClassesOption",
    "ClassifierOption",
    "DeviceOption",
    "FirstConvOption",
    "MethodOption",
    "ModelArgument",
    "NumClassesOption",
    "RandomWeightsFlag",
    "SetOption",
    "StageOption",
    "WeightsOption",
    "choose_device",
    "choose_layout",
    "choose_options",
    "open_model",
    "read_class_names",
]


def _complete_method(incomplete: str) -> list[str]:
    from synaptune.api import methods

    return [info.name for info in methods() if info.name.startswith(incomplete)]


def _complete_model(incomplete: str) -> list[str]:
    from synaptune.models import zoo

    known = [*(f"zoo:{name}" for name in zoo.names()), "timm:", "torchvision:"]
    return [name for name in known if name.startswith(incomplete)]


ModelArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="zoo:NAME, torchvision:NAME, timm:NAME, or FILE.py:FUNCTION (executed: your own code).",
        autocompletion=_complete_model,
        show_default=False,
    ),
]
WeightsOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--weights", "-w", metavar="FILE", help="Weights: a safetensors or torch file.", show_default=False),
]
RandomWeightsFlag: TypeAlias = Annotated[
    bool, typer.Option("--random-weights", help="Do without trained weights, to look at an architecture.")
]
NumClassesOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--num-classes", min=1, help="Number of classes, where the weights file has another than usual."),
]
FirstConvOption: TypeAlias = Annotated[
    str | None, typer.Option("--first-conv", metavar="NAME", help="Module that is the first convolution.")
]
StageOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--stage", metavar="NAME[,NAME]", help="Modules of a stage; repeat for the next stage."),
]
ClassifierOption: TypeAlias = Annotated[
    str | None, typer.Option("--classifier", metavar="NAME", help="Module that is the classifier.")
]
DeviceOption: TypeAlias = Annotated[
    str, typer.Option("--device", help="Where to compute: auto (a GPU if there is one), cpu, cuda, cuda:1, mps.")
]
MethodOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--method", "-m", help="How to adapt; `synaptune methods` lists them.", autocompletion=_complete_method
    ),
]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="NAME=VALUE", help="An option of the method (repeatable); see `synaptune methods NAME`."
    ),
]
ClassesOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--classes", metavar="FILE", help="Class names, one per line, in the order of the model's outputs."),
]


def open_model(spec: str, *, weights: str | None, random_weights: bool, num_classes: int | None = None) -> LoadedModel:
    """Load a model and its card."""
    from synaptune.models import load_model

    if spec.startswith("timm:") and weights is None and not random_weights:
        _do_not_wait_for_the_hub()
    return load_model(spec, weights, pretrained=not random_weights, num_classes=num_classes)


def _do_not_wait_for_the_hub() -> None:
    """Without a network, huggingface_hub tries again for a minute; its cache can be used all the same."""
    host = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname
    if getproxies() or host is None:  # a proxy resolves names that this machine cannot
        return
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")


def choose_layout(first_conv: str | None, stages: Sequence[str] | None, classifier: str | None) -> Layout | None:
    """Parts that the user named, or None if he named none."""
    from synaptune.core.layout import Layout

    if first_conv is None and not stages and classifier is None:
        return None
    named = tuple(tuple(name.strip() for name in stage.split(",")) for stage in stages) if stages else None
    return Layout(first_conv=first_conv, stages=named, classifier=classifier)


def choose_device(name: str) -> torch.device:
    """The device of this name, if it is there."""
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise OptionError(f"device {name!r} cannot be used: {next(iter(str(error).splitlines()), name)}") from error
    return device


def choose_options(method: str, settings: Sequence[str] | None) -> dict[str, Any]:
    """The settings that were given for a method, checked before anything heavy is done."""
    from synaptune.cli.settings import parse_settings
    from synaptune.core.registry import configure, find

    options = parse_settings(type(find(method).options), settings or ())
    configure(method, options)
    return options


def read_class_names(path: Path | None, known: Sequence[str]) -> tuple[str, ...]:
    """Class names from the user's file, or else those that came with the weights."""
    if path is None:
        return tuple(known)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"the class names in {path} cannot be read: {error}") from error
    return tuple(line.strip() for line in lines if line.strip())

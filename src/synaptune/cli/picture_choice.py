"""Preprocessing on the command line: what the weights say, unless the user says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from synaptune.errors import DataError, OptionError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from synaptune.models import Card
    from synaptune.predicting import Preprocessing

__all__ = ["MeanOption", "SizeOption", "StdOption", "choose_preprocessing", "parse_numbers", "parse_size", "read_batch"]

SizeOption: TypeAlias = Annotated[
    str | None, typer.Option("--size", metavar="N|HxW", help="Input size, instead of the weights' own.")
]
MeanOption: TypeAlias = Annotated[
    str | None, typer.Option("--mean", metavar="R,G,B", help="Mean of the normalisation, for images in [0, 1].")
]
StdOption: TypeAlias = Annotated[
    str | None, typer.Option("--std", metavar="R,G,B", help="Standard deviation of the normalisation.")
]


def parse_size(text: str | None, *, name: str = "--size") -> tuple[int, int] | None:
    """Read `224` or `180x240` (height x width).

    >>> parse_size("224"), parse_size("180x240")
    ((224, 224), (180, 240))
    """
    if text is None:
        return None
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) not in (1, 2) or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise OptionError(f"{name} must be a number or HEIGHTxWIDTH, not {text!r}")
    return int(parts[0]), int(parts[-1])


def parse_numbers(text: str | None, *, name: str) -> tuple[float, ...] | None:
    """Read `0.5` or `0.485,0.456,0.406`.

    >>> parse_numbers("0.5, 0.25, 1", name="--mean")
    (0.5, 0.25, 1.0)
    """
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise OptionError(f"{name} must be one number, or three with commas between, not {text!r}") from None


def choose_preprocessing(
    model: nn.Module, card: Card, *, size: str | None, mean: str | None = None, std: str | None = None
) -> Preprocessing:
    """What the card says, with the user's changes."""
    from synaptune.predicting import Preprocessing

    return Preprocessing.from_card(card, channels=_channels(model)).changed(
        size=parse_size(size), mean=parse_numbers(mean, name="--mean"), std=parse_numbers(std, name="--std")
    )


def _channels(model: nn.Module) -> Literal[1, 3]:
    """Whether the first convolution takes grey pictures."""
    from synaptune.core.structure import find_anatomy

    name = find_anatomy(model).first_conv
    return 1 if name is not None and getattr(model.get_submodule(name), "in_channels", 3) == 1 else 3


def read_batch(sources: Sequence[str], preprocessing: Preprocessing, *, count: int) -> Tensor:
    """The first images that can be read, as one batch."""
    from itertools import islice

    import torch

    from synaptune.data.report import ReportKeeper
    from synaptune.predicting import find_items
    from synaptune.predicting.reading import read_ahead

    keeper = ReportKeeper()
    read = read_ahead(find_items(sources), preprocessing, keeper=keeper)
    found = [image for _, image in islice(read, count)]
    read.close()
    if not found:
        raise DataError(f"none of the images could be read: {'; '.join(str(keeper.report()).splitlines()[1:])}")
    return torch.stack(found)

"""What must be known about a model's weights to use them rightly, as one frozen value.

The same card describes published weights, our own, and what torchvision and timm tell of theirs; it is stored in
the metadata of the files that training writes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from synaptune.errors import WeightsError

__all__ = ["Card"]


@dataclass(frozen=True, kw_only=True)
class Card:
    """Origin, input and output of a model.

    Attributes:
        name: name in the zoo, or the specification the model was asked for by.
        architecture: family and size, for people.
        trained_on: data set, split included.
        num_classes: number of logits.
        class_names: names by output index; empty when not known.
        label_map: output index of each label of the data set; empty where they are the same.
        input_size: height and width that the weights were trained for.
        mean: per channel, for images in [0, 1]; empty when the network takes raw images.
        std: per channel, as `mean`.
        normalisation: whether the model normalises by itself, its caller has to, or there is none.
        resize: shorter side before the crop, for photographs; None where images are used as they are.
        interpolation: how to resize.
        weights: where the loaded weights came from: a file, "bundled", a tag of a model hub, or "random".
        file: file name under which the weights are published.
        url: public home of the weights.
        origin: who trained them, and where the code is.
        licence: licence of the weights.
        error: top-1 error in percent on the clean test set, as published or as measured by us.
        error_on: the images behind `error`.
        rotation_error: error in percent of the rotation head on the same images, four rotations each.
        training: recipe, speed and command of our own training runs.
        notes: what else a user has to know.
    """

    name: str
    architecture: str = ""
    trained_on: str = ""
    num_classes: int
    class_names: tuple[str, ...] = field(default=(), repr=False)
    label_map: tuple[int, ...] = ()
    input_size: tuple[int, int] = (32, 32)
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    normalisation: Literal["inside", "outside", "none", "unknown"] = "unknown"
    resize: int | None = None
    interpolation: str = "bilinear"
    weights: str = "random"
    file: str = ""
    url: str = ""
    origin: str = ""
    licence: str = ""
    error: float | None = None
    error_on: str = ""
    rotation_error: float | None = None
    training: dict[str, Any] = field(default_factory=dict)
    notes: str = ""

    def to_json(self, *, indent: int | None = None) -> str:
        """The card as JSON, keys in the order of the fields."""
        return json.dumps(dataclasses.asdict(self), indent=indent)

    @classmethod
    def from_json(cls, text: str, *, where: str) -> Card:
        """Read what `to_json` wrote; fields of later versions are left out.

        Args:
            text: the JSON.
            where: the file, for messages.
        """
        try:
            values = json.loads(text)
            known = {item.name for item in dataclasses.fields(cls)}
            return cls(**{name: _tupled(value) for name, value in values.items() if name in known})
        except (TypeError, ValueError, AttributeError) as error:
            raise WeightsError(f"{where}: its model card cannot be read ({error})") from error

    def to_markdown(self) -> str:
        """The card as a page for people: one row for each thing that is known."""
        rows = [(item.name, getattr(self, item.name)) for item in dataclasses.fields(self) if item.name != "training"]
        rows += list(self.training.items())
        shown = [f"| {name.replace('_', ' ')} | {_written(value)} |" for name, value in rows if _is_known(value)]
        return "\n".join([f"# {self.name}", "", "| | |", "| --- | --- |", *shown, ""])

    def explain_input(self) -> str:
        """One sentence on what to feed, for messages and reports."""
        size = f"{self.input_size[0]}x{self.input_size[1]} images in [0, 1]"
        if self.normalisation == "outside":
            return f"{size}, normalised by mean {self.mean} and std {self.std} before the model"
        if self.normalisation == "inside":
            return f"{size}; the model normalises them itself"
        return f"raw {size}" if self.normalisation == "none" else f"{size}; its normalisation is not known"


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _is_known(value: Any) -> bool:
    return value is not None and not (isinstance(value, str | Sequence | dict) and len(value) == 0)


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).replace("|", "\\|")

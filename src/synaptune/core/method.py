"""What a method is: it declares what it touches, prepares the model, and takes one step per batch.

A method never undoes anything and never looks at labels: the adapter snapshots, undoes, guards and records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, TypeVar

from torch import Tensor, nn

from synaptune.core.structure import Anatomy
from synaptune.options import Options, option

__all__ = ["AdaptOptions", "Method", "MethodInfo", "Needs", "Step", "Touches"]


@dataclass(frozen=True, kw_only=True)
class AdaptOptions(Options):
    """Options that every method has."""

    predict: Literal["before", "after"] = option(
        "before", "return logits from before the update on a batch, or from a second forward after it"
    )


@dataclass(frozen=True)
class Needs:
    """What a method asks of the model beyond being a classifier."""

    batch_norm: bool = False
    affine_norm: bool = False
    first_conv: bool = False
    stages: bool = False
    rotation_head: bool = False

    def __str__(self) -> str:
        words = {
            "batch_norm": "batch normalisation",
            "affine_norm": "normalisation layers with scale and shift",
            "first_conv": "a first convolution",
            "stages": "stages",
            "rotation_head": "a rotation head, trained with the source model",
        }
        return ", ".join(text for name, text in words.items() if getattr(self, name)) or "nothing"


@dataclass(frozen=True)
class Touches:
    """The names of the tensors that a method may change; nothing else may change."""

    parameters: frozenset[str] = frozenset()
    buffers: frozenset[str] = frozenset()

    def __or__(self, other: Touches) -> Touches:
        return Touches(self.parameters | other.parameters, self.buffers | other.buffers)


@dataclass
class Step:
    """What one batch gave.

    Attributes:
        logits: the prediction from before the update, detached, (batch, classes).
        objective: what was descended, per image, or None for methods without an objective.
        after: the prediction from after the update, where the method has it anyway.
        extra_forwards: images that went through parts of the model by another way than its forward.
        events: plain sentences about anything unusual, for the history.
    """

    logits: Tensor
    objective: Tensor | None = None
    after: Tensor | None = None
    extra_forwards: int = 0
    events: list[str] = field(default_factory=list)


OptionsT = TypeVar("OptionsT", bound=AdaptOptions)


class Method(ABC, Generic[OptionsT]):
    """One way to adapt. Subclasses fill in `touches`, `prepare` and `step`."""

    info: ClassVar[MethodInfo]

    def __init__(self, options: OptionsT):
        self.options = options

    @abstractmethod
    def touches(self, model: nn.Module, anatomy: Anatomy) -> Touches:
        """Name what will change; raise `IncompatibleModelError` when the model does not fit."""

    def prepare(self, model: nn.Module, anatomy: Anatomy) -> None:
        """Set modes, hooks and optimisers. The model is in eval mode, nothing requires a gradient."""

    @abstractmethod
    def step(self, model: nn.Module, images: Tensor) -> Step:
        """Predict and adapt on one batch; gradients are enabled."""

    def predict(self, model: nn.Module, images: Tensor) -> Tensor:
        """Predict with the current state and leave it alone; gradients are disabled."""
        logits: Tensor = model(images)
        return logits

    def state(self) -> dict[str, Tensor]:
        """Return the method's own state (optimiser moments, counters) by name; live tensors, not copies."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take over what `state` returned, here or in another process."""
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but was given {sorted(state)}")

    @property
    def backwards(self) -> int:
        """How many images have gone through a backward pass so far."""
        return 0


@dataclass(frozen=True)
class MethodInfo:
    """A registered method or a named configuration (preset) of one."""

    name: str
    summary: str
    method: type[Method[AdaptOptions]]
    options: AdaptOptions
    needs: Needs
    paper: str = ""
    code: str = ""
    base: str | None = None

    def __str__(self) -> str:
        return f"{self.name:<14} {self.summary} Needs {self.needs}."

"""Source: the model as it is, the row that everything is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from synaptune.core.method import AdaptOptions, Method, Step, Touches
from synaptune.core.registry import register
from synaptune.core.structure import Anatomy

__all__ = ["Source"]


@dataclass(frozen=True, kw_only=True)
class Source(AdaptOptions):
    """Source has no options of its own."""


@register("source", options=Source, summary="The source model in eval mode, unadapted.")
class SourceMethod(Method[Source]):
    """Predicts, touches nothing."""

    def touches(self, model: nn.Module, anatomy: Anatomy) -> Touches:
        return Touches()

    def step(self, model: nn.Module, images: Tensor) -> Step:
        return Step(logits=self.predict(model, images))

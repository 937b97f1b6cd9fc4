"""Tent: minimise the entropy of predictions over normalisation scale and shift (Wang et al., ICLR 2021).

    L = mean_b H(softmax f(x_b)),   one Adam step per batch, batch statistics in every batch normalisation layer.

Differs from the released code (DequanWang/tent): running statistics are kept, not deleted, and everything but batch
normalisation stays in eval mode, so dropout stays off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from synaptune.algorithms.norm import batch_norms_of
from synaptune.core.descent import Descent
from synaptune.core.method import AdaptOptions, Method, Needs, Step, Touches
from synaptune.core.normalisation import affine_parameters, use_batch_statistics
from synaptune.core.registry import register
from synaptune.core.structure import Anatomy
from synaptune.errors import IncompatibleModelError
from synaptune.functional.entropy import softmax_entropy
from synaptune.options import option

__all__ = ["Tent"]


@dataclass(frozen=True, kw_only=True)
class Tent(AdaptOptions):
    """Options of Tent; the defaults are the authors' CIFAR settings."""

    lr: float = option(1e-3, "step size", at_least=0)
    optimizer: Literal["adam", "sgd"] = option("adam", "optimiser (the authors use sgd with 2.5e-4 on ImageNet)")
    momentum: float = option(0.9, "momentum of sgd", at_least=0, at_most=1)
    steps: int = option(1, "steps per batch", at_least=1)
    norms: Literal["batch", "all"] = option(
        "batch", "tune batch normalisation only, or group and layer normalisation too"
    )


@register(
    "tent",
    options=Tent,
    needs=Needs(affine_norm=True),
    summary="Entropy descent on the scale and shift of normalisation layers.",
    paper="arXiv:2006.10726",
    code="DequanWang/tent",
)
class TentMethod(Method[Tent]):
    """Entropy descent on normalisation affines."""

    def touches(self, model: nn.Module, anatomy: Anatomy) -> Touches:
        layers = anatomy.norms if self.options.norms == "all" else batch_norms_of(model, anatomy, "tent")
        parameters = affine_parameters(model, layers)
        if not parameters:
            raise IncompatibleModelError(
                f"tent adapts the scale and shift of normalisation layers; {type(model).__name__} has {len(layers)} "
                "such layers and none has scale or shift (affine=False). "
                "Use method='norm' (statistics only) or method='nhl'"
            )
        self._names = layers
        return Touches(parameters=frozenset(parameters))

    def prepare(self, model: nn.Module, anatomy: Anatomy) -> None:
        use_batch_statistics(model, anatomy.batch_norms)
        self._descent = Descent(
            affine_parameters(model, self._names),
            optimizer=self.options.optimizer,
            lr=self.options.lr,
            momentum=self.options.momentum,
        )

    def step(self, model: nn.Module, images: Tensor) -> Step:
        first: Step | None = None
        for _ in range(self.options.steps):
            logits = model(images)
            entropy = softmax_entropy(logits)  # (batch,)
            first = first or Step(logits=logits.detach(), objective=entropy.detach())
            first.events += self._descent.descend(entropy.mean(), images=len(images))
        assert first is not None
        return first

    def state(self) -> dict[str, Tensor]:
        return self._descent.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._descent.load_state(state)

    @property
    def backwards(self) -> int:
        return self._descent.backwards

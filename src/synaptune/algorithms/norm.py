"""Norm: replace the source statistics of batch normalisation by those of the test data.

Three forms (mu and the variance alike; n images in the batch):

    batch     mu = mu_batch                                          Schneider et al. with N = 0; the usual "NORM"
    partial   mu = N / (N + n) mu_source + n / (N + n) mu_batch      Schneider et al., NeurIPS 2020, prior N
    running   mu <- (1 - m) mu + m mu_batch, used at once            a running average over the stream

The biased variance normalises in all three, as the batch form's kernel does, so `partial` with N = 0 is `batch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from synaptune.core.hooks import attach, learning
from synaptune.core.method import AdaptOptions, Method, Needs, Step, Touches
from synaptune.core.normalisation import (
    PriorMix,
    RunningMix,
    affine_parameters,
    batch_norm,
    statistics_buffers,
    use_batch_statistics,
)
from synaptune.core.registry import preset, register
from synaptune.core.structure import Anatomy
from synaptune.errors import IncompatibleModelError
from synaptune.options import option

__all__ = ["Norm", "batch_norms_of"]


@dataclass(frozen=True, kw_only=True)
class Norm(AdaptOptions):
    """Options of Norm."""

    statistics: Literal["batch", "partial", "running"] = option("batch", "which statistics to normalise by")
    prior: float = option(16.0, "how many images the source statistics are worth (partial)", at_least=0)
    momentum: float = option(0.1, "weight of a new batch (running)", above=0, at_most=1)


@register(
    "norm",
    options=Norm,
    needs=Needs(batch_norm=True),
    summary="Test-time statistics in batch normalisation; no gradient.",
    paper="arXiv:2006.16971",
    code="bethgelab/robustness",
)
class NormMethod(Method[Norm]):
    """Statistics only."""

    def touches(self, model: nn.Module, anatomy: Anatomy) -> Touches:
        names = batch_norms_of(model, anatomy, "norm")
        return Touches() if self.options.statistics == "batch" else statistics_buffers(model, names)

    def prepare(self, model: nn.Module, anatomy: Anatomy) -> None:
        self._running: list[RunningMix] = []
        if self.options.statistics == "batch":
            use_batch_statistics(model, anatomy.batch_norms)
            return
        for name in anatomy.batch_norms:
            layer = batch_norm(model, name)
            if self.options.statistics == "partial":
                attach(layer, PriorMix(layer, self.options.prior))
            else:
                self._running.append(RunningMix(self.options.momentum))
                attach(layer, self._running[-1])

    def step(self, model: nn.Module, images: Tensor) -> Step:
        with torch.no_grad(), learning(self._running):
            return Step(logits=model(images))


def batch_norms_of(model: nn.Module, anatomy: Anatomy, method: str) -> tuple[str, ...]:
    """Return the batch normalisation layers, or say that there are none."""
    if not anatomy.batch_norms:
        kinds = sorted({type(model.get_submodule(name)).__name__ for name in anatomy.norms})
        found = f"its normalisation layers are {', '.join(kinds)}" if kinds else "it has no normalisation layer"
        other = ", or method='tent' with norms='all'" if affine_parameters(model, anatomy.norms) else ""
        raise IncompatibleModelError(
            f"{method} adapts batch normalisation, and {type(model).__name__} has none: {found}. "
            f"Use method='nhl'{other}"
        )
    return anatomy.batch_norms


preset(
    "norm-partial",
    base="norm",
    statistics="partial",
    summary="Source statistics mixed with those of the batch, prior of 16 images.",
)
preset("norm-running", base="norm", statistics="running", summary="A running average of the stream's statistics.")

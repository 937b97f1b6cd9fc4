"""Methods of other people, for tests: they keep their state outside of the model, and draw from global generators."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from synaptune.core.method import AdaptOptions, Method, Step, Touches
from synaptune.core.registry import _METHODS, register
from synaptune.core.structure import Anatomy
from synaptune.options import option


@dataclass(frozen=True, kw_only=True)
class OwnOptions(AdaptOptions):
    """Options of whichever method is under test."""


@dataclass(frozen=True, kw_only=True)
class SeededOptions(AdaptOptions):
    """Options of a method that says what it draws from."""

    seed: int = option(0, "seed of its draws")


class Own(Method[OwnOptions]):
    """Predicts and touches nothing."""

    def touches(self, model: nn.Module, anatomy: Anatomy) -> Touches:
        return Touches()

    def step(self, model: nn.Module, images: Tensor) -> Step:
        return Step(logits=self.predict(model, images))


class Centring(Own):
    """Takes the mean logit of the batch before off every prediction."""

    def prepare(self, model: nn.Module, anatomy: Anatomy) -> None:
        self.mean = torch.zeros(())

    def predict(self, model: nn.Module, images: Tensor) -> Tensor:
        logits: Tensor = model(images)
        return logits - self.mean

    def step(self, model: nn.Module, images: Tensor) -> Step:
        with torch.no_grad():
            logits = model(images)
            before, self.mean = logits - self.mean, logits.mean(dim=0)
        return Step(logits=before)


class CentringWithState(Centring):
    """The same, and tells its state."""

    def state(self) -> dict[str, Tensor]:
        return {"mean": self.mean}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.mean = state["mean"]


class After(Own):
    """Hands over logits from after an update that it does not make."""

    def step(self, model: nn.Module, images: Tensor) -> Step:
        with torch.no_grad():
            logits = model(images)
        return Step(logits=logits, after=logits.roll(1, dims=1))


class Drawing(Own):
    """Adds noise from the global generators."""

    def step(self, model: nn.Module, images: Tensor) -> Step:
        with torch.no_grad():
            logits = model(images)
        noise = torch.from_numpy(np.random.normal(size=tuple(logits.shape))).float()  # noqa: NPY002  # on purpose
        return Step(logits=logits + 9 * noise * random.random())


class Leaving(Own):
    """Ends the program."""

    def step(self, model: nn.Module, images: Tensor) -> Step:
        sys.exit("the method has had enough")


@contextmanager
def registered(method: type[Method[Any]], options: type[AdaptOptions] = OwnOptions) -> Iterator[str]:
    """Know a method by the name "own" for a while."""
    register("own", options=options, summary="For a test.")(method)
    try:
        yield "own"
    finally:
        del _METHODS["own"]

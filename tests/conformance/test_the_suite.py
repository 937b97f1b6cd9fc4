"""The conformance suite under test: methods that are broken on purpose, each caught by the check that claims to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from synaptune.core.method import AdaptOptions, Method, Step, Touches
from synaptune.core.registry import _METHODS, register
from synaptune.core.structure import Anatomy
from tests.conformance import test_conformance as suite


@dataclass(frozen=True, kw_only=True)
class _NoOptions(AdaptOptions):
    """None."""


class _Honest(Method[Any]):
    """Moves the classifier's bias a little; correct, and the base of the broken ones."""

    def touches(self, model: nn.Module, anatomy: Anatomy) -> Touches:
        return Touches(parameters=frozenset({f"{anatomy.require_classifier()}.bias"}))

    def prepare(self, model: nn.Module, anatomy: Anatomy) -> None:
        self.bias = f"{anatomy.require_classifier()}.bias"
        self.count = 0

    def step(self, model: nn.Module, images: Tensor) -> Step:
        self.count += 1
        with torch.no_grad():
            logits = model(images)
            model.get_parameter(self.bias).add_(0.1 * self.count)
        return Step(logits=logits)

    def state(self) -> dict[str, Tensor]:
        return {"count": torch.tensor(self.count)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.count = int(state["count"])


class _TouchesMore(_Honest):
    """Changes a weight that it did not declare."""

    def step(self, model: nn.Module, images: Tensor) -> Step:
        with torch.no_grad():
            next(model.parameters()).mul_(1.01)
        return super().step(model, images)


class _ForgetsItsState(_Honest):
    """Does not save its counter."""

    def state(self) -> dict[str, Tensor]:
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        pass


class _LeavesGradients(_Honest):
    """Runs backward and walks away."""

    def step(self, model: nn.Module, images: Tensor) -> Step:
        model.get_parameter(self.bias).requires_grad_(True)
        model(images).sum().backward()
        return super().step(model, images)


class _WakesDropout(_Honest):
    """Puts the whole model into train mode, as released TENT does."""

    def step(self, model: nn.Module, images: Tensor) -> Step:
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.training = True
        return super().step(model, images)


class _FailsOnOne(_Honest):
    """Gives NaN for a batch of one, as a variance over the batch does."""

    def step(self, model: nn.Module, images: Tensor) -> Step:
        step = super().step(model, images)
        return Step(logits=step.logits + float("nan") * (len(images) == 1))


class _IsRandom(_Honest):
    """Draws from the global generator."""

    def step(self, model: nn.Module, images: Tensor) -> Step:
        step = super().step(model, images)
        with torch.no_grad():
            model.get_parameter(self.bias).add_(torch.rand(()))
        return step


class _HoldsOn(_Honest):
    """Keeps every batch."""

    kept: list[Tensor]

    def prepare(self, model: nn.Module, anatomy: Anatomy) -> None:
        super().prepare(model, anatomy)
        self.kept = []

    def step(self, model: nn.Module, images: Tensor) -> Step:
        self.kept.append(images.clone())
        return super().step(model, images)


class _SharesStateBetweenCopies(_Honest):
    """Keeps its counter on the class."""

    shared = 0

    def step(self, model: nn.Module, images: Tensor) -> Step:
        type(self).shared += 1
        self.count = type(self).shared
        return super().step(model, images)


class _DoesNothing(_Honest):
    """Declares a parameter and never moves it."""

    def step(self, model: nn.Module, images: Tensor) -> Step:
        with torch.no_grad():
            return Step(logits=model(images))


class _LeavesAHook(_Honest):
    """Registers a hook that is not marked as ours."""

    def prepare(self, model: nn.Module, anatomy: Anatomy) -> None:
        super().prepare(model, anatomy)
        model.register_forward_pre_hook(lambda module, args: None)


BROKEN: list[tuple[type[_Honest], Callable[..., None], dict[str, Any]]] = [
    (_TouchesMore, suite.test_only_declared_tensors_change, {}),
    (_TouchesMore, suite.test_detach_is_bit_exact, {}),
    (_ForgetsItsState, suite.test_save_and_load_continue_with_the_same_bits, {"tmp_path": Path}),
    (_LeavesGradients, suite.test_no_gradient_is_left_behind, {}),
    (_WakesDropout, suite.test_dropout_stays_off, {}),
    (_FailsOnOne, suite.test_a_batch_of_one_stays_finite, {"constant": False}),
    (_IsRandom, suite.test_same_seed_same_bits, {}),
    (_HoldsOn, suite.test_long_streams_leak_nothing, {}),
    (_SharesStateBetweenCopies, suite.test_a_deep_copy_is_independent_and_equal, {}),
    (_SharesStateBetweenCopies, suite.test_reset_is_bit_exact_and_starts_afresh, {}),
    (_DoesNothing, suite.test_what_a_method_declares_it_also_moves, {}),
    (_LeavesAHook, suite.test_detach_is_bit_exact, {}),
]


@pytest.fixture
def registered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    method = request.param
    options = make_dataclass(f"{method.__name__}Options", [], bases=(_NoOptions,), frozen=True, kw_only=True)
    name = method.__name__.strip("_").lower()
    register(name, options=options, summary="Broken.")(type(method.__name__, (method,), {}))
    monkeypatch.setitem(suite.HOME, name, "bn")
    yield name
    del _METHODS[name]


def _run(check: Callable[..., None], method: str, extra: dict[str, Any], tmp_path: Path) -> None:
    arguments = {key: tmp_path if value is Path else value for key, value in extra.items()}
    takes_model = "kind" in check.__code__.co_varnames[: check.__code__.co_argcount]
    check(method, "bn", **arguments) if takes_model else check(method, **arguments)


@pytest.mark.parametrize(("registered", "check", "extra"), BROKEN, indirect=["registered"])
def test_each_broken_method_is_caught(
    registered: str, check: Callable[..., None], extra: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        _run(check, registered, extra, tmp_path)


@pytest.mark.parametrize("registered", [_Honest], indirect=True)
def test_the_honest_one_passes_all_of_these_checks(registered: str, tmp_path: Path) -> None:
    for _, check, extra in BROKEN:
        if check is not suite.test_a_batch_of_one_stays_finite:
            _run(check, registered, extra, tmp_path)

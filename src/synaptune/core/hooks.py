"""Hooks of ours, marked as ours, so that they can be told from the user's and taken off again.

Hooks are objects, not closures, and hold names or tensors, never modules: a deep copy of an adapted model then
carries working copies of its hooks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

__all__ = ["Hook", "Learner", "OutputHook", "PassCounter", "attach", "is_adapted", "learning", "remove_hooks"]


class Hook(ABC):
    """A forward pre-hook that belongs to synaptune."""

    @abstractmethod
    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None: ...


class Learner(Hook):
    """A hook that changes state: it does so inside `learning`, and lets other passes go by."""

    awake = False


@contextmanager
def learning(learners: Iterable[Learner]) -> Iterator[None]:
    """Let the forward passes inside be those that `learners` learn from."""
    awakened = list(learners)
    for learner in awakened:
        learner.awake = True
    try:
        yield
    finally:
        for learner in awakened:
            learner.awake = False


class OutputHook(ABC):
    """A forward hook that belongs to synaptune; it looks at the output and leaves it as it is."""

    @abstractmethod
    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: object) -> None: ...


class PassCounter(Hook):
    """Counts the images that really go through the model."""

    def __init__(self) -> None:
        self.images = 0

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if args and isinstance(args[0], Tensor):
            self.images += args[0].shape[0]


def attach(module: nn.Module, hook: Hook | OutputHook) -> None:
    """Run `hook` before (an `OutputHook`: after) every forward of `module`, until `remove_hooks`."""
    if isinstance(hook, Hook):
        module.register_forward_pre_hook(hook)
    else:
        module.register_forward_hook(hook)


def remove_hooks(model: nn.Module) -> None:
    """Take all our hooks off the model and its parts; hooks of others stay."""
    for module in model.modules():
        for hooks in (module._forward_pre_hooks, module._forward_hooks):
            for key in [key for key, hook in hooks.items() if isinstance(hook, Hook | OutputHook)]:
                del hooks[key]


def is_adapted(model: nn.Module) -> bool:
    """Tell whether an adapter is attached to this model, to a part of it, or to a model that it is part of."""
    return any(isinstance(hook, Hook) for module in model.modules() for hook in module._forward_pre_hooks.values())

"""Hooks of ours, marked as ours, so that they can be told from the user's and taken off again.

Hooks are objects, not closures, and hold names or tensors, never modules: a deep copy of an adapted model then
carries working copies of its hooks.

A model under adaptation is claimed, part by part: two models may share layers or weights, and two adapters would then
each undo what the other did.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

__all__ = [
    "FreshInput",
    "Hook",
    "Learner",
    "OutputHook",
    "PassCounter",
    "attach",
    "claim",
    "hooks_of",
    "is_adapted",
    "learning",
    "release",
    "remove_hooks",
]

_CLAIM = "_synaptune_claimed"


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


class FreshInput:
    """Gives every forward pass its own copy of the images.

    Some models normalise in place; in the second pass of a step they would see their own work. A copy costs far less
    than the pass does.
    """

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(value.clone() if isinstance(value, Tensor) else value for value in args)


class _Positional:
    """Calls a hook with all inputs in a row, however the model passed them (`conv(x)` or `conv(input=x)`)."""

    def __init__(self, hook: Hook):
        self.hook = hook

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.hook(module, (*args, *kwargs.values()))


def attach(module: nn.Module, hook: Hook | FreshInput | OutputHook) -> None:
    """Run `hook` before (an `OutputHook`: after) every forward of `module`, until `remove_hooks`."""
    if isinstance(hook, FreshInput):
        module.register_forward_pre_hook(hook)
    elif isinstance(hook, Hook):
        module.register_forward_pre_hook(_Positional(hook), with_kwargs=True)
    else:
        module.register_forward_hook(hook)


def hooks_of(module: nn.Module) -> list[Hook]:
    """Our hooks before the forward of `module` itself."""
    return [hook.hook for hook in module._forward_pre_hooks.values() if isinstance(hook, _Positional)]


def remove_hooks(model: nn.Module) -> None:
    """Take all our hooks off the model and its parts; hooks of others stay."""
    for module in model.modules():
        ours = (_Positional, FreshInput)
        for key in [key for key, hook in module._forward_pre_hooks.items() if isinstance(hook, ours)]:
            del module._forward_pre_hooks[key]
            module._forward_pre_hooks_with_kwargs.pop(key, None)
        for key in [key for key, hook in module._forward_hooks.items() if isinstance(hook, OutputHook)]:
            del module._forward_hooks[key]


def claim(model: nn.Module) -> list[nn.Module | nn.Parameter]:
    """Mark all parts and parameters of `model` as adapted; return them, for `release`."""
    parts: list[nn.Module | nn.Parameter] = [*model.modules(), *model.parameters()]
    for part in parts:
        vars(part)[_CLAIM] = True
    return parts


def release(parts: Iterable[nn.Module | nn.Parameter]) -> None:
    """Take the marks off again."""
    for part in parts:
        vars(part).pop(_CLAIM, None)


def is_adapted(model: nn.Module) -> bool:
    """Tell whether an adapter is attached to this model, or to one that shares a part or a parameter with it."""
    return any(_CLAIM in vars(part) for part in (*model.modules(), *model.parameters()))

"""Hooks of ours, marked as ours, so that they can be told from the user's and taken off again.

Hooks are objects, not closures, and hold names or tensors, never modules: a deep copy of an adapted model then
carries working copies of its hooks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

__all__ = ["Hook", "PassCounter", "attach", "is_adapted", "remove_hooks"]


class Hook(ABC):
    """A forward pre-hook that belongs to synaptune."""

    @abstractmethod
    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None: ...


class PassCounter(Hook):
    """Counts the images that really go through the model; it also marks the model as adapted."""

    def __init__(self) -> None:
        self.images = 0

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if args and isinstance(args[0], Tensor):
            self.images += args[0].shape[0]


def attach(module: nn.Module, hook: Hook) -> None:
    """Run `hook` before every forward of `module`, until `remove_hooks`."""
    module.register_forward_pre_hook(hook)


def remove_hooks(model: nn.Module) -> None:
    """Take all our hooks off the model and its parts; hooks of others stay."""
    for module in model.modules():
        ours = [key for key, hook in module._forward_pre_hooks.items() if isinstance(hook, Hook)]
        for key in ours:
            del module._forward_pre_hooks[key]


def is_adapted(model: nn.Module) -> bool:
    """Tell whether an adapter is attached to this model."""
    return any(isinstance(hook, PassCounter) for hook in model._forward_pre_hooks.values())

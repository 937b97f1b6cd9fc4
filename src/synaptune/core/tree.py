"""A model as a tree of named modules in registration order, with the questions that the structure finder asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import nn

from synaptune.core.layers import (
    is_convolution,
    is_mixing,
    is_normalisation,
    output_width,
    reduces_resolution,
)

__all__ = ["Tree"]


class Tree:
    """Names and modules of a model; a module that occurs twice counts where it was registered first."""

    def __init__(self, model: nn.Module):
        self.modules: dict[str, nn.Module] = dict(model.named_modules())
        self.mixing: tuple[str, ...] = self.names_where(is_mixing)

    def names_where(self, holds: Callable[[nn.Module], bool]) -> tuple[str, ...]:
        """Names of all modules for which `holds` is true, in registration order."""
        return tuple(name for name, module in self.modules.items() if holds(module))

    def children(self, name: str) -> list[str]:
        """Names of the direct children."""
        prefix = f"{name}." if name else ""
        names = (prefix + child for child, _ in self.modules[name].named_children())
        return [child for child in names if child in self.modules]

    @staticmethod
    def is_inside(name: str | None, outer: str) -> bool:
        """Whether `name` is `outer` or lies in it; no name lies nowhere."""
        return name is not None and (not outer or name == outer or name.startswith(f"{outer}."))

    def below(self, name: str) -> list[str]:
        """Names of `name` and of everything in it, in registration order."""
        return [other for other in self.modules if self.is_inside(other, name)]

    def mixers(self, name: str) -> list[str]:
        """Names of the mixing layers in `name` (which may be one itself)."""
        return [other for other in self.mixing if self.is_inside(other, name)]

    def has_convolution(self, name: str) -> bool:
        """Whether there is a convolution in `name`."""
        return any(is_convolution(self.modules[other]) for other in self.mixers(name))

    def has_norm(self, name: str) -> bool:
        """Whether there is a normalisation layer in `name`."""
        return any(is_normalisation(self.modules[other]) for other in self.below(name))

    def is_composite(self, name: str) -> bool:
        """Whether `name` holds two mixing layers or more: a block, or a group of blocks."""
        return len(self.mixers(name)) >= 2

    def composites(self, name: str) -> list[str]:
        """Children that are composite."""
        return [child for child in self.children(name) if self.is_composite(child)]

    def height(self, name: str) -> int:
        """How deeply blocks are nested: 0 for a single mixing layer, 1 for a block of such layers, and so on."""
        if not self.is_composite(name):
            return 0
        return 1 + max((self.height(child) for child in self.children(name)), default=0)

    def widths(self, names: Iterable[str]) -> set[int]:
        """Output widths of the mixing and normalisation layers among `names`."""
        layers = (self.modules[name] for name in names)
        found = {output_width(layer) for layer in layers if is_mixing(layer) or is_normalisation(layer)}
        return {width for width in found if width is not None}

    def width(self, name: str) -> int | None:
        """Output width of the last mixing layer in `name`."""
        mixers = self.mixers(name)
        return output_width(self.modules[mixers[-1]]) if mixers else None

    def reductions(self, name: str) -> tuple[bool, bool]:
        """Whether resolution falls inside `name`: up to its last mixing layer, and after it."""
        names = self.below(name)
        mixers = self.mixers(name)
        last = names.index(mixers[-1]) if mixers else -1
        at = [i for i, other in enumerate(names) if reduces_resolution(self.modules[other])]
        return any(i <= last for i in at), any(i > last for i in at)

"""A model as a tree of named modules in registration order, with the questions that the structure finder asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import nn

from synaptune.core.layers import (
    is_linear,
    is_mixing,
    is_normalisation,
    output_width,
    recolours_image,
    reduces_resolution,
)

__all__ = ["Tree"]


class Tree:
    """Names and modules of a model; a module that occurs twice counts where it was registered first."""

    def __init__(self, model: nn.Module):
        self.modules: dict[str, nn.Module] = dict(model.named_modules())
        self.names: tuple[str, ...] = tuple(self.modules)
        self._place = {name: i for i, name in enumerate(self.names)}
        self._end = self._ends()
        # What changes colours only is preprocessing, even when it is written as a convolution.
        self._mixing = [bool(n) and is_mixing(m) and not recolours_image(m) for n, m in self.modules.items()]
        self.mixing: tuple[str, ...] = tuple(n for n, mixes in zip(self.names, self._mixing, strict=True) if mixes)

    def _ends(self) -> dict[str, int]:
        """For each name the place after the last one inside it: a subtree is a run in registration order."""
        ends: dict[str, int] = {}
        open_names: list[str] = []
        for i, name in enumerate(self.names):
            while open_names and not self.is_inside(name, open_names[-1]):
                ends[open_names.pop()] = i
            open_names.append(name)
        return ends | dict.fromkeys(open_names, len(self.names))

    @staticmethod
    def is_inside(name: str | None, outer: str) -> bool:
        """Whether `name` is `outer` or lies in it; no name lies nowhere."""
        return name is not None and (not outer or name == outer or name.startswith(f"{outer}."))

    def names_where(self, holds: Callable[[nn.Module], bool]) -> tuple[str, ...]:
        """Names of all modules for which `holds` is true, in registration order."""
        return tuple(name for name, module in self.modules.items() if holds(module))

    def below(self, name: str) -> tuple[str, ...]:
        """Names of `name` and of everything in it, in registration order."""
        return self.names[self._place[name] : self._end[name]]

    def after(self, name: str) -> tuple[str, ...]:
        """Names registered later than `name`, its own inside included."""
        return self.names[self._place[name] + 1 :]

    def children(self, name: str) -> list[str]:
        """Names of the direct children."""
        prefix = f"{name}." if name else ""
        names = (prefix + child for child, _ in self.modules[name].named_children())
        return [child for child in names if child in self.modules]

    def ancestors(self, name: str) -> Iterator[str]:
        """Names of the modules around `name`, the model itself left out, outermost first."""
        path = name.split(".")
        return (".".join(path[:n]) for n in range(1, len(path)))

    def is_mixer(self, name: str) -> bool:
        """Whether `name` is a mixing layer itself."""
        return self._mixing[self._place[name]]

    def mixers(self, name: str) -> list[str]:
        """Names of the mixing layers in `name` (which may be one itself)."""
        return [other for other in self.below(name) if self.is_mixer(other)]

    def is_convolutional(self, name: str) -> bool:
        """Whether there are mixing layers in `name` that are not linear: convolutions, of torch or one's own."""
        return any(not is_linear(self.modules[other]) for other in self.mixers(name))

    def has_layers(self, name: str) -> bool:
        """Whether there is a mixing or normalisation layer in `name`, rather than activations or pooling only."""
        return any(self.is_mixer(other) or is_normalisation(self.modules[other]) for other in self.below(name))

    def is_composite(self, name: str) -> bool:
        """Whether `name` holds two mixing layers or more: a block, or a group of blocks."""
        return len(self.mixers(name)) >= 2

    def composites(self, name: str) -> list[str]:
        """Children that are composite."""
        return [child for child in self.children(name) if self.is_composite(child)]

    def height(self, name: str) -> int:
        """How deeply blocks are nested: 0 for one mixing layer, 1 for a block of such layers, and so on."""
        if not self.is_composite(name):
            return 0
        return 1 + max((self.height(child) for child in self.children(name)), default=0)

    def width(self, name: str) -> int | None:
        """Output width of the last mixing layer in `name`."""
        mixers = self.mixers(name)
        return output_width(self.modules[mixers[-1]]) if mixers else None

    def reductions(self, name: str) -> tuple[bool, bool]:
        """Whether resolution falls in `name`: up to its last mixing layer, and behind it."""
        names = self.below(name)
        mixers = self.mixers(name)
        last = names.index(mixers[-1]) if mixers else -1
        at = [i for i, other in enumerate(names) if reduces_resolution(self.modules[other])]
        return any(i <= last for i in at), any(i > last for i in at)

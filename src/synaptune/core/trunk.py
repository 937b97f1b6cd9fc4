"""The parts of a model between stem and head, in order: what stages are cut from.

From the root we go down while one child holds all the blocks, to the level where the groups (or blocks) stand. The
stem (first convolution, its norm, single convolutions before the first block) and the head stay out.
"""

from __future__ import annotations

from torch import nn

from synaptune.core.heads import is_head
from synaptune.core.tree import Tree

__all__ = ["Trunk"]

_DOMINANT = 0.8  # a child with this share of the layers is the trunk; a neck or pooling head may stand beside it
_MOSTLY_BLOCKS = 2 / 3  # below this share of layers in blocks, single convolutions belong to the stages too


class Trunk:
    """Where the blocks stand, and which they are.

    Attributes:
        level: name of the module whose children the parts are ("" is the model).
        parts: names, pooling layers included, since stages are cut there.
        blocks: those parts that are blocks or groups of blocks; empty where single layers make up the trunk.
    """

    def __init__(self, tree: Tree, *, first_conv: str | None, stem_norm: str | None, classifier: str | None):
        self.tree = tree
        self._first_conv, self._stem_norm, self._classifier = first_conv, stem_norm, classifier
        self.level = ""
        while (below := self._next_level(self._bodies(self.level))) is not None:
            self.level = below
        bodies = self._bodies(self.level)
        children = [child for child in tree.children(self.level) if not self._is_head(child)]
        self.blocks = frozenset(bodies if self._are_most(bodies, children) else ())
        self.parts = tuple(self._without_stem(self._between(children)))
        if self.blocks:  # what is left of a block without its first convolution stands for the block
            self.blocks |= {part for part in self.parts if part not in children and tree.mixers(part)}

    # --- the level of the blocks

    def _bodies(self, level: str) -> list[str]:
        """Composite children that belong to the trunk; a stem is nested less deeply than the groups after it."""
        bodies = [child for child in self.tree.composites(level) if not self._is_head(child)]
        tallest = max((self.tree.height(body) for body in bodies), default=0)
        return [b for b in bodies if not (self._holds_first(b) and self.tree.height(b) < tallest)]

    def _next_level(self, bodies: list[str]) -> str | None:
        if len(bodies) == 1:
            return bodies[0] if self._holds_first(bodies[0]) or self._is_series(bodies[0]) else None
        return self._dominant(bodies)

    def _dominant(self, bodies: list[str]) -> str | None:
        """The child that is the trunk although it has composite neighbours (a neck, an attention pooling)."""
        tree = self.tree
        sizes = {body: len(tree.mixers(body)) for body in bodies}
        largest = max(bodies, key=lambda body: sizes[body], default=None)
        if largest is None or sizes[largest] < _DOMINANT * sum(sizes.values()) or not self._is_series(largest):
            return None
        if any(any(tree.reductions(body)) for body in bodies if body != largest):
            return None
        falls = [any(tree.reductions(child)) for child in tree.children(largest)]
        return largest if sum(falls) >= 2 or not any(falls) else None

    def _is_series(self, name: str) -> bool:
        """Whether the children of `name` follow one another, rather than being the parts of one block."""
        bodies = self._bodies(name)
        if isinstance(self.tree.modules[name], nn.Sequential | nn.ModuleList | nn.ModuleDict):
            mixing = [child for child in self.tree.children(name) if self.tree.mixers(child)]
            return len(mixing) >= 2 or (len(bodies) == 1 and self._is_series(bodies[0]))
        if len(bodies) == 1:
            # An encoder around its list of blocks, not a residual block around its list of layers.
            return self.tree.height(bodies[0]) > 1 and self._is_series(bodies[0])
        return len(bodies) >= 2 and len({type(self.tree.modules[body]) for body in bodies}) == 1

    def _is_head(self, name: str) -> bool:
        return is_head(self.tree, name, self._first_conv, self._classifier)

    def _holds_first(self, name: str) -> bool:
        return self.tree.is_inside(self._first_conv, name)

    # --- what stands there

    def _are_most(self, bodies: list[str], children: list[str]) -> bool:
        def layers(names: list[str]) -> int:
            return sum(len(self.tree.mixers(name)) for name in names if not self._holds_first(name))

        return layers(bodies) > 0 and layers(bodies) >= _MOSTLY_BLOCKS * layers(children)

    def _between(self, children: list[str]) -> list[str]:
        """From the first block to the last; without blocks, from the first mixing layer to the head.

        Linear layers behind the last convolution are head, even where they are not in one module with the classifier.
        """
        mixing = [i for i, child in enumerate(children) if self.tree.mixers(child)]
        if not mixing:
            return []
        if self.blocks:
            at = [i for i, child in enumerate(children) if child in self.blocks]
            return children[at[0] : at[-1] + 1]
        convolutional = [i for i in mixing if self.tree.is_convolutional(children[i])]
        head = next((i for i in mixing if convolutional and i > convolutional[-1]), len(children))
        return children[mixing[0] : head]

    def _without_stem(self, children: list[str]) -> list[str]:
        parts: list[str] = []
        for child in children:
            if not self._holds_first(child):
                parts.append(child)
            elif self.tree.is_composite(child):
                parts.extend(self._without_stem(self.tree.children(child)))
        return [part for part in parts if part != self._stem_norm]

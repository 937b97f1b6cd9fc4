"""Cut the trunk of a model into stages, by structure alone.

1. Go down from the root, while one child holds all the blocks, to the level where the groups (or blocks) stand.
2. Put aside the stem (first convolution, its norm, single convolutions before the first block) and the head.
3. Begin a stage wherever the resolution falls: at a child with a stride inside, and after a pooling layer.
4. If that gives one stage only, cut where the width changes; if still one, cut four or more like blocks in four.
"""

from __future__ import annotations

from torch import nn

from synaptune.core.heads import is_head
from synaptune.core.tree import Tree

__all__ = ["Stages", "find_stages"]

Stages = tuple[tuple[str, ...], ...]

_DOMINANT = (
    0.8  # a child with this share of the layers is the trunk; what stands beside it is neck or pooling head
)
_MOSTLY_BLOCKS = (
    2 / 3
)  # below this share of layers in blocks, single convolutions belong to the stages as well
_EQUAL_GROUPS = 4  # as many as a ResNet has


def find_stages(
    tree: Tree, first_conv: str | None, stem_norm: str | None, classifier: str | None
) -> tuple[Stages, str]:
    """The stages, and one sentence about how they were found."""
    return _StageFinder(tree, first_conv, stem_norm, classifier).find()


class _StageFinder:
    def __init__(self, tree: Tree, first_conv: str | None, stem_norm: str | None, classifier: str | None):
        self.tree = tree
        self.first_conv = first_conv
        self.stem_norm = stem_norm
        self.classifier = classifier
        self.blocks: set[str] = set()  # the composite parts, where these make up most of the trunk

    def find(self) -> tuple[Stages, str]:
        level = self.trunk("")
        parts = self.parts(level)
        where = f"children of {level!r}" if level else "children of the model"
        cells = self.cells(parts)
        for groups, rule in (
            (
                self.cut_by_resolution(parts),
                "a new one where a stride or a pooling layer lowers the resolution",
            ),
            (self.cut_by_width(cells), "no stride is visible, so a new one where the width changes"),
            (self.cut_equally(cells), "resolution and width stay the same, so four groups of equal length"),
        ):
            if len(groups) > 1:
                return groups, f"{len(groups)} groups of {where}; {rule}"
        groups = self.named([parts])
        return (
            groups,
            f"all of {where} at one resolution" if groups else "nothing between first layer and classifier",
        )

    # --- the level of the blocks

    def bodies(self, level: str) -> list[str]:
        """Composite children that belong to the trunk, the stem left out."""
        bodies = [c for c in self.tree.composites(level) if not self.is_head(c)]
        tallest = max((self.tree.height(c) for c in bodies), default=0)
        return [c for c in bodies if not (self.holds_first(c) and self.tree.height(c) < tallest)]

    def trunk(self, level: str) -> str:
        while True:
            below = self.descend(level, self.bodies(level))
            if below is None:
                return level
            level = below

    def descend(self, level: str, bodies: list[str]) -> str | None:
        if len(bodies) == 1:
            return bodies[0] if self.holds_first(bodies[0]) or self.is_series(bodies[0]) else None
        sizes = {body: len(self.tree.mixers(body)) for body in bodies}
        largest = max(bodies, key=lambda body: sizes[body], default=None)
        if largest is None or sizes[largest] < _DOMINANT * sum(sizes.values()) or not self.is_series(largest):
            return None
        if any(any(self.tree.reductions(body)) for body in bodies if body != largest):
            return None
        falls = [any(self.tree.reductions(child)) for child in self.tree.children(largest)]
        return largest if sum(falls) >= 2 or not any(falls) else None

    def is_series(self, name: str) -> bool:
        """Whether the children of `name` follow one another, rather than being the parts of one block."""
        if name in self.tree.mixing:
            return False
        composites = self.bodies(name)
        if isinstance(self.tree.modules[name], nn.Sequential | nn.ModuleList | nn.ModuleDict):
            return len([c for c in self.tree.children(name) if self.tree.mixers(c)]) >= 2 or (
                len(composites) == 1 and self.is_series(composites[0])
            )
        if len(composites) == 1:
            # An encoder around its list of blocks, not a residual block around its list of layers.
            return self.tree.height(composites[0]) > 1 and self.is_series(composites[0])
        return len(composites) >= 2 and len({type(self.tree.modules[c]) for c in composites}) == 1

    def is_head(self, name: str) -> bool:
        return is_head(self.tree, name, self.first_conv, self.classifier)

    def holds_first(self, name: str) -> bool:
        return self.tree.is_inside(self.first_conv, name)

    # --- what stands there, without stem and head

    def parts(self, level: str) -> list[str]:
        """Children of `level` between stem and head, in order; pooling layers included, since they cut."""
        children = [c for c in self.tree.children(level) if not self.is_head(c)]
        bodies = self.bodies(level)
        self.blocks = set(bodies) if self.mostly_blocks(children, bodies) else set()
        between = self.between_bodies(children, bodies) if self.blocks else self.up_to_head(children)
        parts: list[str] = []
        for child in between:
            if not self.holds_first(child):
                parts.append(child)
            elif child in bodies:
                parts.extend(self.without_first(child))
        return [part for part in parts if part != self.stem_norm]

    def mostly_blocks(self, children: list[str], bodies: list[str]) -> bool:
        in_children = sum(len(self.tree.mixers(c)) for c in children if not self.holds_first(c))
        in_bodies = sum(len(self.tree.mixers(b)) for b in bodies if not self.holds_first(b))
        return in_bodies > 0 and in_bodies >= _MOSTLY_BLOCKS * in_children

    @staticmethod
    def between_bodies(children: list[str], bodies: list[str]) -> list[str]:
        at = [i for i, child in enumerate(children) if child in bodies]
        return children[at[0] : at[-1] + 1]

    def up_to_head(self, children: list[str]) -> list[str]:
        """From the first mixing layer on, without the linear layers that follow the last convolution."""
        mixing = [i for i, c in enumerate(children) if self.tree.mixers(c)]
        if not mixing:
            return []
        convolutional = [i for i in mixing if self.tree.has_convolution(children[i])]
        head = next((i for i in mixing if convolutional and i > convolutional[-1]), len(children))
        return children[mixing[0] : head]

    def without_first(self, name: str) -> list[str]:
        """Children of the block `name` but for the first convolution and its norm, however deep these lie."""
        parts: list[str] = []
        for child in self.tree.children(name):
            if self.holds_first(child):
                parts.extend(self.without_first(child) if self.tree.is_composite(child) else [])
            elif child != self.stem_norm:
                parts.append(child)
        return parts

    # --- three ways to cut

    def cut_by_resolution(self, parts: list[str]) -> Stages:
        groups: list[list[str]] = [[]]
        falls_before = False
        for part in parts:
            inside, behind = self.tree.reductions(part)
            started = any(self.tree.mixers(other) for other in groups[-1])
            if started and (inside or falls_before) and self.has_layers(part):
                groups.append([])
            groups[-1].append(part)
            if self.has_layers(part):
                falls_before = False
            # A pooling layer at the end of a block that also strides is one of its branches, unless the block is a chain.
            chain = isinstance(self.tree.modules[part], nn.Sequential)
            falls_before = falls_before or (behind and (chain or not inside))
        return self.named(groups)

    def cells(self, parts: list[str]) -> list[list[str]]:
        """Parts grouped around each block (or layer, where there are no blocks), with what leads to it and its norm."""
        cells: list[list[str]] = []
        leading: list[str] = []
        for part in parts:
            if part in self.blocks or (not self.blocks and self.tree.mixers(part)):
                cells.append([*leading, part])
                leading = []
            elif self.tree.mixers(part) or leading or not cells:
                leading.append(part)
            else:
                cells[-1].append(part)
        if cells:
            cells[-1].extend(leading)
        return cells

    def cut_by_width(self, cells: list[list[str]]) -> Stages:
        groups: list[list[str]] = []
        widths: list[int | None] = []
        for cell in cells:
            width = self.tree.width(self.centre(cell))
            if not widths or width != widths[-1]:
                groups.append([])
                widths.append(width)
            groups[-1].extend(cell)
        # A width that comes back means narrow and wide layers in turn, not stages.
        return self.named(groups) if len(set(widths)) == len(widths) else ()

    def cut_equally(self, cells: list[list[str]]) -> Stages:
        kinds = {type(self.tree.modules[self.centre(cell)]) for cell in cells}
        if len(cells) < _EQUAL_GROUPS or len(kinds) > 1:
            return ()
        bounds = [round(i * len(cells) / _EQUAL_GROUPS) for i in range(_EQUAL_GROUPS + 1)]
        pairs = zip(bounds, bounds[1:], strict=False)
        return self.named([[part for cell in cells[a:b] for part in cell] for a, b in pairs])

    def centre(self, cell: list[str]) -> str:
        return next(
            part for part in cell if part in self.blocks or (not self.blocks and self.tree.mixers(part))
        )

    def named(self, groups: list[list[str]]) -> Stages:
        """Groups without pooling layers and the like, and without groups that then hold nothing."""
        kept = (tuple(part for part in group if self.has_layers(part)) for group in groups)
        return tuple(group for group in kept if group)

    def has_layers(self, part: str) -> bool:
        return bool(self.tree.mixers(part)) or self.tree.has_norm(part)

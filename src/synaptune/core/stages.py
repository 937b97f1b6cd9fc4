"""Cut the trunk of a model into stages: groups of blocks, or of convolutions, that work at one resolution.

A stage begins where the resolution falls: at a part with a stride inside, and after a pooling layer. Where that
gives one stage only, it is cut where the width changes; and if width stays too, four or more like blocks in four.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from torch import nn

from synaptune.core.tree import Tree
from synaptune.core.trunk import Trunk

__all__ = ["Stages", "find_stages"]

Stages = tuple[tuple[str, ...], ...]

_EQUAL_GROUPS = 4  # as many as a ResNet has


def find_stages(
    tree: Tree, *, first_conv: str | None, stem_norm: str | None, classifier: str | None
) -> tuple[Stages, str]:
    """The stages, and one sentence about how they were found."""
    trunk = Trunk(tree, first_conv=first_conv, stem_norm=stem_norm, classifier=classifier)
    where = f"children of {trunk.level}" if trunk.level else "children of the model"
    for cut, rule in (
        (cut_by_resolution, "a new one where a stride or a pooling layer lowers the resolution"),
        (cut_by_width, "a new one where the width changes, since no stride or pooling layer is visible"),
        (cut_equally, "groups of equal length, since resolution and width stay the same"),
    ):
        stages = _with_layers(tree, cut(trunk))
        if len(stages) > 1:
            return stages, f"{len(stages)} stages from the {where}; {rule}"
    stages = _with_layers(tree, [trunk.parts])
    return stages, f"all of the {where}, at one resolution" if stages else "no layer between the first and the head"


def cut_by_resolution(trunk: Trunk) -> list[list[str]]:
    """Groups of parts; a new one wherever the resolution has fallen."""
    tree = trunk.tree
    groups: list[list[str]] = [[]]
    fallen = False
    for part in trunk.parts:
        inside, behind = tree.reductions(part)
        if tree.has_layers(part):
            if (inside or fallen) and any(tree.mixers(other) for other in groups[-1]):
                groups.append([])
            fallen = False
        groups[-1].append(part)
        # In a block that strides, a pooling layer at the end is one of its branches; in a chain it comes after.
        fallen = fallen or (behind and (not inside or isinstance(tree.modules[part], nn.Sequential)))
    return groups


def cut_by_width(trunk: Trunk) -> list[list[str]]:
    """Groups of parts; a new one wherever the width changes, none at all where a width comes back."""
    groups: list[list[str]] = []
    widths: list[int | None] = []
    for cell in _cells(trunk):
        width = trunk.tree.width(_centre(trunk, cell))
        if not widths or width != widths[-1]:
            groups.append([])
            widths.append(width)
        groups[-1].extend(cell)
    # Narrow and wide layers in turn are bottlenecks, not stages.
    return groups if len(set(widths)) == len(widths) else []


def cut_equally(trunk: Trunk) -> list[list[str]]:
    """Four groups of consecutive blocks of one class, the longer groups first; none if there are fewer."""
    cells = _cells(trunk)
    if len(cells) < _EQUAL_GROUPS or len({type(trunk.tree.modules[_centre(trunk, cell)]) for cell in cells}) > 1:
        return []
    length, longer = divmod(len(cells), _EQUAL_GROUPS)
    starts = [i * length + min(i, longer) for i in range(_EQUAL_GROUPS + 1)]
    return [[part for cell in cells[start:end] for part in cell] for start, end in pairwise(starts)]


def _cells(trunk: Trunk) -> list[list[str]]:
    """Parts around each block (around each layer, where there are no blocks): what leads to it, it, and its norm."""
    cells: list[list[str]] = []
    leading: list[str] = []
    for part in trunk.parts:
        if _is_centre(trunk, part):
            cells.append([*leading, part])
            leading = []
        elif trunk.tree.mixers(part) or leading or not cells:
            leading.append(part)
        else:
            cells[-1].append(part)
    if cells:
        cells[-1].extend(leading)
    return cells


def _centre(trunk: Trunk, cell: list[str]) -> str:
    return next(part for part in cell if _is_centre(trunk, part))


def _is_centre(trunk: Trunk, part: str) -> bool:
    return part in trunk.blocks if trunk.blocks else bool(trunk.tree.mixers(part))


def _with_layers(tree: Tree, groups: Iterable[Iterable[str]]) -> Stages:
    """Groups without activations and pooling layers, and without those groups that then hold nothing."""
    kept = (tuple(part for part in group if tree.has_layers(part)) for group in groups)
    return tuple(group for group in kept if group)

"""Where a model turns features into classes: its classifier, and the auxiliary heads that are not part of the trunk."""

from __future__ import annotations

from torch import nn

from synaptune.core.layers import is_convolution, is_normalisation
from synaptune.core.tree import Tree

__all__ = ["find_classifier", "is_head"]


def ends_in_output(tree: Tree, name: str) -> bool:
    """Whether the last mixing layer of `name` is linear and puts out a width that occurs nowhere else in it.

    That tells a head (512 channels -> 10 classes) from blocks that end in a linear layer, whose output must fit
    the width of the block (squeeze-and-excitation, the MLP of a transformer block).
    """
    mixers = tree.mixers(name)
    if not mixers or not isinstance(tree.modules[mixers[-1]], nn.Linear):
        return False
    last = tree.modules[mixers[-1]]
    others = tree.widths(other for other in tree.below(name) if other != mixers[-1])
    return isinstance(last, nn.Linear) and last.out_features not in others


def is_head(tree: Tree, name: str, first_conv: str | None, classifier: str | None) -> bool:
    """Whether `name` holds the classifier or is an auxiliary classifier, and is not part of the trunk.

    An auxiliary head (GoogLeNet, Inception, the rotation head of TTT) has convolutions of its own and ends in an
    output layer; without the convolutions it could as well be the patch merging of a transformer.
    """
    if tree.is_inside(first_conv, name):
        return False
    if tree.is_inside(classifier, name):
        return True
    return tree.has_convolution(name) and ends_in_output(tree, name)


def find_classifier(tree: Tree, first_conv: str | None) -> str | None:
    """Name of the linear layer (or last 1x1 convolution) that puts out the classes; None if there is none."""
    return _linear_classifier(tree, "", first_conv) or _convolutional_classifier(tree, first_conv)


def _linear_classifier(tree: Tree, at: str, first_conv: str | None) -> str | None:
    parts = [child for child in tree.children(at) if tree.mixers(child)]
    trunk = [part for part in parts if tree.is_inside(first_conv, part) and part != first_conv]
    outputs = [part for part in parts if part not in trunk and ends_in_output(tree, part)]
    plain = [part for part in outputs if not tree.has_convolution(part)]
    if plain:
        return tree.mixers(plain[-1])[-1]
    if trunk and (ends_in_output(tree, trunk[0]) or not outputs):
        return _linear_classifier(tree, trunk[0], first_conv)
    if outputs:
        return tree.mixers(outputs[-1])[-1]
    if len(parts) == 1 and parts[0] not in tree.mixing:
        return _linear_classifier(tree, parts[0], first_conv)
    return None


def _convolutional_classifier(tree: Tree, first_conv: str | None) -> str | None:
    """The last layer of all, if it is a 1x1 convolution whose output nothing normalises."""
    if not tree.mixing or tree.mixing[-1] == first_conv:
        return None
    last = tree.modules[tree.mixing[-1]]
    names = list(tree.modules)
    followers = names[names.index(tree.mixing[-1]) + 1 :]
    if any(is_normalisation(tree.modules[name]) for name in followers):
        return None
    return tree.mixing[-1] if is_convolution(last) and max(last.kernel_size) == 1 else None

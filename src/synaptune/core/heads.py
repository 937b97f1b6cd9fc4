"""Where a model turns features into classes: its classifier, and auxiliary heads that are no part of the trunk."""

from __future__ import annotations

from synaptune.core.layers import input_width, is_convolution, is_linear, is_normalisation, output_width
from synaptune.core.tree import Tree

__all__ = ["find_classifier", "is_head"]


def ends_in_output(tree: Tree, name: str) -> bool:
    """Whether the last mixing layer of `name` is linear and puts out a width that nothing else in it takes in.

    That tells a head (512 features to 10 classes) from blocks that end in a linear layer: these lead back to the
    width that they took in (squeeze-and-excitation, the MLP of a transformer block).
    """
    mixers = tree.mixers(name)
    if not mixers or not is_linear(tree.modules[mixers[-1]]):
        return False
    taken_in = {input_width(tree.modules[other]) for other in tree.below(name) if other != mixers[-1]}
    return output_width(tree.modules[mixers[-1]]) not in taken_in


def is_head(tree: Tree, name: str, first_conv: str | None, classifier: str | None) -> bool:
    """Whether `name` holds the classifier or is an auxiliary classifier, and is not part of the trunk.

    An auxiliary head (of GoogLeNet and Inception, for the rotations of TTT) has convolutions of its own and ends
    in an output layer; without convolutions it could as well be the patch merging of a transformer.
    """
    if tree.is_inside(first_conv, name):
        return False
    if tree.is_inside(classifier, name):
        return not _is_trunk_with_head(tree, name)
    return tree.is_convolutional(name) and ends_in_output(tree, name)


def _is_trunk_with_head(tree: Tree, name: str) -> bool:
    """Whether `name` is most of the network, classifier included, and not just a perceptron after few convolutions."""
    is_most = 2 * len(tree.mixers(name)) > len(tree.mixing)
    return is_most and (tree.height(name) > 1 or (tree.is_composite(name) and tree.is_convolutional(name)))


def find_classifier(tree: Tree, first_conv: str | None) -> str | None:
    """Name of the linear layer (or last 1x1 convolution) that puts out the classes; None if there is none."""
    return _linear_classifier(tree, "", first_conv) or _convolutional_classifier(tree, first_conv)


def _linear_classifier(tree: Tree, at: str, first_conv: str | None) -> str | None:
    """The output layer at the highest level that has one; heads without convolutions before those with."""
    parts = [child for child in tree.children(at) if tree.mixers(child)]
    trunk = [part for part in parts if tree.is_inside(first_conv, part) and part != first_conv]
    outputs = [part for part in parts if part not in trunk and ends_in_output(tree, part)]
    plain = [part for part in outputs if not tree.is_convolutional(part)]
    if plain:
        return tree.mixers(plain[-1])[-1]
    if trunk and (ends_in_output(tree, trunk[0]) or not outputs):
        return _linear_classifier(tree, trunk[0], first_conv)
    if outputs:
        return tree.mixers(outputs[-1])[-1]
    only_part = parts[0] if len(parts) == 1 and not tree.is_mixer(parts[0]) else None
    return None if only_part is None else _linear_classifier(tree, only_part, first_conv)


def _convolutional_classifier(tree: Tree, first_conv: str | None) -> str | None:
    """The last layer of all, if it is a 1x1 convolution whose output nothing normalises."""
    last = tree.mixing[-1] if tree.mixing else None
    if last is None or last == first_conv:
        return None
    layer = tree.modules[last]
    is_pointwise = is_convolution(layer) and max(layer.kernel_size) == 1
    return last if is_pointwise and not any(is_normalisation(tree.modules[n]) for n in tree.after(last)) else None

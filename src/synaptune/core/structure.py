"""What a model is made of: first convolution, stages, normalisation layers, classifier.

Found by structure and never by name, from the modules alone (no forward pass, also on the meta device), so it holds
for networks that nobody here has seen; `Layout` overrules it. A *stage* is what the paper calls a block: a group of
residual blocks (or of convolutions) that work at one resolution, the first convolution and its norm left out.
docs/design/0004-structure.md tells how, and where it can be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import nn

from synaptune.core.layers import (
    is_batch_norm,
    is_convolution,
    is_dropout,
    is_mixing,
    is_normalisation,
    is_patch_embedding,
    output_width,
)
from synaptune.core.layout import Layout, declared_layout
from synaptune.core.heads import find_classifier
from synaptune.core.stages import find_stages
from synaptune.core.tree import Tree
from synaptune.errors import IncompatibleModelError, OptionError

__all__ = ["Anatomy", "FirstConvKind", "Layout", "ParameterKind", "find_anatomy"]

FirstConvKind = Literal["convolution", "patch embedding"]
ParameterKind = Literal["all", "conv", "affine"]

_IMAGE_CHANNELS = (1, 3)


@dataclass(frozen=True)
class Anatomy:
    """The parts of a model by name; names only, so that it survives a deepcopy of the model and can be printed."""

    model: str  # class name, for messages
    first_conv: str | None
    first_conv_kind: FirstConvKind | None
    stem_norm: str | None  # normalisation right after the first convolution, outside all stages
    stages: tuple[tuple[str, ...], ...]
    norms: tuple[str, ...]
    batch_norms: tuple[str, ...]  # those of `norms` that can normalise by the statistics of the batch
    dropouts: tuple[str, ...]
    classifier: str | None
    how: Mapping[str, str] = field(default_factory=dict, compare=False)  # part -> one sentence

    def require_first_conv(self) -> str:
        """The first convolution, or an error that says what to do."""
        if self.first_conv is None:
            raise IncompatibleModelError(
                f"{self.model} has no convolution whose filters could learn. Use a method that leaves the input layer "
                "alone (norm, tent, modulator-12), or name the layer: layout=Layout(first_conv='...')."
            )
        return self.first_conv

    def require_classifier(self) -> str:
        """The classifier, or an error that says what to do."""
        if self.classifier is None:
            raise IncompatibleModelError(
                f"no classifier was found in {self.model}: it has neither a linear layer nor a 1x1 convolution at its "
                "end. Name it: layout=Layout(classifier='...')."
            )
        return self.classifier

    def require_stages(self, numbers: Iterable[int]) -> tuple[tuple[str, ...], ...]:
        """The stages with these numbers (counted from 1, as in the paper), or an error that lists what there is."""
        wanted = tuple(numbers)
        missing = [n for n in wanted if not 1 <= n <= len(self.stages)]
        if not wanted or missing:
            found = (
                "; ".join(f"{i}: {_shortened(stage)}" for i, stage in enumerate(self.stages, start=1))
                or "none"
            )
            what = (
                f"no stage {', '.join(map(str, missing))}"
                if wanted
                else "no stage to tune: none was asked for"
            )
            raise IncompatibleModelError(
                f"{self.model} has {what}. Stages found: {found}. Choose among these, or name them yourself: "
                "layout=Layout(stages=(('first.module', 'second.module'), ('third.module',)))."
            )
        return tuple(self.stages[n - 1] for n in wanted)

    def stage_parameters(
        self, model: nn.Module, stages: Iterable[int], *, kind: ParameterKind = "all"
    ) -> dict[str, nn.Parameter]:
        """Parameters of the stages numbered `stages`, by the name that `model.named_parameters()` gives them.

        `conv` keeps weights and biases of convolutions and linear layers, `affine` scale and shift of normalisation
        layers, `all` everything. A parameter that the first convolution or the classifier shares stays out, since
        these two are not the stages' to change. Nothing left to tune is an error.
        """
        if kind not in ("all", "conv", "affine"):
            raise OptionError(f"params is {kind!r}; expected all, conv or affine")
        numbers = tuple(stages)
        modules = self.require_stages(numbers)
        kept_out = _parameter_ids(model, [name for name in (self.first_conv, self.classifier) if name])
        chosen = _parameter_ids(model, [name for stage in modules for name in stage], kind) - kept_out
        found = {name: p for name, p in model.named_parameters() if id(p) in chosen}
        if not found:
            raise IncompatibleModelError(
                f"stages {', '.join(map(str, numbers))} of {self.model} have no parameters of kind {kind!r}"
                f"{_why_none(kind)}. Use params='all', or other stages (there are {len(self.stages)})."
            )
        return found


def find_anatomy(model: nn.Module, layout: Layout | None = None) -> Anatomy:
    """Find the parts of `model`; what `layout` names is taken from there, then from `model.synaptune_layout`."""
    _refuse_opaque(model)
    declared = declared_layout(model)
    given = (layout or Layout()).filled_from(declared)
    given.check(model)
    tree = Tree(model)
    first_conv, how_first = _first_convolution(tree) if given.first_conv is None else (given.first_conv, "")
    classifier = find_classifier(tree, first_conv) if given.classifier is None else given.classifier
    stem_norm = _norm_after(tree, first_conv)
    stages, how_stages = given.stages, ""
    if stages is None:
        stages, how_stages = find_stages(tree, first_conv, stem_norm, classifier)
    if any(tree.is_inside(stem_norm, name) for stage in stages for name in stage):
        stem_norm = None  # whoever names the stages decides
    how = {
        "first_conv": how_first,
        "stages": how_stages,
        "classifier": _describe_classifier(tree, classifier),
        "stem_norm": f"normalises the output of {first_conv}"
        if stem_norm
        else "no norm of its own after the first layer",
    }
    for part in ("first_conv", "stages", "classifier"):
        if getattr(given, part) is not None:
            by_user = layout is not None and getattr(layout, part) is not None
            how[part] = f"named by {'layout=' if by_user else 'synaptune_layout of the model'}"
    return Anatomy(
        model=type(model).__name__,
        first_conv=first_conv,
        first_conv_kind=_kind(tree, first_conv),
        stem_norm=stem_norm,
        stages=stages,
        norms=tree.names_where(is_normalisation),
        batch_norms=tree.names_where(is_batch_norm),
        dropouts=tree.names_where(is_dropout),
        classifier=classifier,
        how=how,
    )


def _parameter_ids(model: nn.Module, names: Iterable[str], kind: ParameterKind = "all") -> set[int]:
    """Identities, because tied parameters have several names and count once."""
    layers = (module for name in names for module in model.get_submodule(name).modules())
    return {id(p) for layer in layers if _is_of_kind(layer, kind) for p in layer.parameters()}


def _is_of_kind(layer: nn.Module, kind: ParameterKind) -> bool:
    if kind == "affine":
        return is_normalisation(layer)
    # Attention keeps the weights of its input projection itself instead of in a linear layer.
    return kind == "all" or is_mixing(layer) or isinstance(layer, nn.MultiheadAttention)


def _refuse_opaque(model: nn.Module) -> None:
    if not isinstance(model, nn.Module):
        raise IncompatibleModelError(f"expected a torch.nn.Module, got {type(model).__name__}")
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        raise IncompatibleModelError(
            f"{type(model).__name__} is compiled to TorchScript, which hides its layers; pass the model as it was before."
        )
    lazy = [name for name, p in model.named_parameters() if nn.parameter.is_lazy(p)]
    if lazy:
        raise IncompatibleModelError(
            f"{type(model).__name__} has parameters without a shape yet ({lazy[0]} and {len(lazy) - 1} more); "
            "run one batch through the model first."
        )


def _first_convolution(tree: Tree) -> tuple[str | None, str]:
    """The convolution registered first, unless a later one is the only one that can take an image."""
    convolutions = [name for name in tree.mixing if is_convolution(tree.modules[name])]
    if not convolutions:
        return None, "no convolution in the model"
    takes_image = [name for name in convolutions if _in_channels(tree, name) in _IMAGE_CHANNELS]
    if len(takes_image) == 1 and takes_image[0] != convolutions[0]:
        return takes_image[
            0
        ], f"the only convolution that takes {_in_channels(tree, takes_image[0])} channels"
    return convolutions[0], "the convolution registered first"


def _kind(tree: Tree, first_conv: str | None) -> FirstConvKind | None:
    if first_conv is None:
        return None
    return "patch embedding" if is_patch_embedding(tree.modules[first_conv]) else "convolution"


def _in_channels(tree: Tree, name: str) -> int | None:
    layer = tree.modules[name]
    return layer.in_channels if is_convolution(layer) else None


def _norm_after(tree: Tree, first_conv: str | None) -> str | None:
    """The normalisation of the first convolution's output: registered next, of its width, in no block of its own."""
    if first_conv is None:
        return None
    names = list(tree.modules)
    for name in names[names.index(first_conv) + 1 :]:
        if name in tree.mixing:
            return None
        if is_normalisation(tree.modules[name]):
            same = output_width(tree.modules[name]) == output_width(tree.modules[first_conv])
            return name if same and not _in_other_block(tree, name, first_conv) else None
    return None


def _in_other_block(tree: Tree, norm: str, first_conv: str) -> bool:
    """Whether `norm` stands in a block that the first convolution is not part of: it then opens that block."""
    path = norm.split(".")
    around = (".".join(path[:n]) for n in range(1, len(path)))
    return any(tree.is_composite(name) and not tree.is_inside(first_conv, name) for name in around)


def _describe_classifier(tree: Tree, classifier: str | None) -> str:
    layer = tree.modules[classifier] if classifier is not None else None
    if isinstance(layer, nn.Linear):
        return f"linear output layer, {layer.in_features} features to {layer.out_features} classes"
    if layer is not None and is_convolution(layer):
        return (
            f"last layer, a 1x1 convolution to {layer.out_channels} classes; there is no linear output layer"
        )
    return "neither a linear output layer nor a final 1x1 convolution"


def _shortened(stage: tuple[str, ...]) -> str:
    return ", ".join(stage) if len(stage) <= 3 else f"{stage[0]} ... {stage[-1]} ({len(stage)} modules)"


def _why_none(kind: ParameterKind) -> str:
    if kind == "affine":
        return " (no normalisation layer there, or none with scale and shift)"
    return ""

"""What a model is made of: first convolution, stages, normalisation layers, classifier.

Found by structure and never by name, from the modules alone (no forward pass, also on the meta device), so that it
holds for networks that nobody here has seen; a `Layout` overrules it. A *stage* is what the paper calls a block: a
group of residual blocks, or of convolutions, that work at one resolution, without first convolution and its norm.
docs/design/0004-structure.md says how they are found, and where that can go wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import nn

from synaptune.core.heads import find_classifier
from synaptune.core.layers import (
    IMAGE_CHANNELS,
    input_width,
    is_batch_norm,
    is_convolution,
    is_dropout,
    is_mixing,
    is_normalisation,
    is_patch_embedding,
    output_width,
)
from synaptune.core.layout import Layout, declared_layout
from synaptune.core.stages import Stages, find_stages
from synaptune.core.tree import Tree
from synaptune.errors import IncompatibleModelError, OptionError

__all__ = ["Anatomy", "FirstConvKind", "Layout", "ParameterKind", "find_anatomy"]

FirstConvKind = Literal["convolution", "patch embedding"]
ParameterKind = Literal["all", "conv", "affine"]


@dataclass(frozen=True)
class Anatomy:
    """The parts of a model by name; names only, so that it outlives a deepcopy of the model and can be printed."""

    model: str  # class name, for messages
    first_conv: str | None
    first_conv_kind: FirstConvKind | None
    stem_norm: str | None  # normalises the output of first_conv, outside all stages
    stages: Stages
    norms: tuple[str, ...]
    batch_norms: tuple[str, ...]  # those of norms that can use the statistics of the batch
    dropouts: tuple[str, ...]
    classifier: str | None
    how: Mapping[str, str] = field(default_factory=dict, compare=False)  # part -> how it was found, one sentence

    def require_first_conv(self) -> str:
        """The first convolution, or an error that says what to do."""
        if self.first_conv is None:
            raise IncompatibleModelError(
                f"{self.model} has no convolution whose filters could learn. Use a method that leaves the input "
                "layer alone (norm, tent, modulator-12), or name the layer: layout=Layout(first_conv='...')."
            )
        return self.first_conv

    def require_classifier(self) -> str:
        """The classifier, or an error that says what to do."""
        if self.classifier is None:
            raise IncompatibleModelError(
                f"{self.model} shows no classifier: it has neither a linear output layer nor a 1x1 convolution at its "
                "end. Name it: layout=Layout(classifier='...')."
            )
        return self.classifier

    def require_stages(self, numbers: Iterable[int]) -> Stages:
        """The stages with these numbers (from 1, as in the paper), or an error that lists what there is."""
        wanted = tuple(numbers)
        missing = [number for number in wanted if not 1 <= number <= len(self.stages)]
        if wanted and not missing:
            return tuple(self.stages[number - 1] for number in wanted)
        problem = f"has no stage {', '.join(map(str, missing))}" if missing else "needs one stage to tune at least"
        found = "; ".join(f"{i}: {_shortened(stage)}" for i, stage in enumerate(self.stages, start=1)) or "none"
        raise IncompatibleModelError(
            f"{self.model} {problem}. Stages found: {found}. Choose among these, or name them: "
            "layout=Layout(stages=('first.module', ('second.module', 'third.module')))."
        )

    def stage_parameters(
        self, model: nn.Module, stages: Iterable[int], *, kind: ParameterKind = "all"
    ) -> dict[str, nn.Parameter]:
        """Parameters of the stages numbered `stages`, by the names that `model.named_parameters()` gives them.

        A parameter that the first convolution or the classifier shares stays out: it is not the stages' to change.

        Args:
            model: the model that this anatomy describes, or a copy of it.
            stages: numbers, from 1.
            kind: `conv` is weights and biases of convolutions, linear and attention layers; `affine` is scale and
                shift of normalisation layers; `all` is everything in the stages.

        Raises:
            IncompatibleModelError: a stage is missing, or there is nothing of this kind in them.
        """
        if kind not in ("all", "conv", "affine"):
            raise OptionError(f"params is {kind!r}; expected all, conv or affine")
        numbers = tuple(stages)
        chosen = [name for stage in self.require_stages(numbers) for name in stage]
        fixed = [name for name in (self.first_conv, self.classifier) if name is not None]
        wanted = _parameter_ids(model, chosen, kind) - _parameter_ids(model, fixed, "all")
        found = {name: parameter for name, parameter in model.named_parameters() if id(parameter) in wanted}
        if not found:
            raise IncompatibleModelError(
                f"stages {', '.join(map(str, numbers))} of {self.model} ({'; '.join(map(_shortened, self.stages))}) "
                f"hold no {_KINDS[kind]}. Choose another of params='all', 'conv', 'affine', or other stages."
            )
        return found


_KINDS: Mapping[ParameterKind, str] = {
    "all": "parameters",
    "conv": "convolution or linear layers with parameters",
    "affine": "normalisation layers with scale and shift",
}


def find_anatomy(model: nn.Module, layout: Layout | None = None) -> Anatomy:
    """Find the parts of `model`: those named in `layout`, then in its `synaptune_layout`, the others by structure."""
    _refuse_opaque(model)
    given = (layout or Layout()).filled_from(declared_layout(model)).resolved(model)
    tree = Tree(model)
    how: dict[str, str] = {}
    first_conv = given.first_conv
    if first_conv is None:
        first_conv, how["first_conv"] = _first_convolution(tree)
    classifier = given.classifier if given.classifier is not None else find_classifier(tree, first_conv)
    how["classifier"] = _describe_classifier(tree, classifier)
    stem_norm = _norm_of_stem(tree, first_conv)
    stages = given.stages
    if stages is None:
        stages, how["stages"] = find_stages(tree, first_conv=first_conv, stem_norm=stem_norm, classifier=classifier)
    if any(tree.is_inside(stem_norm, name) for stage in stages for name in stage):
        stem_norm = None  # whoever names the stages decides
    norms, dropouts = tree.names_where(is_normalisation), tree.names_where(is_dropout)
    how["stem_norm"] = f"normalises the output of {first_conv}" if stem_norm else "none right after the first layer"
    how["norms"], how["dropouts"] = _count_classes(tree, norms), _count_classes(tree, dropouts)
    return Anatomy(
        model=type(model).__name__,
        first_conv=first_conv,
        first_conv_kind=_kind_of_first(tree, first_conv),
        stem_norm=stem_norm,
        stages=stages,
        norms=norms,
        batch_norms=tree.names_where(is_batch_norm),
        dropouts=dropouts,
        classifier=classifier,
        how=how | _named_by(layout, given),
    )


def _refuse_opaque(model: nn.Module) -> None:
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        raise IncompatibleModelError(
            f"{type(model).__name__} is compiled to TorchScript, which hides its layers; pass the model it came from."
        )
    lazy = [name for name, parameter in model.named_parameters() if nn.parameter.is_lazy(parameter)]
    if lazy:
        raise IncompatibleModelError(
            f"{type(model).__name__} has {len(lazy)} parameters without a shape yet ({lazy[0]}, ...); "
            "run one batch through it first."
        )


def _first_convolution(tree: Tree) -> tuple[str | None, str]:
    """The convolution registered first, unless a later one is the only one that can take an image."""
    channels = {n: m.in_channels for n in tree.mixing if is_convolution(m := tree.modules[n])}
    if not channels:
        return None, "there is no convolution"
    first = next(iter(channels))
    takes_image = [name for name, count in channels.items() if count in IMAGE_CHANNELS]
    if len(takes_image) == 1 and takes_image[0] != first:
        return takes_image[0], f"the only convolution that takes an image ({channels[takes_image[0]]} channels)"
    return first, f"the convolution that is registered first ({channels[first]} channels)"


def _kind_of_first(tree: Tree, first_conv: str | None) -> FirstConvKind | None:
    if first_conv is None:
        return None
    return "patch embedding" if is_patch_embedding(tree.modules[first_conv]) else "convolution"


def _norm_of_stem(tree: Tree, first_conv: str | None) -> str | None:
    """The norm of the first convolution's output: the next one, of its width, and not the opening of a block."""
    if first_conv is None:
        return None
    following = (n for n in tree.after(first_conv) if tree.is_mixer(n) or is_normalisation(tree.modules[n]))
    norm = next(following, None)
    if norm is None or tree.is_mixer(norm):
        return None
    opens_block = any(tree.is_composite(a) and not tree.is_inside(first_conv, a) for a in tree.ancestors(norm))
    fits = output_width(tree.modules[norm]) in (None, output_width(tree.modules[first_conv]))
    return norm if fits and not opens_block else None


def _parameter_ids(model: nn.Module, names: Iterable[str], kind: ParameterKind) -> set[int]:
    """Identities instead of names, since a tied parameter has several names."""
    layers = (layer for name in names for layer in model.get_submodule(name).modules())
    return {id(parameter) for layer in layers if _is_of_kind(layer, kind) for parameter in layer.parameters()}


def _is_of_kind(layer: nn.Module, kind: ParameterKind) -> bool:
    if kind == "affine":
        return is_normalisation(layer)
    # Attention keeps the weights of its input projection itself, not in a linear layer.
    return kind == "all" or is_mixing(layer) or isinstance(layer, nn.MultiheadAttention)


def _named_by(layout: Layout | None, given: Layout) -> dict[str, str]:
    """How the parts came about that were not searched for."""
    parts = [part for part in ("first_conv", "stages", "classifier") if getattr(given, part) is not None]
    by_user = {part for part in parts if layout is not None and getattr(layout, part) is not None}
    return {p: f"named by {'layout=' if p in by_user else 'synaptune_layout of the model'}" for p in parts}


def _describe_classifier(tree: Tree, classifier: str | None) -> str:
    if classifier is None:
        return "neither a linear output layer nor a 1x1 convolution at the end"
    layer = tree.modules[classifier]
    kind = "1x1 convolution at the end" if is_convolution(layer) else "linear output layer"
    return f"{kind}, {input_width(layer)} features to {output_width(layer)} classes"


def _count_classes(tree: Tree, names: tuple[str, ...]) -> str:
    counts = Counter(type(tree.modules[name]).__name__ for name in names)
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common()) or "none"


def _shortened(stage: tuple[str, ...]) -> str:
    return ", ".join(stage) if len(stage) <= 3 else f"{stage[0]} ... {stage[-1]} ({len(stage)} modules)"

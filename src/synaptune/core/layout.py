"""The parts of a model that its owner names himself, where structure alone cannot tell.

Names come from three places, the first that speaks wins, part by part: the `layout` given by the user, the
attribute `synaptune_layout` of the model (or of the model inside a wrapper), the structure finder.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch import nn

from synaptune.core.layers import is_convolution
from synaptune.errors import IncompatibleModelError, OptionError, UnknownNameError

__all__ = ["Layout", "declared_layout"]


@dataclass(frozen=True)
class Layout:
    """Names of modules for the parts of a model; a part left at None is found by structure.

    A stage may consist of several modules; a plain string is a stage of one module.

    >>> Layout(first_conv="stem.0", stages=("body.a", ("body.b", "body.c"))).stages
    (('body.a',), ('body.b', 'body.c'))
    """

    first_conv: str | None = None
    stages: tuple[tuple[str, ...], ...] | None = None
    classifier: str | None = None

    def __post_init__(self) -> None:
        if self.stages is None:
            return
        if isinstance(self.stages, str):
            raise OptionError(
                f"stages is the string {self.stages!r}; expected a sequence of stages: ({self.stages!r},)"
            )
        stages = tuple((stage,) if isinstance(stage, str) else tuple(stage) for stage in self.stages)
        if not stages or not all(stages):
            raise OptionError(
                f"stages={stages!r} has no stage, or one without a module; leave it out to have it found"
            )
        object.__setattr__(self, "stages", stages)

    def filled_from(self, other: Layout) -> Layout:
        """This layout, with the parts that it leaves open taken from `other`."""
        return Layout(
            first_conv=self.first_conv if self.first_conv is not None else other.first_conv,
            stages=self.stages if self.stages is not None else other.stages,
            classifier=self.classifier if self.classifier is not None else other.classifier,
        )

    def check(self, model: nn.Module) -> None:
        """Raise unless every name is a module of `model` that can play its part, and no two stages overlap."""
        modules = dict(model.named_modules(remove_duplicate=False))
        stage_names = [name for stage in self.stages or () for name in stage]
        for name in [self.first_conv, self.classifier, *stage_names]:
            if name is not None and (name not in modules or name == ""):
                raise UnknownNameError(f"module in {type(model).__name__}", name, _choices(name, modules))
        if self.first_conv is not None and not is_convolution(modules[self.first_conv]):
            raise IncompatibleModelError(
                f"layout names {self.first_conv!r} as first convolution, but it is a "
                f"{type(modules[self.first_conv]).__name__}; name a torch.nn convolution."
            )
        for i, name in enumerate(stage_names):
            for other in stage_names[i + 1 :]:
                if _is_inside(name, other) or _is_inside(other, name):
                    raise OptionError(
                        f"layout puts {name!r} and {other!r} into stages, but one contains the other"
                    )


def declared_layout(model: nn.Module) -> Layout:
    """What the model says of itself in `synaptune_layout`, wherever it sits inside wrappers; else an empty layout."""
    for prefix, module in model.named_modules():
        declared = getattr(module, "synaptune_layout", None)
        if declared is not None:
            return _with_prefix(_parse(declared, owner=type(module).__name__), prefix)
    return Layout()


def _parse(declared: Any, *, owner: str) -> Layout:
    if isinstance(declared, Layout):
        return declared
    known = {field.name for field in fields(Layout)}
    if not isinstance(declared, Mapping) or not set(declared) <= known:
        raise OptionError(
            f"{owner}.synaptune_layout is {declared!r}; expected a dict with any of the keys {', '.join(sorted(known))}"
        )
    return Layout(**declared)


def _with_prefix(layout: Layout, prefix: str) -> Layout:
    if not prefix:
        return layout

    def full(name: str | None) -> str | None:
        return None if name is None else f"{prefix}.{name}"

    stages = layout.stages and tuple(tuple(f"{prefix}.{name}" for name in stage) for stage in layout.stages)
    return Layout(full(layout.first_conv), stages, full(layout.classifier))


def _is_inside(name: str, outer: str) -> bool:
    return name == outer or name.startswith(f"{outer}.")


def _choices(name: str, modules: Mapping[str, nn.Module]) -> list[str]:
    """Names worth showing: the closest ones, and what stands at the place where `name` goes wrong."""
    path = name.split(".")
    parent = next((p for n in range(len(path) - 1, 0, -1) if (p := ".".join(path[:n])) in modules), "")
    siblings = [f"{parent}.{child}" if parent else child for child, _ in modules[parent].named_children()]
    close = difflib.get_close_matches(name, [known for known in modules if known], n=3, cutoff=0.6)
    return sorted({*siblings, *close})

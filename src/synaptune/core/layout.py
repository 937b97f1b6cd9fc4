"""The parts of a model that its owner names himself, where structure alone cannot tell.

Names come from three places, the first that speaks wins, part by part: the `layout` given by the user, the
attribute `synaptune_layout` of the model (or of the model inside a wrapper), the structure finder.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

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
        if self.stages is not None:
            object.__setattr__(self, "stages", _as_stages(self.stages))

    def filled_from(self, other: Layout) -> Layout:
        """This layout, with the parts that it leaves open taken from `other`."""
        return Layout(
            first_conv=self.first_conv if self.first_conv is not None else other.first_conv,
            stages=self.stages if self.stages is not None else other.stages,
            classifier=self.classifier if self.classifier is not None else other.classifier,
        )

    def under(self, prefix: str) -> Layout:
        """This layout for a model that holds the described one as its submodule `prefix`."""
        if not prefix:
            return self
        return self._renamed(lambda name: f"{prefix}.{name}")

    def resolved(self, model: nn.Module) -> Layout:
        """This layout with the names that `model.named_modules()` uses (a module may be registered twice).

        Raises:
            UnknownNameError: a name is no module of `model`; the message shows the nearest names.
            IncompatibleModelError: a module cannot play the part that it is named for.
            OptionError: a module would be in two stages.
        """
        modules = dict(model.named_modules(remove_duplicate=False))
        for name in self._names():
            if name == "" or name not in modules:
                raise UnknownNameError(f"module in {type(model).__name__}", name, _choices(name, modules))
        if self.first_conv is not None and not is_convolution(modules[self.first_conv]):
            raise IncompatibleModelError(
                f"layout names {self.first_conv!r} as the first convolution, but it is a "
                f"{type(modules[self.first_conv]).__name__}; name a convolution of torch.nn."
            )
        first_names = {id(module): name for name, module in reversed(modules.items())}
        layout = self._renamed(lambda name: first_names[id(modules[name])])
        _refuse_overlap([name for stage in layout.stages or () for name in stage])
        return layout

    def _names(self) -> list[str]:
        singles = [name for name in (self.first_conv, self.classifier) if name is not None]
        return [*singles, *(name for stage in self.stages or () for name in stage)]

    def _renamed(self, rename: Callable[[str], str]) -> Layout:
        return Layout(
            first_conv=None if self.first_conv is None else rename(self.first_conv),
            stages=None if self.stages is None else tuple(tuple(map(rename, stage)) for stage in self.stages),
            classifier=None if self.classifier is None else rename(self.classifier),
        )


def declared_layout(model: nn.Module) -> Layout:
    """What the model, or the model inside wrappers, says of itself in `synaptune_layout`; else an empty layout."""
    for prefix, module in model.named_modules():
        declared = getattr(module, "synaptune_layout", None)
        if declared is not None:
            return _parsed(declared, owner=type(module).__name__).under(prefix)
    return Layout()


def _parsed(declared: object, *, owner: str) -> Layout:
    if isinstance(declared, Layout):
        return declared
    known = {field.name for field in fields(Layout)}
    if not isinstance(declared, Mapping) or not set(declared) <= known:
        raise OptionError(
            f"{owner}.synaptune_layout is {declared!r}; expected a dict with any of the keys "
            f"{', '.join(sorted(known))}, or a Layout"
        )
    return Layout(**declared)


def _as_stages(given: object) -> tuple[tuple[str, ...], ...]:
    """Stages as tuples of names, from what a user may write: lists, and a plain string for a stage of one module."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise OptionError(f"stages is {given!r}; expected a sequence of stages, as in stages=('body.0', 'body.1')")
    stages = tuple((stage,) if isinstance(stage, str) else tuple(stage) for stage in given)
    if not stages or not all(stages):
        raise OptionError(f"stages={stages!r} holds no stage or an empty one; leave stages out to have them found")
    return stages


def _refuse_overlap(names: list[str]) -> None:
    for i, name in enumerate(names):
        for other in names[i + 1 :]:
            if name == other or name.startswith(f"{other}.") or other.startswith(f"{name}."):
                raise OptionError(f"layout puts {name!r} and {other!r} into stages, but one contains the other")


def _choices(name: str, modules: Mapping[str, nn.Module]) -> set[str]:
    """Names worth showing: what stands at the place where `name` goes wrong, and the closest anywhere."""
    path = name.split(".")
    parent = next((p for n in range(len(path) - 1, 0, -1) if (p := ".".join(path[:n])) in modules), "")
    siblings = {f"{parent}.{child}" if parent else child for child, _ in modules[parent].named_children()}
    return siblings | set(difflib.get_close_matches(name, [known for known in modules if known], n=3))

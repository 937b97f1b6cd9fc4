"""synaptune keeps a trained image classifier accurate while its inputs drift.

The names below are imported when they are first used, so that `synaptune --help`, shell completion and other things
that only look do not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from synaptune import errors
from synaptune._version import __version__

if TYPE_CHECKING:
    from synaptune import zoo
    from synaptune.algorithms import NHL, Dua, Norm, Source, Tent, Ttt
    from synaptune.api import adapt, methods
    from synaptune.core.adapter import Adapter
    from synaptune.core.layout import Layout
    from synaptune.diagnosis import doctor

__all__ = [
    "NHL",
    "Adapter",
    "Dua",
    "Layout",
    "Norm",
    "Source",
    "Tent",
    "Ttt",
    "__version__",
    "adapt",
    "doctor",
    "errors",
    "methods",
    "zoo",
]

_HOMES = {
    "synaptune.algorithms": ("NHL", "Dua", "Norm", "Source", "Tent", "Ttt"),
    "synaptune.api": ("adapt", "methods"),
    "synaptune.core.adapter": ("Adapter",),
    "synaptune.core.layout": ("Layout",),
    "synaptune.diagnosis": ("doctor",),
}


def __getattr__(name: str) -> Any:
    if name == "zoo":
        return import_module("synaptune.zoo")
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'synaptune' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""synaptune keeps a trained image classifier accurate while its inputs drift."""

from synaptune import errors
from synaptune._version import __version__
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
]

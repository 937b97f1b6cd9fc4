"""The errors that synaptune raises on purpose: one small tree, each message names the fix.

Whoever wants to catch everything catches `SynaptuneError`. Each class also derives from the built-in that a
Python programmer would expect, so `except ValueError` keeps working.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "BadImageError",
    "DataError",
    "IncompatibleModelError",
    "InputError",
    "OptionError",
    "StateFileError",
    "SynaptuneError",
    "UnknownNameError",
    "WeightsError",
    "nearest",
]


_MOST_NAMES = 30


class SynaptuneError(Exception):
    """Base of all errors that synaptune raises on purpose."""


class OptionError(SynaptuneError, ValueError):
    """An option has a value that it cannot take, or options contradict each other."""


class UnknownNameError(SynaptuneError, KeyError):
    """A name (of a method, a model, a data set, a corruption) that is not known."""

    def __init__(self, kind: str, name: str, known: Iterable[str]):
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        super().__init__(f"there is no {kind} {name!r}{nearest(name, self.known)}")

    def __str__(self) -> str:
        # KeyError prints the repr of its argument, which would put the sentence in quotes.
        return str(self.args[0])


class InputError(SynaptuneError, ValueError):
    """A batch of images that cannot be used: wrong shape, no image, non-finite values."""


class IncompatibleModelError(SynaptuneError, TypeError):
    """The model lacks something that the method needs; the message says what, and what to use instead."""


class StateFileError(SynaptuneError, ValueError):
    """A file of adapted state that is damaged, or belongs to another model or method."""


class WeightsError(SynaptuneError, ValueError):
    """A checkpoint that does not fit the model, or is not what it claims to be."""


class DataError(SynaptuneError, OSError):
    """A data set that is missing, incomplete, or not what its checksum says."""


class BadImageError(SynaptuneError, ValueError):
    """One image file that cannot be read; readers count these and go on."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which of the `known` names was probably meant, and all of them where they fit a few lines.

    >>> nearest("tnet", ["norm", "tent"])
    '; did you mean tent? Known: norm, tent'
    >>> nearest("net15", (f"net{number}" for number in range(1000)))
    '; did you mean net15 or net915 or net815?'
    """
    choices = sorted(known)
    if not choices:
        return "; there are none"
    close = difflib.get_close_matches(name, choices, n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(close)}?" if close else "."
    if len(choices) <= _MOST_NAMES:
        return f"{hint} Known: {', '.join(choices)}"
    return hint if close else f"{hint} Known: {', '.join(choices[:_MOST_NAMES])} and {len(choices) - _MOST_NAMES} more"

"""`NAME=VALUE` words to the fields of an option set, by the types that the fields declare."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from synaptune.errors import OptionError, UnknownNameError
from synaptune.options import Options

__all__ = ["parse_settings"]

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_settings(kind: type[Options], words: Iterable[str]) -> dict[str, Any]:
    """Read the words; whether a value is allowed is for the option set to say.

    >>> from synaptune import NHL
    >>> parse_settings(NHL, ["eta=3e-3", "stages=1,2", "include_stem_norm=yes", "optimizer=sgd"])
    {'eta': 0.003, 'stages': (1, 2), 'include_stem_norm': True, 'optimizer': 'sgd'}
    """
    hints = get_type_hints(kind)
    found = {}
    for word in words:
        name, separator, text = word.partition("=")
        if not separator:
            raise OptionError(f"{word!r} is not of the form NAME=VALUE, such as lr=1e-4")
        name = name.strip().replace("-", "_")
        if name not in hints:
            raise UnknownNameError(f"option of {kind.__name__}", name, hints)
        found[name] = _value(text.strip(), hints[name], name)
    return found


def _value(text: str, hint: Any, name: str) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return next((choice for choice in parts if str(choice) == text), text)
    if origin in (Union, types.UnionType):
        return _first_that_reads(text, parts, name)
    if origin is tuple:
        kinds = parts[:1] if parts[-1] is Ellipsis else parts
        entries = [entry.strip() for entry in text.strip("()[]").split(",") if entry.strip()]
        return tuple(_value(entry, kinds[min(n, len(kinds) - 1)], name) for n, entry in enumerate(entries))
    if hint is bool:
        if text.lower() not in _WORDS:
            raise OptionError(f"{name} must be yes or no, not {text!r}")
        return _WORDS[text.lower()]
    if hint in (int, float):
        try:
            return hint(text)
        except ValueError:
            raise OptionError(f"{name} must be {'a whole' if hint is int else 'a'} number, not {text!r}") from None
    if hint is type(None):
        if text.lower() in ("none", "null", ""):
            return None
        raise OptionError(f"{name} cannot be {text!r}")
    return text


def _first_that_reads(text: str, kinds: Iterable[Any], name: str) -> Any:
    """The first member of a union that can be made of the text; None before the others."""
    reasons = []
    for kind in sorted(kinds, key=lambda kind: kind is not type(None)):
        try:
            return _value(text, kind, name)
        except OptionError as error:
            reasons.append(str(error))
    raise OptionError(reasons[-1])

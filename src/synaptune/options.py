"""Option sets: frozen dataclasses whose fields carry their own help text and bounds.

A method declares its options once, as fields; validation, the command line's flags, the documentation and the
protocol stamp of a result row are derived from them.
"""

from __future__ import annotations

import dataclasses
import math
import types
from dataclasses import dataclass
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from synaptune.errors import OptionError, nearest

__all__ = ["Options", "option"]


def option(
    default: Any,
    text: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Any:
    """Declare one option: its default, what it means, and the numbers it may take.

    Args:
        default: the value when the user says nothing.
        text: one line for help pages.
        above: exclusive lower bound.
        at_least: inclusive lower bound.
        at_most: inclusive upper bound.
    """
    bounds = {"above": above, "at_least": at_least, "at_most": at_most}
    return dataclasses.field(default=default, metadata={"text": text, "bounds": bounds})


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all option sets.

    >>> @dataclass(frozen=True, kw_only=True)
    ... class Walk(Options):
    ...     pace: float = option(1.0, "steps per second", above=0)
    >>> Walk(pace=2).pace
    2.0
    >>> Walk(pace=-1)
    Traceback (most recent call last):
    ...
    synaptune.errors.OptionError: Walk: pace must be above 0, not -1.0
    """

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        problems = []
        for item in dataclasses.fields(self):
            value = _coerce(getattr(self, item.name), hints[item.name])
            object.__setattr__(self, item.name, value)
            problem = _type_problem(value, hints[item.name]) or _bound_problem(value, item.metadata.get("bounds"))
            if problem:
                problems.append(f"{item.name} {problem}, not {value!r}")
        problems = problems or self.contradictions()
        if problems:
            raise OptionError(f"{type(self).__name__}: {'; '.join(problems)}")

    def contradictions(self) -> list[str]:
        """Say what is wrong about options that are fine alone but not together."""
        return []

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; an unknown name is answered with the nearest one."""
        known = [item.name for item in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise OptionError(f"{type(self).__name__} has no option {name!r}{nearest(name, known)}")
        return dataclasses.replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values, tuples as lists."""
        return {
            item.name: list(value) if isinstance(value := getattr(self, item.name), tuple) else value
            for item in dataclasses.fields(self)
        }

    @classmethod
    def describe(cls) -> list[tuple[str, str, Any, str]]:
        """List every option as (name, type, default, text)."""
        hints = get_type_hints(cls)
        return [
            (item.name, _spell(hints[item.name]), item.default, item.metadata.get("text", ""))
            for item in dataclasses.fields(cls)
        ]


def _coerce(value: Any, hint: Any) -> Any:
    """Accept what is meant: an int for a float, a list for a tuple."""
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if get_origin(hint) is tuple and isinstance(value, list):
        return tuple(value)
    return value


def _type_problem(value: Any, hint: Any) -> str | None:
    if _fits(value, hint):
        return None
    if get_origin(hint) is Literal:
        return f"must be one of {', '.join(map(repr, get_args(hint)))}"
    return f"must be {_spell(hint)}"


def _fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if origin is tuple:
        parts = get_args(hint)
        if len(parts) == 2 and parts[1] is Ellipsis:
            return isinstance(value, tuple) and all(_fits(entry, parts[0]) for entry in value)
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(_fits, value, parts))
    if hint in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, hint)


def _bound_problem(value: Any, bounds: dict[str, float | None] | None) -> str | None:
    if bounds is None or not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    above, at_least, at_most = bounds["above"], bounds["at_least"], bounds["at_most"]
    if above is not None and not value > above:
        return f"must be above {above:g}"
    if at_least is not None and not value >= at_least:
        return f"must be at least {at_least:g}"
    if at_most is not None and not value <= at_most:
        return f"must be at most {at_most:g}"
    return None


def _spell(hint: Any) -> str:
    """Write a type as a user would: `float`, `'pre' | 'post'`, `tuple of int`."""
    origin = get_origin(hint)
    if origin is Literal:
        return " | ".join(map(repr, get_args(hint)))
    if origin in (Union, types.UnionType):
        return " | ".join(_spell(part) for part in get_args(hint))
    if origin is tuple:
        parts = get_args(hint)
        inside = parts[:1] if parts[-1] is Ellipsis else parts
        return f"tuple of {', '.join(_spell(part) for part in inside)}"
    return "None" if hint is type(None) else getattr(hint, "__name__", str(hint))

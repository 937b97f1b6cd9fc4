"""A recipe: how data came about, as plain values with a stable digest.

    digest = sha256(canonical JSON of the fields)

Canonical means sorted keys, no white space and no NaN, so that the digest is the same on every machine. Recipes nest:
the recipe of a stream holds those of its data sets, the recipe of a corrupted set holds that of the clean one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Json", "Recipe"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True)
class Recipe:
    """Frozen, hashable, printable; make one with `Recipe.of`.

    Attributes:
        text: the canonical JSON.

    >>> from synaptune.data import Recipe
    >>> clean = Recipe.of(data="cifar10", split="test")
    >>> print(Recipe.of(corruption="fog", severity=5, of=clean))
    corruption=fog, of=(data=cifar10, split=test), severity=5
    >>> Recipe.of(b=1, a=2) == Recipe.of(a=2, b=1)
    True
    """

    text: str

    @classmethod
    def of(cls, **fields: Json | Recipe) -> Recipe:
        """Build a recipe from plain values and other recipes."""
        plain = {name: value.fields if isinstance(value, Recipe) else value for name, value in fields.items()}
        return cls(json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False))

    @property
    def fields(self) -> dict[str, Json]:
        """The values again, as a fresh dictionary."""
        fields: dict[str, Json] = json.loads(self.text)
        return fields

    @property
    def digest(self) -> str:
        """64 hexadecimal digits that name this recipe."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def __str__(self) -> str:
        return _spell(self.fields)


def _spell(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{name}=({_spell(entry)})" if isinstance(entry, dict) else f"{name}={_spell(entry)}"
            for name, entry in value.items()
        )
    if isinstance(value, list):
        return f"[{', '.join(f'({_spell(v)})' if isinstance(v, dict) else _spell(v) for v in value)}]"
    return f"{value:g}" if isinstance(value, float) else str(value)

"""What determines a corrupted image besides the clean one: a printable, hashable value for caches and stamps."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from synaptune.shifts.ice import frost_source
from synaptune.shifts.presets import Size

__all__ = ["GENERATOR_VERSION", "CorruptionRecipe"]

GENERATOR_VERSION = 1
"""Goes up when any corruption gives other pixels than before; stored checksums in the tests keep it honest."""


@dataclass(frozen=True, kw_only=True)
class CorruptionRecipe:
    """Name, severity, seed and table of a corruption, the generator's version, and frost's textures.

    Attributes:
        size: the published table that is used as it is; None for the nearest one, scaled to the image.
        frost: the textures in use, see `frost_source`; None for corruptions that need none.

    >>> recipe = CorruptionRecipe.of("fog", 5, size=32)
    >>> print(recipe)
    fog/5 size=32 seed=0 generator=1
    >>> recipe.key == CorruptionRecipe.of("fog", 5, size=32).key, len(recipe.key)
    (True, 64)
    """

    name: str
    severity: int
    size: Size | None
    seed: int
    generator: int
    frost: str | None

    @classmethod
    def of(cls, name: str, severity: int, *, seed: int = 0, size: Size | None = None) -> CorruptionRecipe:
        """Describe what `corrupt` would do here and now."""
        return cls(
            name=name,
            severity=severity,
            size=size,
            seed=seed,
            generator=GENERATOR_VERSION,
            frost=frost_source() if name == "frost" else None,
        )

    def as_dict(self) -> dict[str, str | int | None]:
        """Return the fields as plain values."""
        return asdict(self)

    @property
    def key(self) -> str:
        """64 hexadecimal digits: the sha256 of the fields as canonical JSON."""
        text = json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def __str__(self) -> str:
        size = "nearest" if self.size is None else self.size
        frost = "" if self.frost is None else f" frost={self.frost}"
        return f"{self.name}/{self.severity} size={size} seed={self.seed} generator={self.generator}{frost}"

"""Words: how numbers, methods, corruptions and switches are spelled, in tables and in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = [
    "FAMILIES",
    "change",
    "count",
    "listing",
    "long_name",
    "number",
    "percent",
    "points",
    "short_name",
    "spell_option",
    "switch_name",
    "switch_value",
]

MINUS = "−"
NOTHING = "–"

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "weather": ("snow", "frost", "fog", "brightness", "spatter"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
}
"""The common corruptions by family, in the order in which papers print them."""

_SHORT = {
    "jpeg_compression": "JPEG",
    "elastic_transform": "elastic",
    "gaussian_noise": "Gaussian",
    "gaussian_blur": "Gaussian",
}
_LONG = {"jpeg_compression": "JPEG compression", "gaussian_noise": "Gaussian noise", "gaussian_blur": "Gaussian blur"}

_SWITCH_NAMES = {
    "fingerprint": "weights fingerprint",
    "images": "images per cell",
    "batch": "batch size",
    "order": "order of images",
    "delta": "delta of the correlated order",
    "reset": "back to the source",
    "horizon": "batches adapted on",
    "oracle_every": "batches between looks at the labels (oracle)",
    "full_batch": "batch of whole-set passes",
    "corruption_seed": "corruption seed",
    "versions": "library versions",
}

_SWITCH_VALUES = {
    "reset=corruption": "at every corruption and severity",
    "reset=never": "never: the state carries over from one corruption to the next",
    "order=dataset": "as in the data set",
    "order=correlated": "correlated: labels stay for a while",
    "order=shuffled": "shuffled by the seed",
    "horizon=None": "all, one pass",
    "oracle_every=0": "never",
    "oracle_every=None": "never",
    "full_batch=None": "as in the pass",
    "data=sample": "the bundled images",
}


def percent(value: float | None) -> str:
    """Spell an error in percent, without its unit.

    >>> percent(12.345), percent(None)
    ('12.3', '–')
    """
    return NOTHING if value is None or math.isnan(value) else f"{value:.1f}"


def change(value: float | None, *, digits: int = 1) -> str:
    """Spell a signed difference; what rounds to nothing has no sign.

    >>> change(-1.26), change(0.04), change(2)
    ('−1.3', '0.0', '+2.0')
    """
    if value is None or math.isnan(value):
        return NOTHING
    size = f"{abs(value):.{digits}f}"
    if float(size) == 0:
        return size
    return f"{MINUS if value < 0 else '+'}{size}"


def points(value: float) -> str:
    """Spell the size of a difference between two percentages.

    >>> points(-1.0), points(0.84)
    ('1.0 point', '0.8 points')
    """
    size = f"{abs(value):.1f}"
    return f"{size} point{'' if size == '1.0' else 's'}"


def number(value: float | None) -> str:
    """Spell a quantity with three significant digits, thousands apart.

    >>> number(0.01234), number(1234.5), number(41.27), number(0.0)
    ('0.0123', '1,234', '41.3', '0')
    """
    if value is None or math.isnan(value):
        return NOTHING
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 6)}f}"


def count(amount: int, word: str, plural: str = "") -> str:
    """Spell how many there are.

    >>> count(1, "row"), count(1200, "row"), count(2, "batch", "batches")
    ('1 row', '1,200 rows', '2 batches')
    """
    return f"{amount:,} {word if amount == 1 else plural or word + 's'}"


def listing(items: Iterable[str], *, most: int = 6) -> str:
    """Join words as in a sentence; of a long list, the first ones.

    >>> listing(["fog"]), listing(["fog", "snow"]), listing(["a", "b", "c", "d"], most=2)
    ('fog', 'fog and snow', 'a, b and 2 more')
    """
    words = list(items)
    if len(words) > most:
        words = [*words[:most], f"{len(words) - most} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "none"


def short_name(corruption: str) -> str:
    """Name a corruption in a column under its family.

    >>> short_name("gaussian_noise"), short_name("defocus_blur"), short_name("my_shift")
    ('Gaussian', 'defocus', 'my shift')
    """
    if corruption in _SHORT:
        return _SHORT[corruption]
    for family in FAMILIES:
        if corruption.endswith(f"_{family}") and corruption in FAMILIES[family]:
            return corruption.removesuffix(f"_{family}")
    return corruption.replace("_", " ")


def long_name(corruption: str) -> str:
    """Name a corruption in a sentence.

    >>> long_name("gaussian_noise"), long_name("fog")
    ('Gaussian noise', 'fog')
    """
    return _LONG.get(corruption, corruption.replace("_", " "))


def switch_name(key: str) -> str:
    """Name a protocol switch."""
    return _SWITCH_NAMES.get(key, key.replace("_", " "))


def switch_value(key: str, value: Any) -> str:
    """Spell the value of a protocol switch.

    >>> switch_value("reset", "corruption"), switch_value("images", None), switch_value("batch", 128)
    ('at every corruption and severity', 'not recorded', '128')
    """
    if isinstance(value, Mapping) and value:
        return ", ".join(f"{name} {entry}" for name, entry in value.items())
    said = _SWITCH_VALUES.get(f"{key}={value}")
    if said is not None:
        return said
    if value is None or value in ("", {}):
        return "not recorded"
    return f"{value:,}" if key == "images" and isinstance(value, int) else str(value)


def spell_option(value: Any) -> str:
    """Spell the value of a method's option.

    >>> spell_option([1, 2]), spell_option(0.001), spell_option(True), spell_option(None)
    ('1, 2', '0.001', 'yes', 'none')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(spell_option(entry) for entry in value) or "none"
    return str(value)

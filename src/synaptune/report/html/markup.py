"""HTML and SVG that is safe by construction: what is not marked as markup is text, and text is escaped.

>>> tag("p", "a < b", title='"quoted"')
'<p title="&quot;quoted&quot;">a &lt; b</p>'
>>> tag("div", tag("b", "kept"), class_="box", hidden=True)
'<div class="box" hidden><b>kept</b></div>'
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

__all__ = ["Markup", "Value", "joined", "tag", "unbroken"]

Value = str | float | bool | None

_VOID = frozenset({"br", "col", "hr", "input", "link", "meta"})
# Control characters have no place in HTML, and surrogates cannot be encoded.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: Value) -> Markup:
    """Make an element.

    Args:
        name: of the element.
        *children: elements, or text that is escaped; None is left out.
        **attributes: underscores become hyphens and a last one is dropped (`class_`); None and False are left out,
            True stands without a value.
    """
    spelled = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{spelled}>")
    return Markup(f"<{name}{spelled}>{joined(children)}</{name}>")


def joined(children: Iterable[str | None]) -> Markup:
    """Put elements and texts one after the other."""
    return Markup("".join(_escaped(child) for child in children if child is not None))


def unbroken(text: str) -> str:
    r"""Keep numbers and their units on one line.

    >>> unbroken("48.2 % in 3 ms")
    '48.2\xa0% in 3\xa0ms'
    """
    return re.sub(r"(?<=\d) (?=%|ms\b|MB\b)", "\xa0", text)


def _escaped(child: str) -> str:
    return child if isinstance(child, Markup) else html.escape(_printable(child), quote=False)


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = _short(value) if isinstance(value, float) else str(value)
    return f' {name}="{html.escape(_printable(text), quote=True)}"'


def _short(value: float) -> str:
    """Spell a coordinate to a tenth of a pixel."""
    return (
        f"{value:.1f}".removesuffix(".0").replace("-0", "0") if abs(value) < 0.05 else f"{value:.1f}".removesuffix(".0")
    )


def _printable(text: str) -> str:
    return _FORBIDDEN.sub("�", text)

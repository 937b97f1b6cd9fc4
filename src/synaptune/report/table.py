"""A table as a value: what stands where, spelled once, so that HTML, Markdown and the terminal show the same.

`lines` and `columns` have headings; a `Place` is a number's text with what is known about it. Nothing here prints.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["Column", "Line", "Place", "Table", "escape_markdown"]


@dataclass(frozen=True)
class Place:
    """One place of a table.

    Attributes:
        text: as it is printed.
        value: the number behind it, where colour or order need it.
        is_best: whether it is the best of its column.
        is_quiet: whether it is not to stand out: nothing measured, or a difference within noise.
        note: a few words more, for tooltips and screen readers.
    """

    text: str
    value: float | None = None
    is_best: bool = False
    is_quiet: bool = False
    note: str = ""


@dataclass(frozen=True)
class Column:
    """A column's heading.

    Attributes:
        name: in full.
        short: under its family, where room is short.
        family: what it belongs to, "" for nothing.
        is_heated: whether its places are coloured by value.
        is_text: whether it holds words rather than numbers.
        is_summary: whether it sums up the others.
    """

    name: str
    short: str = ""
    family: str = ""
    is_heated: bool = False
    is_text: bool = False
    is_summary: bool = False

    @property
    def heading(self) -> str:
        """What stands above the column where room is short."""
        return self.short or self.name


@dataclass(frozen=True)
class Line:
    """A line: its heading and its places, one for each column."""

    name: str
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: what it shows.
        corner: what the headings of lines are, such as "method".
        columns: headings.
        lines: the lines.
        caption: a sentence that must be read with it.
    """

    title: str
    corner: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    caption: str = ""

    def transposed(self, *, corner: str) -> Table:
        """Swap lines and columns, for places that are narrow and long.

        >>> table = Table("T", "method", (Column("fog"), Column("snow")), (Line("norm", (Place("1"), Place("2"))),))
        >>> table.transposed(corner="corruption").cells()
        [['corruption', 'norm'], ['fog', '1'], ['snow', '2']]
        """
        lines = tuple(
            Line(column.name, tuple(line.places[number] for line in self.lines))
            for number, column in enumerate(self.columns)
        )
        return replace(self, corner=corner, columns=tuple(Column(line.name) for line in self.lines), lines=lines)

    def cells(self) -> list[list[str]]:
        """Return the texts, headings first, for whoever prints them with a table of its own."""
        head = [self.corner, *(column.heading for column in self.columns)]
        return [head, *([line.name, *(place.text for place in line.places)] for line in self.lines)]

    def as_text(self) -> str:
        """Return the table in plain text, columns aligned; `*` marks the best of a column.

        >>> places = (Place("9.5", is_best=True), Place("12.0"))
        >>> print(Table("T", "method", (Column("fog"), Column("snow")), (Line("norm", places),)).as_text())
        method  fog   snow
        norm    9.5*  12.0
        """
        heads, *bodies = ([_one_line(text) for text in row] for row in self.cells())
        texts = [[heads[0], *(body[0] for body in bodies)]]
        for number, head in enumerate(heads[1:], start=1):
            places = [line.places[number - 1] for line in self.lines]
            # Digits stay under digits beside a star.
            other = " " if any(place.is_best for place in places) else ""
            stars = ["*" if place.is_best else other for place in places]
            marked = [body[number] + star for body, star in zip(bodies, stars, strict=True)]
            texts.append([head + other, *marked])
        lefts = [True, *(column.is_text for column in self.columns)]
        aligned = [_aligned(column, is_left) for column, is_left in zip(texts, lefts, strict=True)]
        return "\n".join("  ".join(row).rstrip() for row in zip(*aligned, strict=True))

    def as_markdown(self) -> str:
        """Return the table in Markdown, the best of a column in bold."""
        head = [escape_markdown(text) for text in (self.corner, *(column.name for column in self.columns))]
        rule = ["---", *("---" if column.is_text else "---:" for column in self.columns)]
        body = [[escape_markdown(line.name), *map(_bold, line.places)] for line in self.lines]
        return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))


def escape_markdown(text: str) -> str:
    r"""Take away the meaning that characters have in Markdown, tables and HTML.

    >>> escape_markdown("a|b <c> *d*")
    'a\\|b &lt;c&gt; \\*d\\*'
    """
    plain = _one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]#|~])", r"\\\1", plain)


def _bold(place: Place) -> str:
    text = escape_markdown(place.text)
    return f"**{text}**" if place.is_best else text


def _one_line(text: str) -> str:
    """Drop line breaks and control characters, which could move a terminal's cursor."""
    return "".join(" " if unicodedata.category(letter).startswith("C") else letter for letter in text)


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _aligned(texts: Sequence[str], is_left: bool) -> list[str]:
    width = max(map(_width, texts))
    spaces = [" " * (width - _width(text)) for text in texts]
    return [text + space if is_left else space + text for text, space in zip(texts, spaces, strict=True)]

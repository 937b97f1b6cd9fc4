"""A table in HTML: heat as a class, the number always in sight, headings that screen readers can follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from synaptune.report.html.markup import Markup, tag
from synaptune.report.table import Column, Line, Place, Table
from synaptune.report.wording import percent

__all__ = ["HEAT_LEVELS", "table_view"]

HEAT_LEVELS = 9


def table_view(table: Table, *, ident: str, heading: str = "h4") -> Markup:
    """Show a table in a box that scrolls by itself, under its title and caption."""
    heats = _HeatScale(table)
    is_slim = len(table.columns) < 9
    body = [_line(table.columns, line, heats) for line in table.lines]
    return tag(
        "div",
        tag(heading, table.title, id=f"{ident}-h"),
        tag("p", table.caption, class_="caption", id=f"{ident}-c") if table.caption else None,
        tag(
            "div",
            tag(
                "table",
                tag("thead", *_head(table)),
                tag("tbody", *body),
                class_="grid-table slim" if is_slim else "grid-table",
                aria_labelledby=f"{ident}-h",
                aria_describedby=f"{ident}-c" if table.caption else None,
            ),
            class_="scroll",
            role="region",
            aria_labelledby=f"{ident}-h",
            tabindex="0",
        ),
        heats.key(has_best=any(place.is_best for line in table.lines for place in line.places)),
        class_="table",
    )


class _HeatScale:
    """Levels of colour between the lowest and the highest value of the heated columns."""

    def __init__(self, table: Table):
        values = [
            place.value
            for line in table.lines
            for column, place in zip(table.columns, line.places, strict=True)
            if column.is_heated and place.value is not None
        ]
        self.low, self.high = min(values, default=0.0), max(values, default=0.0)

    def level(self, column: Column, place: Place) -> str:
        if not column.is_heated or place.value is None or self.low == self.high:
            return ""
        return f"h{round((place.value - self.low) / (self.high - self.low) * (HEAT_LEVELS - 1))}"

    def key(self, *, has_best: bool) -> Markup | None:
        """Explain the colours, and bold numbers."""
        if self.low == self.high:
            return None
        steps = [tag("i", class_=f"h{level}") for level in range(HEAT_LEVELS)]
        best = tag("span", " ", tag("b", "Bold"), ": lowest of its column.") if has_best else None
        scale = tag("span", *steps, class_="scale", aria_hidden="true")
        return tag("p", percent(self.low), scale, percent(self.high), best, class_="heat-key")


def _head(table: Table) -> Iterator[Markup]:
    has_families = any(column.family for column in table.columns)
    corner = tag("th", table.corner, scope="col", rowspan="2" if has_families else None)
    if not has_families:
        yield tag("tr", corner, *(_heading(column, column.name) for column in table.columns))
        return
    above = []
    for (family, is_summary), members in groupby(table.columns, key=lambda column: (column.family, column.is_summary)):
        columns = list(members)
        if family:
            above.append(tag("th", tag("span", family), scope="colgroup", colspan=str(len(columns)), class_="family"))
        else:
            above += [_heading(column, column.heading, rowspan="2") for column in columns]
        del is_summary
    yield tag("tr", corner, *above)
    yield tag("tr", *(_heading(column, column.heading) for column in table.columns if column.family))


def _heading(column: Column, text: str, rowspan: str | None = None) -> Markup:
    spoken = column.name if column.name != text else None
    classes = _classes("words" if column.is_text else "", "summary-col" if column.is_summary else "")
    return tag("th", text, scope="col", rowspan=rowspan, abbr=spoken, title=spoken, class_=classes)


def _line(columns: Sequence[Column], line: Line, heats: _HeatScale) -> Markup:
    places = [_place(column, place, heats) for column, place in zip(columns, line.places, strict=True)]
    return tag("tr", tag("th", line.name, scope="row"), *places)


def _place(column: Column, place: Place, heats: _HeatScale) -> Markup:
    classes = _classes(
        heats.level(column, place),
        "best" if place.is_best else "",
        "quiet" if place.is_quiet else "",
        "words" if column.is_text else "",
        "summary-col" if column.is_summary else "",
    )
    return tag("td", place.text, class_=classes, title=place.note or None)


def _classes(*names: str) -> str | None:
    return " ".join(name for name in names if name) or None

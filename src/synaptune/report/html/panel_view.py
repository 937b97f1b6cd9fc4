"""Drawings for each shift: small ones side by side, and one at a time in large, chosen without a script.

Radio buttons do the choosing: the style sheet shows the pane whose button is checked, arrow keys move between them.
"""

from __future__ import annotations

from collections.abc import Mapping

from synaptune.report.html.line_chart import LARGE, SMALL, line_chart
from synaptune.report.html.markup import Markup, tag
from synaptune.report.html.svg import swatch
from synaptune.report.html.table_view import table_view
from synaptune.report.table import Column, Line, Place, Table
from synaptune.report.timeline import Panel, PanelGroup, thinned
from synaptune.report.wording import number

__all__ = ["legend", "pane_rules", "panel_view"]

_MOST_LINES = 20


def panel_view(group: PanelGroup, *, colours: Mapping[str, str], ident: str) -> Markup:
    """Show a group of drawings."""
    names = list(dict.fromkeys(series.name for panel in group.panels for series in panel.series))
    heading = tag("h3", group.title, id=f"{ident}-h")
    caption = tag("p", group.caption, class_="caption")
    key = legend({name: colours[name] for name in names}) if len(names) > 1 else None
    if len(group.panels) == 1:
        only = _large(group.panels[0], colours=colours, ident=f"{ident}-0", classes="pane only")
        return tag("div", heading, caption, key, only)
    buttons = [_button(ident, place, _said(group, place)) for place in range(len(group.panels) + 1)]
    chips = [
        tag("label", _said(group, place), for_=f"{ident}-r{place}", class_=f"p{place}")
        for place in range(len(group.panels) + 1)
    ]
    small = [
        tag(
            "figure",
            tag("figcaption", tag("label", panel.title, for_=f"{ident}-r{place}")),
            line_chart(panel, frame=SMALL, colours=colours, ident=f"{ident}-s{place}"),
        )
        for place, panel in enumerate(group.panels, start=1)
    ]
    large = [
        _large(panel, colours=colours, ident=f"{ident}-{place}", classes=f"pane one p{place}")
        for place, panel in enumerate(group.panels, start=1)
    ]
    return tag(
        "div",
        heading,
        caption,
        key,
        tag(
            "div",
            *buttons,
            tag("div", *chips, class_="chips"),
            tag("div", tag("div", *small, class_="multiples"), class_="pane every p0"),
            *large,
            class_="panels",
            role="group",
            aria_labelledby=f"{ident}-h",
        ),
    )


def pane_rules(most: int) -> str:
    """Write the style rules that show the chosen pane, for as many panes as the page has."""
    rules = []
    for place in range(most + 1):
        checked = f".pick.p{place}:checked ~"
        rules += [
            f"{checked} .pane.p{place} {{ display: block; }}",
            f"{checked} .chips .p{place} {{ background: var(--ink); color: var(--paper); border-color: var(--ink); }}",
            f".pick.p{place}:focus-visible ~ .chips .p{place} {{ outline: 2px solid var(--focus); }}",
        ]
    return "\n".join(rules)


def legend(colours: Mapping[str, str]) -> Markup:
    """Explain dashes, marks and colours."""
    return tag("ul", *(tag("li", swatch(colour), name) for name, colour in colours.items()), class_="legend")


def _said(group: PanelGroup, place: int) -> str:
    return group.panels[place - 1].title if place else "All"


def _button(ident: str, place: int, shift: str) -> Markup:
    return tag(
        "input",
        type="radio",
        name=ident,
        id=f"{ident}-r{place}",
        class_=f"pick p{place}",
        checked=place == 0,
        data_shift=shift,
    )


def _large(panel: Panel, *, colours: Mapping[str, str], ident: str, classes: str) -> Markup:
    return tag(
        "div",
        tag(
            "figure",
            tag("figcaption", panel.title),
            tag(
                "div",
                line_chart(panel, frame=LARGE, colours=colours, ident=f"{ident}-l"),
                class_="large",
                tabindex="0",
                role="region",
                aria_label=f"Drawing: {panel.title}",
            ),
        ),
        tag(
            "details",
            tag("summary", "Numbers"),
            table_view(_numbers(panel), ident=f"{ident}-n"),
            class_="numbers",
        ),
        class_=classes,
    )


def _numbers(panel: Panel) -> Table:
    """Lay out the lines of a drawing at a few places, for those who cannot see it."""
    xs = panel.series[0].xs
    chosen = thinned(len(xs), _MOST_LINES)
    values = [dict(zip(series.xs, series.ys, strict=True)) for series in panel.series]
    lines = [
        Line(f"{xs[place]:,.0f}", tuple(Place(number(found.get(xs[place]))) for found in values)) for place in chosen
    ]
    some = "" if len(chosen) == len(xs) else "Some places of the drawing, evenly chosen."
    return Table(
        f"{panel.title}: {panel.y_label}",
        panel.x_label,
        tuple(Column(series.name) for series in panel.series),
        tuple(lines),
        caption=some,
    )

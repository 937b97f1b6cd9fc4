"""What happened over time: for all shifts in small drawings side by side, or for one shift in large ones.

One choice of shift serves error, entropy, drift and weights alike. Radio buttons do the choosing: the style sheet shows
the pane whose button is checked, arrow keys move between them, and no script is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from synaptune.report.html.line_chart import LARGE, SMALL, line_chart
from synaptune.report.html.markup import Markup, joined, tag
from synaptune.report.html.svg import swatch
from synaptune.report.html.table_view import table_view
from synaptune.report.table import Column, Line, Place, Table
from synaptune.report.timeline import Panel, PanelGroup, thinned
from synaptune.report.wording import number

__all__ = ["legend", "pane_rules", "panels_view", "shifts_of"]

_MOST_LINES = 20
_ALL = "All"


def panels_view(groups: Sequence[PanelGroup], *, colours: Mapping[str, str], ident: str) -> Markup | None:
    """Show groups of drawings under one choice of shift; None when there are none."""
    shifts = shifts_of(groups)
    if not shifts:
        return None
    names = {series.name for group in groups for panel in group.panels for series in panel.series}
    key = legend({name: colour for name, colour in colours.items() if name in names}) if len(names) > 1 else None
    heading = tag("h3", "Over time", id=f"{ident}-h")
    if len(shifts) == 1:
        return tag("div", heading, key, _one_shift(groups, shifts[0], colours=colours, ident=f"{ident}-1"))
    choices = [_ALL, *shifts]
    buttons = [_button(ident, place) for place in range(len(choices))]
    chips = [tag("label", choice, for_=f"{ident}-r{place}", class_=f"p{place}") for place, choice in enumerate(choices)]
    large = [
        tag("div", _one_shift(groups, shift, colours=colours, ident=f"{ident}-{place}"), class_=f"pane one p{place}")
        for place, shift in enumerate(shifts, start=1)
    ]
    small = _all_shifts(groups, shifts, colours=colours, ident=ident)
    return tag(
        "div",
        heading,
        key,
        *buttons,
        tag("div", *chips, class_="chips"),
        tag("div", small, class_="pane every p0"),
        *large,
        class_="panels",
        role="group",
        aria_labelledby=f"{ident}-h",
    )


def shifts_of(groups: Sequence[PanelGroup]) -> list[str]:
    """Name the shifts that any group has a drawing of, in their order."""
    return list(dict.fromkeys(panel.title for group in groups for panel in group.panels))


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


def legend(colours: Mapping[str, str], *others: Markup) -> Markup:
    """Explain dashes, marks and colours."""
    return tag("ul", *(tag("li", swatch(colour), name) for name, colour in colours.items()), *others, class_="legend")


def _button(ident: str, place: int) -> Markup:
    return tag("input", type="radio", name=ident, id=f"{ident}-r{place}", class_=f"pick p{place}", checked=place == 0)


def _all_shifts(
    groups: Sequence[PanelGroup], shifts: Sequence[str], *, colours: Mapping[str, str], ident: str
) -> Markup:
    parts = []
    for number_of_group, group in enumerate(groups):
        figures = [
            tag(
                "figure",
                tag("figcaption", tag("label", panel.title, for_=f"{ident}-r{shifts.index(panel.title) + 1}")),
                line_chart(panel, frame=SMALL, colours=colours, ident=f"{ident}-s{number_of_group}-{place}"),
            )
            for place, panel in enumerate(group.panels)
        ]
        parts += [
            tag("h4", group.title),
            tag("p", f"{group.caption} {_axes(group)} Scales differ between drawings.", class_="caption"),
            tag("div", *figures, class_="multiples"),
        ]
    return joined(parts)


def _axes(group: PanelGroup) -> str:
    """Name the axes in words: small drawings have no room for it."""
    panel = group.panels[0]
    return f"Upwards: {panel.y_label}; across: {panel.x_label}."


def _one_shift(groups: Sequence[PanelGroup], shift: str, *, colours: Mapping[str, str], ident: str) -> Markup:
    figures = []
    for place, group in enumerate(groups):
        panel = next((panel for panel in group.panels if panel.title == shift), None)
        if panel is not None:
            figures.append(_large(group, panel, colours=colours, ident=f"{ident}-{place}"))
    return tag("div", *figures, class_="large-multiples")


def _large(group: PanelGroup, panel: Panel, *, colours: Mapping[str, str], ident: str) -> Markup:
    title = f"{group.title}: {panel.title}"
    dots = " Dots: single batches." if any(series.detail for series in panel.series) else ""
    drawing = line_chart(panel, frame=LARGE, colours=colours, ident=f"{ident}-l")
    return tag(
        "figure",
        tag("figcaption", title),
        tag("p", f"{group.caption}{dots}", class_="caption"),
        tag("div", drawing, class_="large", tabindex="0", role="region", aria_label=f"Drawing: {title}"),
        tag(
            "details",
            tag("summary", "Numbers"),
            table_view(_numbers(panel, title), ident=f"{ident}-n"),
            class_="numbers",
        ),
    )


def _numbers(panel: Panel, title: str) -> Table:
    """Lay out the lines of a drawing at a few places, for those who cannot see it."""
    xs = panel.series[0].xs
    chosen = thinned(len(xs), _MOST_LINES)
    values = [dict(zip(series.xs, series.ys, strict=True)) for series in panel.series]
    lines = [
        Line(f"{xs[place]:,.0f}", tuple(Place(number(found.get(xs[place]))) for found in values)) for place in chosen
    ]
    some = "" if len(chosen) == len(xs) else "At some places of the drawing, evenly chosen."
    return Table(
        f"{title} ({panel.y_label})",
        panel.x_label,
        tuple(Column(series.name) for series in panel.series),
        tuple(lines),
        caption=some,
    )

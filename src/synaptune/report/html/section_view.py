"""The parts of the page: sections of comparable rows, and streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from synaptune.report.classes import ClassShares, share_table
from synaptune.report.document import Bar, Section, Stamp, StreamSection
from synaptune.report.finding import Finding, FindingKind
from synaptune.report.html.markup import Markup, joined, tag, unbroken
from synaptune.report.html.panel_view import legend, panels_view
from synaptune.report.html.point_charts import cost_chart, share_chart
from synaptune.report.html.table_view import table_view
from synaptune.report.wording import percent

__all__ = ["findings_view", "section_view", "stamp_view", "stream_view"]

_KIND_NAMES: Mapping[FindingKind, str] = {
    "gain": "Better",
    "loss": "Worse",
    "even": "No difference",
    "time": "Over time",
    "cost": "Cost",
    "missing": "Missing",
    "protocol": "Protocol",
    "note": "Note",
}

_FOLDED = ("Options of ", "Images, by digest")
"""Groups of the protocol that are closed at first."""


def section_view(section: Section, *, ident: str, colours: Mapping[str, str], is_only: bool, command: str) -> Markup:
    """Show rows that may be compared."""
    lead = None if is_only else tag("p", unbroken(section.headline), class_="lead")
    return _part(
        ident,
        section.title,
        lead,
        _bars(section.bars, colours) if len(section.bars) > 1 else None,
        _headed("What the numbers say", findings_view(section.findings)),
        _errors(section, ident),
        panels_view(section.panels, colours=colours, ident=f"{ident}-p"),
        _shares(section.shares, colours, f"{ident}-s"),
        _extras(section, ident),
        _cost(section, ident, colours),
        table_view(section.absent, ident=f"{ident}-a", heading="h3") if section.absent else None,
        stamp_view(section.stamp, command=command),
    )


def stream_view(section: StreamSection, *, ident: str, colours: Mapping[str, str], is_only: bool) -> Markup:
    """Show a stream log."""
    return _part(
        ident,
        section.title,
        None if is_only else tag("p", unbroken(section.headline), class_="lead"),
        _headed("What the log says", findings_view(section.findings)),
        panels_view(section.panels, colours=colours, ident=f"{ident}-p"),
        _shares(section.shares, colours, f"{ident}-s"),
        table_view(section.events, ident=f"{ident}-e", heading="h3") if section.events else None,
        stamp_view(section.stamp, command=""),
    )


def findings_view(findings: Sequence[Finding]) -> Markup | None:
    """Show sentences, each with its kind in words."""
    if not findings:
        return None
    items = [
        tag(
            "li",
            tag("span", _KIND_NAMES[finding.kind], class_="kind"),
            tag("span", unbroken(finding.text)),
            class_=finding.kind,
        )
        for finding in findings
    ]
    return tag("ul", *items, class_="findings")


def stamp_view(stamp: Stamp, *, command: str) -> Markup | None:
    """Show the protocol in full."""
    if not stamp.groups:
        return None
    again = tag("p", "These numbers again: ", tag("code", command)) if command else None
    groups = [_stamp_group(title, pairs) for title, pairs in stamp.groups]
    return joined((tag("h3", "Protocol"), again, tag("div", *groups, class_="stamp")))


def _stamp_group(title: str, pairs: Sequence[tuple[str, str]]) -> Markup:
    """Show what decides a number at once; long lists that few look up are opened by a click, and by printing."""
    listed = tag("dl", *(_pair(name, value) for name, value in pairs))
    if title.startswith(_FOLDED):
        return tag("details", tag("summary", title), listed)
    return tag("section", tag("h4", title), listed)


def _part(ident: str, title: str, *children: Markup | None) -> Markup:
    heading = tag("h2", title, id=f"{ident}-title")
    return tag("section", heading, *children, class_="part", id=ident, aria_labelledby=f"{ident}-title")


def _headed(title: str, content: Markup | None) -> Markup | None:
    return None if content is None else joined((tag("h3", title), content))


def _pair(name: str, value: str) -> Markup:
    return joined((tag("dt", name), tag("dd", value)))


def _bars(bars: Sequence[Bar], colours: Mapping[str, str]) -> Markup:
    widest = max(bar.value + (bar.margin or 0) for bar in bars) or 1.0
    lines = [_bar(bar, widest, colours[bar.name]) for bar in bars]
    has_noise = any(bar.margin is not None for bar in bars)
    caption = f"Mean error in percent{', with its noise' if has_noise else ''}; shorter is better."
    return tag("table", tag("caption", caption), tag("tbody", *lines), class_="bars")


def _bar(bar: Bar, widest: float, colour: str) -> Markup:
    width = 100 * bar.value / widest
    margin = 100 * (bar.margin or 0) / widest
    noise = f"±{bar.margin:.1f}" if bar.margin is not None else ""
    whisker = [
        tag("line", x1=f"{width - margin:.2f}%", x2=f"{width + margin:.2f}%", y1="50%", y2="50%", class_="whisker")
    ]
    drawing = tag(
        "svg",
        tag("title", f"{bar.name}: {percent(bar.value)} %"),
        tag("rect", width="100%", height="100%", class_="track"),
        tag("rect", width=f"{width:.2f}%", height="100%", class_="fill"),
        *(whisker if bar.margin else []),
        class_=colour,
        aria_hidden="true",
        focusable="false",
    )
    value = tag("td", f"{percent(bar.value)} % ", tag("span", noise, class_="noise"), class_="value")
    return tag(
        "tr", tag("th", bar.name, scope="row"), tag("td", drawing), value, class_="best" if bar.is_best else None
    )


def _errors(section: Section, ident: str) -> Markup | None:
    if section.errors is None:
        return None
    tables = [table_view(section.errors, ident=f"{ident}-t")]
    if section.change is not None:
        tables.append(table_view(section.change, ident=f"{ident}-c"))
    if section.more_errors:
        others = [table_view(table, ident=f"{ident}-m{place}") for place, table in enumerate(section.more_errors)]
        tables.append(tag("details", tag("summary", "Other errors: after the update, whole set, oracle"), *others))
    return joined((tag("h3", "Errors"), *tables))


def _extras(section: Section, ident: str) -> Markup | None:
    if not section.extras:
        return None
    tables = [table_view(table, ident=f"{ident}-x{place}") for place, table in enumerate(section.extras)]
    return joined((tag("h3", "Beside the error"), *tables))


def _shares(shares: ClassShares | None, colours: Mapping[str, str], ident: str) -> Markup | None:
    if shares is None:
        return None
    name, _ = shares.reference
    tick = tag("li", tag("span", class_="tick"), name)
    key = legend({method: colours.get(method, "m1") for method, _ in shares.lines}, tick)
    return joined(
        (
            tag("h3", "Predicted classes"),
            tag("p", f"How often each class is predicted, against {name}.", class_="caption"),
            key,
            _boxed(share_chart(shares, colours=colours, ident=f"{ident}-l"), "Predicted classes"),
            tag(
                "details",
                tag("summary", "Numbers"),
                table_view(share_table(shares), ident=f"{ident}-n"),
                class_="numbers",
            ),
        )
    )


def _cost(section: Section, ident: str, colours: Mapping[str, str]) -> Markup | None:
    if section.cost is None:
        return None
    drawing = cost_chart(section.costs, colours=colours, ident=f"{ident}-k")
    return joined(
        (
            table_view(section.cost, ident=f"{ident}-q", heading="h3"),
            _boxed(drawing, "Error against cost") if drawing is not None else None,
        )
    )


def _boxed(drawing: Markup, label: str) -> Markup:
    return tag("div", drawing, class_="large", tabindex="0", role="region", aria_label=f"Drawing: {label}")

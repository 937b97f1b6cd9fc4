"""Marks beside marks: methods by cost and error, and classes by how often they are predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from synaptune.report.classes import ClassShares
from synaptune.report.cost import Cost
from synaptune.report.html.axes import Axis, linear_axis, log_axis
from synaptune.report.html.labels import Box, place_labels
from synaptune.report.html.markup import Markup, tag
from synaptune.report.html.svg import Frame, axis_names, clipped, drawing, mark, x_ticks, y_grid
from synaptune.report.wording import number

__all__ = ["cost_chart", "share_chart"]

_LOG_FROM = 12.0


def cost_chart(costs: Sequence[Cost], *, colours: Mapping[str, str], ident: str) -> Markup | None:
    """Draw mean error against time per batch; None when fewer than two methods have both."""
    points = [(cost.method, cost.ms_p50, cost.error.value) for cost in costs if cost.ms_p50 and cost.error]
    if len(points) < 2:
        return None
    frame = Frame(width=620, height=310, left=46, right=24, top=26, bottom=40)
    times, errors = [time for _, time, _ in points], [error for *_, error in points]
    is_log = max(times) / min(times) > _LOG_FROM
    start, end = frame.left + 8, frame.inner_right - 30
    if is_log:
        x_axis = log_axis(times, start=start, end=end)
    else:
        x_axis = linear_axis(times, start=start, end=end, count=6, from_zero=True)
    y_axis = linear_axis(errors, start=frame.inner_bottom, end=frame.top, count=4)
    places = [(x_axis.at(time), y_axis.at(error)) for _, time, error in points]
    area = Box(frame.left, frame.top - 10, frame.width - 2, frame.inner_bottom)
    labels = place_labels([name for name, *_ in points], places, area)
    marks = [
        tag(
            "g",
            tag("title", f"{name}: {number(time)} ms per batch, {error:.1f} % error"),
            mark(colours[name], *place, size=5.5),
            tag("text", name, x=label.x, y=label.y, text_anchor=label.anchor, class_="name"),
            class_=colours[name],
        )
        for (name, time, error), place, label in zip(points, places, labels, strict=True)
    ]
    scale = ", logarithmic" if is_log else ""
    parts = [
        y_grid(y_axis, frame),
        x_ticks(x_axis, frame),
        axis_names(f"ms per batch, median{scale}", "mean error, %", frame),
        *marks,
    ]
    about = "; ".join(f"{name} {number(time)} ms and {error:.1f} %" for name, time, error in points)
    return drawing(parts, frame=frame, ident=ident, title="Mean error against time per batch", about=f"{about}.")


def share_chart(shares: ClassShares, *, colours: Mapping[str, str], ident: str) -> Markup:
    """Draw one line for each class: a bar for the reference, a mark for each method."""
    height = 27.0
    frame = Frame(620, 52 + height * len(shares.names), 128, 24, 12, 40)
    values = [*shares.reference[1], *(value for _, line in shares.lines for value in line)]
    x_axis = linear_axis(values, start=frame.left, end=frame.inner_right - 20, count=6, from_zero=True)
    grid = [
        tag("line", x1=x_axis.at(tick), x2=x_axis.at(tick), y1=frame.top, y2=frame.inner_bottom, class_="grid")
        for tick in x_axis.ticks
    ]
    rows = [
        _share_row(shares, position, x_axis, frame.top + height * (position + 0.5), colours)
        for position in range(len(shares.names))
    ]
    parts = [*grid, x_ticks(x_axis, frame), axis_names("share of predictions, %", "", frame), *rows]
    name, reference = shares.reference
    moved = max(
        (
            (abs(line[place] - reference[place]), method, place)
            for method, line in shares.lines
            for place in range(len(line))
        )
    )
    about = (
        f"Largest difference from {name}: {moved[1]} predicts {shares.names[moved[2]]} "
        f"{dict(shares.lines)[moved[1]][moved[2]]:.1f} % of the time, {name} {reference[moved[2]]:.1f} %."
    )
    return drawing(parts, frame=frame, ident=ident, title=f"Predicted classes against {name}", about=about)


def _share_row(shares: ClassShares, position: int, axis: Axis, y: float, colours: Mapping[str, str]) -> Markup:
    name, reference = shares.reference
    middle = axis.at(reference[position])
    values = [line[position] for _, line in shares.lines]
    ends = [axis.at(min(values)), axis.at(max(values))]
    marks = [
        tag(
            "g",
            tag("title", f"{method}: {line[position]:.1f} %"),
            mark(colours.get(method, "m1"), axis.at(line[position]), y, size=4.5),
            class_=colours.get(method, "m1"),
        )
        for method, line in shares.lines
    ]
    return tag(
        "g",
        tag("text", clipped(shares.names[position], 16), x=120.0, y=y + 4, text_anchor="end", class_="name plain"),
        tag("line", x1=min(*ends, middle), x2=max(*ends, middle), y1=y, y2=y, class_="rail"),
        tag(
            "g",
            tag("title", f"{name}: {reference[position]:.1f} %"),
            tag("rect", x=middle - 1.5, y=y - 9, width=3.0, height=18.0),
            class_="reference",
        ),
        *marks,
    )

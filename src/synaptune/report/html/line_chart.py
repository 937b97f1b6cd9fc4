"""Lines over batches: small ones to look across shifts, large ones to read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from synaptune.report.html.axes import Axis, batch_axis, linear_axis
from synaptune.report.html.labels import spread
from synaptune.report.html.markup import Markup, tag
from synaptune.report.html.svg import Frame, axis_names, clipped, drawing, x_ticks, y_grid
from synaptune.report.timeline import Panel, Series
from synaptune.report.wording import number

__all__ = ["LARGE", "SMALL", "line_chart"]

SMALL = Frame(width=224, height=148, left=34, right=8, top=10, bottom=24)
LARGE = Frame(width=560, height=310, left=46, right=112, top=26, bottom=40)


def line_chart(panel: Panel, *, frame: Frame, colours: Mapping[str, str], ident: str) -> Markup:
    """Draw lines over batches; the large frame also shows single batches, axis names and names at line ends."""
    is_large = frame is LARGE
    x_axis, y_axis = _line_axes(panel, frame)
    parts = [y_grid(y_axis, frame), x_ticks(x_axis, frame)]
    if is_large:
        parts += [axis_names(panel.x_label, panel.y_label, frame)]
        parts += [_dots(series, x_axis, y_axis, colours) for series in panel.series]
    parts += [_line(series, x_axis, y_axis, colours) for series in panel.series]
    if is_large:
        parts.append(_end_labels(panel.series, y_axis, frame, colours))
    return drawing(parts, frame=frame, ident=ident, title=panel.title, about=_describe_lines(panel))


def _line_axes(panel: Panel, frame: Frame) -> tuple[Axis, Axis]:
    values = [value for series in panel.series for value in series.ys if math.isfinite(value)]
    if frame is LARGE:
        values += [value for series in panel.series for _, value in series.detail]
    last = max(series.xs[-1] for series in panel.series)
    count = 3 if frame is SMALL else 5
    x_axis = batch_axis(last, start=frame.left, end=frame.inner_right, count=count)
    return x_axis, linear_axis(values or [0.0], start=frame.inner_bottom, end=frame.top, count=count)


def _line(series: Series, x_axis: Axis, y_axis: Axis, colours: Mapping[str, str]) -> Markup:
    path, pen = [], "M"
    for x, y in zip(series.xs, series.ys, strict=True):
        if math.isfinite(y):
            path.append(f"{pen}{x_axis.at(x):.1f} {y_axis.at(y):.1f}")
        pen = "L" if math.isfinite(y) else "M"
    last = next((value for value in reversed(series.ys) if math.isfinite(value)), math.nan)
    return tag(
        "g",
        tag("title", f"{series.name}: {number(last)} at the end"),
        tag("path", d="".join(path), class_="curve"),
        class_=colours[series.name],
    )


def _dots(series: Series, x_axis: Axis, y_axis: Axis, colours: Mapping[str, str]) -> Markup:
    dots = [tag("circle", cx=x_axis.at(x), cy=y_axis.at(y), r=1.8) for x, y in series.detail]
    return tag("g", *dots, class_=f"dots {colours[series.name]}")


def _end_labels(series: Sequence[Series], axis: Axis, frame: Frame, colours: Mapping[str, str]) -> Markup:
    ends = [
        (line.name, axis.at(last))
        for line in series
        if (last := next((value for value in reversed(line.ys) if math.isfinite(value)), None)) is not None
    ]
    places = spread([place for _, place in ends], gap=14, low=frame.top, high=frame.inner_bottom)
    x = frame.inner_right
    labels = []
    for (name, end), place in zip(ends, places, strict=True):
        leader = tag("path", d=f"M{x + 2:.1f} {end:.1f}L{x + 12:.1f} {place:.1f}", class_="leader")
        text = tag("text", clipped(name), x=x + 16, y=place + 4, class_="name")
        labels.append(tag("g", leader, text, class_=colours[name]))
    return tag("g", *labels)


def _describe_lines(panel: Panel) -> str:
    ends = [
        f"{series.name} from {number(first)} to {number(last)}"
        for series in panel.series
        if (first := next((value for value in series.ys if math.isfinite(value)), None)) is not None
        and (last := next((value for value in reversed(series.ys) if math.isfinite(value)), None)) is not None
    ]
    return f"{panel.y_label} over {panel.x_label}: {'; '.join(ends)}."

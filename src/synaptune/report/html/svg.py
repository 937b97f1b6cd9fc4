"""What drawings have in common: the frame, axes, marks, and a title and description in words for each.

Colours come from the page's style sheet (`--c` of the classes `m0`, `m1`, ...), so they follow light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synaptune.report.html.axes import Axis, spell_tick
from synaptune.report.html.markup import Markup, joined, tag

__all__ = ["Frame", "axis_names", "clipped", "drawing", "mark", "swatch", "x_ticks", "y_grid"]


@dataclass(frozen=True)
class Frame:
    """Size and margins of a drawing, in pixels at its natural size."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float

    @property
    def inner_right(self) -> float:
        """Right end of the plotted area."""
        return self.width - self.right

    @property
    def inner_bottom(self) -> float:
        """Lower end of the plotted area."""
        return self.height - self.bottom


def drawing(parts: Sequence[Markup], *, frame: Frame, ident: str, title: str, about: str) -> Markup:
    """Put parts into one drawing; `about` says in words what it shows."""
    return tag(
        "svg",
        tag("title", title, id=f"{ident}-t"),
        tag("desc", about, id=f"{ident}-d"),
        joined(parts),
        viewBox=f"0 0 {frame.width:g} {frame.height:g}",
        class_="chart",
        role="img",
        aria_labelledby=f"{ident}-t {ident}-d",
    )


def swatch(colour: str) -> Markup:
    """Draw the dash and mark of a method, for legends."""
    line = tag("line", x1=1.0, x2=27.0, y1=7.0, y2=7.0, class_="curve")
    return tag(
        "svg",
        line,
        mark(colour, 14.0, 7.0, size=4.0),
        viewBox="0 0 28 14",
        width="28",
        height="14",
        class_=f"swatch {colour}",
        aria_hidden="true",
        focusable="false",
    )


def mark(colour: str, x: float, y: float, *, size: float) -> Markup:
    """Draw a mark; its shape goes with the colour, for those who cannot tell colours apart."""
    shape = int(colour[1]) % 4
    if shape == 0:
        return tag("circle", cx=x, cy=y, r=size, class_="mark")
    outlines = {
        1: ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        2: ((0, -1.3), (1.2, 0.9), (-1.2, 0.9)),
        3: ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
    }
    corners = " ".join(f"{x + dx * size * 0.92:.1f},{y + dy * size * 0.92:.1f}" for dx, dy in outlines[shape])
    return tag("polygon", points=corners, class_="mark")


def y_grid(axis: Axis, frame: Frame) -> Markup:
    """Draw level lines with their values at the left."""
    lines = [
        tag("line", x1=frame.left, x2=frame.inner_right, y1=axis.at(tick), y2=axis.at(tick), class_="grid")
        for tick in axis.ticks
    ]
    texts = [
        tag("text", spell_tick(tick, axis.step), x=frame.left - 6, y=axis.at(tick) + 3.5, text_anchor="end")
        for tick in axis.ticks
    ]
    return tag("g", *lines, *texts, class_="axis")


def x_ticks(axis: Axis, frame: Frame) -> Markup:
    """Draw the lower axis."""
    bottom = frame.inner_bottom
    base = tag("line", x1=frame.left, x2=frame.inner_right, y1=bottom, y2=bottom, class_="base")
    step = axis.step if not axis.is_log else axis.low
    marks = [
        tag("line", x1=axis.at(tick), x2=axis.at(tick), y1=bottom, y2=bottom + 4, class_="base") for tick in axis.ticks
    ]
    texts = [
        tag("text", spell_tick(tick, _tick_step(axis, step)), x=axis.at(tick), y=bottom + 16, text_anchor="middle")
        for tick in axis.ticks
    ]
    return tag("g", base, *marks, *texts, class_="axis")


def axis_names(x_name: str, y_name: str, frame: Frame) -> Markup:
    """Name the axes."""
    # The name of the vertical axis stands level above it, where it can be read without turning one's head.
    return tag(
        "g",
        tag("text", y_name, x=4.0, y=12.0, class_="axis-name") if y_name else None,
        tag("text", x_name, x=frame.inner_right, y=frame.height - 6, text_anchor="end", class_="axis-name"),
    )


def clipped(name: str, most: int = 13) -> str:
    """Shorten a name that has no room; the full one stands in legends and tables."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _tick_step(axis: Axis, step: float) -> float:
    """Batches are whole: the first tick is 1, the others are round."""
    return 1.0 if axis.low == 1.0 and not axis.is_log and step >= 1 else step

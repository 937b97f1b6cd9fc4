"""How all figures look, and how they are saved: the same bytes for the same numbers.

Colours are those of Okabe and Ito (2008), which people with any kind of colour vision can tell apart, and a brown;
lines also differ in their markers, so that a grey print works too. pyplot is not used: it keeps every figure in a
global list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CLEAN_COLOUR", "INK", "clean_axes", "colour_of", "looks", "marker_of", "new_figure", "save"]

INK = "#333333"
CLEAN_COLOUR = "#F0E442"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C6D31")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_USUAL = ("nhl", "tent", "norm", "oracle", "dua", "ttt", "source", "modulator-12")


def colour_of(method: str, place: int) -> str:
    """Colour of a method: the same in every figure for those of the paper."""
    base = method.partition("(")[0].strip()
    return _COLOURS[_USUAL.index(base) if base in _USUAL else place % len(_COLOURS)]


def marker_of(method: str, place: int) -> str:
    """Marker of a method, likewise."""
    base = method.partition("(")[0].strip()
    return _MARKERS[_USUAL.index(base) if base in _USUAL else place % len(_MARKERS)]


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure; sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def clean_axes(axes: Axes, *, grid: bool = True) -> None:
    """Leave only the axes that are read, and a faint grid behind the data."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#888888")
    axes.tick_params(colors=INK, length=3)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(axis="y", color="#dddddd", linewidth=0.8)


@contextmanager
def looks() -> Iterator[None]:
    """Settings of matplotlib while a figure is drawn and saved; put back afterwards."""
    import matplotlib

    with matplotlib.rc_context(
        {
            "font.size": 9,
            "axes.titlesize": 10,
            "axes.labelcolor": INK,
            "text.color": INK,
            "svg.hashsalt": "synaptune",
            "svg.fonttype": "none",
            "figure.facecolor": "white",
        }
    ):
        yield


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Write PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    figure.savefig(png, dpi=150, metadata={"Software": "synaptune"})
    figure.savefig(svg, metadata={"Date": None, "Creator": "synaptune"})
    svg.write_text(_with_short_paths(svg.read_text(encoding="utf-8")), encoding="utf-8")
    return png, svg


def _with_short_paths(drawing: str) -> str:
    """Hundredths of a point are finer than any screen, and take half the room of matplotlib's millionths."""
    return re.sub(r'(?<= d=")[^"]+', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), drawing)

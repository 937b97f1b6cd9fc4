from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synaptune.report.cost import Cost
from synaptune.report.html.axes import linear_axis, log_axis, spell_tick
from synaptune.report.html.labels import Box, place_labels, spread
from synaptune.report.html.line_chart import LARGE, SMALL, line_chart
from synaptune.report.html.markup import Markup, joined, tag
from synaptune.report.html.point_charts import cost_chart
from synaptune.report.noise import Estimate
from synaptune.report.timeline import Panel, Series, moving_mean, running_mean, thinned

sizes = st.floats(min_value=1e-6, max_value=1e6, allow_nan=False)


@given(st.lists(sizes, min_size=1, max_size=20))
def test_a_linear_axis_holds_all_values(values: list[float]) -> None:
    axis = linear_axis(values, start=0, end=100)
    assert axis.low <= min(values)
    assert axis.high >= max(values)
    assert len(axis.ticks) <= 9
    assert all(-1e-6 <= axis.at(value) <= 100 + 1e-6 for value in values)


@given(st.lists(sizes, min_size=1, max_size=20))
def test_a_log_axis_holds_all_values(values: list[float]) -> None:
    axis = log_axis(values, start=0, end=100)
    assert axis.ticks == tuple(sorted(axis.ticks))
    assert all(-1e-6 <= axis.at(value) <= 100 + 1e-6 for value in values)


@given(st.lists(sizes, min_size=1, max_size=20))
def test_ticks_are_spelled_apart(values: list[float]) -> None:
    axis = linear_axis(values, start=0, end=100)
    assert len({spell_tick(tick, axis.step) for tick in axis.ticks}) == len(axis.ticks)


@given(st.lists(st.floats(0, 300), min_size=1, max_size=15))
def test_labels_are_spread_apart_in_their_order(places: list[float]) -> None:
    moved = spread(places, gap=14, low=0, high=300)
    ranks = sorted(range(len(places)), key=places.__getitem__)
    gaps = [moved[b] - moved[a] for a, b in pairwise(ranks)]
    assert all(gap >= 14 - 1e-6 for gap in gaps)


def test_labels_of_points_do_not_cover_each_other() -> None:
    points = [(100.0, 100.0), (104.0, 103.0), (300.0, 100.0)]
    labels = place_labels(["first", "second", "third"], points, Box(0, 0, 400, 200))
    assert labels[0].anchor != labels[1].anchor or abs(labels[0].y - labels[1].y) > 10


@pytest.mark.parametrize("frame", [SMALL, LARGE])
def test_a_line_stays_inside_of_its_drawing_and_breaks_at_gaps(frame: object) -> None:
    series = Series("nhl", (1.0, 2.0, 3.0, 4.0), (20.0, math.nan, 30.0, 10.0), detail=((1.0, 80.0),))
    drawing = line_chart(Panel("fog", (series,), "batch", "error, %"), frame=frame, colours={"nhl": "m1"}, ident="x")  # type: ignore[arg-type]
    (path,) = re.findall(r'<path d="([^"]+)" class="curve"', drawing)
    assert path.count("M") == 2
    numbers = [float(found) for found in re.findall(r"-?\d+\.\d+", path)]
    assert all(0 <= x <= LARGE.width for x in numbers)
    assert "nhl from 20.0 to 10.0" in drawing


def test_a_drawing_of_nothing_but_gaps_is_drawn() -> None:
    series = Series("nhl", (1.0, 2.0), (math.nan, math.nan))
    assert "svg" in line_chart(Panel("fog", (series,), "batch", "%"), frame=SMALL, colours={"nhl": "m1"}, ident="x")


def cost(method: str, ms: float | None, error: float | None) -> Cost:
    return Cost(method, ms, ms, 1.0, 1.0, 100.0, 1.0, None if error is None else Estimate(error, 0.1))


def test_costs_are_drawn_from_two_points_on() -> None:
    colours = {"a": "m1", "b": "m2"}
    assert cost_chart([cost("a", 10.0, 20.0), cost("b", None, 10.0)], colours=colours, ident="x") is None
    drawing = cost_chart([cost("a", 10.0, 20.0), cost("b", 500.0, 10.0)], colours=colours, ident="x")
    assert drawing is not None
    assert "logarithmic" in drawing


@given(st.text())
def test_text_is_never_markup(text: str) -> None:
    made = tag("p", text, title=text)
    assert made.count("<") == 2
    made.encode("utf-8")


def test_markup_is_kept_and_text_escaped() -> None:
    assert joined((tag("b", "x"), "<", None, Markup("<i>"))) == "<b>x</b>&lt;<i>"


@given(st.integers(1, 2000), st.integers(2, 200))
def test_thinning_keeps_both_ends(length: int, most: int) -> None:
    chosen = thinned(length, most)
    assert chosen[0] == 0
    assert chosen[-1] == length - 1
    assert len(chosen) == len(set(chosen)) <= max(most, 1)


def test_running_means_pass_over_gaps() -> None:
    assert running_mean([10.0, math.nan, 20.0], [1, 1, 1]) == [10.0, 10.0, 15.0]
    assert moving_mean([math.nan, 4.0, math.nan, math.nan], 2)[1:3] == [4.0, 4.0]
    assert math.isnan(moving_mean([math.nan, 4.0, math.nan, math.nan], 2)[3])

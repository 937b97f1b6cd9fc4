from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from synaptune.errors import DataError
from synaptune.report import build_report, to_html, to_markdown, write_html
from tests.unit.report.made_rows import CORRUPTIONS, failed, full_row, full_run, row, table
from tests.unit.report.page_check import PageCheck

HOSTILE = "\"><script>alert('x')</script><img src=x onerror=alert(1)>&amp;\x00\x1b\ud800</title>"

RUNS: dict[str, list[dict[str, Any]]] = {
    "empty": [],
    "one row": [row("norm")],
    "one full row": [full_row("norm", "fog", 20.0)],
    "only failures": [failed("norm"), failed("tent", "snow", "missing")],
    "two methods": table(source=[50.0] * 15, norm=[30.0] * 15),
    "everything": full_run({"source": 40.0, "norm": 30.0, "tent": 28.0, "nhl": 20.0}),
    "many methods": full_run({f"method{place}": 20.0 + place for place in range(18)}, CORRUPTIONS[:2]),
    "failed cells": [*table(source=[50.0, 40.0]), row("norm", CORRUPTIONS[0]), failed("norm", CORRUPTIONS[1])],
    "mixed protocols": [row("norm"), row("norm", batch=1), row("tent", model="other")],
    "data sets": [row("norm", "clean", 30.0, data="mnist"), row("norm", "clean", 40.0, data="usps", images=2007)],
    "equal numbers": table(source=[0.0, 0.0], norm=[0.0, 0.0]),
    "no images": [row("source", images=None, batch=None), row("norm", images=None, batch=None)],
    "one seed more": [row("norm"), row("norm", seed=1), row("norm", seed=2)],
    "hostile": [
        full_row(HOSTILE, HOSTILE, 30.0) | {"model": HOSTILE, "run": HOSTILE, "options": {HOSTILE: HOSTILE}},
        full_row("source", HOSTILE, 40.0) | {"model": HOSTILE, "class_names": [HOSTILE] * 10, "events": [HOSTILE]},
        failed("norm", why=HOSTILE, model=HOSTILE),
    ],
}


@pytest.mark.parametrize("name", sorted(RUNS))
def test_the_page_is_well_formed_and_needs_nothing_else(name: str) -> None:
    page = to_html(build_report(RUNS[name]))
    assert PageCheck(page).problems == []


def test_the_check_of_pages_finds_what_it_claims_to_find() -> None:
    page = (
        '<!DOCTYPE html><html><body><h1>a</h1><h3>b</h3><img src="https://x"><svg></svg><p id="i"><p id="i">'
        '<a href="#gone" onclick="x" style="y"></b></body></html>'
    )
    problems = " ".join(PageCheck(page).problems)
    for expected in (
        "img without alt",
        "outside of the page",
        "svg without a title",
        "stands twice",
        "id 'gone'",
        "headings skip",
        "script in an attribute",
        "style attribute",
        "closes a",
    ):
        assert expected in problems


def test_hostile_names_stay_text() -> None:
    page = to_html(build_report(RUNS["hostile"], title=HOSTILE, command=HOSTILE))
    check = PageCheck(page)
    assert check.problems == []
    assert check.tags.count("script") == 1
    assert "img" not in check.tags
    assert "<script>alert('x')</script>" in check.words
    assert "\x00" not in page
    page.encode("utf-8")


def test_the_same_rows_give_the_same_page() -> None:
    rows = full_run({"source": 40.0, "nhl": 20.0}, CORRUPTIONS[:3])
    assert to_html(build_report(rows)) == to_html(build_report(rows))


def test_every_number_of_the_table_is_in_sight() -> None:
    check = PageCheck(to_html(build_report(table(source=[51.2, 43.4], norm=[31.6, 22.8]))))
    for text in ("51.2", "43.4", "31.6", "22.8", "47.3", "27.2", "−19.6", "−20.6"):
        assert text in check.words


def test_the_page_holds_what_the_report_says() -> None:
    report = build_report(
        full_run({"source": 40.0, "norm": 30.0, "nhl": 20.0}), command="synaptune bench made --seed 0"
    )
    words = PageCheck(to_html(report)).words.replace("\xa0", " ")
    for finding in report.findings:
        assert finding.text in words
    for table_ in report.tables:
        assert table_.title in words
    for group in report.series:
        assert group.title in words
    assert "synaptune bench made --seed 0" in words
    assert "corruption seed" in words


@pytest.mark.parametrize(
    ("images", "caption"),
    [
        (10_000, "Mean error in percent, with its noise; shorter is better."),
        (None, "Mean error in percent; shorter is better."),
    ],
)
def test_bars_say_what_they_show(images: int | None, caption: str) -> None:
    page = to_html(build_report([row("source", error=50.0, images=images), row("norm", error=30.0, images=images)]))
    assert re.findall(r'<table class="bars"><caption>(.*?)</caption>', page) == [caption]
    assert ("±" in page.partition('class="bars"')[2].partition("</table>")[0]) == ("noise" in caption)


def test_small_drawings_name_their_axes_in_words() -> None:
    report = build_report(full_run({"source": 40.0, "nhl": 20.0}, CORRUPTIONS[:3]))
    words = PageCheck(to_html(report)).words
    for group in report.series:
        panel = group.panels[0]
        assert f"Upwards: {panel.y_label}; across: {panel.x_label}. Scales differ between drawings." in words


def test_long_lists_of_the_protocol_are_folded_and_what_decides_a_number_is_not() -> None:
    rows = [made | {"options": {"lr": 0.001}} for made in full_run({"source": 40.0, "nhl": 20.0}, CORRUPTIONS[:3])]
    page = to_html(build_report(rows))
    stamp = page.partition('<div class="stamp">')[2].partition("</div>")[0]
    folded = re.findall(r"<details><summary>(.*?)</summary><dl>(.*?)</dl></details>", stamp)
    assert [title for title, _ in folded] == [
        "Options of source",
        "Options of nhl",
        "Images, by digest of their recipe",
    ]
    assert "<dt>lr</dt><dd>0.001</dd>" in folded[1][1]
    assert re.findall(r"<section><h4>(.*?)</h4>", stamp) == ["Settings", "Library versions"]
    css = re.findall(r"@media print \{(.*)", page, re.DOTALL)[0]
    assert ".stamp details > summary { display: block;" in css, "on paper, a list would have lost its title"


def test_each_shift_can_be_chosen_without_a_script() -> None:
    page = to_html(build_report(full_run({"source": 40.0, "nhl": 20.0}, CORRUPTIONS[:4])))
    groups = re.findall(r'<input type="radio" name="(s0-p)" id="s0-p-r\d" class="pick (p\d)"( checked)?', page)
    assert [(name, place, bool(checked)) for name, place, checked in groups] == [
        ("s0-p", f"p{place}", place == 0) for place in range(5)
    ]
    for place in range(1, 5):
        assert f".pick.p{place}:checked ~ .pane.p{place} {{ display: block; }}" in page
        assert f'class="pane one p{place}"' in page


def test_long_streams_are_thinned() -> None:
    rows = [full_row(method, "fog", 30.0, batches=5_000) for method in ("source", "nhl")]
    assert len(to_html(build_report(rows))) < 400_000


def test_writing_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.html"
    report = build_report([row("norm")])
    assert write_html(report, path) == path
    path.write_text("old")
    write_html(report, path)
    assert path.read_text(encoding="utf-8") == to_html(report)
    assert [found.name for found in path.parent.iterdir()] == ["report.html"]


def test_a_page_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        write_html(build_report([row("norm")]), tmp_path / "report.html")
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("name", sorted(RUNS))
def test_markdown_is_written_for_every_run(name: str) -> None:
    text = to_markdown(build_report(RUNS[name]))
    assert text.count("\n# ") + text.startswith("# ") == 1


# --- colours -----------------------------------------------------------------------------------------------------


def palettes() -> dict[str, dict[str, str]]:
    css = resources.files("synaptune.report.html").joinpath("style.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)[:2]
    return {
        name: dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6})", block))
        for name, block in (("light", light), ("dark", dark))
    }


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_on_every_ground(theme: str) -> None:
    colours = palettes()[theme]
    words = ["ink", "muted", "accent", "good", "bad", "plain", "warn", *(f"m{place}" for place in range(8))]
    for name in words:
        for ground in ("paper", "sheet"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    for level in range(9):
        assert contrast(colours["ink"], colours[f"heat{level}"]) >= 4.5, level


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_heat_can_be_read_without_seeing_colour(theme: str) -> None:
    colours = palettes()[theme]
    lights = [luminance(colours[f"heat{level}"]) for level in range(9)]
    assert lights in (sorted(lights), sorted(lights, reverse=True))
    assert len(set(lights)) == 9


def test_both_themes_define_the_same_colours() -> None:
    found = palettes()
    assert found["light"].keys() == found["dark"].keys()

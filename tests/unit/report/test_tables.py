from __future__ import annotations

import pytest

from synaptune.report import build_report, to_markdown
from synaptune.report.table import Column, Line, Place, Table
from tests.unit.report.made_rows import CORRUPTIONS, failed, full_run, row, table


def test_the_lowest_of_each_column_is_best_and_ties_share() -> None:
    (section,) = build_report(table(source=[50.0, 30.0], norm=[40.0, 30.02], nhl=[40.01, 31.0])).sections
    assert section.errors is not None
    best = {line.name: [place.is_best for place in line.places] for line in section.errors.lines}
    assert best == {
        "source": [False, True, False, False],
        "norm": [True, True, True, False],
        "nhl": [True, False, False, False],
    }


def test_one_line_alone_has_no_best() -> None:
    (section,) = build_report(table(norm=[50.0, 30.0])).sections
    assert section.errors is not None
    assert not any(place.is_best for place in section.errors.lines[0].places)


def test_an_incomplete_mean_says_how_many_and_is_never_best() -> None:
    rows = [*table(source=[50.0, 90.0]), *table(norm=[10.0]), failed("norm", CORRUPTIONS[1])]
    (section,) = build_report(rows).sections
    assert section.errors is not None
    places = section.errors.lines[1].places
    assert [place.text for place in places] == ["10.0", "failed", "10.0 (1/2)", "±0.6"]
    assert places[1].note == "out of memory"
    assert not places[2].is_best
    assert section.change is not None
    assert [place.text for place in section.change.lines[0].places[:3]] == ["−40.0", "–", "−40.0 (1/2)"]


def test_a_change_within_noise_stands_in_brackets() -> None:
    (section,) = build_report(table(source=[50.0, 30.0], norm=[45.0, 30.4])).sections
    assert section.change is not None
    assert [place.text for place in section.change.lines[0].places[:2]] == ["−5.0", "(+0.4)"]


def test_cells_without_a_number_are_listed_with_their_reason() -> None:
    (section,) = build_report([row("source"), failed("norm", seed=3)]).sections
    assert section.absent is not None
    assert section.absent.cells()[1] == ["norm", "fog", "3", "failed", "out of memory"]


@pytest.mark.parametrize(
    ("batch", "opening"),
    [(334, "A batch is 334 images. Times hold"), (1, "A batch is 1 image. Times hold"), (None, "Times hold")],
)
def test_costs_say_of_which_batches_and_in_which_unit(batch: int | None, opening: str) -> None:
    rows = [made | {"batch": batch} for made in full_run({"source": 40.0, "nhl": 20.0}, CORRUPTIONS[:2])]
    (section,) = build_report(rows).sections
    assert section.cost is not None
    assert section.cost.caption.startswith(opening)
    assert section.cost.columns[0].name == "mean error, %"


def test_text_tables_align_and_mark_the_best() -> None:
    (section,) = build_report(table(source=[50.0, 30.0], norm=[9.0, 40.0])).sections
    assert section.errors is not None
    lines = section.errors.as_text().splitlines()
    assert lines[1].split() == ["source", "50.0", "30.0*", "40.0", "±0.7"]
    assert lines[2].split() == ["norm", "9.0*", "40.0", "24.5*", "±0.6"]
    assert lines[1].index("0.0") == lines[2].index(".0") - 1


def test_text_tables_hold_no_control_characters() -> None:
    hostile = Table("T", "method", (Column("a\x1b[2J"),), (Line("x\ny", (Place("1\r2"),)),))
    assert hostile.as_text().count("\n") == 1
    assert "\x1b" not in hostile.as_text()
    assert "\r" not in hostile.as_text()


def test_wide_letters_count_twice() -> None:
    wide = Table("T", "m", (Column("c"),), (Line("日本", (Place("1"),)), Line("abcd", (Place("2"),))))
    assert [line.rstrip()[-1] for line in wide.as_text().splitlines()] == ["c", "1", "2"]
    assert wide.as_text().splitlines()[1] == "日本  1"


def test_markdown_holds_headline_findings_tables_and_protocol() -> None:
    report = build_report(full_run({"source": 40.0, "nhl": 20.0}), command="synaptune bench made")
    text = to_markdown(report)
    assert text.startswith("# made\n\n**nhl lowers the error from 47.0 % to 27.0 %")
    assert "| method | Gaussian noise | shot noise |" in text
    assert "| nhl | **20.0** | **21.0** |" in text
    assert "batch size: 334" in text
    assert "```sh\nsynaptune bench made\n```" in text


def test_markdown_tables_survive_hostile_names() -> None:
    text = to_markdown(build_report([row("a|b\n# <script>"), row("`*_")]))
    body = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in body[:4]}) == 1
    assert "<script>" not in text
    assert "\n# <" not in text


def test_a_command_with_backticks_stays_in_its_fence() -> None:
    text = to_markdown(build_report([row("norm")], command="echo ```x```"))
    assert "\n``````sh\necho ```x```\n``````\n" in text

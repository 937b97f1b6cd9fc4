"""Sentences against small runs whose truth is plain."""

from __future__ import annotations

from typing import Any

import pytest

from synaptune.metrics import bootstrap_interval
from synaptune.report import build_report
from synaptune.report.finding import FindingKind
from tests.unit.report.made_rows import CORRUPTIONS, failed, full_row, full_run, row, table

FIFTEEN = [70.0, 65.0, 72.0, 45.0, 55.0, 42.0, 41.0, 31.0, 46.0, 36.0, 12.0, 60.0, 33.0, 58.0, 30.0]


def sentences(rows: list[dict[str, Any]], kind: FindingKind | None = None) -> list[str]:
    return [finding.text for finding in build_report(rows).findings if kind in (None, finding.kind)]


def test_better_on_all_but_one_names_the_one() -> None:
    gained = [error - 10 for error in FIFTEEN]
    gained[11] = 60.0 + 5.0  # contrast
    (text,) = sentences(table(source=FIFTEEN, nhl=gained), "gain")
    assert text == (
        "nhl lowered the error on 14 of 15 corruptions, on average from 46.4 % to 37.4 % (9.0 points less, noise "
        "±0.3); contrast got worse by 5.0 points."
    )


def test_a_loss_within_noise_is_called_that() -> None:
    gained = [error - 10 for error in FIFTEEN]
    gained[11] = 60.0 + 0.3
    (text,) = sentences(table(source=FIFTEEN, nhl=gained), "gain")
    assert text.endswith("; contrast got worse, but within noise.")


def test_a_method_that_harms_is_said_to() -> None:
    harmed = [error + 10 for error in FIFTEEN]
    harmed[0] = FIFTEEN[0] - 5
    (text,) = sentences(table(source=FIFTEEN, tent=harmed), "loss")
    assert text.startswith("tent raised the error on 14 of 15 corruptions")
    assert "Gaussian noise got better by 5.0 points" in text


def test_the_same_numbers_make_no_difference() -> None:
    (text,) = sentences(table(source=FIFTEEN, norm=FIFTEEN), "even")
    assert text.startswith("norm left the error as it was (lower on 0 of 15 corruptions)")


@pytest.mark.parametrize(
    ("nhl", "kind", "words"),
    [(35.0, "gain", "nhl is 5.0 points below tent, the next best"), (39.95, "even", "take them for equal")],
)
def test_the_best_is_held_against_the_next_best(nhl: float, kind: FindingKind, words: str) -> None:
    texts = sentences(table(source=[50.0] * 15, tent=[40.0] * 15, nhl=[nhl] * 15), kind)
    assert any(words in text for text in texts), texts


@pytest.mark.parametrize(
    ("leads", "signs"),
    [
        ([5.0] * 15, ("", "")),
        ([0.02] * 7 + [-0.02] * 8, ("", "")),  # what rounds to nothing has no sign
        ([-20.0, 22.0] * 7 + [1.0], ("−", "")),
    ],
    ids=["clear", "nothing", "across zero"],
)
def test_the_interval_of_a_lead_has_signs_that_can_be_read(leads: list[float], signs: tuple[str, str]) -> None:
    rows = table(source=[70.0] * 15, tent=[40.0] * 15, nhl=[40.0 - lead for lead in leads])
    texts = [text for text in sentences(rows) if "the two best" in text or "the next best" in text]
    assert len(texts) == 1
    found = bootstrap_interval([[-lead] for lead in leads])
    low, high = (f"{sign}{abs(end):.1f}" for sign, end in zip(signs, (found.high, found.low), strict=True))
    assert f"95 % interval over corruptions {low} to {high}" in texts[0]


def test_the_headline_is_the_gain_in_one_sentence() -> None:
    report = build_report(table(source=[50.0] * 15, norm=[30.0] * 15, nhl=[25.0] * 15))
    assert report.summary.headline == (
        "nhl lowers the error from 50.0 % to 25.0 % on average over 15 corruptions: 25.0 points less, 50 % fewer "
        "mistakes."
    )


@pytest.mark.parametrize(
    ("rows", "headline"),
    [
        ([], "This run has no rows yet."),
        (table(norm=[20.0]), "norm: 20.0 % error on Gaussian noise."),
        (
            table(norm=[20.0] * 3, tent=[18.0] * 3),
            "tent has the lowest error of 2 methods on average over 3 corruptions: 18.0 %.",
        ),
        (
            table(source=[20.0] * 3, tent=[30.0] * 3),
            "No method beats the source model on average over 3 corruptions: its error is 20.0 %, the next best, tent, "
            "has 30.0 %.",
        ),
        (
            table(source=[20.0] * 3, tent=[20.1] * 3),
            "No method is clearly different from the source model on average over 3 corruptions: tent has 20.1 % "
            "error, the source 20.0 %, which is within noise.",
        ),
        ([failed("norm")], "No cell of this section was measured."),
        (
            [*table(source=[20.0])[:1], row("norm", "snow", 30.0)],
            "No method has all 2 corruptions yet, so there is no mean to compare; findings are over the cells that are "
            "there.",
        ),
    ],
)
def test_the_headline_fits_what_is_there(rows: list[dict[str, Any]], headline: str) -> None:
    assert build_report(rows).summary.headline == headline


def test_sections_of_different_protocols_have_a_headline_each_and_none_in_common() -> None:
    report = build_report([row("norm", error=10.0), row("norm", error=30.0, batch=1)])
    assert report.summary.headline == "2 sections follow, of different protocols: read each by itself."
    assert report.summary.notes == (
        "zoo:made, made10, severity 5, batch size: 100: norm: 10.0 % error on fog.",
        "zoo:made, made10, severity 5, batch size: 1: norm: 30.0 % error on fog.",
    )


def test_failed_cells_are_counted_with_their_reason() -> None:
    texts = sentences([*table(source=[50.0] * 3), *table(norm=[40.0] * 2), failed("norm", CORRUPTIONS[2])], "missing")
    assert texts == [
        "1 cell of norm failed: out of memory.",
        "norm lacks columns: its mean is over fewer cells, stands apart, and is compared over shared columns only.",
    ]


def test_missing_and_inapplicable_are_told_apart() -> None:
    texts = sentences(
        [row("source"), failed("norm", status="missing"), failed("ttt", status="inapplicable")], "missing"
    )
    assert any("1 cell of norm could not be measured here" in text for text in texts)
    assert any("1 cell of ttt cannot be measured, because the method does not fit" in text for text in texts)


def test_cells_without_any_row_are_counted() -> None:
    assert "1 cell of 4 has no row." in sentences([*table(source=[50.0, 40.0]), *table(norm=[40.0])], "missing")


def test_a_comparison_with_missing_cells_is_over_shared_columns() -> None:
    texts = sentences([*table(source=[50.0, 90.0]), *table(norm=[40.0])], "gain")
    assert texts == ["norm lowered the error on Gaussian noise, from 50.0 % to 40.0 % (10.0 points less, noise ±1.4)."]


def test_unknown_numbers_of_images_leave_noise_unknown_and_nothing_clear() -> None:
    rows = [row("source", error=50.0, images=None), row("norm", error=40.0, images=None)]
    assert sentences(rows, "gain") == []
    assert "The rows do not say how many images they are of, so noise is not known." in sentences(rows, "note")


def collapsing(method: str, start: float, end: float) -> dict[str, Any]:
    errors = [start + (end - start) * step / 29 for step in range(30)]
    return full_row(method, "fog", sum(errors) / 30) | {"error_per_batch": errors}


@pytest.mark.parametrize(("end", "said"), [(60.0, True), (20.5, False)])
def test_a_method_that_gets_worse_while_it_runs_is_named(end: float, said: bool) -> None:
    texts = sentences([collapsing("source", 40.0, 40.0), collapsing("tent", 20.0, end)], "time")
    assert any("tent got worse while it ran on fog" in text for text in texts) is said


def test_a_stream_that_gets_harder_is_not_held_against_the_method() -> None:
    texts = sentences([collapsing("source", 40.0, 70.0), collapsing("tent", 20.0, 50.0)], "time")
    assert texts == []


def test_cost_is_told_against_the_source() -> None:
    assert sentences(full_run({"source": 40.0, "nhl": 20.0}), "cost") == [
        "nhl takes 40.0 ms per batch, 3.2 times the source model's; 1 forward pass and 1 backward pass per image; "
        "120 MB more peak memory."
    ]


def test_passes_are_counted_per_image_that_was_adapted_on() -> None:
    rows = [row("dua", error=None, error_full=20.0, batch=1, horizon=80, forwards=80 * 64, backwards=0)]
    (section,) = build_report(rows).sections
    assert section.costs[0].forwards == 64


def test_an_oracle_is_called_one_and_never_leads() -> None:
    report = build_report(full_run({"source": 40.0, "dua": 20.0}))
    (section,) = report.sections
    assert section.errors is not None
    assert section.errors.title.startswith("Error before the update")
    (oracle,) = (table for table in section.more_errors if table.title.startswith("Oracle"))
    assert not any(place.is_best for line in oracle.lines for place in line.places)
    assert any("Oracle numbers need labels" in finding.text for finding in report.findings)


def test_a_method_without_predictions_before_the_update_does_not_compete_there() -> None:
    rows = [row("source", error=50.0, error_after=50.0), row("norm", error=40.0, error_after=40.0)]
    rows.append(row("ttt", error=None, error_after=30.0))
    (section,) = build_report(rows).sections
    assert section.errors is not None
    assert section.errors.title.startswith("Error after the update")
    (online,) = section.more_errors
    assert [line.name for line in online.lines] == ["source", "norm"]


def test_events_are_counted_by_kind() -> None:
    events = ["3: undo: non-finite values in logits", "9: undo: non-finite values in logits", "9: single image"]
    (text,) = (t for t in sentences([row("source"), row("tent", events=events)]) if "unusual" in t)
    assert text == (
        "tent reported something unusual in 1 cell: “undo: non-finite values in logits” (2 times) and “single image”."
    )


def test_calibration_is_told_against_the_source() -> None:
    rows = [row("source", ece=10.0), row("norm", ece=5.0), row("tent", ece=20.0), row("nhl", ece=10.5)]
    assert (
        "Confidence against accuracy (calibration error, source 10.0 %): better with norm (5.0 %), worse with tent "
        "(20.0 %)." in sentences(rows, "note")
    )

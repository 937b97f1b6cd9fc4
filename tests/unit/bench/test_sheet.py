from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from synaptune.bench.cell import Cell
from synaptune.bench.config import table_from
from synaptune.bench.paper import printed_table
from synaptune.bench.rendering import render_sheet
from synaptune.bench.row import Row
from synaptune.bench.sheet import Block, Line, Sheet, make_sheet
from synaptune.bench.table import Table
from synaptune.shifts import names

WIDE: dict[str, Any] = {
    "title": "Wide",
    "paper": "cifar10c",
    "columns": "corruption",
    "models": [{"model": "zoo:wrn-40-2-cifar10-augmix", "label": "WRN", "paper": "wrn-40-2"}],
    "methods": [
        "source",
        "tent",
        {"method": "dua", "label": "dua (oracle)", "metric": "error_oracle", "protocol": {"oracle_every": 8}},
        "nhl-tuned",
    ],
    "data": "cifar10",
    "corruptions": "benchmark",
}


def table(**changes: Any) -> Table:
    return table_from(WIDE | changes, name="wide", where="wide.yaml")


def measured(cell: Cell, error: float, **others: Any) -> Row:
    values: dict[str, Any] = {
        "images": 10_000,
        "error_online": error,
        "fingerprint": "f",
        "recipe_digest": cell.corruption,
        "versions": {"torch": "2.9"},
    }
    return Row.of(cell, run="wide", **(values | others))


def rows_for(chosen: Table, error: float = 20.0) -> list[Row]:
    return [measured(cell, error) for cell in chosen.cells()]


def line(sheet: Sheet, label: str, block: int = 0) -> Line:
    return next(found for found in sheet.blocks[block].lines if found.label == label)


def test_ours_stand_beside_the_printed_numbers_with_their_difference() -> None:
    chosen = table()
    sheet = make_sheet(chosen, rows_for(chosen))
    tent = line(sheet, "tent")
    fog = tent.entries["fog"]
    assert (fog.ours, fog.printed, fog.difference) == (20.0, 12.4, pytest.approx(7.6))
    assert (tent.mean.ours, tent.mean.printed) == (20.0, 12.1)
    assert line(sheet, "nhl-tuned").printed is None
    assert sheet.blocks[0].beside == "paper, Table 1"


def test_a_mean_and_the_printed_one_are_over_the_same_columns() -> None:
    chosen = table(methods=["tent"])
    some = [row for row in rows_for(chosen) if row.corruption in ("fog", "contrast")]
    mean = line(make_sheet(chosen, some), "tent").mean
    assert (mean.ours, mean.have, mean.total) == (20.0, 2, 15)
    assert mean.printed == pytest.approx((12.4 + 10.0) / 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"severities": [1]},
        {"data": "sample"},
        {"data": "cifar100"},
        {
            "paper": "digits",
            "columns": "data",
            "data": "mnist",
            "models": [{"model": "zoo:digits-svhn", "paper": "digits"}],
        },
    ],
    ids=["severity", "sample", "other-labels", "corrupted-digits"],
)
def test_what_is_printed_for_another_severity_or_other_data_is_left_out(changes: dict[str, Any]) -> None:
    chosen = table(**({"methods": ["tent"], "corruptions": ["fog", "snow"]} | changes))
    sheet = make_sheet(chosen, rows_for(chosen))
    found = line(sheet, "tent")
    assert [entry.printed for entry in (*found.entries.values(), found.mean)] == [None] * (len(found.entries) + 1)
    assert sheet.blocks[0].beside == ""
    text = render_sheet(sheet, "text").partition("Notes")[0]
    assert "paper" not in text
    assert "difference" not in text
    assert not any(note.startswith("Printed") for note in sheet.notes)


def test_the_published_files_are_the_paper_s_data() -> None:
    chosen = table(methods=["tent"], corruptions=["fog"], data="cifar10-c")
    assert line(make_sheet(chosen, rows_for(chosen)), "tent").entries["fog"].printed == 12.4


def test_severities_in_blocks_of_one_table_stand_beside_the_paper_at_five_alone() -> None:
    chosen = table(methods=["tent"], corruptions=["fog"], severities=[1, 5])
    first, second = make_sheet(chosen, rows_for(chosen)).blocks
    assert (first.lines[0].printed, second.lines[0].entries["fog"].printed) == (None, 12.4)


def test_fewer_corruptions_in_the_table_do_not_borrow_the_full_mean() -> None:
    chosen = table(methods=["tent"], corruptions=["fog", "contrast"])
    mean = line(make_sheet(chosen, rows_for(chosen)), "tent").mean
    assert mean.is_complete
    assert mean.printed == pytest.approx((12.4 + 10.0) / 2)


def test_the_printed_mean_is_shown_as_printed_even_where_its_arithmetic_is_wrong() -> None:
    models = [{"model": "torchvision:resnet18", "paper": "resnet18"}]
    chosen = table(paper="imagenetc", models=models, methods=["tent"], data="imagenet-c-5k")
    sheet = make_sheet(chosen, rows_for(chosen))
    assert line(sheet, "tent").mean.printed == 62.7
    assert any("87.9" in note for note in sheet.notes)


def test_several_seeds_give_a_mean_and_a_spread() -> None:
    chosen = table(methods=["tent"], corruptions=["fog"], seeds=[0, 1, 2], protocol={"order": "shuffled"})
    rows = [measured(cell, error) for cell, error in zip(chosen.cells(), (10.0, 12.0, 14.0), strict=True)]
    found = line(make_sheet(chosen, rows), "tent")
    assert found.entries["fog"].ours == 12.0
    assert found.entries["fog"].spread == pytest.approx(2.0)
    assert found.mean.spread == pytest.approx(2.0)
    assert "12.00 ± 2.00" in render_sheet(make_sheet(chosen, rows), "text")


def test_a_line_shows_the_error_that_it_is_for() -> None:
    chosen = table(methods=[{"method": "dua", "metric": "error_full"}], corruptions=["fog"])
    rows = [measured(cell, 10.0, error_full=7.0) for cell in chosen.cells()]
    sheet = make_sheet(chosen, rows)
    assert line(sheet, "dua").mean.ours == 7.0
    assert "dua: shows error_full." in sheet.notes


def test_oracle_numbers_are_marked_on_both_sides() -> None:
    chosen = table()
    rows = [measured(cell, 20.0, error_oracle=15.0) for cell in chosen.cells()]
    sheet = make_sheet(chosen, rows)
    assert line(sheet, "dua (oracle)").is_oracle
    text = render_sheet(sheet, "markdown")
    assert "| dua (oracle) | oracle | 15.0 |" in text
    assert "| paper (oracle) |" in text
    assert any("labels chose" in note for note in sheet.notes)


def test_lines_that_were_measured_without_their_error_say_why() -> None:
    methods = [
        {"method": "tent", "label": "tent (oracle)", "metric": "error_oracle", "protocol": {"oracle_every": 8}},
        "ttt",
        "norm",
    ]
    chosen = table(methods=methods, corruptions=["fog", "snow"])
    lacking = {"images": 640, "error_oracle": None}
    rows = [measured(cell, 20.0, **lacking) for cell in chosen.cells() if cell.method != "ttt"]
    rows += [
        measured(cell, 20.0, **(lacking | {"error_online": None})) for cell in chosen.cells() if cell.method == "ttt"
    ]
    said = [note for note in make_sheet(chosen, rows).notes if "blank" in note]
    assert said == [
        "tent (oracle): error_oracle is blank in 2 of 2 cells: oracle_every is 8, and there are only 5 batches.",
        "ttt: error_online is blank in 2 of 2 cells: the method has no such prediction.",
    ]


def test_lines_of_another_protocol_say_so() -> None:
    protocol = {"batch": 1, "horizon": 80, "oracle_every": 8}
    methods = ["source", "tent", {"method": "dua", "metric": "error_full", "protocol": protocol}]
    chosen = table(methods=methods)
    sheet = make_sheet(chosen, rows_for(chosen))
    assert "batch 128" in sheet.stamp
    assert "dua: shows error_full, batch 1, oracle_every 8, horizon 80." in sheet.notes


def test_what_cannot_run_says_what_is_missing_once_for_all_its_cells() -> None:
    chosen = table(methods=["source", "tent"])
    rows = [Row.of(cell, run="wide", status="missing", error="no weights: fetch them") for cell in chosen.cells()]
    sheet = make_sheet(chosen, rows)
    assert sheet.absent == ("missing: wrn-40-2-cifar10-augmix (30 cells): no weights: fetch them",)
    text = render_sheet(sheet, "markdown")
    assert f"| source | ours |{' - |' * 15} not here |" in text
    assert "| paper | 15.7 |" in text, "what is printed is shown all the same"
    assert line(sheet, "tent").mean.printed == 12.1
    assert line(sheet, "tent").mean.difference is None


def test_what_does_not_fit_and_what_failed_are_told_apart() -> None:
    chosen = table(methods=["source", "tent"], corruptions=["fog"])
    source, tent = chosen.cells()
    rows = [
        Row.of(source, run="wide", status="failed", error="ValueError: x"),
        Row.of(tent, run="wide", status="inapplicable", error="tent needs scale and shift"),
    ]
    assert make_sheet(chosen, rows).absent == (
        "failed: wrn-40-2-cifar10-augmix (1 cell): ValueError: x",
        "inapplicable: tent on wrn-40-2-cifar10-augmix (1 cell): tent needs scale and shift",
    )


def test_many_lines_that_do_not_fit_for_one_reason_are_named_in_one_sentence() -> None:
    chosen = table(methods=[{"method": "tent", "grid": {"lr": [0.1, 0.2, 0.3, 0.4, 0.5]}}], corruptions=["fog"])
    rows = [Row.of(cell, run="wide", status="inapplicable", error="no scale") for cell in chosen.cells()]
    assert make_sheet(chosen, rows).absent == (
        "inapplicable: tent(lr=0.1), tent(lr=0.2), tent(lr=0.3) and 2 more on wrn-40-2-cifar10-augmix (5 cells): "
        "no scale",
    )


def test_rows_that_must_not_be_averaged_are_pointed_out() -> None:
    chosen = table(methods=["source", "tent"], corruptions=["fog"])
    source, tent = chosen.cells()
    rows = [measured(source, 1.0), measured(tent, 2.0, fingerprint="g", versions={"torch": "2.8"}, recipe_digest="z")]
    said = " ".join(note for note in make_sheet(chosen, rows).notes if note.startswith("Mixed"))
    for what in ("weights", "library versions", "images"):
        assert what in said
    rows[1] = measured(tent, 2.0)
    assert not any(note.startswith("Mixed") for note in make_sheet(chosen, rows).notes)


def test_rows_of_other_cells_stay_out() -> None:
    chosen = table(methods=["source"], corruptions=["fog"])
    other = table(methods=["source"], corruptions=["fog"], protocol={"batch": 64})
    assert line(make_sheet(chosen, rows_for(other)), "source").mean.ours is None


def test_columns_of_severities_are_means_over_corruptions() -> None:
    chosen = table(columns="severity", severities=[1, 5], methods=["tent"])
    rows = [measured(cell, 10.0 * cell.severity + (cell.corruption == "fog")) for cell in chosen.cells()]
    found = line(make_sheet(chosen, rows), "tent")
    assert list(found.entries) == ["1", "5"]
    assert found.entries["5"].ours == pytest.approx(50 + 1 / 15)
    assert (found.entries["1"].printed, found.entries["5"].printed) == (None, 12.1)
    few = table(columns="severity", severities=[5], methods=["tent"], corruptions=["fog"])
    assert line(make_sheet(few, rows_for(few)), "tent").entries["5"].printed is None


def test_columns_of_data_sets_follow_the_paper_s_names() -> None:
    chosen = table(
        columns="data",
        paper="digits",
        models=[{"model": "zoo:digits-svhn", "paper": "digits"}],
        methods=["norm"],
        data=["mnist", "mnist-m", "usps"],
        corruptions="clean",
    )
    found = line(make_sheet(chosen, rows_for(chosen)), "norm")
    assert {column: entry.printed for column, entry in found.entries.items()} == printed_table("digits").lines[
        "digits", "norm"
    ].cells
    assert found.mean.printed == 44.4


def test_a_table_of_means_compares_only_like_with_like() -> None:
    models = [{"model": "torchvision:resnet18", "paper": "resnet18"}]
    plain = {"columns": "mean", "paper": "ablation", "models": models, "methods": ["hebb-conv1"]}
    for changes, printed in (
        ({"data": "imagenet-c-5k"}, 67.2),
        ({"data": "imagenet-c-5k", "corruptions": ["fog"]}, None),
        ({"data": "imagenet-c-5k", "severities": [3]}, None),
        ({"data": "cifar10"}, None),
    ):
        chosen = table(**(plain | changes))
        assert line(make_sheet(chosen, rows_for(chosen)), "hebb-conv1").mean.printed == printed
    shape = [models[0] | {"shape_only": True}]
    other = table(columns="mean", paper="ablation", models=shape, methods=["hebb-conv1"])
    text = render_sheet(make_sheet(other, rows_for(other)), "text")
    assert "67.2" in text
    assert "difference" not in text
    assert "compare the order of lines" in text


def test_a_reference_beside_a_model_is_not_called_the_paper() -> None:
    models = [{"model": "zoo:resnet20-cifar10", "paper": "resnet20", "reference": True}]
    chosen = table(models=models, methods=["norm"])
    sheet = make_sheet(chosen, rows_for(chosen))
    assert sheet.blocks[0].beside == "independent measurement"
    text = render_sheet(sheet, "text")
    assert "reference" in text
    assert "29.46" in text
    assert "paper" not in text.partition("Notes")[0]


def test_models_data_and_severities_have_blocks_of_their_own() -> None:
    models = [{"model": "zoo:resnet20-cifar10"}, {"model": "zoo:resnet56-cifar10"}]
    chosen = table(models=models, data=["cifar10", "sample"], severities=[1, 2], corruptions=["fog"])
    titles = [block.title for block in make_sheet(chosen, []).blocks]
    assert len(titles) == len(set(titles)) == 8
    assert titles[0] == "resnet20-cifar10, cifar10, severity 1"


def test_a_grid_has_the_mean_of_every_level() -> None:
    grid = {"conv1": ["none", "hebb"], "stages": [[], [1]]}
    chosen = table(columns="mean", paper="", methods=[{"method": "nhl", "grid": grid}], corruptions=["fog", "snow"])
    errors = {("none", ()): 10.0, ("none", (1,)): 20.0, ("hebb", ()): 30.0, ("hebb", (1,)): 40.0}
    rows = [measured(cell, errors[cell.options.conv1, cell.options.stages]) for cell in chosen.cells()]  # type: ignore[attr-defined]
    effects = make_sheet(chosen, rows).blocks[0].effects
    assert {(effect.factor, effect.level): effect.mean for effect in effects} == {
        ("conv1", "none"): 15.0,
        ("conv1", "hebb"): 35.0,
        ("stages", "none"): 20.0,
        ("stages", "1"): 30.0,
    }


def test_levels_of_a_factor_are_compared_where_all_of_them_are_complete() -> None:
    grid = {"conv1": ["none", "hebb"], "stages": [[], [1], [1, 2]]}
    methods = [{"method": "nhl", "grid": grid, "without": [{"conv1": "none", "stages": []}]}]
    chosen = table(columns="mean", paper="", methods=methods, corruptions=["fog", "snow"])
    errors = {("hebb", ()): 90.0, ("none", (1,)): 20.0, ("hebb", (1,)): 30.0, ("none", (1, 2)): 40.0}
    rows = [
        measured(cell, errors.get((cell.options.conv1, cell.options.stages), 50.0))  # type: ignore[attr-defined]
        for cell in chosen.cells()
    ]
    found = {
        (effect.factor, effect.level): (effect.mean, effect.lines)
        for effect in make_sheet(chosen, rows).blocks[0].effects
    }
    # Without stages there is no conv1=none to compare with; without conv1=none the stages compare for hebb alone.
    assert found["conv1", "none"] == (30.0, 2)
    assert found["conv1", "hebb"] == (40.0, 2)
    assert [found["stages", level] for level in ("none", "1", "12")] == [(90.0, 1), (30.0, 1), (50.0, 1)]
    # A line that lacks a corruption counts as not there; one level alone is no comparison.
    (lacking,) = {effect.lines for effect in make_sheet(chosen, rows[:-1]).blocks[0].effects}
    assert lacking == 1


def test_text_that_is_wider_than_the_screen_goes_on_below_and_loses_nothing() -> None:
    chosen = table(methods=["source", "tent"])
    sheet = make_sheet(chosen, rows_for(chosen, 20.5))
    whole = [line.split() for line in render_sheet(sheet, "text").splitlines() if line.startswith(("method", "tent"))]
    assert [len(words) for words in whole] == [1 + 15 + 1, 2 + 15 + 1]
    for width in (30, 60, 90):
        lines = render_sheet(sheet, "text", width=width).splitlines()
        parts = [line.split() for line in lines if line.startswith(("method", "tent"))]
        assert [word for words in parts[::2] for word in words[1:]] == whole[0][1:]
        assert [word for words in parts[1::2] for word in words[2:]] == whole[1][2:]
        assert max(len(line) for line in lines if line.startswith(("method", "tent"))) <= width
    narrow = render_sheet(sheet, "text", width=1).splitlines()
    assert sum(line.startswith("method") for line in narrow) == 16, "a column is never left out"


def test_json_has_the_numbers_unrounded_and_is_json() -> None:
    chosen = table(methods=["tent"])
    content = json.loads(render_sheet(make_sheet(chosen, rows_for(chosen, 20.123)), "json", command="synaptune bench"))
    (found,) = content["blocks"][0]["lines"]
    assert found["entries"]["fog"] == {
        "ours": 20.123,
        "printed": 12.4,
        "difference": 7.723,
        "spread": None,
        "have": 1,
        "total": 1,
    }
    assert content["command"] == "synaptune bench"
    assert list(found["entries"]) == list(names("benchmark"))


def test_markdown_tables_have_as_many_cells_in_every_line() -> None:
    chosen = table()
    text = render_sheet(make_sheet(chosen, rows_for(chosen)[:20]), "markdown", command="synaptune bench wide")
    counts = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert counts == {2 + 15 + 1 + 1}
    assert "Made by: `synaptune bench wide`" in text


def test_nothing_measured_is_said() -> None:
    assert "0 of" not in render_sheet(make_sheet(table(), []), "text")
    assert isinstance(make_sheet(table(), []).blocks[0], Block)


def test_files_that_could_not_be_read_are_said_under_the_table() -> None:
    chosen = table(columns="corruption", paper="", methods=["source", "tent"], corruptions=["fog"])
    lost = "0: files of the data left out: 3, not an image (a.png, b.png, c.png)"
    rows = [dataclasses.replace(row, events=[lost, "4: undo: not finite"]) for row in rows_for(chosen)]
    notes = make_sheet(chosen, rows).notes
    assert [note for note in notes if "left out" in note] == [f"cifar10: {lost.removeprefix('0: ')}."]
    assert not [note for note in notes if "not finite" in note]

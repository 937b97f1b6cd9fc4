from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml

from synaptune.bench.tables import load_run, load_table, render, run_table, table_names
from synaptune.errors import OptionError, UnknownNameError
from tests.unit.bench import tiny

EVERY_TABLE = ("ablation", "cifar100c", "cifar10c", "digits", "factorial", "imagenetc", "severities")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    values = {
        "title": "Small",
        "models": [{"model": tiny.MODEL, "label": "tiny"}],
        "methods": ["source", "norm", "ttt"],
        "data": tiny.DATA,
        "corruptions": ["clean"],
        "protocol": {"batch": 16},
    }
    path.write_text(yaml.safe_dump(values))
    return path


def test_every_table_of_the_paper_is_there() -> None:
    assert set(EVERY_TABLE) <= set(table_names())


@pytest.mark.parametrize("name", table_names())
def test_every_table_file_is_valid_and_renders_before_anything_is_measured(name: str) -> None:
    from synaptune.bench.rendering import render_sheet
    from synaptune.bench.sheet import make_sheet

    table = load_table(name)
    sheet = make_sheet(table, [])
    assert len({line.title for line in table.methods}) == len(table.methods), "titles tell lines apart"
    for form in ("markdown", "text", "json"):
        assert sheet.title in render_sheet(sheet, form)


def test_the_factorial_is_full() -> None:
    lines = load_table("factorial").methods
    levels = {
        (line.factors["norm_stats"], line.factors["conv1"], tuple(line.factors["stages"]), line.factors["params"])
        for line in lines
    }
    assert len(levels) == len(lines) == 2 * 3 * (1 + 4 * 2)


def test_all_backbones_and_methods_of_the_paper_have_their_lines() -> None:
    from synaptune.bench.paper import printed_table

    for name in ("cifar10c", "cifar100c", "imagenetc", "digits", "ablation"):
        table = load_table(name)
        models = {model.paper for model in table.models}
        methods = {line.paper for line in table.methods}
        for model, method in printed_table(name).lines:
            assert model in models, (name, model)
            assert method in methods, (name, method)


def test_published_oracles_have_honest_lines_beside_them() -> None:
    for name in ("cifar10c", "cifar100c", "imagenetc"):
        metrics = {(line.method, line.metric) for line in load_table(name).methods}
        assert {("dua", "error_full"), ("dua", "error_oracle")} <= metrics
        if name != "cifar100c":
            assert {("ttt", "error_after"), ("ttt", "error_oracle")} <= metrics


def test_a_table_runs_resumes_and_renders(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    first = run_table(small, out=out, workers=0, limit=1)
    assert [row.method for row in first.rows] == ["source"]
    assert "open" in render(first)
    whole = run_table(small, out=out, workers=0)
    assert [row.status for row in whole.rows] == ["ok", "ok", "inapplicable"]
    assert whole.rows[0] == first.rows[0]
    text = render(whole)
    assert "n/a" in text
    assert f"Made by: `synaptune bench {small} --out {out}`" in text
    assert load_run(small, out).rows == whole.rows


def test_overrides_are_part_of_the_command_that_makes_the_numbers_again(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    words = ["methods=[source]", "images=20", "batch=10"]
    run = run_table(small, overrides=words, out=out, workers=0)
    assert run.command == f"synaptune bench {small} 'methods=[source]' images=20 batch=10 --out {out}"
    assert (run.rows[0].images, run.rows[0].batch) == (20, 10)
    again = run_table(small, overrides={"methods": ["source"], "images": 20, "batch": 10}, out=out, workers=0)
    assert again.rows == run.rows


def test_a_table_without_a_file_is_what_its_overrides_say(tmp_path: Path) -> None:
    changes = {
        "models": [tiny.MODEL],
        "methods": ["source", "norm"],
        "data": tiny.DATA,
        "corruptions": ["clean"],
        "batch": 10,
        "make_model.label": "tiny net",
    }
    run = run_table(None, overrides=changes, out=tmp_path / "rows.jsonl", workers=0)
    assert run.table.name == "adhoc"
    assert [row.status for row in run.rows] == ["ok", "ok"]
    assert run.sheet.blocks[0].title.startswith("tiny net")
    program, command, *words = shlex.split(run.command)
    assert (program, command) == ("synaptune", "bench")
    assert load_table(None, overrides=words[:-2]).cells() == run.table.cells()
    with pytest.raises(OptionError, match=r"a table without a file: models must be .* data must be"):
        load_table(None, overrides={"methods": ["norm"]})


def test_two_protocols_in_one_file_stay_apart(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    large = run_table(small, overrides=["methods=norm"], out=out, workers=0)
    little = run_table(small, overrides=["methods=norm", "batch=4"], out=out, workers=0)
    assert [row.batch for row in large.rows + little.rows] == [16, 4]
    assert [row.batch for row in load_run(small, out, overrides=["methods=norm"]).rows] == [16]


def test_unknown_tables_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean cifar10c"):
        load_table("cifar-10c")
    with pytest.raises(OptionError, match="no table file"):
        load_table(tmp_path / "none.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("- a\n- b\n")
    with pytest.raises(OptionError, match="a table is a mapping"):
        load_table(broken)

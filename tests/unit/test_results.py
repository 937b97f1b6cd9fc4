"""The pages of measured results say what the rows in the repository say."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from synaptune.bench import load_run, read_rows
from synaptune.bench.figures import OverviewOptions, overview_of, stage_curves

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "results"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("render_results", ROOT / "scripts" / "render_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MADE = script().made_pages()


def test_there_are_measured_pages() -> None:
    assert {path.stem for path in MADE} >= {"cifar10c", "engine", "ablation", "digits"}


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.stem)
def test_a_page_is_what_its_rows_give(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == script().rendered(MADE[path])


TABLES = sorted((ROOT / "results").glob("*.jsonl"))


@pytest.mark.parametrize("path", [*TABLES, PAGES / "figures" / "batches.jsonl"], ids=lambda path: path.stem)
def test_rows_name_no_folder_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not any(place in text for place in ('"/', " /tmp", " /home", " /root", str(ROOT)))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_rows_belong_to_a_page(path: Path) -> None:
    shown = set()
    for *table, _, out in MADE.values():
        if ROOT / out == path:
            shown |= {row.cell for row in load_run(table[0], path, overrides=table[1:]).rows}
    assert {row.cell for row in read_rows(path)} <= shown


def test_the_picture_of_the_readme_shows_the_rows() -> None:
    drawn = json.loads((PAGES / "figures" / "overview.json").read_text())
    options = OverviewOptions(**drawn["options"])
    assert drawn["errors"] == overview_of(read_rows(ROOT / options.rows), options)


def test_the_figure_of_stages_shows_its_rows() -> None:
    drawn = json.loads((PAGES / "figures" / "batches.json").read_text())
    rows = read_rows(PAGES / "figures" / "batches.jsonl")
    assert drawn["curves"] == {name: [list(point) for point in curve] for name, curve in stage_curves(rows).items()}

"""Methods, models and data of the user's own files: measured in workers, and not mixed with what they were before."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from synaptune.bench.cell import Cell
from synaptune.bench.own_files import own_files
from synaptune.bench.remarks import mixtures
from synaptune.bench.runner import run_cells
from synaptune.core import registry
from synaptune.errors import OptionError
from tests.unit.bench import tiny
from tests.unit.bench.cells import cell

METHOD = """
from dataclasses import dataclass
from synaptune.core.method import AdaptOptions, Method, Step, Touches
from synaptune.core.registry import register
from synaptune.options import option

@dataclass(frozen=True, kw_only=True)
class Lean(AdaptOptions):
    weight: float = option(1.0, "of the logits", at_least=-1)

@register("lean", options=Lean, summary="Scales logits.")
class LeanMethod(Method[Lean]):
    def touches(self, model, anatomy):
        return Touches()

    def step(self, model, images):
        return Step(logits=self.predict(model, images))

    def predict(self, model, images):
        return self.options.weight * model(images)
"""


@pytest.fixture
def lean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    registry.infos()
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    monkeypatch.setattr(registry, "_FILES", {})
    path = tmp_path / "lean.py"
    path.write_text(METHOD)
    return f"{path}:lean"


def test_a_method_of_a_file_is_measured_in_a_worker(lean: str, tmp_path: Path) -> None:
    straight, turned = (cell(lean, options={"weight": weight}) for weight in (1.0, -1.0))
    rows = run_cells([cell("source"), straight, turned], out=tmp_path / "rows.jsonl", run="run", workers=1)
    assert [row.status for row in rows] == ["ok"] * 3, [row.error for row in rows]
    source, one, other = (row.error_online for row in rows)
    assert source == one
    assert one != other
    assert rows[1].files is not None
    assert set(rows[1].files) == {"lean.py", "tiny.py"}
    assert rows[0].files == {"tiny.py": rows[1].files["tiny.py"]}


def test_rows_of_a_file_that_has_changed_are_not_gone_on_with(lean: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    run_cells([cell(lean)], out=out, run="run", workers=0)
    Path(lean.rpartition(":")[0]).write_text(METHOD + "\n# improved\n")
    before = out.read_bytes()
    with pytest.raises(OptionError, match=r"lean\.py has changed since rows of this run were measured"):
        run_cells([cell(lean), cell("source")], out=out, run="run", workers=0)
    assert out.read_bytes() == before
    (row,) = run_cells([cell("source")], out=out, run="run", workers=0)
    assert row.status == "ok"


def test_a_table_says_that_its_rows_come_from_different_states_of_a_file(lean: str, tmp_path: Path) -> None:
    first = run_cells([cell(lean)], out=tmp_path / "a.jsonl", run="run", workers=0)
    Path(lean.rpartition(":")[0]).write_text(METHOD + "\n# improved\n")
    second = run_cells([cell(lean, corruption="fog", severity=1)], out=tmp_path / "b.jsonl", run="run", workers=0)
    assert [text for text in mixtures([*first, *second]) if "the user's files" in text]
    assert not [text for text in mixtures(first) if "the user's files" in text]


@pytest.mark.parametrize("method", ["nhl-tuned", "ttt"])
def test_a_cell_is_the_same_after_a_journey(method: str) -> None:
    packed = cell(method, model=tiny.ROTATION_MODEL, seed=3, protocol={"order": "shuffled", "reset": "never"})
    again = pickle.loads(pickle.dumps(packed))
    assert again == packed
    assert again.key == packed.key
    assert type(again.options) is type(packed.options)


def test_what_is_not_the_users_own_has_no_digest() -> None:
    assert own_files(Cell.of(model="zoo:resnet20-cifar10", method="tent", data="cifar10")) is None

"""Methods, models and data of the user's own files: measured in workers, and not mixed with what they were before."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from synaptune.bench.cell import Cell
from synaptune.bench.own_files import own_files
from synaptune.bench.remarks import mixtures
from synaptune.bench.runner import run_cells
from synaptune.errors import OptionError
from tests.support.method_files import forget_new_methods, method_file
from tests.unit.bench import tiny
from tests.unit.bench.cells import cell


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A method in a file, as `FILE.py:NAME`."""
    forget_new_methods(monkeypatch)
    return method_file(tmp_path / "own.py", "own-shift")


def changed(own: str) -> None:
    """Edit the file of a method."""
    path, _, name = own.rpartition(":")
    method_file(Path(path), name, more="\n# improved\n")


def test_a_method_of_a_file_is_measured_in_a_worker(own: str, tmp_path: Path) -> None:
    still, moved = (cell(own, options={"rate": rate}) for rate in (0.0, 1.0))
    rows = run_cells([cell("source"), still, moved], out=tmp_path / "rows.jsonl", run="run", workers=1)
    assert [row.status for row in rows] == ["ok"] * 3, [row.error for row in rows]
    source, one, other = (row.error_online for row in rows)
    assert source == one
    assert one != other
    assert rows[1].files is not None
    method, given = own.rpartition(":")[0], tiny.MODEL.rpartition(":")[0]
    assert set(rows[1].files) == {method, given}
    assert rows[0].files == {given: rows[1].files[given]}


def test_rows_of_a_file_that_has_changed_are_not_gone_on_with(own: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    run_cells([cell(own)], out=out, run="run", workers=0)
    changed(own)
    before = out.read_bytes()
    with pytest.raises(OptionError, match=r"own\.py has changed since rows of this run were measured"):
        run_cells([cell(own), cell("source")], out=out, run="run", workers=0)
    assert out.read_bytes() == before
    (row,) = run_cells([cell("source")], out=out, run="run", workers=0)
    assert row.status == "ok"


def test_a_table_says_that_its_rows_come_from_different_states_of_a_file(own: str, tmp_path: Path) -> None:
    first = run_cells([cell(own)], out=tmp_path / "a.jsonl", run="run", workers=0)
    changed(own)
    second = run_cells([cell(own, corruption="fog", severity=1)], out=tmp_path / "b.jsonl", run="run", workers=0)
    assert [text for text in mixtures([*first, *second]) if "the user's files" in text]
    assert not [text for text in mixtures(first) if "the user's files" in text]


@pytest.mark.parametrize("method", ["nhl-tuned", "ttt"])
def test_a_cell_is_the_same_after_a_journey(method: str) -> None:
    packed = cell(method, model=tiny.ROTATION_MODEL, seed=3, protocol={"order": "shuffled", "reset": "never"})
    again = copy.deepcopy(packed)  # made as another process makes it: from plain values
    assert again == packed
    assert again.key == packed.key
    assert type(again.options) is type(packed.options)


def test_files_of_one_name_in_two_folders_are_two_files(own: str, tmp_path: Path) -> None:
    namesake = tmp_path / "elsewhere" / "own.py"
    namesake.parent.mkdir()
    namesake.write_text("")
    assert set(own_files(cell(own, data=f"{namesake}:photos")) or {}) == {
        own.rpartition(":")[0],
        str(namesake),
        tiny.MODEL.rpartition(":")[0],
    }


def test_what_is_not_the_users_own_has_no_digest() -> None:
    assert own_files(Cell.of(model="zoo:resnet20-cifar10", method="tent", data="cifar10")) is None

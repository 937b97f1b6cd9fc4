"""Tables come back whole: appended to, cut, torn in the middle of a row, in every format."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest
import torch

from synaptune.errors import DataError, OptionError
from synaptune.predicting import RowMaker, open_table
from synaptune.predicting.rows import Row
from synaptune.predicting.table import StreamTable

MAKER = RowMaker(class_names=("cat", "dog", "cow"), top_k=2)
NAMES = ["plain.png", "with,comma.png", 'with"quote.png', "with\nline.png", "zażółć.png"]


def rows(names: list[str] = NAMES, batch: int = 1) -> list[Row]:
    logits = torch.randn(len(names), 3, generator=torch.Generator().manual_seed(batch))
    return MAKER.rows(names, logits, batch=batch)


def content(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return [dict(row) for row in csv.DictReader(file)]
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


each_text_format = pytest.mark.parametrize("ending", ["csv", "jsonl"])


@each_text_format
def test_rows_are_in_the_file_after_each_batch(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    table = open_table(path, MAKER.columns)
    table.append(rows())
    assert [row["image"] for row in content(path)] == NAMES
    assert list(content(path)[0]) == list(MAKER.columns)
    table.close(complete=True)


@each_text_format
def test_resuming_goes_on_after_the_rows_that_are_there(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    table = open_table(path, MAKER.columns)
    table.append(rows())
    table.close(complete=False)
    resumed = open_table(path, MAKER.columns, resume=True)
    assert resumed.images == NAMES
    resumed.append(rows(["more.png"], 2))
    resumed.close(complete=True)
    assert [row["image"] for row in content(path)] == [*NAMES, "more.png"]


@each_text_format
@pytest.mark.parametrize("lost", [1, 5, 30, 60])
def test_a_row_that_was_cut_off_is_dropped(ending: str, lost: int, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    table = open_table(path, MAKER.columns)
    table.append(rows())
    table.close(complete=False)
    whole = path.read_bytes()
    path.write_bytes(whole[:-lost])
    resumed = open_table(path, MAKER.columns, resume=True)
    kept = resumed.images
    assert kept == NAMES[: len(kept)]
    assert len(kept) >= len(NAMES) - 2
    resumed.append([row for row in rows() if row["image"] not in kept])
    resumed.close(complete=True)
    assert path.read_bytes() == whole


@each_text_format
def test_a_table_can_be_cut_back(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    table = open_table(path, MAKER.columns)
    table.append(rows())
    position, before = table.position(), path.read_bytes()
    table.append(rows(["late.png"], 2))
    table.close(complete=False)
    resumed = open_table(path, MAKER.columns, resume=True)
    resumed.cut(rows=len(NAMES), position=position)
    assert resumed.images == NAMES
    resumed.close(complete=False)
    assert path.read_bytes() == before


@each_text_format
def test_other_columns_are_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    table = open_table(path, MAKER.columns)
    table.append(rows())
    table.close(complete=True)
    with pytest.raises(DataError, match="has the columns"):
        open_table(path, RowMaker().columns, resume=True)


def test_a_file_of_something_else_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("not json\n")
    with pytest.raises(DataError, match="line 1"):
        open_table(path, MAKER.columns, resume=True)
    assert path.read_text() == "not json\n"


def test_without_resume_a_table_begins_empty(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("something")
    open_table(path, MAKER.columns).close(complete=True)
    assert content(path) == []


def test_the_ending_tells_the_format(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"\.parquet"):
        open_table(tmp_path / "out.xlsx", MAKER.columns)
    with pytest.raises(DataError, match="cannot be written"):
        open_table(tmp_path / "no" / "out.csv", MAKER.columns)


def test_parquet_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(OptionError, match="pip install pyarrow"):
        open_table(tmp_path / "out.parquet", MAKER.columns)


def test_parquet_holds_typed_columns_and_resumes(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    path = tmp_path / "out.parquet"
    table = open_table(path, MAKER.columns)
    table.append(rows())
    table.close(complete=False)
    assert parquet.read_table(path).to_pylist() == rows()
    resumed = open_table(path, MAKER.columns, resume=True)
    resumed.append(rows(["more.png"], 2))
    resumed.close(complete=True)
    assert [file.name for file in tmp_path.iterdir()] == ["out.parquet"]
    again = open_table(path, MAKER.columns, resume=True)
    assert again.images == [*NAMES, "more.png"]
    again.close(complete=True)
    assert parquet.read_table(path).column("class").type == "int64"
    path.write_bytes(b"PAR1 broken")
    with pytest.raises(DataError, match="not a Parquet file"):
        open_table(path, MAKER.columns, resume=True)


def test_a_pipe_gets_rows_at_once_and_takes_none_back() -> None:
    stream = io.StringIO()
    table = StreamTable(MAKER.columns, stream=stream)
    table.append(rows(["a.png"]))
    assert stream.getvalue().splitlines()[0] == ",".join(MAKER.columns)
    assert stream.getvalue().splitlines()[1].startswith("a.png,")
    with pytest.raises(OptionError, match="--out"):
        table.cut(rows=0, position=0)
    with pytest.raises(OptionError, match="--out"):
        StreamTable(MAKER.columns, form="parquet", stream=stream)


def test_rows_rank_classes_and_survive_non_finite_logits() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0], [float("nan")] * 3])
    first, second = MAKER.rows(["a", "b"], logits, batch=7)
    assert (first["class"], first["name"], first["class_2"], first["name_2"]) == (1, "dog", 2, "cow")
    assert first["probability"] == round(float(logits[0].softmax(0)[1]), 6)
    assert (second["probability"], second["entropy"], second["batch"]) == (None, None, 7)
    assert list(first) == list(MAKER.columns)


def test_top_k_beyond_the_classes_leaves_cells_empty() -> None:
    maker = RowMaker(top_k=5)
    (row,) = maker.rows(["a"], torch.zeros(1, 3), batch=1)
    assert row["class_4"] is None
    with pytest.raises(OptionError, match="top-k"):
        RowMaker(top_k=0)

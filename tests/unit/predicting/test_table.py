"""Tables come back whole: appended to, cut, torn in the middle of a row, in every format."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from synaptune.errors import DataError, OptionError
from synaptune.predicting import RowMaker, open_table
from synaptune.predicting.rows import Row
from synaptune.predicting.table import StreamTable, format_of

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
    with pytest.raises(DataError, match=r"there is no folder .*no for out\.csv"):
        open_table(tmp_path / "no" / "out.csv", MAKER.columns)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"folder\.csv cannot be written"):
        open_table(tmp_path / "folder.csv", MAKER.columns)
    assert format_of(tmp_path / "out.TSV.JSONL") == "jsonl"
    assert format_of(tmp_path / "out", "csv") == "csv"


def test_a_disk_without_room_keeps_whole_rows_and_says_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    table = open_table(path, MAKER.columns)
    table.append(rows(["first.png"]))
    # A file that may not grow is what a full disk looks like to a program; in a process of its own, since this
    # cannot be taken back.
    script = f"""
import resource, signal, sys
from pathlib import Path
from synaptune.errors import DataError
from synaptune.predicting import open_table
from tests.unit.predicting.test_table import MAKER, rows
path = Path({str(path)!r})
table = open_table(path, MAKER.columns, resume=True)
limit = path.stat().st_size + 150
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    for number in range(2, 9):
        table.append(rows([f"{{number}}.png"], number))
except DataError as error:
    print(error)
table.close(complete=False)
"""
    table.close(complete=False)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "out.csv cannot be written any further: File too large; make room, and go on with --resume" in done.stdout
    resumed = open_table(path, MAKER.columns, resume=True)
    assert 1 < len(resumed.images) < 8
    assert resumed.images == ["first.png", *(f"{n}.png" for n in range(2, 1 + len(resumed.images)))]
    resumed.close(complete=False)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_can_be_taken_away(ending: str, tmp_path: Path) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    table = open_table(tmp_path / f"out.{ending}", MAKER.columns)
    table.close(complete=False)
    table.remove()
    assert list(tmp_path.iterdir()) == []


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

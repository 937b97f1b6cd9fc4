from __future__ import annotations

import dataclasses
import json
import math
import warnings
from pathlib import Path

import pytest

from synaptune.bench.journal import Journal, TornLineWarning, read_rows
from synaptune.bench.row import Row
from synaptune.errors import DataError, SynaptuneError
from tests.unit.bench.cells import row

# The keys that other tools read, in this spelling and order.
PUBLIC_KEYS = [
    "run",
    "model",
    "weights",
    "method",
    "options",
    "data",
    "corruption",
    "severity",
    "seed",
    "images",
    "batch",
    "order",
    "reset",
    "error_online",
    "error_after",
    "error_full",
    "error_oracle",
    "ece",
    "ms_per_batch_p50",
    "ms_per_batch_p95",
    "forwards",
    "backwards",
    "peak_mb",
    "versions",
]


def test_every_row_has_the_public_keys_first() -> None:
    for finished in (row(), row(measured={"status": "failed", "error": "x", "error_online": None})):
        assert list(json.loads(finished.to_json()))[: len(PUBLIC_KEYS)] == PUBLIC_KEYS


def test_a_row_survives_writing_and_reading() -> None:
    before = row(measured={"events": ["3: skipped"], "error_per_stage": [[0, 50.0], [2, 40.0]], "frost": "published"})
    assert Row.from_json(before.to_json()) == dataclasses.replace(before, options=before.options)


def test_values_that_are_not_finite_become_null() -> None:
    written = json.loads(row(measured={"weight_distance": math.inf, "error_per_stage": [[1, math.nan]]}).to_json())
    assert written["weight_distance"] is None
    assert written["error_per_stage"] == [[1, None]]


def test_keys_of_later_versions_are_left_out() -> None:
    later = json.loads(row().to_json()) | {"invented_later": 1}
    assert Row.from_json(json.dumps(later)) == row()


def test_rows_outlive_options_and_switches_that_are_new_since_they_were_written() -> None:
    today = row("tent", protocol={"images": 20}, options={"lr": 0.5})
    earlier = json.loads(today.to_json()) | {"cell": "of an earlier hash"}
    del earlier["options"]["optimizer"], earlier["channels_last"]
    assert Row.from_json(json.dumps(earlier)).cell == today.cell


@pytest.mark.parametrize(
    "change", [{"options": {"lr": 0.1}}, {"threads": 2}, {"images_asked": 30}, {"weights_asked": "w.safetensors"}]
)
def test_a_row_stands_for_no_cell_that_differs_from_what_it_records(change: dict[str, object]) -> None:
    today = row("tent", protocol={"images": 20}, options={"lr": 0.5})
    assert Row.from_json(json.dumps(json.loads(today.to_json()) | change)).cell != today.cell


@pytest.mark.parametrize("change", [{"method": "of_a_plug_in"}, {"options": {"gone": 1}}])
def test_rows_of_methods_that_are_unknown_today_keep_their_key(change: dict[str, object]) -> None:
    written = json.loads(row().to_json()) | change | {"cell": "recorded"}
    assert Row.from_json(json.dumps(written)).cell == "recorded"


def test_a_line_that_lacks_keys_is_no_row() -> None:
    with pytest.raises(DataError, match="not a row"):
        Row.from_json('{"run": "x"}')
    with pytest.raises(DataError, match="not a row"):
        Row.from_json("[1]")


def test_rows_are_appended_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "results" / "run.jsonl"
    first, second = row("tent"), row("norm")
    with Journal(path) as journal:
        journal.append(first)
        assert read_rows(path) == [first]
    with Journal(path) as journal:
        assert journal.rows == [first]
        journal.append(second)
    assert read_rows(path) == [first, second]
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("keep", [1, 40, -2], ids=["one byte", "forty bytes", "all but the last brace"])
def test_a_torn_last_line_is_ignored_when_read_and_cut_off_when_written(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "run.jsonl"
    line = (row("norm").to_json() + "\n").encode()
    path.write_bytes((row("tent").to_json() + "\n").encode() + line[:keep])
    assert [found.method for found in read_rows(path)] == ["tent"]
    with pytest.warns(TornLineWarning, match=r"run\.jsonl.*measured again"), Journal(path) as journal:
        journal.append(row("nhl"))
    assert [found.method for found in read_rows(path)] == ["tent", "nhl"]


def test_a_whole_last_row_without_a_line_break_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(row("tent").to_json() + "\n" + row("norm").to_json())
    assert [found.method for found in read_rows(path)] == ["tent", "norm"]
    with warnings.catch_warnings(action="error"), Journal(path) as journal:
        journal.append(row("nhl"))
    assert [found.method for found in read_rows(path)] == ["tent", "norm", "nhl"]
    assert path.read_bytes().count(b"\n") == 3


def test_a_torn_line_longer_than_the_reading_step_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes((row("tent").to_json() + "\n").encode() + b"x" * 200_000)
    with pytest.warns(TornLineWarning), Journal(path) as journal:
        assert [found.method for found in journal.rows] == ["tent"]
    assert path.read_bytes().endswith(b"\n")


def test_a_file_with_nothing_but_a_torn_line_starts_afresh(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"run": "x", ')
    with pytest.warns(TornLineWarning), Journal(path) as journal:
        assert journal.rows == []
    assert path.read_bytes() == b""


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(row().to_json() + "\nrubbish\n" + row("norm").to_json() + "\n")
    with pytest.raises(DataError, match=r"run\.jsonl, line 2: .*delete that line"):
        read_rows(path)


def test_a_second_writer_is_refused_and_the_lock_falls_with_the_first(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Journal(path), pytest.raises(SynaptuneError, match="being written by another process"), Journal(path):
        pass
    with Journal(path) as journal:
        assert journal.rows == []


def test_a_run_that_is_not_there_is_an_error_that_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="synaptune bench"):
        read_rows(tmp_path / "none.jsonl")


def test_a_journal_writes_only_while_it_is_open(tmp_path: Path) -> None:
    with pytest.raises(SynaptuneError, match="`with` block"):
        Journal(tmp_path / "run.jsonl").append(row())


def test_a_row_of_a_stream_keeps_its_cell_and_one_that_hides_its_past_stands_for_none() -> None:
    written = row(corruption="fog", severity=5, earlier=(("snow", 5),), protocol={"reset": "never"})
    assert written.earlier == [["snow", 5]]
    assert Row.from_json(written.to_json()) == written
    values = json.loads(written.to_json())
    del values["earlier"]
    silent = Row.from_json(json.dumps(values))
    first = row(corruption="fog", severity=5, protocol={"reset": "never"})
    assert first.earlier == []
    assert silent.cell not in (written.cell, first.cell)
    assert Row.from_json(row().to_json()).earlier is None

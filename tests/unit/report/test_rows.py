from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from synaptune.bench.row import Row
from synaptune.errors import DataError
from synaptune.report import build_report
from synaptune.report.reading import read_results
from synaptune.report.rows import MEASUREMENTS, SWITCHES, parse_row
from tests.unit.report.made_rows import row


def write(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_text("\n".join(lines) + end)
    return path


def test_every_key_of_a_bench_row_is_a_switch_or_a_measurement() -> None:
    keys = {item.name for item in dataclasses.fields(Row)}
    assert keys - set(SWITCHES) - MEASUREMENTS == set(), "decide in synaptune.report.rows what the new key is"
    assert set(SWITCHES).isdisjoint(MEASUREMENTS)


def test_rows_of_the_bench_are_read_as_objects_and_as_lines(tmp_path: Path) -> None:
    made = {key: value for key, value in row("norm").items() if key in {item.name for item in dataclasses.fields(Row)}}
    bench_row = Row(**made, cell="0" * 16)
    path = write(tmp_path / "run.jsonl", bench_row.to_json())
    from_line, from_object = read_results(path)[0][0], parse_row(bench_row)
    assert from_line == from_object
    assert from_line.errors == {"error_online": 20.0}


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", json.dumps(row("norm")), '{"method": "te', end="")
    assert [found.method for found in read_results(path)[0]] == ["norm"]


def test_a_whole_last_line_without_a_line_break_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", json.dumps(row("norm")), json.dumps(row("tent")), end="")
    assert [found.method for found in read_results(path)[0]] == ["norm", "tent"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "not JSON"),
        ('{"model": "net"}', "method is missing"),
        ('{"method": "norm"}', "model is missing"),
        ('{"method": "norm", "model": "m", "error_online": "low"}', "error_online must be a number or null, not 'low'"),
        ('{"method": "norm", "model": "m", "error_online": 120}', "error_online must be between 0 and 100, not 120"),
        ('{"method": "norm", "model": "m", "options": [1]}', "options must be an object"),
        ('{"method": "norm", "model": "m", "error_per_batch": "12"}', "error_per_batch must be a list"),
        ('{"method": "norm", "model": "m", "error_per_stage": [[1]]}', "error_per_stage must hold pairs"),
    ],
)
def test_a_line_that_is_no_row_is_named_with_its_number(tmp_path: Path, line: str, complaint: str) -> None:
    path = write(tmp_path / "run.jsonl", json.dumps(row("norm")), "", line)
    with pytest.raises(DataError, match=r"line 3") as caught:
        build_report(path)
    assert complaint in str(caught.value)


def test_all_problems_of_a_row_are_named_at_once() -> None:
    with pytest.raises(DataError, match=r"method is missing; model is missing; ece must be"):
        parse_row({"ece": -1})


def test_numbers_that_are_not_finite_count_as_not_measured() -> None:
    assert parse_row(row("norm", error=float("nan"))).errors == {}


def test_a_batch_without_a_number_keeps_its_place() -> None:
    values = parse_row(row("norm", error_per_batch=[10.0, None, 30.0])).error_per_batch
    assert values[0] == 10.0
    assert values[2] == 30.0


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="synaptune bench TABLE --out"):
        build_report(tmp_path / "nothing.jsonl")


def test_a_folder_is_read_whole(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", json.dumps(row("source")))
    write(tmp_path / "b.jsonl", json.dumps(row("norm")))
    assert build_report(tmp_path).methods == ("source", "norm")


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no \.jsonl file"):
        build_report(tmp_path)


def test_rows_are_not_taken_for_a_stream_log(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", json.dumps(row("norm")))
    with pytest.raises(DataError, match="holds result rows, not a stream log"):
        build_report([], streams=[path])

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from synaptune.report import build_report, to_html
from synaptune.report.stream_log import parse_streams
from tests.unit.report.made_rows import row
from tests.unit.report.page_check import PageCheck

HEAD = {"kind": "attach", "format": 1, "method": "nhl", "model": "ResNet", "options": {"eta": 0.001}}


def batch(**changes: Any) -> dict[str, Any]:
    made = {"kind": "batch", "images": 10, "entropy": 0.5, "drift": 0.2, "weight_distance": 0.01, "seconds": 0.1}
    return made | {"classes": 3, "predicted": {"0": 4, "1": 3, "2": 3}, "events": []} | changes


def log(path: Path, *entries: dict[str, Any] | str) -> Path:
    path.write_text("".join(f"{entry if isinstance(entry, str) else json.dumps(entry)}\n" for entry in entries))
    return path


def test_a_log_is_told_from_rows_by_its_first_line(tmp_path: Path) -> None:
    report = build_report(log(tmp_path / "stream.jsonl", HEAD, *[batch()] * 9))
    assert report.sections == ()
    assert report.summary.headline == "nhl on ResNet: 90 images in 9 batches, 100 images per second."


def test_a_log_stands_beside_the_rows_of_a_run(tmp_path: Path) -> None:
    path = log(tmp_path / "stream.jsonl", HEAD, *[batch()] * 9)
    report = build_report([row("norm")], streams=[path])
    assert (len(report.sections), len(report.streams)) == (1, 1)
    assert PageCheck(to_html(report)).problems == []


def test_each_attach_begins_a_stream() -> None:
    lines = [json.dumps(entry) for entry in (HEAD, batch(), {"kind": "detach"}, HEAD, batch(), batch())]
    assert [len(stream.batches) for stream in parse_streams(lines)] == [1, 2]


@pytest.mark.parametrize("torn", ['{"kind": "ba', "[]", '{"kind": "batch"}', '{"kind": "other"}', "[" * 100_000])
def test_a_torn_line_is_left_out_and_counted(torn: str) -> None:
    (stream,) = parse_streams([json.dumps(HEAD), torn, json.dumps(batch())])
    assert (len(stream.batches), stream.torn) == (1, 1)


def test_a_log_without_its_beginning_is_still_read() -> None:
    (stream,) = parse_streams([json.dumps(batch())])
    assert stream.method == "unknown method"


def test_events_and_resets_are_listed_by_batch(tmp_path: Path) -> None:
    entries = [batch(), batch(events=["undo: non-finite values"]), {"kind": "reset"}, batch()]
    (stream,) = build_report(log(tmp_path / "s.jsonl", HEAD, *entries)).streams
    assert stream.events is not None
    assert stream.events.cells()[1:] == [["2", "undo: non-finite values"], ["3", "back to the source model"]]
    assert any("back to its source 1 time" in finding.text for finding in stream.findings)


@pytest.mark.parametrize(
    ("late", "words"),
    [
        ({"0": 10}, "100.0 % of the predictions in the last third are class 0"),
        ({"0": 1, "1": 4, "2": 5}, "Predicted classes moved by 30.0 %"),
        ({"0": 4, "1": 3, "2": 3}, None),
    ],
)
def test_a_change_of_predicted_classes_is_told(tmp_path: Path, late: dict[str, int], words: str | None) -> None:
    entries = [*[batch()] * 6, *[batch(predicted=late)] * 3]
    (stream,) = build_report(log(tmp_path / "s.jsonl", HEAD, *entries)).streams
    told = [finding.text for finding in stream.findings if "redict" in finding.text and "Entropy" not in finding.text]
    assert any(words in text for text in told) if words else told == []


def test_a_log_without_batches_has_a_page(tmp_path: Path) -> None:
    report = build_report(log(tmp_path / "s.jsonl", HEAD))
    assert report.summary.headline == "nhl on ResNet: the log holds no batch yet."
    assert PageCheck(to_html(report)).problems == []


def test_values_that_were_not_finite_leave_gaps(tmp_path: Path) -> None:
    entries = [batch(entropy=None if place % 2 else 0.5, drift=None) for place in range(12)]
    (stream,) = build_report(log(tmp_path / "s.jsonl", HEAD, *entries)).streams
    titles = [group.title for group in stream.panels]
    assert titles == ["Entropy of predictions", "Distance of the weights", "Time per batch"]

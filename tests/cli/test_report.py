"""`synaptune report`: one page from a run, or from the log of a stream."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import synaptune as st
from synaptune.bench import read_rows
from synaptune.callbacks import JsonlCallback
from tests.cli.conftest import Synaptune
from tests.cli.user_net import make_images, make_net


@pytest.fixture
def run(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(measured, tmp_path / "run.jsonl"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a stream, as a user's program writes it."""
    path = tmp_path / "stream.jsonl"
    images = torch.from_numpy(make_images().images[:]).permute(0, 3, 1, 2).float() / 255
    with st.adapt(make_net(), "tent", callbacks=[JsonlCallback(path)]) as adapter:
        for batch in images.split(16):
            adapter(batch)
    return path


def test_a_run_becomes_one_page_beside_it(synaptune: Synaptune, run: Path, tmp_path: Path) -> None:
    done = synaptune("report", run.name)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "run.html\n"
    page = (tmp_path / "run.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "https://" not in page
    for word in ("source", "norm", "tent", "fog", "contrast"):
        assert word in page
    errors = [row.error_online for row in read_rows(run) if row.method == "norm" and row.corruption != "clean"]
    mean = sum(filter(None, errors)) / 2
    assert f"{mean:.1f}" in page


def test_the_findings_are_there_for_programs_too(synaptune: Synaptune, run: Path, tmp_path: Path) -> None:
    done = synaptune("report", run.name, "--out", "pages/mine.html", "--title", "My run", "--json", "-q")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    document = json.loads(done.stdout)
    assert document["report"] == "pages/mine.html"
    assert document["title"] == "My run"
    (section,) = document["sections"]
    assert section["headline"] == document["headline"]
    kinds = {finding["kind"] for finding in section["findings"]}
    assert "cost" in kinds
    assert kinds <= {"gain", "loss", "even", "time", "cost", "missing", "protocol", "note"}
    assert "<title>My run</title>" in (tmp_path / "pages/mine.html").read_text()


def test_markdown_goes_to_a_file_or_to_stdout(synaptune: Synaptune, run: Path, tmp_path: Path) -> None:
    written = synaptune("report", run.name, "--markdown")
    assert written.stdout == "run.md\n"
    shown = synaptune("report", run.name, "--markdown", "--out", "-")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == (tmp_path / "run.md").read_text()
    assert shown.stdout.startswith("# adhoc\n")
    assert "| method |" in shown.stdout


def test_the_log_of_a_stream_has_a_page_too_alone_or_with_a_run(
    synaptune: Synaptune, run: Path, log: Path, tmp_path: Path
) -> None:
    alone = synaptune("report", log.name, "--json")
    assert alone.returncode == 0, alone.stderr
    assert [section["title"] for section in json.loads(alone.stdout)["sections"]] == ["tent on Net"]
    both = synaptune("report", run.name, "--stream", log.name, "--json")
    assert len(json.loads(both.stdout)["sections"]) == 2
    folder = synaptune("report", ".")
    assert folder.stdout == "report.html\n"
    assert "tent on Net" in (tmp_path / "report.html").read_text()


def test_the_same_run_gives_the_same_bytes(synaptune: Synaptune, run: Path) -> None:
    first = synaptune("report", run.name, "--out", "-").stdout
    assert first.startswith("<!DOCTYPE html>")
    assert synaptune("report", run.name, "--out", "-").stdout == first


def damaged(run: Path) -> None:
    run.write_text(run.read_text() + "{not JSON}\n")


def strange(run: Path) -> None:
    run.write_text('{"name": "of something else"}\n')


@pytest.mark.parametrize(
    ("harm", "words", "message"),
    [
        (None, ["no.jsonl"], "there is no result file at no.jsonl"),
        (damaged, ["run.jsonl"], "run.jsonl, line 10 is not JSON"),
        (strange, ["run.jsonl"], "run.jsonl, line 1"),
        (None, ["run.jsonl", "--out", "run.jsonl"], "what the report is about"),
        (None, ["run.jsonl", "--stream", "run.jsonl"], "not a stream log"),
        (None, ["run.jsonl", "--out", "-", "--json"], "stdout cannot hold both"),
        (None, ["run.jsonl", "--out", "run.jsonl/page.html"], "cannot be written"),
    ],
)
def test_what_is_wrong_is_said(
    synaptune: Synaptune, run: Path, harm: Callable[[Path], None] | None, words: list[str], message: str
) -> None:
    if harm is not None:
        harm(run)
    before = run.read_bytes()
    done = synaptune("report", *words)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert run.read_bytes() == before

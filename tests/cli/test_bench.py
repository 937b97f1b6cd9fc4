"""`synaptune bench`: measuring, resuming, comparing, and what is said on the way."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from synaptune.bench import read_rows, table_names
from tests.cli.conftest import IMAGES, INTERRUPTED, NET, USER_FILE, Synaptune

# Those that the project promises to other tools, in this order.
PUBLIC_KEYS = [
    *("run", "model", "weights", "method", "options", "data", "corruption", "severity", "seed"),
    *("images", "batch", "order", "reset", "error_online", "error_after", "error_full", "error_oracle", "ece"),
    *("ms_per_batch_p50", "ms_per_batch_p95", "forwards", "backwards", "peak_mb", "versions"),
]

AD_HOC = ("bench", "--model", NET, "--method", "source", "--method", "norm", "--data", IMAGES, "--workers", 0)

TABLE = f"""
title: Three methods
models: [{{model: "{NET}", label: mine}}]
methods: [source, norm, {{method: tent, options: {{lr: 1e-2}}}}]
data: "{IMAGES}"
corruptions: [fog, contrast]
severities: [3]
protocol: {{batch: 16}}
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(TABLE)
    return path


def test_the_tables_are_listed_with_their_titles(synaptune: Synaptune) -> None:
    listed = synaptune("bench", "list", "--json")
    assert listed.returncode == 0
    entries = {entry["name"]: entry for entry in json.loads(listed.stdout)}
    assert tuple(entries) == table_names()
    assert entries["cifar10c"]["paper"] == "Table 1"
    assert entries["demo"]["cells"] == 5 * 5
    bare = synaptune("bench")
    assert bare.returncode == 0
    assert bare.stdout.splitlines()[0].split() == ["table", "what", "it", "shows", "in", "the", "paper", "cells"]
    assert [line.split()[0] for line in bare.stdout.splitlines()[1:]] == list(table_names())


def test_models_methods_and_shifts_may_be_named_without_a_table(synaptune: Synaptune, tmp_path: Path) -> None:
    done = synaptune(*AD_HOC, "-c", "clean,fog", "--severity", 2, "--severity", 5, "batch=16", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["out"] == "results/adhoc.jsonl"
    # Clean images have no severity.
    assert document["cells"] == {"ok": 6, "failed": 0, "missing": 0, "inapplicable": 0, "open": 0}
    for row in document["rows"]:
        assert list(row)[: len(PUBLIC_KEYS)] == PUBLIC_KEYS
        assert row["batch"] == 16
        assert row["versions"].keys() >= {"synaptune", "torch"}
    lines = (tmp_path / "results/adhoc.jsonl").read_text().splitlines()
    assert sorted(map(json.dumps, document["rows"])) == sorted(json.dumps(json.loads(line)) for line in lines)
    assert [block["title"].rpartition(", ")[2] for block in document["blocks"]] == [IMAGES, "severity 2", "severity 5"]
    for block in document["blocks"]:
        assert [line["method"] for line in block["lines"]] == ["source", "norm"]


def test_a_known_error_is_measured_and_its_command_finds_it_again(synaptune: Synaptune, tmp_path: Path) -> None:
    words = ("--model", NET, "--method", "norm", "--data", IMAGES, "batch=48", "--workers", 0, "--json")
    first = json.loads(synaptune("bench", *words).stdout)
    # `norm` labelled these images in one batch; one label in four was changed afterwards.
    assert [row["error_online"] for row in first["rows"]] == [25.0]
    before = (tmp_path / "results/adhoc.jsonl").read_bytes()
    program, *again = shlex.split(first["command"])
    assert program == "synaptune"
    second = json.loads(synaptune(*again, "--json").stdout)
    assert second["rows"] == first["rows"]
    assert (tmp_path / "results/adhoc.jsonl").read_bytes() == before, "nothing was measured a second time"


def test_a_table_of_ones_own_is_measured_in_parts_and_changed_by_words(
    synaptune: Synaptune, table: Path, tmp_path: Path
) -> None:
    part = synaptune("bench", table, "--workers", 0, "--limit", 2, "--render", "pages/mine.md")
    assert part.returncode == 0, part.stderr
    assert "\x1b" not in part.stdout + part.stderr, "no colours in a pipe"
    assert "4 cells are left; the same command goes on" in part.stderr
    lines = [line for line in part.stdout.splitlines() if line.startswith(("source", "norm", "tent"))]
    assert [line.split()[0] for line in lines] == ["source", "norm", "tent(lr=0.01)"]
    assert "open" in lines[2]
    assert (tmp_path / "pages/mine.md").read_text().startswith("# Three methods\n")

    rows = tmp_path / "results/mine.jsonl"
    written = rows.read_bytes()
    assert len(read_rows(rows)) == 2
    whole = synaptune("bench", table, "--workers", 0)
    assert whole.returncode == 0, whole.stderr
    assert rows.read_bytes().startswith(written), "rows that were there stay as they are"
    assert not re.search(r"\bopen\b", whole.stdout)
    # One line of progress for every cell that was measured now, with the mean of its method so far.
    told = [line for line in whole.stderr.splitlines() if "% error" in line]
    assert [line.split()[0] for line in told] == ["3/6", "4/6", "5/6", "6/6"]
    assert "on average of 2" in told[-1]

    changed = synaptune("bench", table, "methods=[tent]", "tent.lr=1e-4", "batch=8", "--workers", 0, "--json", "-q")
    assert changed.stderr == ""
    document = json.loads(changed.stdout)
    assert {(row["method"], row["options"]["lr"], row["batch"]) for row in document["rows"]} == {("tent", 1e-4, 8)}


def test_ctrl_c_leaves_a_file_that_the_same_command_finishes(
    synaptune: Synaptune, table: Path, tmp_path: Path, command: list[str], environment: dict[str, str]
) -> None:
    words = ["bench", str(table), "corruptions=benchmark", "batch=4", "--workers", "1", "--out", "rows.jsonl"]
    out = tmp_path / "rows.jsonl"
    with subprocess.Popen(
        [*command, *words],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            deadline = time.monotonic() + 120
            while (not out.exists() or out.read_bytes().count(b"\n") < 2) and time.monotonic() < deadline:
                time.sleep(0.01)
            # A terminal sends Ctrl-C to all processes of the group, the workers included.
            os.killpg(process.pid, signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode in INTERRUPTED, stderr
    assert stdout == ""
    before = read_rows(out)
    assert 2 <= len(before) < 45, "the interrupt should come in the middle"
    said = re.fullmatch(
        r"interrupted: (\d+) of 45 cells are in rows.jsonl; the same command goes on", stderr.splitlines()[-1]
    )
    assert said is not None, stderr
    # The interrupt may fall between the writing of a row and its counting.
    assert int(said[1]) in (len(before) - 1, len(before))
    assert "Traceback" not in stderr
    written = out.read_bytes()
    resumed = synaptune(*words[:-3], 0, "--out", "rows.jsonl", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert out.read_bytes().startswith(written)
    after = read_rows(out)
    assert len(after) == len({row.cell for row in after}) == 45
    assert json.loads(resumed.stdout)["cells"]["ok"] == 45


def test_a_cell_that_fails_costs_itself_and_the_exit_status(synaptune: Synaptune, tmp_path: Path) -> None:
    words = (*AD_HOC, "--model", f"{USER_FILE}:make_wrong_net", "batch=16", "--out", "rows.jsonl")
    done = synaptune(*words, "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["cells"]["ok"] == 2
    assert document["cells"]["failed"] == 2
    assert any("RuntimeError" in text and "make_wrong_net" in text for text in document["absent"])
    assert "2 cells failed; --retry-failed measures them again" in done.stderr
    assert synaptune(*words, "-q").returncode == 1
    assert len(read_rows(tmp_path / "rows.jsonl")) == 4
    synaptune(*words, "-q", "--retry-failed")
    assert [row.status for row in read_rows(tmp_path / "rows.jsonl")][4:] == ["failed"] * 2


def test_a_method_that_does_not_fit_is_no_failure(synaptune: Synaptune) -> None:
    net = f"{USER_FILE}:make_plain_net"
    done = synaptune("bench", "--model", net, "-m", "source", "-m", "tent", "-d", IMAGES, "batch=16", "--workers", 0)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^tent +ours +n/a", done.stdout, re.MULTILINE)
    assert "inapplicable: tent on" in done.stdout


def test_what_is_not_on_this_machine_is_named_with_how_to_get_it(synaptune: Synaptune) -> None:
    done = synaptune("bench", "cifar10c", "models=[wrn-28-10-cifar10]", "corruptions=[fog]", "--workers", 0)
    assert done.returncode == 1, "nothing could be measured"
    # The paper's number stands there all the same.
    assert "not here" in done.stdout
    assert re.search(r"paper +\d", done.stdout)
    assert "It is published as" in done.stdout
    assert "--weights FILE" in done.stdout
    assert "synaptune data get cifar10" in done.stdout
    shown = synaptune("bench", "cifar10c", "models=[wrn-28-10-cifar10]", "corruptions=[fog]", "--limit", 0)
    assert shown.returncode == 0, "nothing was asked for"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["cifar-10c"], 1, "did you mean cifar10c"),
        (["demo", "imges=5"], 1, "did you mean images"),
        (["demo", "images=0"], 1, "images must be at least 1"),
        (["demo", "images"], 1, "'images' is not of the form key=value"),
        (["demo", "data=mnist", "--data", "sample"], 1, "data is given twice"),
        (["demo", "--out", "/dev/null/rows.jsonl"], 1, "/dev/null: File exists; name another"),
        (["demo", "--render", "page.pdf"], 1, "must be one of .md, .txt, .json"),
        (["--model", NET, "--data", IMAGES], 1, "methods must be a value or a list"),
        (["demo", "--weights", "w.pt"], 1, "--weights belongs to one --model"),
        (["--severity", "6"], 2, "severity"),
        (["compare"], 2, "FILE"),
    ],
)
def test_bad_words_are_answered_before_anything_is_measured(
    synaptune: Synaptune, tmp_path: Path, words: list[str], status: int, message: str
) -> None:
    done = synaptune("bench", *words)
    assert done.returncode == status
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def on_a_terminal(words: list[str], **options: Any) -> str:
    """Run a command whose stdout and stderr are a terminal; give what appeared there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, **options) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:  # how Linux says that the other side is closed
            pass
    os.close(ours)
    assert process.returncode == 0, shown.decode()
    return shown.decode()


def test_a_terminal_gets_a_bar_and_a_table_that_fits_in_colour_only_if_wanted(
    tmp_path: Path, command: list[str], environment: dict[str, str], table: Path
) -> None:
    words = [*command, "bench", str(table), "corruptions=benchmark", "methods=[source]", "--workers", "0"]
    terminal = environment | {"TERM": "xterm-256color", "COLUMNS": "70"}
    colour = re.compile(r"\x1b\[(?!0?m)[\d;]*m")
    shown = on_a_terminal([*words, "--out", "a.jsonl"], cwd=tmp_path, env=terminal)
    assert colour.search(shown)
    assert "15/15" in shown
    assert "mean error of" in shown
    plain = on_a_terminal([*words, "--out", "b.jsonl"], cwd=tmp_path, env=terminal | {"NO_COLOR": "1"})
    assert not colour.search(plain)
    result = [line for line in plain.splitlines() if line.startswith(("method", "source"))]
    assert len(result) >= 4, "fifteen columns need more than one part"
    assert max(map(len, result)) <= 70


def test_methods_of_one_run_are_compared(synaptune: Synaptune, measured: Path, tmp_path: Path) -> None:
    done = synaptune("bench", "compare", measured, "--baseline", "norm", "--json", "--render", "c.md")
    assert done.returncode == 0, done.stderr
    comparison = json.loads(done.stdout)
    assert comparison["baseline"] == "norm"
    errors = {
        name: [row.error_online for row in read_rows(measured) if row.method == name] for name in ("source", "norm")
    }
    source = next(entry for entry in comparison["contrasts"] if entry["left"] == "source")
    expected = sum(map(float, filter(None, errors["source"]))) / 3 - sum(map(float, filter(None, errors["norm"]))) / 3
    assert source["pairs"] == 3
    assert source["difference"]["mean"] == pytest.approx(expected)
    assert source["difference"]["low"] <= expected <= source["difference"]["high"]
    assert "| --- |" in (tmp_path / "c.md").read_text()


def test_rows_to_compare_are_chosen_by_what_they_are(synaptune: Synaptune, measured: Path) -> None:
    words = ("--where", "method=[norm,tent]", "--where", "corruption=fog", "--where", "corruption=contrast")
    done = synaptune("bench", "compare", measured, *words, "--json")
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout)["contrasts"]
    assert (entry["left"], entry["right"], entry["pairs"]) == ("tent", "norm", 2)


def test_runs_under_different_protocols_are_compared_only_when_told_to(
    synaptune: Synaptune, measured: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    methods = ("--method", "source", "--method", "norm")
    done = synaptune(
        *("bench", "--model", NET, *methods, "--data", IMAGES, "-c", "fog,contrast"),
        *("batch=24", "--workers", 0, "--out", other, "-q"),
    )
    assert done.returncode == 0, done.stderr
    refused = synaptune("bench", "compare", measured, other)
    assert refused.returncode == 1
    assert "batch: 24 in other, 16 in rows." in refused.stderr
    assert "--mix batch" in refused.stderr
    mixed = synaptune("bench", "compare", measured, other, "--mix", "batch")
    assert mixed.returncode == 0, mixed.stderr
    assert "MIXED PROTOCOLS: the pairs differ in batch" in mixed.stdout
    copied = Path(shutil.copy(measured, tmp_path / "copied.jsonl"))
    equal = synaptune("bench", "compare", measured, copied, "--json")
    assert {entry["difference"]["mean"] for entry in json.loads(equal.stdout)["contrasts"]} == {0.0}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.jsonl"], "there is no run at nothing.jsonl"),
        (["{run}", "{run}"], "named twice"),
        (["{run}", "--metric", "error_onlin"], "did you mean error_online"),
        (["{run}", "--across", "seed"], "must be 'method' or 'run'"),
        (["{run}", "--mix", "batsh"], "did you mean batch"),
        (["{run}", "--where", "method"], "not of the form key=value"),
        (["{run}", "--where", "metod=tent"], "did you mean method"),
        (["{run}", "--where", "method=tnet"], "did you mean tent"),
    ],
)
def test_what_cannot_be_compared_is_said(synaptune: Synaptune, measured: Path, words: list[str], message: str) -> None:
    done = synaptune("bench", "compare", *(word.replace("{run}", str(measured)) for word in words))
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stdout == ""

"""`synaptune demo`: the first thing a user runs; it needs nothing but the package."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import time
from pathlib import Path

from synaptune.bench import read_rows
from tests.cli.conftest import INTERRUPTED, Synaptune

SHIFTS = ["gaussian_noise", "defocus_blur", "frost", "contrast", "pixelate"]


def test_the_demo_measures_five_shifts_and_writes_a_page(synaptune: Synaptune, tmp_path: Path) -> None:
    done = synaptune("demo", "--images", 128, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    errors = document["error_percent"]
    assert list(errors)[:4] == ["source", "norm", "tent", "nhl"]
    for line in errors.values():
        assert list(line) == [*SHIFTS, "mean"]
        assert line["mean"] == statistics.fmean(line[shift] for shift in SHIFTS)
    rows = read_rows(tmp_path / document["rows"])
    assert {(row.method, row.corruption): row.error_online for row in rows if row.method in ("source", "nhl")} == {
        (method, shift): errors[method][shift] for method in ("source", "nhl") for shift in SHIFTS
    }
    # A trained network on shifts of severity 5: what the package is for.
    assert errors["nhl"]["mean"] < errors["source"]["mean"] - 5
    assert document["gain"].startswith(
        f"NHL took the mean error from {errors['source']['mean']:.1f} % to {errors['nhl']['mean']:.1f} %"
    )
    assert len([line for line in done.stderr.splitlines() if "% error" in line]) == 5 * len(errors)
    page = (tmp_path / document["report"]).read_text()
    assert "synaptune demo" in page
    assert sorted(path.name for path in (tmp_path / "runs/demo").iterdir()) == ["demo.jsonl", "report.html"]


def test_in_a_pipe_it_prints_a_plain_table_a_sentence_and_the_path(synaptune: Synaptune, tmp_path: Path) -> None:
    done = synaptune("demo", "--images", 32, "--workers", 0, "--out", "shown", "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    header, *lines = done.stdout.splitlines()
    assert header.split()[-6:] == [*SHIFTS, "mean"]
    assert [line.split()[0] for line in lines[:4]] == ["source", "norm", "tent", "nhl"]
    assert lines[-2].startswith("NHL took the mean error from ")
    assert lines[-1] == "Report: shown/report.html"
    assert (tmp_path / "shown/report.html").is_file()


def test_ctrl_c_ends_it_at_once_and_leaves_no_half_run(
    tmp_path: Path, command: list[str], environment: dict[str, str]
) -> None:
    with subprocess.Popen(
        [*command, "demo", "--images", "2000"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            deadline = time.monotonic() + 120
            while not list(tmp_path.glob("runs/demo/*/demo.jsonl")) and time.monotonic() < deadline:
                time.sleep(0.01)
            os.killpg(process.pid, signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode in INTERRUPTED, stderr
    assert stdout == ""
    assert "Traceback" not in stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_more_images_than_are_bundled_are_refused(synaptune: Synaptune) -> None:
    done = synaptune("demo", "--images", 2001)
    assert done.returncode == 2
    assert "images" in done.stderr
    assert done.stdout == ""

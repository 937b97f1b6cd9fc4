"""The whole way: a run in worker processes, killed with SIGKILL, resumed, and compared with one that was not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from synaptune.bench.journal import TornLineWarning, read_rows
from synaptune.bench.row import Row
from synaptune.bench.runner import run_cells
from tests.unit.bench.long_run import cells

ROOT = Path(__file__).parents[3]
MEASURED = (
    "cell",
    "status",
    "error_online",
    "error_after",
    "error_full",
    "ece",
    "forwards",
    "backwards",
    "error_per_batch",
    "weight_distance",
    "fingerprint",
    "recipe_digest",
)


def numbers(rows: list[Row]) -> list[tuple[object, ...]]:
    return [tuple(repr(getattr(row, key)) for key in MEASURED) for row in rows]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.slow
def test_a_killed_run_resumes_without_repeating_or_losing_a_cell(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-m", "tests.unit.bench.long_run", str(path)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        workers: set[int] = set()
        for line in process.stdout:
            done, *pids = map(int, line.split())
            workers |= set(pids)
            if done >= 3:
                break
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    written = path.read_bytes()
    before = read_rows(path)
    assert 3 <= len(before) < len(cells()), "the kill should come in the middle"

    # The workers must not go on burning cores without their parent.
    deadline = time.monotonic() + 60
    while any(is_alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert workers
    assert not any(is_alive(pid) for pid in workers)

    # What a kill in the middle of a write would leave behind.
    path.write_bytes(written + b'{"run": "long", "model": "/')
    with pytest.warns(TornLineWarning):
        resumed = run_cells(cells(), out=path, run="long", workers=0)
    assert path.read_bytes().startswith(written), "rows that were there stay as they are"
    after = read_rows(path)
    assert len(after) == len({row.cell for row in after}) == len(cells())
    assert [row.cell for row in resumed] == [cell.key for cell in cells()]

    # Two workers did the first rows, none the others: the numbers are those of one uninterrupted process.
    straight = run_cells(cells(), out=tmp_path / "straight.jsonl", run="long", workers=0)
    assert numbers(resumed) == numbers(straight)

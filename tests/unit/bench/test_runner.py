from __future__ import annotations

import dataclasses
import multiprocessing
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from synaptune.bench import presence, runner
from synaptune.bench.cell import Cell
from synaptune.bench.config import table_from
from synaptune.bench.job import Job, jobs_of
from synaptune.bench.journal import Journal, read_rows
from synaptune.bench.progress import Progress, Tracker, lines_of
from synaptune.bench.row import Row
from synaptune.bench.runner import run_cells
from synaptune.bench.workers import _Worker, default_workers, rows_of
from synaptune.errors import DataError, OptionError, SynaptuneError
from tests.unit.bench import tiny
from tests.unit.bench.cells import cell, row


def run(cells: list[Cell], path: Path, **options: Any) -> list[Row]:
    return run_cells(cells, out=path, run="test", workers=0, **options)


def test_each_cell_is_measured_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    cells = [cell("source"), cell("norm"), cell("source")]
    first = run(cells, tmp_path / "run.jsonl")
    again = run(cells, tmp_path / "run.jsonl")
    assert [found.method for found in first] == ["source", "norm"]
    assert first == again
    assert len(read_rows(tmp_path / "run.jsonl")) == 2


def test_a_run_may_grow_and_measures_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    run([cell("source")], path)
    seen: list[str] = []
    monkeypatch.setattr(runner, "measure", lambda job: (seen.append(c.method) or row(c.method) for c in job.cells))
    run([cell("source"), cell("norm")], path)
    assert seen == ["norm"]


def test_cells_that_another_run_has_are_taken_over_and_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.jsonl"
    run([cell("source"), cell("tent"), cell("norm", protocol={"images": 60})], other)
    seen: list[str] = []
    measure = runner.measure
    monkeypatch.setattr(runner, "measure", lambda job: seen.extend(c.method for c in job.cells) or measure(job))
    cells = [cell("source"), cell("norm"), cell("tent", protocol={"batch": 8}), cell("norm", protocol={"images": 60})]
    path = tmp_path / "run.jsonl"
    found = run_cells(cells, out=path, run="mine", workers=0, reuse=[other])
    assert seen == ["norm", "tent", "norm"], "the same cell only, and no failure"
    assert (found[0].run, found[0].error_online) == ("mine", read_rows(other)[0].error_online)
    run_cells(cells, out=path, run="mine", workers=0, reuse=[other])
    assert len(read_rows(path)) == 4, "taken over once"


def test_rows_of_other_weights_are_not_taken_over_silently(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    weights, other = tmp_path / "weights.safetensors", tmp_path / "other.jsonl"
    save_file(tiny.make_model().state_dict(), weights)
    run([cell("source", weights=str(weights))], other)
    save_file(tiny.make_other_model().state_dict(), weights)
    cells = [cell("source", weights=str(weights)), cell("norm", weights=str(weights))]
    with pytest.raises(OptionError, match="not those that this file's rows were measured with"):
        run_cells(cells, out=tmp_path / "run.jsonl", run="mine", workers=0, reuse=[other])
    assert read_rows(tmp_path / "run.jsonl") == []
    path = tmp_path / "grown.jsonl"
    run(cells[1:], path)
    with pytest.raises(OptionError, match=r"other\.jsonl.*other weights"):
        run_cells(cells, out=path, run="mine", workers=0, reuse=[other])
    assert [found.method for found in read_rows(path)] == ["norm"]


def test_a_model_or_a_data_set_that_fails_costs_its_own_cells(tmp_path: Path) -> None:
    cells = [cell("source", model=tiny.BROKEN_MODEL), cell("source", data=tiny.BROKEN_DATA), cell("source")]
    model, data, good = run(cells, tmp_path / "run.jsonl")
    assert (model.status, data.status, good.status) == ("failed", "failed", "ok")
    assert "this network was never finished" in str(model.error)
    assert "ZeroDivisionError: this data set was never finished" in str(data.error)
    run(cells, tmp_path / "run.jsonl")
    assert len(read_rows(tmp_path / "run.jsonl")) == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "zoo:resnet21-cifar10"}, "did you mean"),
        ({"model": f"{tiny.MODEL}_nowhere"}, "there is no function"),
        ({"model": "nowhere.py:net"}, "there is no file"),
        ({"data": f"{tiny.DATA}_nowhere"}, "must be a function"),
    ],
    ids=["network", "function", "file", "data"],
)
def test_a_name_that_is_not_known_ends_the_run_at_once(changes: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(SynaptuneError, match=said):
        run([cell("source"), cell("source", **changes)], tmp_path / "run.jsonl")
    assert read_rows(tmp_path / "run.jsonl") == []


def test_weights_that_a_function_draws_are_the_same_in_the_next_sitting(tmp_path: Path) -> None:
    def cells(*methods: str) -> list[Cell]:
        shuffled = {"model": tiny.RANDOM_MODEL, "protocol": {"order": "shuffled"}}
        return [cell(method, seed=seed, **shuffled) for method in methods for seed in (1, 2)]

    path = tmp_path / "run.jsonl"
    first = run(cells("source"), path)
    found = run(cells("source", "norm"), path)
    assert [row.status for row in found] == ["ok"] * 4
    assert found[2].fingerprint == first[0].fingerprint != first[1].fingerprint == found[3].fingerprint


def test_failures_are_kept_and_tried_again_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    cells = [cell("tent", protocol={"images": 60}), cell("source")]
    bad, good = run(cells, path)
    assert (bad.status, good.status) == ("failed", "ok")
    run(cells, path)
    assert len(read_rows(path)) == 2
    run(cells, path, retry_failed=True)
    assert [found.status for found in read_rows(path)] == ["failed", "ok", "failed"]


def test_missing_cells_are_said_once_and_run_when_what_they_need_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, weights = tmp_path / "run.jsonl", tmp_path / "weights.safetensors"
    cells = [cell("source", weights=str(weights)), cell("source")]
    missing, good = run(cells, path)
    assert (missing.status, good.status) == ("missing", "ok")
    assert "does not exist" in str(missing.error)
    run(cells, path)
    assert len(read_rows(path)) == 2, "the same absence is not written twice"

    from safetensors.torch import save_file

    save_file(tiny.make_other_model().state_dict(), weights)
    found, _ = run(cells, path)
    assert found.status == "ok"
    assert found.fingerprint != good.fingerprint
    assert len(read_rows(path)) == 3


def test_one_sentence_serves_all_shifts_of_a_set_that_is_not_here_and_names_no_folder_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNAPTUNE_SHARED", str(tmp_path))
    cells = [
        cell("source", data="cifar10-c", corruption=name, severity=severity)
        for name, severity in (("fog", 5), ("snow", 2))
    ]
    first, second = run(cells, tmp_path / "run.jsonl")
    assert first.error == second.error
    assert "CIFAR-10-C/CORRUPTION.npy" in str(first.error)
    assert "synaptune data get cifar10-c" in str(first.error)
    assert str(tmp_path) not in str(first.error)


def test_weights_that_changed_between_two_sittings_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    path, weights = tmp_path / "run.jsonl", tmp_path / "weights.safetensors"
    save_file(tiny.make_model().state_dict(), weights)
    run([cell("source", weights=str(weights))], path)
    save_file(tiny.make_other_model().state_dict(), weights)
    with pytest.raises(OptionError, match="not those that this file's rows were measured with"):
        run([cell("source", weights=str(weights)), cell("norm", weights=str(weights))], path)


def test_limit_measures_so_many_cells_and_no_more(tmp_path: Path) -> None:
    cells = [cell("source"), cell("norm"), cell("tent")]
    path = tmp_path / "run.jsonl"
    assert run(cells, path, limit=0) == []
    assert [found.method for found in run(cells, path, limit=2)] == ["source", "norm"]
    assert len(run(cells, path, limit=2)) == 3


def test_a_limit_of_none_reads_what_is_there_while_another_process_writes(tmp_path: Path) -> None:
    path, other = tmp_path / "run.jsonl", tmp_path / "other.jsonl"
    cells = [cell("source"), cell("norm"), cell("tent"), cell("dua", weights="none.safetensors")]
    run(cells[:1], path)
    run(cells[1:2], other)
    told: list[Progress] = []
    with Journal(path):
        torn = path.read_bytes() + b'{"run": "te'
        path.write_bytes(torn)
        found = run(cells, path, limit=0, reuse=[other], on_progress=told.append)
    assert [(row.method, row.status) for row in found] == [("source", "ok"), ("norm", "ok"), ("dua", "missing")]
    assert path.read_bytes() == torn
    assert (told[-1].done, told[-1].total) == (3, 4)
    assert run(cells[:1], tmp_path / "new" / "run.jsonl", limit=0) == []
    assert not (tmp_path / "new").exists()


def test_limit_counts_the_cells_of_a_stream_too_and_the_next_run_goes_on_behind_them(tmp_path: Path) -> None:
    cells = [
        cell(method, corruption=name, severity=1, protocol={"reset": "never"})
        for method in ("norm", "tent")
        for name in ("fog", "snow", "frost")
    ]
    path = tmp_path / "run.jsonl"
    straight = run(cells, tmp_path / "straight.jsonl")
    first = run(cells, path, limit=4)
    assert [(found.method, found.corruption) for found in first] == [
        *(("norm", name) for name in ("fog", "snow", "frost")),
        ("tent", "fog"),
    ]
    whole = run(cells, path, limit=2)
    assert len(read_rows(path)) == 6, "no row was written twice"
    assert [found.error_per_batch for found in whole] == [found.error_per_batch for found in straight]


def never_reset(*names: str, method: str = "tent") -> list[Cell]:
    return [
        cell(method, options={"lr": 0.3}, corruption=name, severity=3, protocol={"reset": "never"}) for name in names
    ]


def test_a_row_of_another_stream_is_no_row_of_this_one(tmp_path: Path) -> None:
    path, other = tmp_path / "run.jsonl", tmp_path / "other.jsonl"
    (alone,) = run(never_reset("fog"), path)
    run(never_reset("fog"), other)
    straight = run(never_reset("contrast", "fog"), tmp_path / "straight.jsonl")
    grown = run(never_reset("contrast", "fog"), path)
    reused = run(never_reset("contrast", "fog"), tmp_path / "reusing.jsonl", reuse=[other])
    assert grown[1].error_per_batch == reused[1].error_per_batch == straight[1].error_per_batch
    assert straight[1].error_per_batch != alone.error_per_batch, "the example should tell them apart"
    assert straight[1].earlier == [["contrast", 3]]
    assert [row.cell for row in read_rows(path)] == [alone.cell, *(row.cell for row in straight)]
    assert len({row.cell for row in read_rows(path)}) == 3


def test_what_comes_behind_an_absent_cell_of_a_stream_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    cells = never_reset("fog", "contrast", "snow")
    straight = run(cells, tmp_path / "straight.jsonl")
    look = presence.clean_data

    def without_contrast(data: str, corruption: str, severity: int) -> Any:
        if corruption == "contrast":
            raise DataError("contrast.npy is not here")
        return look(data, corruption, severity)

    monkeypatch.setattr(presence, "clean_data", without_contrast)
    states = [(row.status, row.error) for row in run(cells, path)]
    assert [status for status, _ in states] == ["ok", "missing", "missing"]
    assert "contrast 3 comes before it" in str(states[2][1])
    assert "is not here" in str(states[2][1])
    run(cells, path)
    assert len(read_rows(path)) == 3, "the same absence is not written twice"
    monkeypatch.undo()
    assert [row.error_per_batch for row in run(cells, path)] == [row.error_per_batch for row in straight]


def test_a_stream_cannot_be_replayed_without_the_data_of_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    run(never_reset("fog"), path)

    def nothing(data: str, corruption: str, severity: int) -> Any:
        if corruption == "fog":
            raise DataError("fog.npy is not here")

    monkeypatch.setattr(presence, "clean_data", nothing)
    done, waiting = run(never_reset("fog", "snow"), path)
    assert (done.status, waiting.status) == ("ok", "missing")


def test_progress_counts_cells_and_keeps_a_running_mean_of_each_method(tmp_path: Path) -> None:
    told: list[Progress] = []
    path = tmp_path / "run.jsonl"
    run([cell("source")], path)
    cells = [cell("source"), cell("source", corruption="fog", severity=5), cell("ttt")]
    rows = run(cells, path, on_progress=told.append)
    assert [(progress.done, progress.total) for progress in told] == [(1, 3), (2, 3), (3, 3)]
    assert told[0].resumed == 1
    assert told[0].last is None
    assert told[-1].inapplicable == 1
    assert told[-1].seconds_left == 0
    errors = [found.error_online for found in rows[:2]]
    ((line, mean),) = told[-1].mean_error.items()
    assert (line.line, mean) == ("source", (pytest.approx(sum(filter(None, errors)) / 2), 2))


def test_running_means_are_over_one_line_of_the_table_and_of_its_error() -> None:
    table = table_from(
        {
            "models": [{"model": tiny.MODEL, "label": "tiny"}],
            "methods": [
                "norm",
                {"method": "norm", "label": "norm in twos", "protocol": {"batch": 2}},
                {"method": "norm", "label": "norm, whole set", "metric": "error_full"},
            ],
            "data": tiny.DATA,
            "corruptions": ["clean", "fog", "snow"],
        },
        name="t",
        where="t.yaml",
    )
    tracker = Tracker(table.cells(), workers=1, lines=lines_of(table))
    rows = [
        Row.of(cell, run="t", error_online=float(place), error_full=10.0 * cell.protocol.batch)
        for place, cell in enumerate(table.cells())
    ]
    for found in rows:
        progress = tracker.add(found)
    assert [line.line for line in progress.lines] == ["norm in twos"]
    assert {(line.block.partition(", ")[0], line.line) for line in progress.mean_error} == {
        ("tiny", "norm"),
        ("tiny", "norm in twos"),
        ("tiny", "norm, whole set"),
    }
    at_five = {line.line: mean for line, mean in progress.mean_error.items() if line.block.endswith("severity 5")}
    assert at_five == {"norm": (3.0, 2), "norm in twos": (4.0, 2), "norm, whole set": (1280.0, 2)}


def test_cells_of_no_table_are_averaged_under_one_protocol() -> None:
    cells = [cell("norm"), cell("norm", protocol={"batch": 2})]
    tracker = Tracker(cells, workers=1)
    for found in (row("norm"), row("norm", protocol={"batch": 2}, measured={"error_online": 90.0})):
        progress = tracker.add(found)
    assert {line.line: mean for line, mean in progress.mean_error.items()} == {
        "norm": (10.0, 1),
        "norm, batch 2": (90.0, 1),
    }


def test_time_left_follows_the_times_of_each_method() -> None:
    cells = [cell(method, corruption=name, severity=1) for method in ("source", "tent") for name in ("fog", "snow")]
    tracker = Tracker(cells, workers=2)
    assert tracker.snapshot().seconds_left is None
    fast = dataclasses.replace(row("source", corruption="fog", severity=1), seconds=2.0)
    slow = dataclasses.replace(row("tent", corruption="fog", severity=1), seconds=30.0)
    assert tracker.add(fast).seconds_left == pytest.approx((2 + 2 + 2) / 2)
    assert tracker.add(slow).seconds_left == pytest.approx((2 + 30) / 2)


def test_time_left_follows_the_times_under_each_protocol() -> None:
    twos = {"protocol": {"batch": 2}}
    cells = [cell("norm", corruption=name, severity=1, **change) for change in ({}, twos) for name in ("fog", "snow")]
    tracker = Tracker(cells, workers=1)
    tracker.add(dataclasses.replace(row("norm", corruption="fog", severity=1), seconds=2.0))
    slow = dataclasses.replace(row("norm", corruption="fog", severity=1, **twos), seconds=30.0)
    assert tracker.add(slow).seconds_left == pytest.approx(2 + 30)


def test_a_run_without_cells_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no cells"):
        run([], tmp_path / "run.jsonl")


def test_two_runs_never_write_one_file_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Journal(path), pytest.raises(SynaptuneError, match="another process"):
        run([cell("source")], path)


def test_cores_are_split_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)), raising=False)
    assert [default_workers(threads) for threads in (1, 3, 8, 99)] == [8, 2, 1, 1]


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_cell_and_is_replaced(tmp_path: Path) -> None:
    cells = [cell("source", model=tiny.DEADLY_MODEL), cell("source"), cell("norm")]
    dead, *others = run_cells(cells, out=tmp_path / "run.jsonl", run="test", workers=1)
    assert dead.status == "failed"
    assert "killed by signal 9" in str(dead.error)
    assert "memory" in str(dead.error)
    assert [other.status for other in others] == ["ok", "ok"]


def answer(job: Job) -> Iterator[Row]:
    """Stand in for `measure`: give rows at once."""
    return (Row.of(cell, run=job.run) for cell in job.cells)


@pytest.mark.slow
@pytest.mark.parametrize(("deaths", "status"), [(1, "ok"), (2, "failed")])
def test_a_cell_that_a_dead_worker_never_began_goes_to_another_once(
    deaths: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, left = _Worker.take, deaths

    def take_when_dead(self: _Worker, job: Job, **options: Any) -> None:
        nonlocal left
        if left and (self._is_ready or left < deaths):  # it has done a job, or follows one that died
            self.job = job
            while not self._is_ready:
                assert list(self.receive()) == []
            left -= 1
            self._process.kill()
            self._process.join()
        take(self, job, **options)

    monkeypatch.setattr(_Worker, "take", take_when_dead)
    jobs = jobs_of([cell("source"), cell("norm"), cell("tent")], run="test", done=())
    rows = {row.method: row for row in rows_of(jobs, measure=answer, workers=1)}
    assert [rows[method].status for method in ("source", "norm", "tent")] == ["ok", status, "ok"]
    assert status == "ok" or "killed by signal 9" in str(rows["norm"].error)


def refuse(job: Job) -> Any:
    """Stand in for `measure` in workers that end before they are ready."""
    raise NotImplementedError


def test_without_jobs_no_worker_is_started() -> None:
    assert list(rows_of([], measure=refuse, workers=4)) == []


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads signal masks from /proc")
def test_workers_do_not_hear_ctrl_c_from_their_first_moment_on() -> None:
    worker = _Worker(refuse)
    try:
        (child,) = multiprocessing.active_children()
        status = Path(f"/proc/{child.pid}/status").read_text()
    finally:
        worker.stop()
    blocked = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigBlk:"))
    assert blocked & 1 << (signal.SIGINT - 1)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ()), "the parent hears it as before"

"""A prediction run writes what the adapter says, survives bad files and stops, and resumes bit for bit."""

from __future__ import annotations

import copy
import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

import synaptune as st
from synaptune.errors import DataError, SynaptuneError
from synaptune.predicting import FileItem, PredictionRun, Preprocessing, Progress, RowMaker, find_items, open_table
from synaptune.predicting.journal import Journal
from synaptune.predicting.labels import FileLabels
from tests.support.models import SIZE, build
from tests.support.pictures import make_pictures

PREPROCESSING = Preprocessing(size=(SIZE, SIZE))


def make_run(
    out: Path,
    *,
    resume: bool = False,
    state: Path | None = None,
    method: str = "nhl",
    batch_size: int = 4,
    save_every: int = 2,
    maker: RowMaker = RowMaker(),  # noqa: B008 - frozen
    source: nn.Module | None = None,
    model: nn.Module | None = None,
) -> PredictionRun:
    adapter = st.adapt(model or build("bn"), method)
    table = open_table(out, maker.columns, resume=resume)
    run = PredictionRun(
        adapter,
        preprocessing=PREPROCESSING,
        rows=maker,
        table=table,
        journal=Journal(out, {"method": method, "batch_size": batch_size}),
        state=state,
        source=source,
        batch_size=batch_size,
        save_every=save_every,
    )
    run.prepare(resume=resume)
    return run


def stop_after(batches: int) -> object:
    """A listener that interrupts the run after so many batches."""
    seen = 0

    def listen(_: Progress) -> None:
        nonlocal seen
        seen += 1
        if seen == batches:
            raise KeyboardInterrupt

    return listen


def table_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def state_of(path: Path) -> dict[str, object]:
    """Tensors as bytes, and metadata; the file itself lists its metadata in no fixed order."""
    with safe_open(path, framework="np") as file:
        tensors = {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118
        return {**tensors, "about": file.metadata()}


def test_rows_are_what_the_adapter_returns_in_order(tmp_path: Path) -> None:
    pictures = make_pictures(tmp_path / "in", 10)
    summary = make_run(tmp_path / "out.csv").run(find_items([str(tmp_path / "in")]))
    rows = table_of(tmp_path / "out.csv")
    assert [row["image"] for row in rows] == [str(path) for path in pictures]
    assert [row["batch"] for row in rows] == ["1"] * 4 + ["2"] * 4 + ["3"] * 2
    adapter = st.adapt(build("bn"), "nhl")
    expected: list[int] = []
    for start in range(0, 10, 4):
        images = torch.stack([PREPROCESSING(FileItem(str(p)).read().pixels) for p in pictures[start : start + 4]])
        expected += adapter(images).argmax(1).tolist()
    assert [int(row["class"]) for row in rows] == expected
    assert (summary.images, summary.batches, summary.skipped, summary.interrupted) == (10, 3, 0, False)
    assert summary.entropy == pytest.approx(np.mean([float(row["entropy"]) for row in rows]))


def test_bad_files_are_skipped_counted_and_leave_no_gap(tmp_path: Path) -> None:
    make_pictures(tmp_path / "in", 9)
    (tmp_path / "in" / "picture1.png").write_bytes(b"")
    (tmp_path / "in" / "picture4.png").write_bytes(b"no picture")
    whole = (tmp_path / "in" / "picture6.png").read_bytes()
    (tmp_path / "in" / "picture6.png").write_bytes(whole[: len(whole) // 2])
    run = make_run(tmp_path / "out.csv")
    summary = run.run(find_items([str(tmp_path / "in")]))
    assert [row["batch"] for row in table_of(tmp_path / "out.csv")] == ["1"] * 4 + ["2"] * 2
    assert (summary.images, summary.skipped) == (6, 3)
    assert {reason for reason, _, _ in run.report.skipped} == {"empty file", "not an image", "truncated"}
    journal = json.loads((tmp_path / "out.csv.run.json").read_text())
    assert journal["complete"] is True
    assert journal["summary"]["skipped"] == 3
    assert {Path(lost["image"]).name: lost["reason"] for lost in journal["skipped"]} == {
        "picture1.png": "empty file",
        "picture4.png": "not an image",
        "picture6.png": "truncated",
    }


def test_the_journal_names_every_file_that_was_skipped(tmp_path: Path) -> None:
    make_pictures(tmp_path / "in", 3)
    broken = [tmp_path / "in" / f"x{number}.png" for number in range(9)]
    for path in broken:
        path.write_bytes(b"no picture")
    run = make_run(tmp_path / "out.csv")
    run.run(find_items([str(tmp_path / "in")]))
    ((_, count, examples),) = run.report.skipped
    assert count == 9 > len(examples)
    journal = json.loads((tmp_path / "out.csv.run.json").read_text())
    assert [lost["image"] for lost in journal["skipped"]] == [str(path) for path in broken]


def test_a_run_without_a_row_is_withdrawn(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("no picture")
    run = make_run(tmp_path / "out.csv")
    run.run(find_items([str(tmp_path / "note.txt")]))
    assert run.withdraw()
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_rows_are_never_withdrawn(tmp_path: Path) -> None:
    make_pictures(tmp_path / "in", 4)
    (tmp_path / "note.txt").write_text("no picture")
    run = make_run(tmp_path / "out.csv")
    run.run(find_items([str(tmp_path / "in")]))
    assert not run.withdraw()
    resumed = make_run(tmp_path / "out.csv", resume=True)
    resumed.run(find_items([str(tmp_path / "note.txt")]))
    assert not resumed.withdraw()
    before = (tmp_path / "out.csv").read_bytes()
    adapter = st.adapt(build("bn"), "nhl")
    refused = PredictionRun(
        adapter,
        preprocessing=PREPROCESSING,
        rows=RowMaker(),
        table=open_table(tmp_path / "out.csv", RowMaker().columns, resume=True),
        journal=Journal(tmp_path / "out.csv", {"method": "another"}),
    )
    with pytest.raises(DataError, match="other settings"):
        refused.prepare(resume=True)
    assert not refused.withdraw()
    assert (tmp_path / "out.csv").read_bytes() == before
    assert (tmp_path / "out.csv.run.json").exists()


@pytest.mark.parametrize("method", ["nhl", "tent", "dua", "norm-running", "source"])
@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_a_stopped_run_with_a_state_file_resumes_bit_for_bit(method: str, stop: int, tmp_path: Path) -> None:
    make_pictures(tmp_path / "in", 23)
    where = [str(tmp_path / "in")]
    make_run(tmp_path / "whole.csv", method=method, state=tmp_path / "whole.state").run(find_items(where))
    run = make_run(tmp_path / "out.csv", method=method, state=tmp_path / "out.state")
    with pytest.raises(KeyboardInterrupt):
        run.run(find_items(where), on_batch=stop_after(stop))  # type: ignore[arg-type]
    assert run.summary.interrupted
    assert len(table_of(tmp_path / "out.csv")) == 4 * stop
    resumed = make_run(tmp_path / "out.csv", method=method, state=tmp_path / "out.state", resume=True)
    resumed.run(find_items(where))
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert state_of(tmp_path / "out.state") == state_of(tmp_path / "whole.state")


@pytest.mark.parametrize("batches", [1, 3, 4])
def test_a_killed_run_resumes_bit_for_bit_from_the_last_saved_state(batches: int, tmp_path: Path) -> None:
    make_pictures(tmp_path / "in", 23)
    where = [str(tmp_path / "in")]
    make_run(tmp_path / "whole.csv", state=tmp_path / "whole.state").run(find_items(where))
    run = make_run(tmp_path / "out.csv", state=tmp_path / "out.state")
    snapshots: dict[str, bytes] = {}

    def photograph(_: Progress) -> None:
        if len(run.adapter.history) == batches:
            files = [path for path in tmp_path.iterdir() if path.name.startswith("out.")]
            snapshots.update({path.name: path.read_bytes() for path in files})

    run.run(find_items(where), on_batch=photograph)
    for path in list(tmp_path.glob("out.*")):
        path.unlink()
    for name, content in snapshots.items():  # what a power failure after that batch would have left
        (tmp_path / name).write_bytes(content)
    with (tmp_path / "out.csv").open("ab") as file:
        file.write(b"half a ro")
    resumed = make_run(tmp_path / "out.csv", state=tmp_path / "out.state", resume=True)
    resumed.run(find_items(where))
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_without_a_state_file_a_resumed_run_starts_from_the_source(tmp_path: Path) -> None:
    make_pictures(tmp_path / "in", 12)
    where = [str(tmp_path / "in")]
    with pytest.raises(KeyboardInterrupt):
        make_run(tmp_path / "out.csv").run(find_items(where), on_batch=stop_after(1))  # type: ignore[arg-type]
    summary = make_run(tmp_path / "out.csv", resume=True).run(find_items(where))
    assert (summary.images, summary.resumed) == (8, 4)
    images = [row["image"] for row in table_of(tmp_path / "out.csv")]
    assert len(images) == len(set(images)) == 12


def test_an_image_named_twice_is_predicted_twice_and_resumed_once(tmp_path: Path) -> None:
    (picture,) = make_pictures(tmp_path / "in", 1)
    where = [str(picture)] * 6
    with pytest.raises(KeyboardInterrupt):
        make_run(tmp_path / "out.csv").run(find_items(where), on_batch=stop_after(1))  # type: ignore[arg-type]
    assert make_run(tmp_path / "out.csv", resume=True).run(find_items(where)).images == 2
    assert len(table_of(tmp_path / "out.csv")) == 6


def test_a_run_is_resumed_under_its_own_settings_only(tmp_path: Path) -> None:
    make_pictures(tmp_path / "in", 4)
    make_run(tmp_path / "out.csv").run(find_items([str(tmp_path / "in")]))
    with pytest.raises(DataError, match="batch_size was 4 and is 8"):
        make_run(tmp_path / "out.csv", resume=True, batch_size=8)
    (tmp_path / "out.csv.run.json").unlink()
    with pytest.raises(DataError, match="journal"):
        make_run(tmp_path / "out.csv", resume=True)


def test_a_state_of_another_run_is_refused(tmp_path: Path) -> None:
    make_pictures(tmp_path / "in", 8)
    where = [str(tmp_path / "in")]
    make_run(tmp_path / "out.csv", state=tmp_path / "a.state", save_every=1).run(find_items(where))
    make_run(tmp_path / "other.csv", state=tmp_path / "b.state", save_every=1).run(find_items([where[0], where[0]]))
    with pytest.raises(DataError, match="was not written by the run"):
        make_run(tmp_path / "out.csv", state=tmp_path / "b.state", resume=True)
    (tmp_path / "a.state").unlink()
    with pytest.raises(DataError, match="no state file"):
        make_run(tmp_path / "out.csv", state=tmp_path / "a.state", resume=True)


def test_a_new_run_goes_on_from_a_state_file_that_is_there(tmp_path: Path) -> None:
    make_pictures(tmp_path / "in", 8)
    where, state = [str(tmp_path / "in")], tmp_path / "camera.state"
    make_run(tmp_path / "monday.csv", state=state).run(find_items(where))
    run = make_run(tmp_path / "tuesday.csv", state=state)
    assert run.adapter.steps == 2
    assert run.run(find_items(where)).images == 8
    assert run.adapter.steps == 4


class _Breaks(nn.Module):
    """Fails on the n-th call."""

    def __init__(self, inner: nn.Module, on: int):
        super().__init__()
        self.inner, self.on, self.calls = inner, on, 0

    def forward(self, images: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == self.on:
            raise RuntimeError("the lamp went out")
        logits: Tensor = self.inner(images)
        return logits


def test_a_failing_model_leaves_a_table_that_can_be_resumed(tmp_path: Path) -> None:
    make_pictures(tmp_path / "in", 20)
    where, state = [str(tmp_path / "in")], tmp_path / "out.state"
    run = make_run(tmp_path / "out.csv", state=state, model=_Breaks(build("bn"), on=4))
    with pytest.raises(RuntimeError, match="lamp"):
        run.run(find_items(where))
    assert len(table_of(tmp_path / "out.csv")) == 12
    resumed = make_run(tmp_path / "out.csv", state=state, resume=True, model=_Breaks(build("bn"), on=0))
    resumed.run(find_items(where))
    make_run(tmp_path / "whole.csv", model=_Breaks(build("bn"), on=0)).run(find_items(where))
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_the_source_model_is_compared_with_and_left_alone(tmp_path: Path) -> None:
    pictures = make_pictures(tmp_path / "in", 12)
    model = build("bn")
    source = copy.deepcopy(model)
    maker = RowMaker(with_source=True, labels=FileLabels((str(path), n % 5) for n, path in enumerate(pictures[:8])))
    run = make_run(tmp_path / "out.csv", source=source, model=model, maker=maker)
    summary = run.run(find_items([str(tmp_path / "in")]))
    rows = table_of(tmp_path / "out.csv")
    with torch.no_grad():
        images = torch.stack([PREPROCESSING(FileItem(str(path)).read().pixels) for path in pictures])
        expected = source(images).argmax(1).tolist()
    assert [int(row["source_class"]) for row in rows] == expected
    differing = sum(row["class"] != row["source_class"] for row in rows)
    assert summary.disagreement == differing / 12
    assert summary.labelled == 8
    wrong = sum(int(row["class"]) != n % 5 for n, row in enumerate(rows[:8]))
    assert summary.error == 100 * wrong / 8
    assert summary.source_error == 100 * sum(expected[n] != n % 5 for n in range(8)) / 8
    assert [row["correct"] for row in rows[8:]] == [""] * 4


def test_steps_and_rows_are_inside_of_whole(tmp_path: Path) -> None:
    make_pictures(tmp_path / "in", 8)
    out = tmp_path / "out.csv"
    run = make_run(out)
    lengths: list[tuple[int, int]] = []

    @contextmanager
    def whole() -> Iterator[None]:
        before = len(table_of(out))
        yield
        lengths.append((before, len(table_of(out))))

    run.run(find_items([str(tmp_path / "in")]), whole=whole)
    assert lengths == [(0, 4), (4, 8)]


def test_an_empty_stream_gives_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("no picture")
    summary = make_run(tmp_path / "out.csv").run(find_items([str(tmp_path / "note.txt")]))
    assert (summary.images, summary.skipped, summary.entropy) == (0, 1, None)
    assert table_of(tmp_path / "out.csv") == []
    json.dumps(summary.as_dict(), allow_nan=False)


def test_reading_ahead_is_bounded(tmp_path: Path) -> None:
    (picture,) = make_pictures(tmp_path, 1)
    taken = 0

    def endless() -> Iterator[FileItem]:
        nonlocal taken
        while True:
            taken += 1
            yield FileItem(str(picture))

    run = make_run(tmp_path / "out.csv")
    with pytest.raises(KeyboardInterrupt):
        run.run(endless(), on_batch=stop_after(3))  # type: ignore[arg-type]
    assert taken < 12 + 20
    assert issubclass(DataError, SynaptuneError)

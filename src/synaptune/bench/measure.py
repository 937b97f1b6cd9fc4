"""Measuring a job: one adapter, one stream, four errors, and what it cost.

The adapter sees images. Its step's logits are read by a guard that always says "keep", so that predictions from before
an update are known whatever the method's `predict` says; those from after it come from the adapter itself or, outside
the clock, from `predict`. Labels meet logits here and nowhere else.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from synaptune._version import __version__
from synaptune.api import adapt
from synaptune.bench.cell import Cell
from synaptune.bench.conditions import settings
from synaptune.bench.job import Job
from synaptune.bench.own_files import own_files
from synaptune.bench.protocol import Protocol
from synaptune.bench.row import BEFORE_THE_STREAM, Row, Status
from synaptune.bench.sources import Subject, load_subject
from synaptune.core.adapter import Adapter
from synaptune.core.guard import KEEP, Guard, Verdict
from synaptune.core.history import BatchRecord
from synaptune.core.method import Method, Step
from synaptune.data import data_root, shared_root
from synaptune.errors import DataError, IncompatibleModelError, OptionError, WeightsError
from synaptune.metrics import PeakMemory, Tally, latency
from synaptune.streams import Stream

__all__ = ["Measured", "Witness", "measure", "measure_cell", "portable", "versions"]

_MOST_EVENTS = 100
_MOST_NAMES = 100  # every row has them


class Witness(Guard):
    """Remembers the newest step and never objects."""

    def __init__(self) -> None:
        self.step: Step | None = None

    def judge(self, step: Step, record: BatchRecord) -> Verdict:
        self.step = step
        return KEEP


@dataclass
class Measured:
    """What one pass gave."""

    online: Tally = field(default_factory=Tally)
    after: Tally = field(default_factory=Tally)
    seconds: list[float] = field(default_factory=list)
    forwards: int = 0
    backwards: int = 0
    weight_distance: float | None = None
    entropies: list[float] = field(default_factory=list)
    drifts: list[float | None] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    stages: list[list[float]] = field(default_factory=list)
    full: float | None = None
    peak_mb: float | None = None

    def as_row(self, cell: Cell) -> dict[str, Any]:
        """Return the measured keys of a row."""
        # With a horizon the pass covers a part of the set, which no other error may be compared with.
        whole = cell.protocol.horizon is None
        first = self.online if self.online.images else self.after
        times = latency(self.seconds)
        return {
            "error_online": _error(self.online) if whole else None,
            "error_after": _error(self.after) if whole else None,
            "error_full": self.full,
            "error_oracle": min((error for batches, error in self.stages if batches > 0), default=None),
            "ece": round(first.calibration_error(), 4) if whole else None,
            "ms_per_batch_p50": times.p50,
            "ms_per_batch_p95": times.p95,
            "forwards": self.forwards,
            "backwards": self.backwards,
            "peak_mb": self.peak_mb,
            "error_per_batch": first.error_per_batch,
            "entropy_per_batch": self.entropies,
            "drift_per_batch": self.drifts if any(drift is not None for drift in self.drifts) else None,
            "weight_distance_per_batch": self.distances,
            "predicted_per_class": first.predicted_per_class,
            "labels_per_class": first.labels_per_class,
            "error_per_stage": self.stages or None,
            "weight_distance": self.weight_distance,
            "events": self._shortened_events(),
        }

    def _shortened_events(self) -> list[str]:
        more = len(self.events) - _MOST_EVENTS
        return [*self.events[:_MOST_EVENTS], f"and {more} more"] if more > 0 else self.events


def measure(job: Job) -> Iterator[Row]:
    """Measure the cells of a job, and give the rows that are wanted. Errors become rows."""
    adapter: Adapter | None = None
    broken = ""
    try:
        for cell in job.cells:
            start = time.perf_counter()
            if broken:
                row = Row.of(
                    cell, run=job.run, status="failed", error=f"an earlier cell of its stream failed: {broken}"
                )
            else:
                try:
                    with settings(cell):
                        subject = load_subject(cell)
                        adapter = adapter or _adapter_of(subject, cell)
                        row = measure_cell(cell, adapter, subject, run=job.run, since=start)
                except (Exception, SystemExit) as error:  # noqa: BLE001  # what a method or a file does costs its cell
                    broken = portable(f"{type(error).__name__}: {error}")
                    row = Row.of(cell, run=job.run, status=_status_of(error), error=broken)
            if cell.key in job.wanted:
                yield row
    finally:
        if adapter is not None:
            adapter.detach()


def measure_cell(cell: Cell, adapter: Adapter, subject: Subject, *, run: str, since: float | None = None) -> Row:
    """Run one adapter over the stream of a cell.

    Args:
        cell: what is measured.
        adapter: made for the cell's method and options.
        subject: the cell's images and labels.
        run: name of the run.
        since: `time.perf_counter()` when work on the cell began.
    """
    start = time.perf_counter() if since is None else since
    measured = _one_pass(adapter, subject, cell)
    measured.events[:0] = [f"{BEFORE_THE_STREAM}{text}" for text in subject.skipped]
    return Row.of(
        cell,
        run=run,
        images=subject.stream.samples,
        weights=Path(subject.loaded.card.weights).name,
        versions=versions(cell.protocol.device),
        files=own_files(cell),
        fingerprint=adapter.fingerprint,
        recipe=subject.recipe.fields,
        recipe_digest=subject.recipe.digest,
        frost=subject.frost,
        **measured.as_row(cell),
        class_names=_class_names(subject),
        seconds=round(time.perf_counter() - start, 3),
    )


def _class_names(subject: Subject) -> list[str] | None:
    names = subject.loaded.card.class_names
    return list(names) if 0 < len(names) <= _MOST_NAMES else None


def versions(device: str = "cpu") -> dict[str, str]:
    """Return the versions of everything that decides numbers; a GPU is named."""
    gpu = {"gpu": torch.cuda.get_device_name(device)} if torch.device(device).type == "cuda" else {}
    return {
        **gpu,
        "synaptune": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _adapter_of(subject: Subject, cell: Cell) -> Adapter:
    model = subject.loaded.model.to(cell.protocol.device)
    if cell.protocol.channels_last:
        model = model.to(memory_format=torch.channels_last)
    adapter = adapt(model, cell.method, **_keywords(cell))
    adapter.guards = (*adapter.guards, Witness())
    return adapter


def _keywords(cell: Cell) -> dict[str, Any]:
    return {name: getattr(cell.options, name) for name in cell.options.as_dict()}


def _one_pass(adapter: Adapter, subject: Subject, cell: Cell) -> Measured:
    protocol, measured = cell.protocol, Measured()
    evaluation = dataclasses.replace(subject.stream, batch=protocol.full_batch or protocol.batch)
    remembers = not _forgets(adapter)
    fixed = _is_fixed(adapter)
    if protocol.oracle_every and remembers:
        measured.stages.append([0, _whole_set(adapter, subject, evaluation, protocol)])
    done = 0
    with PeakMemory(protocol.device) as memory:
        for images, labels in _batches(subject, subject.stream, protocol):
            _one_batch(adapter, images, labels, measured, ask_after=protocol.after and remembers and not fixed)
            done += 1
            if protocol.oracle_every and remembers and done % protocol.oracle_every == 0:
                error = measured.stages[0][1] if fixed else _whole_set(adapter, subject, evaluation, protocol)
                measured.stages.append([done, error])
            if done == protocol.horizon:
                break
    measured.peak_mb = memory.megabytes
    said_before = fixed and measured.online.images > 0
    if said_before and protocol.after:
        measured.after = measured.online
    if said_before and protocol.full and protocol.horizon is None and evaluation.batch == protocol.batch:
        measured.full = _error(measured.online)
    elif protocol.full and remembers:
        known = measured.stages and measured.stages[-1][0] == done
        measured.full = measured.stages[-1][1] if known else _whole_set(adapter, subject, evaluation, protocol)
    return measured


def _one_batch(adapter: Adapter, images: Tensor, labels: Tensor, measured: Measured, *, ask_after: bool) -> None:
    returned = adapter(images)
    step = next(guard.step for guard in adapter.guards if isinstance(guard, Witness))
    assert step is not None
    if int(labels.max()) >= returned.shape[1]:
        raise OptionError(
            f"the data have labels up to {int(labels.max())} and the model {returned.shape[1]} outputs; they do not "
            "belong together"
        )
    record = adapter.history[-1]
    measured.seconds.append(record.seconds)
    measured.forwards += record.forwards
    measured.backwards += record.backwards
    measured.weight_distance = record.weight_distance
    measured.entropies.append(round(record.entropy, 4))
    measured.drifts.append(None if record.drift is None else round(record.drift, 4))
    measured.distances.append(float(f"{record.weight_distance:.4g}"))
    measured.events += [f"{record.step}: {event}" for event in record.events]
    # A method that returns its own logits from after the update learns image by image: there is no "before".
    returns_after = adapter.options.predict == "after"
    if step.after is None or not returns_after:
        measured.online.add(step.logits, labels)
    if returns_after:
        measured.after.add(returned, labels)
    elif ask_after:
        measured.after.add(adapter.predict(images), labels)


def _whole_set(adapter: Adapter, subject: Subject, stream: Stream, protocol: Protocol) -> float:
    tally = Tally()
    for images, labels in _batches(subject, stream, protocol):
        tally.add(adapter.predict(images), labels)
    return round(tally.error, 4)


def _batches(subject: Subject, stream: Stream, protocol: Protocol) -> Iterator[tuple[Tensor, Tensor]]:
    """Play a stream as pairs of images and labels, numbered as the model's outputs."""
    for batch in stream:
        images = batch.images.to(protocol.device, memory_format=_memory_format(protocol))
        yield images, subject.numbering[stream.labels[batch.index]]


def _memory_format(protocol: Protocol) -> torch.memory_format:
    return torch.channels_last if protocol.channels_last else torch.contiguous_format


def _is_fixed(adapter: Adapter) -> bool:
    """Whether the method predicts a batch the same at any time, so that once is enough."""
    # What is not in the model's tensors is in the method's own state, or in its way to predict.
    kind = type(adapter.method)
    return not adapter.touched and kind.predict is Method.predict and kind.state is Method.state


def _forgets(adapter: Adapter) -> bool:
    """Whether the method goes back to the source for every image, so that it has no state to evaluate."""
    return getattr(adapter.options, "variant", None) == "slow"


def _error(tally: Tally) -> float | None:
    return round(tally.error, 4) if tally.images else None


def _status_of(error: BaseException) -> Status:
    if isinstance(error, DataError | WeightsError):
        return "missing"
    return "inapplicable" if isinstance(error, IncompatibleModelError) else "failed"


def portable(text: str) -> str:
    """Leave this machine's folders out of what is written to a run."""
    # A folder that nobody named has a place that everybody has; a variable that is not set would tell nothing.
    data = "$SYNAPTUNE_DATA" if os.environ.get("SYNAPTUNE_DATA") else "~/.cache/synaptune"
    folders = [(data_root(), data), (Path.cwd(), "."), (shared_root(), "$SYNAPTUNE_SHARED")]
    for folder, name in (*folders, (Path.home(), "~")):
        # The root folder is a prefix of every path and no secret.
        if folder is not None and str(folder) != os.sep:
            text = text.replace(str(folder), name)
    return text

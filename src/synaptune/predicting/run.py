"""A prediction run: pictures in, rows out, the adapter learning in between; it can be stopped, and resumed.

With a state file, the state is saved every few batches and at the end, together with the number of rows that belong
to it; a resumed run cuts the table back to that number and goes on from that state, so that its rows are, bit for
bit, those of a run that was never stopped. Without one, what was learnt is gone when the run stops: a resumed run
starts adapting from the source model, on the images that are not in the table yet.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from synaptune.core.adapter import Adapter
from synaptune.core.history import BatchRecord
from synaptune.data.report import ReadReport, ReportKeeper
from synaptune.errors import DataError
from synaptune.predicting.items import Item
from synaptune.predicting.journal import Journal, SavedState, digest_of
from synaptune.predicting.preprocessing import Preprocessing
from synaptune.predicting.reading import read_ahead
from synaptune.predicting.rows import Row, RowMaker
from synaptune.predicting.table import Table

__all__ = ["PredictionRun", "Progress", "Summary"]


@dataclass(frozen=True)
class Progress:
    """Where a run stands after a batch."""

    images: int
    seconds: float
    record: BatchRecord

    @property
    def images_per_second(self) -> float:
        """Throughput so far, reading included."""
        return self.images / self.seconds if self.seconds > 0 else 0.0


@dataclass
class Summary:
    """What a run did; images of earlier runs of the same table are counted in `resumed` only.

    Attributes:
        images: predicted and written.
        resumed: in the table already when the run began.
        batches: of this run.
        seconds: wall time of this run.
        entropy: mean over the images, in nats.
        drift: of the last batch (see `BatchRecord.drift`).
        weight_distance: of the last batch.
        disagreement: share of images on which the source model says another class; None if it was not asked.
        labelled: images whose true class is known.
        error: share of wrong predictions among them, in percent.
        source_error: the same of the source model.
        events: what guards and methods reported, with counts.
        interrupted: whether the run was stopped.
        skipped: images that could not be read.
    """

    images: int = 0
    resumed: int = 0
    batches: int = 0
    seconds: float = 0.0
    entropy: float | None = None
    drift: float | None = None
    weight_distance: float | None = None
    disagreement: float | None = None
    labelled: int = 0
    error: float | None = None
    source_error: float | None = None
    events: dict[str, int] = field(default_factory=dict)
    interrupted: bool = False
    skipped: int = 0
    reading: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "images_per_second": self.images / self.seconds if self.seconds else 0.0}


class _Tally:
    """Running sums behind a summary."""

    def __init__(self) -> None:
        self.entropies = 0.0
        self.differing = self.labelled = self.wrong = self.source_wrong = 0

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            entropy = row["entropy"]
            self.entropies += float(entropy) if entropy is not None else float("nan")
            self.differing += row.get("source_class", row["class"]) != row["class"]
            label = row.get("label")
            if label is not None:
                self.labelled += 1
                self.wrong += row["class"] != label
                self.source_wrong += row.get("source_class", label) != label

    def fill(self, summary: Summary, *, with_source: bool) -> None:
        if summary.images:
            summary.entropy = self.entropies / summary.images
            summary.disagreement = self.differing / summary.images if with_source else None
        summary.labelled = self.labelled
        if self.labelled:
            summary.error = 100 * self.wrong / self.labelled
            summary.source_error = 100 * self.source_wrong / self.labelled if with_source else None


class _ListKeeper(ReportKeeper):
    """Keeps every name that was skipped, for the journal; the report has room for a few."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[dict[str, str]] = []

    def skip(self, path: str | Path, reason: str) -> None:
        super().skip(path, reason)
        self.lost.append({"image": str(path), "reason": reason})


class PredictionRun:
    """Feeds pictures to an adapter and its predictions to a table.

    Args:
        adapter: what predicts and adapts.
        preprocessing: from pixels to network input.
        rows: from logits to rows.
        table: where rows go.
        journal: of the run; without one it cannot be resumed.
        state: the file that the adapted state is read from, if it is there, and saved to.
        source: an untouched copy of the model, to compare with.
        batch_size: images per step.
        save_every: batches between two savings of the state.
        workers: threads that decode.
        device: where the model is.
    """

    def __init__(
        self,
        adapter: Adapter,
        *,
        preprocessing: Preprocessing,
        rows: RowMaker,
        table: Table,
        journal: Journal | None = None,
        state: Path | None = None,
        source: nn.Module | None = None,
        batch_size: int = 64,
        save_every: int = 20,
        workers: int = 2,
        device: torch.device | str = "cpu",
    ):
        self.adapter, self.preprocessing, self.rows, self.table = adapter, preprocessing, rows, table
        self.journal, self.state, self.source = journal, state, source
        self.batch_size, self.save_every, self.workers = batch_size, save_every, workers
        self.device = torch.device(device)
        self.summary = Summary()
        self._keeper = _ListKeeper()
        self._tally = _Tally()
        self._unsaved = 0
        self._torn = False  # whether adapter and table may disagree about which batch was the last

    @property
    def report(self) -> ReadReport:
        """What was found, skipped and converted."""
        return self._keeper.report()

    def prepare(self, *, resume: bool) -> None:
        """Bring adapter and table to where the run goes on, or begin."""
        try:
            self._prepare(resume=resume)
        except BaseException:
            self.table.close(complete=False)
            raise

    def _prepare(self, *, resume: bool) -> None:
        if self.journal is not None and resume and self.table.images:
            self.journal.resume()
            if self.state is not None:
                self._resume_state(self.journal, self.state)
        else:
            if self.state is not None and self.state.exists():
                self.adapter.load(self.state)
            if self.journal is not None:
                self.journal.note(SavedState(digest_of(self.state) if self.state else "", 0, 0, self.table.position()))
        self.summary.resumed = len(self.table.images)

    def _resume_state(self, journal: Journal, state: Path) -> None:
        place = journal.place_of(state)
        if place.rows > len(self.table.images):
            raise DataError(
                f"{self.table.path} holds {len(self.table.images)} rows, but {state} was saved after {place.rows}: "
                "rows are missing; start again with --overwrite"
            )
        self.table.cut(rows=place.rows, position=place.position)
        journal.batches, journal.saved = place.batches, [place]
        if place.digest:
            self.adapter.load(state)

    def run(
        self,
        items: Iterable[Item],
        *,
        on_batch: Callable[[Progress], None] = lambda _: None,
        whole: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Summary:
        """Predict what is not in the table yet.

        Args:
            items: the images, in the order of the stream.
            on_batch: told after every batch.
            whole: context inside of which interrupts should wait.

        Raises:
            KeyboardInterrupt: after everything that was predicted has been put in order.
        """
        start = time.perf_counter()
        read = read_ahead(self._remaining(items), self.preprocessing, keeper=self._keeper, workers=self.workers)
        finished = False
        try:
            for names, images in _batched(read, self.batch_size):
                with whole():
                    record = self._step(names, images)
                    self.summary.seconds = time.perf_counter() - start
                    on_batch(Progress(self.summary.images, self.summary.seconds, record))
            finished = True
        except KeyboardInterrupt:
            self.summary.interrupted = True
            raise
        finally:
            read.close()
            self.summary.seconds = time.perf_counter() - start
            self._finish(complete=finished)
        return self.summary

    def _remaining(self, items: Iterable[Item]) -> Iterator[Item]:
        written = Counter(self.table.images)
        for item in items:
            if written[item.name] > 0:
                written[item.name] -= 1
            else:
                yield item

    def _step(self, names: list[str], images: Tensor) -> BatchRecord:
        images = images.to(self.device)
        classes = None
        if self.source is not None:
            with torch.inference_mode():
                classes = self.source(images).argmax(1).cpu()
        self._torn = True
        logits = self.adapter(images)
        number = (self.journal.batches if self.journal is not None else self.summary.batches) + 1
        rows = self.rows.rows(names, logits, batch=number, source=classes)
        self.table.append(rows)
        self._tally.add(rows)
        record: BatchRecord = self.adapter.history[-1]
        self._count(record)
        if self.journal is not None:
            self.journal.batches = number
        self._torn = False
        self._unsaved += 1
        if self._unsaved >= self.save_every:
            self._save_state()
        return record

    def _count(self, record: BatchRecord) -> None:
        self.summary.images += record.images
        self.summary.batches += 1
        self.summary.drift, self.summary.weight_distance = record.drift, record.weight_distance
        for event in record.events:
            self.summary.events[event] = self.summary.events.get(event, 0) + 1

    def _save_state(self) -> None:
        if self.state is None or not self._unsaved or self._torn:
            return
        self._unsaved = 0
        if self.journal is None:
            self.adapter.save(self.state)
            return
        # Journal first: should the machine stop in between, the old state is in it as well.
        fresh = self.state.with_name(f".{self.state.name}.new")
        try:
            self.adapter.save(fresh)
            rows = self.summary.resumed + self.summary.images
            self.journal.note(SavedState(digest_of(fresh), self.journal.batches, rows, self.table.position()))
            fresh.replace(self.state)
        finally:
            fresh.unlink(missing_ok=True)

    def _finish(self, *, complete: bool) -> None:
        self._tally.fill(self.summary, with_source=self.source is not None)
        report = self.report
        self.summary.skipped, self.summary.reading = report.lost, report.as_dict()
        self._save_state()
        self.table.close(complete=complete)
        if self.journal is not None:
            self.journal.write(complete=complete, summary=self.summary.as_dict(), skipped=self._keeper.lost)

    def withdraw(self) -> bool:
        """Take away table and journal if not one row is in them, so that the corrected command finds the place free.

        Returns:
            whether there was nothing to keep.
        """
        # A run that was not even prepared has not counted the rows that it was to go on after.
        if self.summary.images or self.summary.resumed or self.table.images:
            return False
        self.table.remove()
        if self.journal is not None:
            self.journal.path.unlink(missing_ok=True)
        return True


def _batched(pairs: Iterator[tuple[str, Tensor]], size: int) -> Iterator[tuple[list[str], Tensor]]:
    while group := list(islice(pairs, size)):
        yield [name for name, _ in group], torch.stack([image for _, image in group])

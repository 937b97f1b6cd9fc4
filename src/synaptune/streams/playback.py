"""Playing a stream: which planned batches reach the method, and the reading of their images."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from synaptune.data import Images
from synaptune.data.images import read_pixels
from synaptune.errors import OptionError
from synaptune.streams.clock import Clock, Ticking, Waiting

__all__ = ["Batch", "PlannedBatch", "Playback"]

_AHEAD_PER_WORKER = 2


@dataclass(frozen=True)
class PlannedBatch:
    """What a stream will hand out, before any image is read.

    Attributes:
        number: position in the stream, from 0.
        index: sample indices, int64, (batch,).
        domain: name of the domain, or "mixed".
        reset: whether the method is to start afresh before it.
    """

    number: int
    index: npt.NDArray[np.int64]
    domain: str
    reset: bool


@dataclass(frozen=True, eq=False)
class Batch:
    """What the world shows; no way leads from here to a label.

    Attributes:
        images: float32 in [0, 1], (batch, 3, height, width).
        index: sample indices, int64, (batch,); the key to `Stream.labels`, for the scorer.
        domain: name of the domain, or "mixed".
        number: position in the stream, counting batches that were missed.
        reset: whether the method is to start afresh before this batch.
        missed: indices of the samples that went by unseen since the last batch.
        unreadable: indices of samples that belong here, or to a batch just before that was wholly so, but whose file
            cannot be read.
        time: simulated second at which the batch was complete; None for a stream that waits.
    """

    images: Tensor
    index: Tensor
    domain: str
    number: int
    reset: bool
    missed: Tensor
    unreadable: Tensor
    time: float | None = None

    def __len__(self) -> int:
        return len(self.index)


@dataclass
class _Delivery:
    """A planned batch that the clock lets through, with what it has to carry along."""

    planned: PlannedBatch
    reset: bool
    missed: list[npt.NDArray[np.int64]]
    time: float | None
    loading: Future[tuple[Tensor, npt.NDArray[np.bool_]]] | None = field(default=None)


class Playback(Iterator[Batch]):
    """One pass through a stream.

    With a clock that does not wait and has no declared cost, call `took` between two batches:

    ```python
    playback = stream.play()
    for batch in playback:
        ...
        playback.took(seconds)
    ```
    """

    def __init__(self, plan: Iterator[PlannedBatch], images: Sequence[Images], clock: Clock, *, workers: int):
        self._images, self._clock = images, clock
        self._starts = np.cumsum([0, *map(len, images)])
        self._reported: float | None = None
        self._missed_at_end: list[npt.NDArray[np.int64]] = []
        self._missed = 0
        self._is_over = False
        self._deliveries = self._decide(plan)
        # What the caller will report is not known beforehand, so nothing can be read ahead then.
        is_known = isinstance(clock, Waiting) or clock.cost_per_image is not None
        self._pool = ThreadPoolExecutor(workers, "synaptune-stream") if workers and is_known else None
        self._ahead: deque[_Delivery] = deque()
        self._depth = _AHEAD_PER_WORKER * workers
        self._carried_reset = False
        self._carried_unreadable: list[npt.NDArray[np.int64]] = []
        self._carried_missed: list[npt.NDArray[np.int64]] = []

    @property
    def missed(self) -> int:
        """Samples that went by unseen so far."""
        return self._missed + len(self.missed_at_end)

    @property
    def missed_at_end(self) -> Tensor:
        """Indices of samples that went by after the last batch; empty until the playback is over."""
        return _joined([*self._carried_missed, *self._missed_at_end] if self._is_over else [])

    @property
    def unreadable_at_end(self) -> Tensor:
        """Indices of unreadable samples after the last batch; empty until the playback is over."""
        return _joined(self._carried_unreadable if self._is_over else [])

    def took(self, seconds: float) -> None:
        """Report how long the work on the last batch took, by whatever measure."""
        if not seconds >= 0:
            raise OptionError(f"work takes 0 seconds or more, not {seconds!r}")
        self._reported = float(seconds)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        while True:
            try:
                delivery = self._next_delivery()
            except StopIteration:
                self._is_over = True
                raise
            pixels, readable = delivery.loading.result() if delivery.loading else self._load(delivery.planned)
            batch = self._finish(delivery, pixels, readable)
            if batch is not None:
                return batch

    def close(self) -> None:
        """Stop reading ahead; the playback is over."""
        self._deliveries = iter(())
        self._ahead.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decide(self, plan: Iterator[PlannedBatch]) -> Iterator[_Delivery]:
        """Let the clock drop what the method is too slow for."""
        if isinstance(self._clock, Waiting):
            for planned in plan:
                yield _Delivery(planned, planned.reset, [], None)
            return
        free, arrived, reset = 0.0, 0, False
        for planned in plan:
            arrived += len(planned.index)
            ready = self._clock.ready_at(arrived)
            reset |= planned.reset
            if self._clock.is_missed(ready, free):
                self._missed_at_end.append(planned.index)
                continue
            missed, self._missed_at_end = self._missed_at_end, []
            yield _Delivery(planned, reset, missed, ready)
            reset = False
            free = ready + self._cost(self._clock, planned)

    def _cost(self, clock: Ticking, planned: PlannedBatch) -> float:
        declared = clock.cost_of(len(planned.index))
        cost = declared if declared is not None else self._reported
        self._reported = None
        if cost is None:
            raise OptionError(
                "this stream does not wait, so it must know how long the last batch took: call took(seconds) on the "
                "playback after each batch, or declare cost_per_image on the clock"
            )
        return cost

    def _next_delivery(self) -> _Delivery:
        if self._pool is None:
            return next(self._deliveries)
        while len(self._ahead) < self._depth and (delivery := next(self._deliveries, None)) is not None:
            delivery.loading = self._pool.submit(self._load, delivery.planned)
            self._ahead.append(delivery)
        if not self._ahead:
            self.close()
            raise StopIteration
        return self._ahead.popleft()

    def _load(self, planned: PlannedBatch) -> tuple[Tensor, npt.NDArray[np.bool_]]:
        """Read the images of a batch; images that cannot be read are left out and marked."""
        domain_of = np.searchsorted(self._starts, planned.index, side="right") - 1
        readable = np.zeros(len(planned.index), np.bool_)
        pixels = np.empty((len(planned.index), *self._images[0].shape[1:]), np.uint8)
        for number in np.unique(domain_of):
            (where,) = np.nonzero(domain_of == number)
            found = read_pixels(self._images[number], planned.index[where] - self._starts[number])
            readable[where] = found.readable
            pixels[where[found.readable]] = found.pixels
        channels_first = np.ascontiguousarray(pixels[readable].transpose(0, 3, 1, 2))
        return torch.from_numpy(channels_first).float().div_(255), readable

    def _finish(self, delivery: _Delivery, images: Tensor, readable: npt.NDArray[np.bool_]) -> Batch | None:
        """Make the batch, or keep what it carries for the next one if none of its images can be read."""
        index = delivery.planned.index
        self._carried_reset |= delivery.reset
        self._carried_missed += delivery.missed
        self._carried_unreadable.append(index[~readable])
        if not readable.any():
            return None
        self._missed += sum(map(len, self._carried_missed))
        batch = Batch(
            images=images,
            index=torch.from_numpy(index[readable]),
            domain=delivery.planned.domain,
            number=delivery.planned.number,
            reset=self._carried_reset,
            missed=_joined(self._carried_missed),
            unreadable=_joined(self._carried_unreadable),
            time=delivery.time,
        )
        self._carried_reset, self._carried_missed, self._carried_unreadable = False, [], []
        return batch


def _joined(parts: Sequence[npt.NDArray[np.int64]]) -> Tensor:
    return torch.from_numpy(np.concatenate([np.empty(0, np.int64), *parts]))

"""Decode pictures a little ahead of the model, in order, on a few threads; memory is bounded by how far ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from torch import Tensor

from synaptune.errors import BadImageError
from synaptune.predicting.items import Item

if TYPE_CHECKING:
    from synaptune.data.report import ReportKeeper

__all__ = ["read_ahead"]

_AHEAD_PER_WORKER = 8


def read_ahead(
    items: Iterable[Item], prepare: Callable[..., Tensor], *, keeper: ReportKeeper, workers: int = 2
) -> Generator[tuple[str, Tensor], None, None]:
    """Give (name, network input) for every picture that can be read; the others go to the keeper's report.

    Args:
        items: what to read.
        prepare: from pixels to network input.
        keeper: counts what was found, skipped and converted.
        workers: how many threads decode.
    """

    def load(item: Item) -> Tensor:
        pixels, steps = item.read()
        keeper.convert(item.name, steps)
        return prepare(pixels)

    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="synaptune-read")
    waiting: deque[tuple[Item, Future[Tensor]]] = deque()
    source = iter(items)
    try:
        exhausted = False
        while waiting or not exhausted:
            while not exhausted and len(waiting) < workers * _AHEAD_PER_WORKER:
                item = next(source, None)
                exhausted = item is None
                if item is not None:
                    keeper.found()
                    waiting.append((item, pool.submit(load, item)))
            if waiting:
                item, result = waiting.popleft()
                try:
                    image = result.result()
                except BadImageError as error:
                    keeper.skip(item.name, getattr(error, "reason", str(error)))
                else:
                    yield item.name, image
    finally:
        pool.shutdown(wait=True, cancel_futures=True)

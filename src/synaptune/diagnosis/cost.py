"""Measured cost of a step against plain inference, in time and in memory.

Time: the fastest of a few repeats, plain inference and all methods taking turns, so that whatever else the machine
does hits all of them alike. Memory: tensors alive at once, counted operation by operation, so the figure means the
same on every device; what a kernel needs inside itself is not in it.
"""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from synaptune.api import adapt
from synaptune.core.adapter import SmallBatchWarning
from synaptune.core.layout import Layout
from synaptune.diagnosis.record import Cost, Recommendation
from synaptune.errors import SynaptuneError

__all__ = ["measure_costs", "measure_plain", "peak_bytes"]

_REPEATS = 3
_SLOW_SECONDS = 1.0
"""Where plain inference takes longer, one repeat must do."""


def measure_plain(model: nn.Module, sample: Tensor) -> float:
    """Seconds of one plain inference, after one to warm up."""
    with torch.no_grad():
        model(sample)
        return _seconds(lambda: model(sample), sample.device)


def measure_costs(
    model: nn.Module,
    sample: Tensor,
    candidates: Sequence[Recommendation],
    *,
    layout: Layout | None,
) -> tuple[tuple[Cost, ...], dict[str, str]]:
    """Run the candidates on a batch; `model` must be one that may be worked on, in eval mode.

    Returns:
        The costs in the order of the candidates, and for those that failed, why.
    """
    plain_seconds, plain_bytes = float("inf"), peak_bytes(lambda: _infer(model, sample))
    seconds: dict[str, float] = {}
    extra: dict[str, int] = {}
    failed: dict[str, str] = {}
    for candidate in candidates:
        try:
            with _step(model, sample, candidate, layout) as step:
                extra[candidate.method] = max(0, peak_bytes(step) - plain_bytes)
        except (SynaptuneError, RuntimeError) as error:
            failed[candidate.method] = str(error).splitlines()[0]
    repeats = 1 if measure_plain(model, sample) > _SLOW_SECONDS else _REPEATS
    for _ in range(repeats):
        plain_seconds = min(plain_seconds, _seconds(lambda: _infer(model, sample), sample.device))
        for candidate in candidates:
            if candidate.method not in failed:
                with _step(model, sample, candidate, layout) as step:
                    taken = _seconds(step, sample.device)
                seconds[candidate.method] = min(taken, seconds.get(candidate.method, float("inf")))
    costs = tuple(Cost(name, took, took / plain_seconds, extra[name]) for name, took in seconds.items())
    return costs, failed


@contextmanager
def _step(
    model: nn.Module, sample: Tensor, candidate: Recommendation, layout: Layout | None
) -> Iterator[Callable[[], object]]:
    """One step of a method on the sample, ready to be run; undone on leaving."""
    with adapt(model, candidate.method, layout=layout, **candidate.options) as adapter, warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallBatchWarning)  # the diagnosis says it in its own place
        yield lambda: adapter(sample)


def _infer(model: nn.Module, sample: Tensor) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(sample)
        return logits


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    _finish(device)
    start = time.perf_counter()
    run()
    _finish(device)
    return time.perf_counter() - start


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_bytes(run: Callable[[], object]) -> int:
    """The most bytes that tensors made during `run` hold at once.

    >>> peak_bytes(lambda: torch.zeros(1000) + 1)
    8000
    """
    with _LiveTensors() as live:
        result = run()
    del result
    return int(live.peak)


class _LiveTensors(TorchDispatchMode):
    """Follows the storages that operations make, until they are freed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now: int = 0
        self.peak: int = 0
        self._alive: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self._follow(leaf.untyped_storage())
        return result

    def _follow(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self._alive:
            return
        size = storage.nbytes()

        def freed(_: object) -> None:
            self.now -= size
            self._alive.pop(key, None)

        self._alive[key] = weakref.ref(storage, freed)
        self.now += size
        self.peak = max(self.peak, self.now)

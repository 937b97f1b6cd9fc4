"""Under what a cell is measured in its process: threads, arithmetic, seeds. All are put back."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from synaptune.bench.cell import Cell
from synaptune.core.adapter import SmallBatchWarning

__all__ = ["settings"]


@contextmanager
def settings(cell: Cell) -> Iterator[None]:
    """Pin threads, arithmetic and the global seeds for one cell, and put them back."""
    threads = torch.get_num_threads()
    on_cpu = torch.device(cell.protocol.device).type == "cpu"
    torch.set_num_threads(cell.protocol.threads)
    try:
        with _seeded(cell.seed, devices=[] if on_cpu else None), warnings.catch_warnings():
            warnings.simplefilter("ignore", SmallBatchWarning)  # the row's events say it
            # On a GPU: kernels that sum in a fixed order, in full single precision.
            with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
                yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _seeded(seed: int, *, devices: list[int] | None) -> Iterator[None]:
    """Seed the global generators of torch, numpy and Python, and put them back."""
    plain, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002  # a method of other people may draw from it
    try:
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002
            yield
    finally:
        random.setstate(plain)
        np.random.set_state(legacy)  # noqa: NPY002

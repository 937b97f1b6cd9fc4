"""Peak memory of a stretch of work.

On a GPU: the most that torch's allocator held. On Linux CPUs: the most resident memory of the whole process,
interpreter and data included, from the kernel's own high-water mark, which is set back at the start. Elsewhere the
kernel keeps only the mark of the process's whole life, which says nothing about this stretch: the peak is None. Memory
that the process keeps from earlier work, free and unused, is given back first: it is no need of this stretch.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType
from typing import Self

import torch

from synaptune.allocator import give_back_freed_memory

__all__ = ["PeakMemory"]

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_HIGH_WATER_MARK = "5"


class PeakMemory:
    """Context manager; `megabytes` holds the peak after leaving, or None where it cannot be measured.

    >>> with PeakMemory() as memory:
    ...     block = torch.ones(1_000_000)
    >>> memory.megabytes is None or memory.megabytes > 4
    True
    """

    def __init__(self, device: torch.device | str = "cpu"):
        self.device = torch.device(device)
        self.megabytes: float | None = None

    def __enter__(self) -> Self:
        self.megabytes = None
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
            self._counting = True
        else:
            give_back_freed_memory()
            self._counting = _reset_high_water_mark()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._counting:
            return
        if self.device.type == "cuda":
            self.megabytes = round(torch.cuda.max_memory_allocated(self.device) / 1e6, 1)
        else:
            self.megabytes = _high_water_mark()


def _reset_high_water_mark() -> bool:
    try:
        _CLEAR.write_text(_RESET_HIGH_WATER_MARK)
    except OSError:
        return False
    return True


def _high_water_mark() -> float | None:
    try:
        found = re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text())
    except OSError:
        return None
    return round(int(found[1]) * 1024 / 1e6, 1) if found else None

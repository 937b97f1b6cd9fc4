"""Memory that was freed is kept for the next batch, instead of going back to the kernel and being cleared again.

glibc, the C library of most Linux systems, hands large blocks back to the kernel the moment they are freed. The next
batch asks for the same blocks, and the kernel clears every page of them before their first use. At 224 x 224 pixels
that costs more than the arithmetic of a learning step. A process that adapts batch after batch does better to hold on
to the memory that it will need again: it then stays near its peak.

The command line and the workers of the bench do this for themselves. A library does not decide such a thing for the
process it lives in, so a program that imports synaptune calls `keep_freed_memory` where it starts. Elsewhere than on
glibc, and where the user has chosen settings of malloc, nothing happens. Memory of a GPU is not concerned: torch keeps
that anyway.
"""

from __future__ import annotations

import ctypes
import os
import platform

__all__ = ["give_back_freed_memory", "keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of malloc.h
_NEVER = -1
_LARGER_THAN_ANY_ACTIVATION = 1 << 30
"""Blocks from here on still come straight from the kernel: one that is needed once must not stay."""


def keep_freed_memory() -> bool:
    """Let malloc of this process keep what is freed; say whether that could be done."""
    libc = _glibc()
    if libc is None or _chosen_by_the_user():
        return False
    kept = libc.mallopt(_MMAP_THRESHOLD, _LARGER_THAN_ANY_ACTIVATION)
    return bool(kept) and bool(libc.mallopt(_TRIM_THRESHOLD, _NEVER))


def give_back_freed_memory() -> bool:
    """Hand all memory that is free now to the kernel; say whether there was any and a way to do it."""
    libc = _glibc()
    return libc is not None and bool(libc.malloc_trim(0))


def _glibc() -> ctypes.CDLL | None:
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc":
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None


def _chosen_by_the_user() -> bool:
    return any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)

"""One process at a time: an advisory lock on a file, given back by the system when its holder dies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from synaptune.errors import DataError

__all__ = ["hold"]

_POLL = 0.5


@contextmanager
def hold(path: Path, *, sleep: Callable[[float], None], patience: float = 6 * 3600.0) -> Iterator[None]:
    """Hold the lock for the length of the block, waiting for others first.

    Args:
        path: the lock's file; it is left behind, since removing it could split two waiting processes.
        sleep: how to wait.
        patience: seconds to wait at most; a large download in another process may take hours.

    Raises:
        DataError: another process held it too long.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        waited = 0.0
        while not _try_lock(file):
            if waited >= patience:
                raise DataError(f"another process is at work on {path.with_suffix('')}; end it, or wait for it")
            sleep(_POLL)
            waited += _POLL
        try:
            yield
        finally:
            _unlock(file)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)

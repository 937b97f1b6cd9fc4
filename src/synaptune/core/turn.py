"""One caller at a time."""

from __future__ import annotations

import threading
from types import TracebackType

from synaptune.errors import SynaptuneError

__all__ = ["Turn"]


class Turn:
    """Refuses a second caller while the first is inside: a step is a transaction, and two would mix.

    >>> turn = Turn()
    >>> with turn, turn:
    ...     pass
    Traceback (most recent call last):
    ...
    synaptune.errors.SynaptuneError: this adapter is in the middle of a batch, and serves one caller at a time; give \
each thread or stream an adapter and a model of its own, or hold a lock around the call
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise SynaptuneError(
                "this adapter is in the middle of a batch, and serves one caller at a time; give each thread or stream "
                "an adapter and a model of its own, or hold a lock around the call"
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        # Locks can be neither copied nor pickled; a copy has callers of its own.
        return Turn, ()

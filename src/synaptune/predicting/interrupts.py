"""Ctrl-C that waits until a step and its rows are whole; a second one does not wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["DeferredInterrupts"]


class DeferredInterrupts:
    """While entered, SIGINT inside `whole()` raises `KeyboardInterrupt` at its end, and elsewhere at once.

    Signal handlers belong to the program, not to a library, so only programs use this (the command line does).
    """

    def __init__(self) -> None:
        self._inside = False
        self._pending = False

    def __enter__(self) -> Self:
        self._former: Any = None
        # Python lets only the main thread set handlers; elsewhere interrupts come as they always did.
        if threading.current_thread() is threading.main_thread():
            self._former = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._former is not None:
            signal.signal(signal.SIGINT, self._former)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._inside and not self._pending:
            self._pending = True
            return
        raise KeyboardInterrupt

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Let what is inside finish before a first interrupt takes effect."""
        self._inside = True
        try:
            yield
        finally:
            self._inside = False
            pending, self._pending = self._pending, False
        if pending:
            raise KeyboardInterrupt

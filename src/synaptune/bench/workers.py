"""Worker processes: each takes a job, sends rows, takes the next. A worker's death costs its job and nothing else.

A worker says that it begins a job. One that dies before, in its sleep, costs nothing: another gets the job, once.

Processes are spawned, not forked, because a fork copies torch's threads half-way. They end when their parent does,
however it dies, so a killed run leaves nothing behind that burns cores.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from synaptune.allocator import keep_freed_memory
from synaptune.bench.job import Job
from synaptune.bench.row import Row
from synaptune.errors import SynaptuneError

__all__ = ["default_workers", "rows_of"]

Measure = Callable[[Job], Iterator[Row]]
_READY = "ready"
_BEGUN = "begun"


def default_workers(threads: int) -> int:
    """Split the cores that this process may use: as many workers as have `threads` cores each, one at least."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // threads)


def rows_of(jobs: Iterable[Job], *, measure: Measure, workers: int) -> Generator[Row]:
    """Measure all jobs, and give rows as they come.

    Args:
        jobs: what to do.
        measure: a function of a module (it is named to the workers, not sent).
        workers: number of processes; 0 measures in this one.
    """
    if workers == 0:
        for job in jobs:
            yield from measure(job)
        return
    pending = deque((job, False) for job in jobs)
    staff = [_Worker(measure) for _ in range(min(workers, len(pending)))]
    try:
        while pending or any(worker.job for worker in staff):
            for number, worker in enumerate(staff):
                if worker.job is None and pending:
                    if worker.is_dead:
                        staff[number] = worker = _Worker(measure)
                    job, came_back = pending.popleft()
                    worker.take(job, for_good=came_back)
            busy = {worker.connection: worker for worker in staff if worker.job}
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]  # what was waited for
                yield from worker.receive()
                if worker.returned:
                    pending.appendleft((worker.returned, True))
                    worker.returned = None
    finally:
        for worker in staff:
            worker.stop()


class _Worker:
    """The parent's side of one worker."""

    def __init__(self, measure: Measure):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(target=_work, args=(theirs, measure), daemon=True)
        with _interrupts_blocked():
            self._process.start()
        theirs.close()  # so that its death reads as the end of the connection
        self.job: Job | None = None
        self.returned: Job | None = None
        self.is_dead = False
        self._for_good = False
        self._is_ready = False
        self._has_begun = False
        self._delivered: set[str] = set()

    def take(self, job: Job, *, for_good: bool) -> None:
        """Start on a job; `for_good` if it cannot be returned."""
        self.job, self._for_good, self._has_begun, self._delivered = job, for_good, False, set()
        try:
            self.connection.send(job)
        except OSError:  # it died while idle; `receive` finds out
            return

    def receive(self) -> Iterator[Row]:
        """Take one message; a worker that died gives failed rows, or returns the job that it has not begun."""
        assert self.job is not None
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            job, self.job, self.is_dead = self.job, None, True
            self._process.join()
            if self._is_ready and not self._has_begun and not self._for_good:
                self.returned = job
            else:
                yield from self._failed(job)
            return
        if message == _READY:
            self._is_ready = True
        elif message == _BEGUN:
            self._has_begun = True
        elif isinstance(message, Row):
            self._delivered.add(message.cell)
            yield message
        else:
            self.job = None

    def _failed(self, job: Job) -> Iterator[Row]:
        code = self._process.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
        if not self._is_ready:
            raise SynaptuneError(
                f"a worker process {how} before its first cell. A script that starts workers needs "
                "`if __name__ == '__main__':` around its own work; workers=0 measures without processes"
            )
        hint = "; the system may have run out of memory: try fewer workers or a smaller batch" if code == -9 else ""
        for cell in job.cells:
            if cell.key in job.wanted - self._delivered:
                yield Row.of(cell, run=job.run, status="failed", error=f"its worker process {how}{hint}")

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.connection.close()
        if self._process.is_alive():
            self._process.terminate()
        self._process.join()
        self._process.close()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, not even before they have come to ignore it; here it only waits."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # on first use it starts a process of its own, and unblocks SIGINT after that
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection[Any, Any], measure: Measure) -> None:
    """The worker's side: measure jobs until the connection ends."""
    # Ctrl-C goes to the whole group; the parent alone decides what happens then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_freed_memory()
    import torch

    torch.set_num_interop_threads(1)
    try:
        connection.send(_READY)
        while True:
            job = connection.recv()
            connection.send(_BEGUN)
            for row in measure(job):
                connection.send(row)
            connection.send(None)
    except (EOFError, OSError):
        return


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

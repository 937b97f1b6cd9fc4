"""A job: what one worker does at a stretch. One cell, or the whole stream of cells that shares an adapted state."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from synaptune.bench.cell import Cell

__all__ = ["Job", "jobs_of", "limited"]


@dataclass(frozen=True)
class Job:
    """Cells to measure in this order.

    Attributes:
        run: name of the run.
        cells: what is measured; more than one only where nothing is reset in between.
        wanted: keys of the cells whose rows are not there yet.
    """

    run: str
    cells: tuple[Cell, ...]
    wanted: frozenset[str]


def jobs_of(cells: Sequence[Cell], *, run: str, done: Collection[str]) -> list[Job]:
    """Group cells that share an adapted state; leave out what is done.

    A stream of which some rows are missing is measured again from its start up to the last of them, because a later
    row needs the state that the earlier cells leave behind.
    """
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        group = cell.stream if cell.protocol.reset == "never" else cell.key
        groups.setdefault(group, []).append(cell)
    jobs = [
        _first(len(group), group, run, frozenset(cell.key for cell in group) - set(done)) for group in groups.values()
    ]
    return [job for job in jobs if job.wanted]


def limited(jobs: Sequence[Job], limit: int) -> list[Job]:
    """Keep the first so many cells that want a row. A stream is cut behind the last of them, never before one."""
    kept = []
    for job in jobs:
        if limit <= 0:
            break
        kept.append(_first(limit, job.cells, job.run, job.wanted))
        limit -= len(kept[-1].wanted)
    return kept


def _first(count: int, cells: Sequence[Cell], run: str, wanted: frozenset[str]) -> Job:
    """Make a job that ends with the last of the first so many wanted cells."""
    places = [place for place, cell in enumerate(cells) if cell.key in wanted][:count]
    chosen = tuple(cells[: places[-1] + 1]) if places else ()
    return Job(run, chosen, wanted & {cell.key for cell in chosen})

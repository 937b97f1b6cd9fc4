"""Running cells: what is done is skipped, what cannot run is said first, the rest goes to the workers.

The parent alone writes. A row is on the disk before anybody hears of it, so a kill at any moment costs at most the
cells that were being measured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from synaptune.bench.cell import Cell, in_turn
from synaptune.bench.job import jobs_of, limited
from synaptune.bench.journal import Journal, Notes, read_rows
from synaptune.bench.measure import measure
from synaptune.bench.own_files import refuse_changed_files
from synaptune.bench.presence import absent_cells, refuse_other_weights
from synaptune.bench.progress import OnProgress, Shown, Tracker
from synaptune.bench.row import Row
from synaptune.bench.workers import default_workers, rows_of
from synaptune.errors import OptionError

__all__ = ["latest", "run_cells"]


def run_cells(
    cells: Sequence[Cell],
    *,
    out: str | Path,
    run: str,
    workers: int | None = None,
    limit: int | None = None,
    retry_failed: bool = False,
    reuse: Sequence[str | Path] = (),
    on_progress: OnProgress | None = None,
    lines: Mapping[str, tuple[Shown, ...]] | None = None,
) -> list[Row]:
    """Measure the cells that have no row in `out` yet.

    Args:
        cells: what to measure; a cell that occurs twice is measured once. Those of a stream that is never reset are
            measured in this order.
        out: the file of rows; made if it is not there, continued if it is.
        run: name of the run, for the rows.
        workers: processes; by default as many as fit the cores. 0 measures in this process.
        limit: measure at most so many cells now. With 0 the file is only read, also while another process writes it.
        retry_failed: measure cells again that failed, or did not fit the model.
        reuse: other runs; cells that were measured there under the very same switches are taken over.
        on_progress: told after every row.
        lines: of a table, by the keys of their cells, for the running means that `on_progress` is told.

    Returns:
        The newest row of each of these cells.
    """
    unique = list({cell.key: cell for cell in in_turn(cells)}.values())
    if not unique:
        raise OptionError(f"{run} has no cells to measure; check its models, methods, data and seeds")
    threads = max(cell.protocol.threads for cell in unique)
    workers = default_workers(threads) if workers is None else workers
    wanted = {cell.key for cell in unique}
    tracker = Tracker(unique, workers=workers, lines=lines)
    with Notes(out) if limit == 0 else Journal(out) as journal:
        before = latest(row for row in journal.rows if row.cell in wanted)
        elsewhere = _elsewhere(reuse, wanted - {key for key, row in before.items() if row.status == "ok"})
        refuse_other_weights(elsewhere, before)
        taken = latest(dataclasses.replace(row, run=run) for rows in elsewhere.values() for row in rows)
        before |= taken
        refuse_changed_files(unique, before)
        absent = absent_cells(unique, before)
        for row in taken.values():
            journal.append(row)
        for cell in unique:
            _note_missing(journal, cell, run=run, why=absent.get(cell.key), known=before.get(cell.key))
        done = {key for key, row in before.items() if _is_done(row, retry_failed=retry_failed)}
        there = latest(row for row in journal.rows if row.cell in done | set(absent))
        tracker.resume(list(there.values()))
        if on_progress:
            on_progress(tracker.snapshot())
        runnable = [cell for cell in unique if cell.key not in absent]
        jobs = jobs_of(runnable, run=run, done=done)
        jobs = jobs if limit is None else limited(jobs, limit)
        with closing(rows_of(jobs, measure=measure, workers=workers)) as rows:
            for row in rows:
                journal.append(row)
                progress = tracker.add(row)
                if on_progress:
                    on_progress(progress)
        found = latest(row for row in journal.rows if row.cell in wanted)
    return [found[cell.key] for cell in unique if cell.key in found]


def latest(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the newest row of each cell."""
    return {row.cell: row for row in rows}


def _elsewhere(runs: Iterable[str | Path], wanted: Collection[str]) -> dict[str, list[Row]]:
    """What other runs measured of these cells, by file."""
    return {str(path): [row for row in read_rows(path) if row.cell in wanted and row.status == "ok"] for path in runs}


def _is_done(row: Row, *, retry_failed: bool) -> bool:
    if row.status == "ok":
        return True
    return row.status != "missing" and not retry_failed


def _note_missing(journal: Journal | Notes, cell: Cell, *, run: str, why: str | None, known: Row | None) -> None:
    """Write a row for a cell that cannot run, unless the file says the same already."""
    if why is not None and not (known and known.status == "missing" and known.error == why):
        journal.append(Row.of(cell, run=run, status="missing", error=why))

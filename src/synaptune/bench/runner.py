"""Running cells: what is done is skipped, what cannot run is said first, the rest goes to the workers.

The parent alone writes. A row is on the disk before anybody hears of it, so a kill at any moment costs at most the
cells that were being measured.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from synaptune.bench.cell import Cell, in_turn
from synaptune.bench.job import jobs_of, limited
from synaptune.bench.journal import Journal, read_rows
from synaptune.bench.measure import measure, portable
from synaptune.bench.progress import OnProgress, Shown, Tracker
from synaptune.bench.row import Row
from synaptune.bench.sources import clean_data, load_model_of
from synaptune.bench.workers import default_workers, rows_of
from synaptune.core.fingerprint import fingerprint_of
from synaptune.errors import DataError, OptionError, WeightsError

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
        limit: measure at most so many cells now.
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
    with Journal(out) as journal:
        before = latest(row for row in journal.rows if row.cell in wanted)
        for row in _elsewhere(reuse, wanted - {key for key, row in before.items() if row.status == "ok"}):
            journal.append(dataclasses.replace(row, run=run))
            before[row.cell] = journal.rows[-1]
        absent = _absent(unique, before)
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


def _elsewhere(runs: Iterable[str | Path], wanted: Collection[str]) -> list[Row]:
    """What other runs measured of these cells."""
    rows = (row for path in runs for row in read_rows(path))
    return list(latest(row for row in rows if row.cell in wanted and row.status == "ok").values())


def _is_done(row: Row, *, retry_failed: bool) -> bool:
    if row.status == "ok":
        return True
    return row.status != "missing" and not retry_failed


def _note_missing(journal: Journal, cell: Cell, *, run: str, why: str | None, known: Row | None) -> None:
    """Write a row for a cell that cannot run, unless the file says the same already."""
    if why is not None and not (known and known.status == "missing" and known.error == why):
        journal.append(Row.of(cell, run=run, status="missing", error=why))


def _absent(cells: Sequence[Cell], before: dict[str, Row]) -> dict[str, str]:
    """Say of each cell that cannot run here what is missing; cells that are measured already are left alone.

    Raises:
        OptionError: a model's weights are others than those that rows of this file were measured with.
    """
    look = _Look(cells, before)
    absent = {}
    for job in jobs_of(cells, run="", done={key for key, row in before.items() if row.status == "ok"}):
        behind = ""
        for cell in job.cells:
            why = look.why_not(cell) or behind
            if why and cell.key in job.wanted:
                absent[cell.key] = why
            if why and not behind:  # the rest of the stream would start from another state
                behind = f"{cell.corruption} {cell.severity} comes before it in a stream that is never reset: {why}"
    return absent


class _Look:
    """Looks for models and data, once each."""

    def __init__(self, cells: Sequence[Cell], before: dict[str, Row]):
        self._cells = cells
        self._before = before
        self._models: dict[tuple[str, str], str | None] = {}
        self._shifts: dict[tuple[str, str, int], str | None] = {}

    def why_not(self, cell: Cell) -> str:
        """Say what a cell lacks; "" if nothing."""
        model, shift = (cell.model, cell.weights), (cell.data, *cell.shift)
        if model not in self._models:
            self._models[model] = _why_no_model(*model, expected=_fingerprints(self._cells, self._before, *model))
        if shift not in self._shifts:
            self._shifts[shift] = _why_no_data(*shift)
        return "; ".join(text for text in (self._models[model], self._shifts[shift]) if text)


def _fingerprints(cells: Sequence[Cell], before: dict[str, Row], model: str, weights: str) -> set[str]:
    rows = (before.get(cell.key) for cell in cells if (cell.model, cell.weights) == (model, weights))
    return {row.fingerprint for row in rows if row is not None and row.fingerprint is not None}


def _why_no_model(model: str, weights: str, *, expected: set[str]) -> str | None:
    try:
        loaded = load_model_of(model, weights)
    except WeightsError as error:
        return _settled(error)
    found = fingerprint_of(loaded.model)
    if expected and found not in expected:
        raise OptionError(
            f"the weights of {model} are not those that this file's rows were measured with (fingerprint "
            f"{found[:12]}, there {', '.join(sorted(text[:12] for text in expected))}); write to another file"
        )
    return None


def _why_no_data(data: str, corruption: str, severity: int) -> str | None:
    try:
        clean_data(data, corruption, severity)
    except DataError as error:
        # One sentence for all shifts of a set, so that a table says it once.
        text = _settled(error)
        for particular, general in (
            (f"{corruption}, severity {severity}", "CORRUPTION, severity SEVERITY"),
            (f"{corruption}/{severity}", "CORRUPTION/SEVERITY"),
            (corruption, "CORRUPTION"),
        ):
            text = text.replace(particular, general)
        return text
    return None


def _settled(error: Exception) -> str:
    """Say the same every time: addresses of objects, which messages of other libraries hold, change."""
    return re.sub(r"0x[0-9a-f]{4,}", "0x...", portable(str(error)))

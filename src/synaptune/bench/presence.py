"""What cells need and this machine lacks: said before anything is measured, and weights that are not the same refused.

A model or data set that raises is not absent: its cells fail one by one and say why. A name that nobody knows ends the
run.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from synaptune.bench.cell import Cell
from synaptune.bench.conditions import settings
from synaptune.bench.job import jobs_of
from synaptune.bench.measure import portable
from synaptune.bench.row import Row
from synaptune.bench.sources import clean_data, load_model_of
from synaptune.core.fingerprint import fingerprint_of
from synaptune.errors import DataError, OptionError, UnknownNameError, WeightsError

__all__ = ["absent_cells", "refuse_other_weights"]


def absent_cells(cells: Sequence[Cell], before: Mapping[str, Row]) -> dict[str, str]:
    """Say of each cell that cannot run here what is missing; cells that are measured already are left alone.

    Args:
        cells: all cells of the run.
        before: the rows that are there, by cell.

    Raises:
        OptionError: a model's weights are others than those that rows of this file were measured with.
        SynaptuneError: a name is not known.
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


def refuse_other_weights(taken: Mapping[str, Sequence[Row]], before: Mapping[str, Row]) -> None:
    """Refuse rows of other runs whose model had other weights than in the rows that are there.

    Args:
        taken: rows that are to be taken over, by the file that they come from.
        before: the rows that are there, by cell.
    """
    ours: dict[tuple[str, str, int], set[str]] = {}
    for row in before.values():
        if row.fingerprint is not None:
            ours.setdefault(_weights_of(row), set()).add(row.fingerprint)
    for path, rows in taken.items():
        for row in rows:
            if row.fingerprint is None:
                continue
            known = ours.setdefault(_weights_of(row), set())
            if known and row.fingerprint not in known:
                raise OptionError(
                    f"the rows of {row.model} in {path} were measured with other weights (fingerprint "
                    f"{row.fingerprint[:12]}, here {_shortened(known)}); do not take that file's rows, or write to "
                    "another file"
                )
            known.add(row.fingerprint)


class _Look:
    """Looks for models and data, once each."""

    def __init__(self, cells: Sequence[Cell], before: Mapping[str, Row]):
        self._cells = cells
        self._before = before
        self._models: dict[tuple[str, str], str] = {}
        self._shifts: dict[tuple[str, str, int], str] = {}

    def why_not(self, cell: Cell) -> str:
        """Say what a cell lacks; "" if nothing."""
        model, shift = (cell.model, cell.weights), (cell.data, *cell.shift)
        if model not in self._models:
            self._models[model] = self._why_no_model(cell)
        if shift not in self._shifts:
            self._shifts[shift] = _why_no_data(*shift)
        return "; ".join(text for text in (self._models[model], self._shifts[shift]) if text)

    def _why_no_model(self, cell: Cell) -> str:
        seed, expected = self._measured_with(cell)
        try:
            with settings(dataclasses.replace(cell, seed=seed)):  # a function may draw the weights
                found = fingerprint_of(load_model_of(cell.model, cell.weights).model)
        except WeightsError as error:
            return _settled(error)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # of the user's code
            return _left_to_its_cells(error)
        if expected and found not in expected:
            raise OptionError(
                f"the weights of {cell.model} are not those that this file's rows were measured with (fingerprint "
                f"{found[:12]}, there {_shortened(expected)}); write to another file"
            )
        return ""

    def _measured_with(self, cell: Cell) -> tuple[int, set[str]]:
        """One seed, and the fingerprints that the cell's model has in the rows of that seed."""
        model = (cell.model, cell.weights)
        rows = [self._before.get(other.key) for other in self._cells if (other.model, other.weights) == model]
        known = [(row.seed, row.fingerprint) for row in rows if row is not None and row.fingerprint is not None]
        seed = known[0][0] if known else cell.seed
        return seed, {fingerprint for measured, fingerprint in known if measured == seed}


def _why_no_data(data: str, corruption: str, severity: int) -> str:
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
    except (Exception, SystemExit) as error:  # noqa: BLE001  # of the user's code
        return _left_to_its_cells(error)
    return ""


def _left_to_its_cells(error: BaseException) -> str:
    """Raise again what the user has mistyped; what fails while it is made is for the rows of its cells to tell."""
    is_wrapped = error.__cause__ is not None  # raised by a file of the user's
    if isinstance(error, UnknownNameError) or (isinstance(error, OptionError) and not is_wrapped):
        raise error
    return ""


def _weights_of(row: Row) -> tuple[str, str, int]:
    return row.model, row.weights_asked, row.seed


def _shortened(fingerprints: set[str]) -> str:
    return ", ".join(sorted(text[:12] for text in fingerprints))


def _settled(error: Exception) -> str:
    """Say the same every time: addresses of objects, which messages of other libraries hold, change."""
    return re.sub(r"0x[0-9a-f]{4,}", "0x...", portable(str(error)))

"""Files of the user that a cell is measured with: `FILE.py:NAME` as model, method or data.

What stands in them decides the numbers, and no version tells of a change. So rows keep a digest of each, and a run does
not go on with rows of a file that has changed since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from synaptune.bench.cell import Cell
from synaptune.bench.row import Row
from synaptune.errors import OptionError

__all__ = ["own_files", "refuse_changed_files"]


def own_files(cell: Cell) -> dict[str, str] | None:
    """Return the digest of each of the user's files, by its name as the cell spells it; None if there are none."""
    named = {spec.rpartition(":")[0] for spec in (cell.model, cell.method, cell.data) if ".py:" in spec}
    digests = {name: _digest(name) for name in sorted(named)}
    return {name: digest for name, digest in digests.items() if digest} or None


def refuse_changed_files(cells: Iterable[Cell], before: Mapping[str, Row]) -> None:
    """Refuse to go on with rows that were measured with a file as it was before a change.

    Args:
        cells: all cells of the run.
        before: the rows that are there, by cell.
    """
    rows = (before.get(cell.key) for cell in cells)
    noted = {file for row in rows if row is not None and row.status == "ok" for file in (row.files or {}).items()}
    now = {name: _digest(name) for name, _ in noted}
    # A file that is gone is another matter, and told where it is needed.
    changed = sorted({name for name, digest in noted if now[name] not in (None, digest)})
    if changed:
        raise OptionError(
            f"{', '.join(changed)} has changed since rows of this run were measured with it; write to another file, or "
            "delete those rows"
        )


def _digest(name: str) -> str | None:
    path = Path(name).expanduser()
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else None

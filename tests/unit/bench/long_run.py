"""A run in a process of its own, to be killed: `python -m tests.unit.bench.long_run FILE`."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

from synaptune.bench.cell import Cell
from synaptune.bench.progress import Progress
from synaptune.bench.runner import run_cells
from tests.unit.bench.cells import cell


def cells() -> list[Cell]:
    """Sixteen cells, slow enough that some are left when the third is done."""
    return [
        cell(method, corruption=name, severity=severity)
        for name in ("brightness", "contrast")
        for severity in (1, 2, 3, 4)
        for method in ("norm", "dua")
    ]


def announce(progress: Progress) -> None:
    """Tell the test which processes belong to this run."""
    pids = " ".join(str(child.pid) for child in multiprocessing.active_children())
    sys.stdout.write(f"{progress.done} {pids}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run_cells(cells(), out=Path(sys.argv[1]), run="long", workers=2, on_progress=announce)

"""The paper's tables, one call each: find the file, apply overrides, run, render.

The files lie in `benchmarks/` of the repository; an installed package carries them with it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synaptune.bench.config import table_from
from synaptune.bench.journal import read_rows
from synaptune.bench.overrides import apply_overrides, parse_overrides, spell_overrides
from synaptune.bench.progress import OnProgress, lines_of
from synaptune.bench.rendering import Form, render_sheet
from synaptune.bench.row import Row
from synaptune.bench.runner import latest, run_cells
from synaptune.bench.scalars import read_yaml
from synaptune.bench.sheet import Sheet, make_sheet
from synaptune.bench.table import Table
from synaptune.errors import OptionError, UnknownNameError

__all__ = ["AD_HOC", "Run", "home", "load_run", "load_table", "render", "rows_file", "run_table", "table_names"]

AD_HOC = "adhoc"
"""Name of tables that have no file."""

_BARE = {"title": "Models x methods x shifts, as named on the command line"}

Overrides = Iterable[str] | Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """A table and the rows that are there for it.

    Attributes:
        table: what was to be measured.
        path: the file of rows.
        rows: the newest row of each of the table's cells, as far as there is one.
        command: what makes these rows again.
    """

    table: Table
    path: Path
    rows: tuple[Row, ...]
    command: str

    @property
    def sheet(self) -> Sheet:
        """The table's content."""
        return make_sheet(self.table, self.rows)


def table_names() -> tuple[str, ...]:
    """Names of the tables that come with the package.

    >>> "cifar10c" in table_names()
    True
    """
    return tuple(sorted(path.stem for path in home().glob("*.yaml")))


def rows_file(name: str | Path | None) -> Path:
    """Where the rows of a table go if nobody says otherwise.

    >>> rows_file("cifar10c").as_posix()
    'results/cifar10c.jsonl'
    """
    return Path("results") / f"{AD_HOC if name is None else Path(name).stem}.jsonl"


def load_table(name: str | Path | None, *, overrides: Overrides = ()) -> Table:
    """Read a table.

    Args:
        name: one of `table_names()`, or a YAML file; None for a table that the overrides alone describe.
        overrides: `key=value` words or a mapping, see `synaptune.bench.overrides`.

    >>> load_table(None, overrides=["models=[zoo:resnet20-cifar10]", "methods=[tent,nhl]", "data=cifar10"]).name
    'adhoc'
    """
    changes = dict(overrides) if isinstance(overrides, Mapping) else parse_overrides(overrides)
    if name is None:
        return table_from(apply_overrides(_BARE, changes), name=AD_HOC, where="a table without a file")
    path = _file_of(name)
    values = read_yaml(path)
    if not isinstance(values, dict):
        raise OptionError(f"{path}: a table is a mapping of keys to values, not {type(values).__name__}")
    return table_from(apply_overrides(values, changes), name=path.stem, where=str(path))


def run_table(
    name: str | Path | None,
    *,
    overrides: Overrides = (),
    out: str | Path | None = None,
    workers: int | None = None,
    limit: int | None = None,
    retry_failed: bool = False,
    reuse: Sequence[str | Path] = (),
    on_progress: OnProgress | None = None,
) -> Run:
    """Measure a table, or what is left of it.

    Args:
        name: one of `table_names()`, or a YAML file; None for a table that the overrides alone describe.
        overrides: `key=value` words or a mapping.
        out: file of rows, continued where it exists; by default `results/NAME.jsonl`.
        workers: worker processes; by default as many as fit the cores, 0 for none.
        limit: measure at most so many cells now; 0 measures none, only says what is missing, and writes nothing.
        retry_failed: measure cells again that failed, or whose method did not fit the model.
        reuse: other runs; cells that were measured there under the very same switches are taken over.
        on_progress: told after every row.
    """
    overrides = overrides if isinstance(overrides, Mapping) else tuple(overrides)
    table = load_table(name, overrides=overrides)
    path = Path(out) if out is not None else rows_file(name)
    rows = run_cells(
        table.cells(),
        out=path,
        run=table.name,
        workers=workers,
        limit=limit,
        retry_failed=retry_failed,
        reuse=reuse,
        on_progress=on_progress,
        lines=lines_of(table) if on_progress else None,
    )
    return Run(table, path, tuple(rows), _command(name, overrides, path))


def load_run(name: str | Path | None, out: str | Path, *, overrides: Overrides = ()) -> Run:
    """Take what a file has for a table, measuring nothing."""
    overrides = overrides if isinstance(overrides, Mapping) else tuple(overrides)
    table = load_table(name, overrides=overrides)
    found = latest(read_rows(out))
    rows = [found[cell.key] for cell in table.cells() if cell.key in found]
    return Run(table, Path(out), tuple(rows), _command(name, overrides, Path(out)))


def render(run: Run, form: Form = "markdown", *, width: int | None = None) -> str:
    """Render a run: ours, the paper's, the difference, and what is missing; plain text may be fitted to a width."""
    return render_sheet(run.sheet, form, command=run.command, width=width)


def _command(name: str | Path | None, overrides: Overrides, out: Path) -> str:
    words = spell_overrides(overrides) if isinstance(overrides, Mapping) else overrides
    table = [] if name is None else [str(name)]
    return shlex.join(["synaptune", "bench", *table, *words, "--out", out.as_posix()])


def _file_of(name: str | Path) -> Path:
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise OptionError(f"there is no table file {path}")
        return path
    found = home() / f"{name}.yaml"
    if not found.is_file():
        raise UnknownNameError("table", str(name), table_names())
    return found


def home() -> Path:
    """Folder of the tables: inside an installed package, beside `src` in a checkout."""
    here = Path(__file__).resolve().parent
    packaged = here / "tables"
    return packaged if packaged.is_dir() else here.parents[2] / "benchmarks"

"""How a run of the bench is shown while it lasts: a bar with running means on a terminal, a line per cell elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from synaptune.cli.output import Output

if TYPE_CHECKING:
    from synaptune.bench.progress import Progress, Shown
    from synaptune.bench.row import Row

__all__ = ["RunDisplay"]


class RunDisplay:
    """Shows progress on stderr; use it as a context manager, and call it with every `Progress`.

    Hours of work end up in log files too, so where stderr is no terminal every cell is one line.
    """

    def __init__(self, output: Output, what: str):
        self.last: Progress | None = None
        self._what = what
        self._quiet = output.quiet
        self._live: Any = None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __call__(self, progress: Progress) -> None:
        """Show where the run stands."""
        self.last = progress
        if self._live is not None:
            self._update(progress)
        elif not self._quiet:
            print(_line(progress), file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Say what is being done, where there are no cells to count."""
        if self._live is not None:
            self._bar.update(self._task, text=text)
        elif not self._quiet:
            print(f"{self._what}: {text}", file=sys.stderr, flush=True)

    def interrupted(self, path: Path | None) -> str:
        """Say after Ctrl-C what is there, and how to go on."""
        if self.last is None or path is None:
            return "interrupted before anything was finished"
        return f"interrupted: {self.last.done} of {self.last.total} cells are in {path}; the same command goes on"

    def _open(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
        )
        self._task = self._bar.add_task(self._what, total=None, text="looking for models and data")
        self._live = Live(self._bar, console=Console(stderr=True), transient=True, refresh_per_second=4)
        self._live.start()

    def _update(self, progress: Progress) -> None:
        from rich.console import Group
        from rich.text import Text

        self._bar.update(self._task, completed=progress.done, total=progress.total, text=_state(progress))
        means = Text(_means(progress), overflow="fold")
        self._live.update(Group(self._bar, means) if means else self._bar)


def _line(progress: Progress) -> str:
    head = f"{progress.done}/{progress.total} cells"
    state = _state(progress)
    row = progress.last
    if row is None:
        known = progress.resumed - progress.missing  # what is not here has a row too, and no number
        before = f", {known} of them from before" if known else ""
        return f"{head}{before}{f' ({state})' if state else ''}"
    told = "; ".join(_result(row, line, progress) for line in progress.lines) or _result(row, None, progress)
    return f"{head}{f' ({state})' if state else ''}: {_name(row, progress)}: {told}"


def _state(progress: Progress) -> str:
    parts = []
    if progress.seconds_left is not None and progress.done < progress.total:
        parts.append(f"{clock(progress.seconds_left)} left")
    counts = {"failed": progress.failed, "not here": progress.missing, "do not fit": progress.inapplicable}
    parts += [f"{count} {what}" for what, count in counts.items() if count]
    return ", ".join(parts)


def _means(progress: Progress) -> str:
    """Running mean of every line of the block that the newest row is in."""
    blocks = [(line.block, line.model) for line in progress.lines]
    if not blocks:
        return ""
    found = [
        f"{line.line} {mean:.2f} ({count})"
        for line, (mean, count) in progress.mean_error.items()
        if (line.block, line.model) == blocks[0]
    ]
    return f"mean error of {blocks[0][0]} in % (cells): {', '.join(found)}" if found else ""


def _name(row: Row, progress: Progress) -> str:
    shift = f"{row.corruption} {row.severity}" if row.severity else row.corruption
    line = progress.lines[0].line if len(progress.lines) == 1 else row.label
    return f"{line} on {row.model.removeprefix('zoo:')}, {row.data} {shift}"


def _result(row: Row, line: Shown | None, progress: Progress) -> str:
    error = row.first_error if line is None else line.error_of(row)
    if error is None:
        return f"{row.status}, {' '.join((row.error or 'no such error was asked for').split())}"
    mean, count = progress.mean_error.get(line, (error, 0)) if line else (error, 0)
    average = f", {mean:.2f} % on average of {count}" if count else ""
    which = f"{line.line} " if line and len(progress.lines) > 1 else ""
    return f"{which}{error:.2f} % error{average}"


def clock(seconds: float) -> str:
    """Hours, minutes, seconds.

    >>> clock(59.6), clock(3 * 3600 + 62)
    ('1:00', '3:01:02')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

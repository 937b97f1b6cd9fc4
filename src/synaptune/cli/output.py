"""What goes where: results to stdout, everything else to stderr; JSON, colours and progress only where wanted."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

__all__ = ["JsonFlag", "Output", "QuietFlag", "Reporter", "output_of"]

QuietFlag: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
JsonFlag: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]

Reporter: TypeAlias = Callable[[int, "int | None", str], None]
"""Told how much is done, of how much (if known), and what to say about it."""


def output_of(ctx: typer.Context, *, quiet: bool, as_json: bool) -> Output:
    """The output of a command, whose flags may stand before or after its name."""
    given = ctx.find_object(Output) or Output()
    return Output(quiet=quiet or given.quiet, as_json=as_json or given.as_json)


@dataclass(frozen=True)
class Output:
    """How one command talks.

    Attributes:
        quiet: print neither notes nor progress.
        as_json: print the result as JSON.
    """

    quiet: bool = False
    as_json: bool = False

    def result(self, document: Any, show: Callable[[], None]) -> None:
        """Print the result: the document as JSON, or whatever `show` prints for people."""
        if self.as_json:
            print(json_format.dumps(document, indent=2, ensure_ascii=False, default=str))
        else:
            show()

    def summary(self, document: Any, text: str) -> None:
        """Print what was done: the document as JSON, or text, which nobody needs who asked for quiet."""
        if self.as_json or not self.quiet:
            self.result(document, lambda: print(text))

    def note(self, text: str) -> None:
        """Say something on the side."""
        if not self.quiet:
            print(text, file=sys.stderr)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table on stdout: fitted to a terminal, or one line per row, unwrapped, for a pipe."""
        if not sys.stdout.isatty():
            _print_plain([columns, *rows])
            return
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for place, column in enumerate(columns):
            table.add_column(column, no_wrap=place == 0, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))  # Text, so that brackets are no markup
        Console().print(table)

    @contextmanager
    def progress(self, what: str, *, total: int | None = None) -> Iterator[Reporter]:
        """Show a bar on stderr while a long piece of work lasts, if that is a terminal."""
        if self.quiet or not sys.stderr.isatty():
            yield _silent
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as TimeLeftColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            TimeLeftColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total, text="")
            yield lambda done, total, text: bar.update(task, completed=done, total=total, text=text)


def _silent(_done: int, _total: int | None, _text: str) -> None:
    """Stand in for a bar that nobody would see."""


def _print_plain(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

"""The program around the commands: which there are, how errors and Ctrl-C end, what every command shares.

Exit status: 0 done; 1 something is wrong with what was given, said in one line; 2 the command line is wrong;
130 interrupted.
"""

from __future__ import annotations

import errno
import importlib
import logging
import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from synaptune._version import __version__
from synaptune.allocator import keep_freed_memory
from synaptune.cli.output import JsonFlag, Output, QuietFlag
from synaptune.errors import SynaptuneError, nearest

__all__ = ["COMMANDS", "application"]

COMMANDS = {
    "demo": "demo",
    "predict": "predict",
    "doctor": "doctor",
    "methods": "methods",
    "export": "export",
    "data": "data",
    "corrupt": "corrupt",
    "train": "train",
    "bench": "bench",
    "figure": "figure",
    "report": "report",
}
"""Commands in the order of the help page, with their modules."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class _LazyGroup(TyperGroup):
    """Imports a command's module when it is asked for, and ends every command the same way."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"synaptune.cli.{COMMANDS[cmd_name]}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS:
            ctx.fail(f"there is no command {args[0]!r}{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SynaptuneError as error:
            _tell(str(error))
        except OSError as error:
            # A place that cannot be read or written; without its name, or with nobody reading, it is something else.
            if error.filename is None and error.errno in _FULL:
                _tell(f"cannot write: {error.strerror}; make room, and run the same command again")
            elif error.filename is None or isinstance(error, BrokenPipeError):
                raise
            else:
                logging.getLogger(__name__).debug("where it happened", exc_info=True)
                _tell(f"{error.filename}: {error.strerror}; name another file or folder")
        except RuntimeError as error:
            # The adapter notes on such errors what was expected; without that it is nothing that was foreseen.
            notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("synaptune: ")]
            if not notes:
                raise
            _tell(f"{notes[0].removeprefix('synaptune: ')} ({_first_line(error)})")
        except KeyboardInterrupt as stop:
            # A command that can say what it leaves behind has said so in the exception.
            print(*(stop.args or ("interrupted",)), file=sys.stderr)
            raise typer.Exit(130) from None
        raise typer.Exit(1)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _tell(text: str) -> None:
    print(f"synaptune: {' '.join(text.split())}", file=sys.stderr)


application = typer.Typer(
    name="synaptune",
    cls=_LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"synaptune {__version__}")
        raise typer.Exit


@application.callback()
def root(
    ctx: typer.Context,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show what goes on inside (logging).")] = False,
    version: Annotated[  # noqa: ARG001 - its callback has done all there is to do
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keep an image classifier accurate while its inputs drift: adapt it, without labels, as it predicts."""
    ctx.obj = Output(quiet=quiet, as_json=json)
    _log(verbose=verbose)
    warnings.showwarning = _show_warning
    keep_freed_memory()


def _log(*, verbose: bool) -> None:
    """Show log records on request; otherwise errors only, also of libraries that set levels of their own."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.DEBUG if verbose else logging.ERROR)
    logging.basicConfig(level=handler.level, format="%(name)s: %(message)s", handlers=[handler])
    if not verbose:
        os.environ.setdefault("HF_HUB_VERBOSITY", "error")  # huggingface_hub has a handler of its own


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Warnings of ours are for users; those of libraries, about themselves, are not."""
    if category.__module__.startswith("synaptune."):
        print(f"note: {message}", file=sys.stderr)

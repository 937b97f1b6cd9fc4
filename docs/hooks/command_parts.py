"""The command line, from the program itself: every command with its arguments and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from markup import cell, code, table
from synaptune.cli.application import application

# Every command has these; they are told once, for all.
SHARED = ("--help", "--install-completion", "--show-completion", "--json", "--quiet")


def commands() -> str:
    """Say what each command does, and which options all of them have."""
    program, context = _program()
    rows = [(f"[`{at.command_path}`](#{_anchor(at)})", cell(found.help or "")) for found, at in _walk(program, context)]
    shared = _table("option of every command", program.get_params(context), context, "option")
    return f"{table(('command', 'does'), rows)}\n\n{shared}"


def command_details() -> str:
    """Describe each command."""
    return "\n\n".join(_section(found, at) for found, at in _walk(*_program()))


def _program() -> tuple[Any, Any]:
    program = typer.main.get_command(application)
    return program, typer.Context(program, info_name="synaptune")


def _walk(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Every command that does something, with the context that knows its path; groups are walked through."""
    if not hasattr(command, "list_commands"):
        yield command, context
        return
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        if not child.hidden:
            yield from _walk(child, typer.Context(child, info_name=name, parent=context))


def _anchor(context: Any) -> str:
    return str(context.command_path).replace(" ", "-")


def _section(command: Any, context: Any) -> str:
    own = [found for found in command.get_params(context) if set(SHARED).isdisjoint(found.opts)]
    usage = " ".join([context.command_path, *_arguments(own), "[OPTIONS]"])
    parts = [
        f"## {context.command_path} {{ #{_anchor(context)} }}",
        cell(command.help or ""),
        f"```text\n{usage}\n```",
        _table("argument", own, context, "argument"),
        _table("option", own, context, "option"),
        command.epilog or "",
    ]
    return "\n\n".join(filter(None, parts))


def _arguments(parameters: list[Any]) -> Iterator[str]:
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            name = parameter.metavar or parameter.name.upper()
            name = name if parameter.nargs == 1 or name.endswith("...") else f"{name}..."
            yield name if parameter.required else f"[{name}]"


def _table(title: str, parameters: list[Any], context: Any, kind: str) -> str:
    records = [found.get_help_record(context) for found in parameters if found.param_type_name == kind]
    rows = [(code(record[0]), cell(record[1])) for record in records if record is not None]
    return table((title, "meaning"), rows) if rows else ""

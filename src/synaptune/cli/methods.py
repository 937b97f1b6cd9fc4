"""`synaptune methods`: what there is, what each needs, and every option of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from synaptune.cli.output import JsonFlag, Output, QuietFlag, output_of

if TYPE_CHECKING:
    from synaptune.core.method import MethodInfo

__all__ = ["app"]

app = typer.Typer(add_completion=False)


@app.command()
def methods(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="One method, for all its options.", show_default=False)] = None,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """List the methods, or tell all options of one."""
    from synaptune.core.registry import find, infos

    output = output_of(ctx, quiet=quiet, as_json=json)
    if name is None:
        output.result([_plain(info) for info in infos()], lambda: _overview(output, infos()))
    else:
        info = find(name)
        output.result(_plain(info), lambda: _page(output, info))


def _plain(info: MethodInfo) -> dict[str, Any]:
    fields = ("name", "type", "default", "text")
    described = type(info.options).describe()
    values = info.options.as_dict()
    return {
        "name": info.name,
        "summary": info.summary,
        "base": info.base,
        "needs": str(info.needs),
        "paper": info.paper,
        "code": info.code,
        "options": [dict(zip(fields, entry, strict=True)) | {"default": values[entry[0]]} for entry in described],
    }


def _overview(output: Output, infos: tuple[MethodInfo, ...]) -> None:
    rows = [(info.name, info.summary, str(info.needs)) for info in infos]
    output.table(("method", "what it does", "needs"), rows)
    output.note("synaptune methods NAME tells the options of one.")


def _page(output: Output, info: MethodInfo) -> None:
    print(f"{info.name}: {info.summary}")
    print(f"needs {info.needs}")
    if info.base:
        print(f"a configuration of {info.base}")
    if info.paper or info.code:
        print(" ".join(filter(None, (info.paper, info.code))))
    values = info.options.as_dict()
    rows = [(name, kind, _spell(values[name]), text) for name, kind, _, text in type(info.options).describe()]
    output.table(("option", "type", "default", "meaning"), rows)


def _spell(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)

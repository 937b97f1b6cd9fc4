"""`synaptune data list / get / verify`: public data sets, on disk or to be had."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from synaptune.cli.output import JsonFlag, QuietFlag, Reporter, output_of

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Public data sets: what is here, fetch, check.")


def _complete(incomplete: str) -> list[str]:
    from synaptune.data import entries

    return [entry.name for entry in entries() if entry.name.startswith(incomplete)]


RootOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--root", metavar="FOLDER", help="Folder of the data sets [SYNAPTUNE_DATA, else ~/.cache/synaptune]."),
]
NameArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="A data set.", autocompletion=_complete, show_default=False)
]


@app.command("list")
def list_sets(ctx: typer.Context, root: RootOption = None, quiet: QuietFlag = False, json: JsonFlag = False) -> None:
    """List the data sets: what is on disk, what can be fetched, under which licence."""
    from synaptune.data import listing

    output = output_of(ctx, quiet=quiet, as_json=json)
    found = listing(root)
    document = [
        {
            "name": holding.name,
            "title": holding.title,
            "licence": holding.licence,
            "home": holding.home,
            "on_disk": list(holding.splits),
            "missing": list(holding.missing),
            "places": [str(place) for place in holding.places],
            "bytes_on_disk": holding.bytes_on_disk,
            "download_bytes": holding.download_bytes,
            "can_get": holding.can_get,
            "manual": holding.manual,
        }
        for holding in found
    ]
    rows = [
        (
            holding.name,
            holding.title,
            _few(holding.splits) or "-",
            _size(holding.bytes_on_disk),
            (_size(holding.download_bytes) or "yes") if holding.can_get else "by hand",
            holding.licence,
        )
        for holding in found
    ]
    columns = ("name", "what it is", "on disk", "size", "download", "licence")
    output.result(document, lambda: output.table(columns, rows))


@app.command()
def get(
    ctx: typer.Context,
    name: NameArgument,
    part: Annotated[
        list[str] | None, typer.Option("--part", metavar="FILE", help="Only this file of the publisher (repeatable).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch again what is there.")] = False,
    keep_archive: Annotated[bool, typer.Option("--keep-archive", help="Keep the downloaded archives.")] = False,
    root: RootOption = None,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Download a data set, check it, unpack it, and move it into place; what is there already is left alone."""
    from synaptune import data

    output = output_of(ctx, quiet=quiet, as_json=json)
    with output.progress(name) as report:
        data.get(name, root=root, parts=part, progress=_listener(report), force=force, keep_archive=keep_archive)
    (held,) = (holding for holding in data.listing(root) if holding.name == name)
    places = [str(place) for place in held.places]
    whole = f"{name} is in {', '.join(places)}: {_few(held.splits)}"
    # Of some sets only a list can be fetched; the images come from elsewhere.
    rest = f"{name} cannot be used yet: no {_few(held.missing)} on disk. {held.manual}"
    output.summary(
        {"name": name, "on_disk": list(held.splits), "places": places, "missing": list(held.missing)},
        whole if held.is_on_disk else rest,
    )


@app.command()
def verify(
    ctx: typer.Context, name: NameArgument, root: RootOption = None, quiet: QuietFlag = False, json: JsonFlag = False
) -> None:
    """Check a data set on disk: checksums where the publisher gives some, form and number of images otherwise."""
    from synaptune import data

    output = output_of(ctx, quiet=quiet, as_json=json)
    with output.progress(name) as report:
        found = data.verify(name, root=root, progress=_listener(report))
    document = {
        "name": found.name,
        "whole": found.is_whole,
        "checks": [{"what": check.what, "state": check.state, "detail": check.detail} for check in found.checks],
    }
    output.result(document, lambda: print(found))
    if not found.is_whole:
        raise typer.Exit(1)


def _listener(report: Reporter) -> Any:
    def listen(progress: Any) -> None:
        report(progress.done, progress.total, f"{progress.stage} {progress.name} (bytes)")

    return listen


def _few(names: tuple[str, ...], most: int = 4) -> str:
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more"


def _size(number: int | None) -> str:
    if number is None:
        return ""
    return f"{number / 1e9:,.1f} GB" if number >= 1e9 else f"{number / 1e6:,.1f} MB"

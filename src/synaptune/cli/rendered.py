"""`--render FILE`: what a command prints, also as a file whose ending says in which notation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

import typer

from synaptune.errors import DataError, OptionError

if TYPE_CHECKING:
    from synaptune.bench import Form

__all__ = ["RenderOption", "form_of", "write_rendered"]

RenderOption: TypeAlias = Annotated[
    Path | None, typer.Option("--render", metavar="FILE", help="Also write it to a file (.md, .txt or .json).")
]

_FORMS = {".md": "markdown", ".txt": "text", ".json": "json"}


def form_of(path: Path | None) -> Form:
    """The notation that a file's ending asks for; checked before anything is measured."""
    if path is not None and path.suffix not in _FORMS:
        raise OptionError(f"--render {path}: the ending must be one of {', '.join(_FORMS)}")
    return cast("Form", "markdown" if path is None else _FORMS[path.suffix])


def write_rendered(path: Path, text: str) -> None:
    """Write the file, and its folder where that is not there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}; choose another file") from error

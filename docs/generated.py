"""Pages that are made from the code when the site is built: methods, Python and command line reference."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

from mkdocs.structure.files import File, Files

import synaptune as st
from synaptune.core.method import MethodInfo


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to the site."""
    methods = [info for info in st.methods() if info.base is None]
    pages = {"methods/index.md": _methods_index(), "reference/api.md": _api(), "reference/cli.md": _cli()}
    pages |= {f"methods/{info.name}.md": _method(info) for info in methods}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def _methods_index() -> str:
    lines = ["# Methods", "", "| name | what it does | needs | paper |", "| --- | --- | --- | --- |"]
    for info in st.methods():
        page = f"[`{info.name}`]({info.base or info.name}.md)"
        paper = f"[{info.paper}](https://arxiv.org/abs/{info.paper.removeprefix('arXiv:')})" if info.paper else ""
        lines.append(f"| {page} | {info.summary} | {info.needs} | {paper} |")
    return "\n".join(lines) + "\n"


def _method(info: MethodInfo) -> str:
    module = inspect.getmodule(info.method)
    assert module is not None
    text = inspect.getdoc(module) or ""
    lines = [f"# {info.name}", "", text, "", f"Needs {info.needs}.", ""]
    if info.code:
        lines += [f"Authors' code: [{info.code}](https://github.com/{info.code}).", ""]
    lines += [f"## Options: `st.{type(info.options).__name__}`", "", "| option | type | default | meaning |"]
    lines += ["| --- | --- | --- | --- |"]
    for name, kind, default, meaning in type(info.options).describe():
        lines.append(f"| `{name}` | {_cell(kind)} | `{default!r}` | {_cell(meaning)} |")
    presets = [other for other in st.methods() if other.base == info.name]
    if presets:
        lines += ["", "## Named configurations", "", "| name | options | what it is |", "| --- | --- | --- |"]
        for other in presets:
            changed = {
                key: value for key, value in other.options.as_dict().items() if value != info.options.as_dict()[key]
            }
            spelled = ", ".join(f"{key}={value!r}" for key, value in changed.items())
            lines.append(f"| `{other.name}` | {_cell(spelled)} | {other.summary} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _api() -> str:
    names = [name for name in st.__all__ if not name.startswith("_") and name != "errors"]
    blocks = [f"::: synaptune.{name}" for name in names]
    return "\n\n".join(
        ["# Python", "Everything below is importable from `synaptune`.", *blocks, "::: synaptune.errors"]
    )


def _cli() -> str:
    def helped(*command: str) -> str:
        run = subprocess.run(
            [sys.executable, "-m", "synaptune", *command, "--help"],
            capture_output=True,
            text=True,
            check=True,
            env={"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "PATH": ""},
        )
        return f"```text\n{run.stdout.strip()}\n```"

    from synaptune.cli import command_names

    parts = ["# Command line", helped()]
    for name in command_names():
        parts += [f"## {name}", helped(*name.split())]
    return "\n\n".join(parts) + "\n"

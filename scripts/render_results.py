"""Render the pages and figures of measured results again, from the rows in `results/`.

    python scripts/render_results.py           # every page of docs/results that says "Made by", and its figures

Nothing is measured. A page begins with `synaptune bench TABLE --render docs/results/PAGE.md`; from then on its own
"Made by" line says what it is made of.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

from synaptune.bench import load_run, render
from synaptune.bench.figures import run_figure

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "results"
_MADE_BY = re.compile(r"^Made by: `synaptune bench (.+)`$", re.MULTILINE)


def made_pages(folder: Path = PAGES) -> dict[Path, list[str]]:
    """Pages that are made from rows, and the words of the command that makes each."""
    found = {path: _MADE_BY.search(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.md"))}
    return {path: shlex.split(match[1]) for path, match in found.items() if match}


def rendered(words: list[str], root: Path = ROOT) -> str:
    """Return the page of a table: the table's name, changes to it, and `--out FILE`."""
    *table, _, out = words
    run = load_run(table[0], root / out, overrides=table[1:])
    return render(run).replace(f"{root.as_posix()}/", "")


def overviews(folder: Path = PAGES / "figures") -> dict[Path, list[str]]:
    """Figures that are drawn from rows, and the changes that their commands name."""
    commands = {path: shlex.split(json.loads(path.read_text())["command"]) for path in folder.glob("overview.json")}
    return {path: words[3 : words.index("--out")] for path, words in commands.items()}


def main() -> None:
    """Render all of them."""
    for path, words in made_pages().items():
        path.write_text(rendered(words), encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    for path, words in overviews().items():
        run_figure("overview", overrides=words, out=path.parent.relative_to(Path.cwd()))
        sys.stdout.write(f"{path.parent.relative_to(ROOT)}/overview.*\n")


if __name__ == "__main__":
    main()

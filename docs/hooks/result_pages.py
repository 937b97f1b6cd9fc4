"""The list of results: every table that one command makes, and the pages that hold them already."""

from __future__ import annotations

from pathlib import Path

from markup import cell, code, table
from synaptune.bench import load_table, table_names

PAGES = Path(__file__).parents[1] / "results"


def results(folder: Path = PAGES) -> str:
    """List the tables, with the pages that hold them, and the other pages of the folder."""
    titles = {path.stem: _title(path) for path in sorted(folder.glob("*.md")) if path.stem != "index"}
    rows = []
    for name in table_names():
        page = f"[{cell(titles[name])}]({name}.md)" if name in titles else "not measured yet"
        rows.append((code(f"synaptune bench {name}"), cell(load_table(name).title), page))
    others = [f"- [{title}]({name}.md)" for name, title in titles.items() if name not in table_names()]
    more = ["## More pages", "\n".join(others)] if others else []
    return "\n\n".join([table(("command", "what it measures", "page"), rows), *more])


def _title(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("# ").strip() for line in lines if line.startswith("# ")), path.stem)

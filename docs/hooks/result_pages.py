"""The index of results: every table and figure that one command makes, and the pages that hold them already."""

from __future__ import annotations

from pathlib import Path

from markup import cell, code, table
from synaptune.bench import load_table, table_names

HEAD = """# Results

Each table of the paper is one command; it resumes where it was stopped, and what it prints stands on the page beside
it: our number, the paper's, the difference, and what could not be measured here and why. Rows carry their
[protocol](../protocols.md).
"""


def result_pages(docs: Path) -> dict[str, str]:
    """Return the index, unless `docs/results/index.md` is there."""
    folder = docs / "results"
    if (folder / "index.md").is_file():
        return {}
    titles = {path.stem: _title(path) for path in sorted(folder.glob("*.md"))}
    rows = []
    for name in table_names():
        page = f"[{cell(titles[name])}]({name}.md)" if name in titles else "not measured yet"
        rows.append((code(f"synaptune bench {name}"), cell(load_table(name).title), page))
    others = [f"- [{title}]({name}.md)" for name, title in titles.items() if name not in table_names()]
    more = ["## More pages", "\n".join(others)] if others else []
    return {"results/index.md": "\n\n".join([HEAD, table(("command", "what it measures", "page"), rows), *more]) + "\n"}


def _title(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("# ").strip() for line in lines if line.startswith("# ")), path.stem)

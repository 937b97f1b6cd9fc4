"""The hook of the documentation site: what is made from the code, and sections that list what is in a folder.

- In `nav`, `FOLDER/*` stands for the pages of a folder, made ones included, that `nav` does not name itself.
- In a page, the part of that name follows a comment `made: NAME`. A comment `end` after it says that the part also lies
  in the file, for those who read it without the site; `make results` renews it there.
- Pages of methods and of the Python reference are made whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from api_pages import api_pages
from catalogue_parts import data_sets, zoo_models
from command_parts import command_details, commands
from method_pages import method_pages, methods_table
from recipe_parts import recipe_options, recipes
from result_pages import results

PARTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "command details": command_details,
    "data sets": data_sets,
    "methods": methods_table,
    "recipe options": recipe_options,
    "recipes": recipes,
    "results": results,
    "zoo": zoo_models,
}

_MADE = r"<!-- made: ([^>]+?) -->"
_KEPT = r"\n(?:(?!<!-- made: ).)*?<!-- end -->"


def made_pages(docs: Path) -> dict[str, str]:
    """Return every page that is made whole: its path below `docs`, and its text."""
    return method_pages(docs) | api_pages()


def on_config(config: Any) -> Any:
    """Make the pages, and replace `FOLDER/*` in the navigation."""
    docs = Path(config.docs_dir)
    made = made_pages(docs)
    lying = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    named = {entry for entry in _paths(config.nav) if not entry.endswith("/*")}
    # Made pages come in the order of their makers, those on disk are sorted.
    pages = [*made, *sorted(lying - made.keys())]
    config.nav = expanded(config.nav, [page for page in pages if page not in named])
    config.extra["made_pages"] = made
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the made pages; one that continues a file of `docs` takes its place."""
    for path, text in config.extra["made_pages"].items():
        lying = files.get_file_from_path(path)
        if lying is not None:
            files.remove(lying)
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put made parts into the pages that ask for them."""
    return re.sub(f"{_MADE}(?:{_KEPT})?", lambda match: _part(match[1]), markdown, flags=re.DOTALL)


def renewed(markdown: str) -> str:
    """Return the text of a file with the made parts that lie in it as they are now."""
    return re.sub(
        f"{_MADE}{_KEPT}",
        lambda match: f"<!-- made: {match[1]} -->\n\n{_part(match[1]).strip()}\n\n<!-- end -->",
        markdown,
        flags=re.DOTALL,
    )


def _part(name: str) -> str:
    if name not in PARTS:
        raise PluginError(f"a page asks for the part {name!r}; there are {', '.join(PARTS)}")
    return PARTS[name]()


def _paths(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [path for entry in (nav.values() if isinstance(nav, dict) else nav) for path in _paths(entry)]


def expanded(nav: Any, pages: list[str]) -> Any:
    """Return the navigation with every `FOLDER/*` replaced by those of the `pages` that lie in it, its index first."""
    if isinstance(nav, dict):
        return {title: expanded(entry, pages) for title, entry in nav.items()}
    if isinstance(nav, str):
        return nav
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("/*"):
            folder = entry.removesuffix("*")
            inside = [page for page in pages if page.startswith(folder) and "/" not in page.removeprefix(folder)]
            entries += sorted(inside, key=lambda page: not page.endswith("/index.md"))
        else:
            entries.append(expanded(entry, pages))
    return entries

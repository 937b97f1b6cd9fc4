"""What README and the guides show is run as it stands: all Python blocks of a page, in order, in one namespace."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import torch

import synaptune as st
from tests.support.models import build

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?P<needs><!-- needs: (?P<names>[^>]*) -->\n)?```python\n(?P<code>.*?)```", re.DOTALL)

# What a reader has at hand already, and a page says so in a comment before the block.
AT_HAND = {"model": lambda: build("bn"), "images": lambda: torch.rand(8, 3, 8, 8)}


def blocks(page: Path) -> list[re.Match[str]]:
    return list(BLOCK.finditer(page.read_text()))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_python_blocks_run_as_pasted(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from synaptune.core.registry import _METHODS

    monkeypatch.chdir(tmp_path)
    before = set(_METHODS)
    namespace: dict[str, object] = {"__name__": "__main__"}
    try:
        for block in blocks(page):
            names = [name.strip() for name in (block["names"] or "").split(",") if name.strip()]
            namespace |= {name: AT_HAND[name]() for name in names}
            exec(compile(block["code"], f"{page.name}", "exec"), namespace)
    finally:
        for name in set(_METHODS) - before:
            del _METHODS[name]


def test_some_page_has_something_to_run() -> None:
    assert sum(len(blocks(page)) for page in PAGES) >= 8


def test_links_between_pages_lead_somewhere() -> None:
    generated = {"methods/index.md", "reference/api.md", "reference/cli.md"}
    generated |= {f"methods/{info.name}.md" for info in st.methods()}
    for page in [*PAGES, *sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text()):
            found = (page.parent / target).resolve()
            inside = found.is_relative_to(ROOT / "docs") and str(found.relative_to(ROOT / "docs")) in generated
            assert inside or found.exists(), f"{page.name} links to {target}"


def test_the_version_has_a_section_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in changelog
    if ".dev" not in st.__version__:
        assert f"## [{st.__version__}]" in changelog


def test_dependencies_are_justified() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "docs/design/dependencies.md").read_text()
    extras = [
        requirement
        for extra, requirements in project["optional-dependencies"].items()
        if extra not in ("dev", "docs")
        for requirement in requirements
    ]
    for requirement in [*project["dependencies"], *extras]:
        name = re.split(r"[<>=\[;]", requirement)[0]
        assert f"`{name}`" in text, f"{name} is not in docs/design/dependencies.md"

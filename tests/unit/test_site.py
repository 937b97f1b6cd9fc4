"""The parts of the documentation site that are made from the code."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import synaptune as st
from synaptune.bench import table_names

ROOT = Path(__file__).parents[2]
pytest.importorskip("mkdocs", reason="the site needs the extra `docs`")


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(ROOT / "docs/hooks")
    return importlib.import_module


def test_every_method_gets_a_page_with_all_its_options(hooks: Callable[[str], ModuleType]) -> None:
    pages = hooks("method_pages").method_pages(ROOT / "docs")
    for info in st.methods():
        if info.base is None:
            page = pages[f"methods/{info.name}.md"]
            for name, _, default, text in type(info.options).describe():
                assert f"| `{name}` |" in page
                assert f"`{default!r}`" in page
                assert text.replace("|", "\\|") in page
        else:
            assert f"`{info.name}`" in pages[f"methods/{info.base}.md"]


def test_passes_are_counted_not_claimed(hooks: Callable[[str], ModuleType]) -> None:
    counted = {info.name: hooks("method_pages").passes(info) for info in st.methods() if info.base is None}
    copies = st.Ttt().copies
    assert counted["source"] == counted["norm"] == (1, 0)
    assert counted["tent"] == counted["nhl"] == (1, 1)
    assert counted["ttt"] == (copies + 1, copies)
    # DUA predicts after adapting by default, hence a second forward of the image itself.
    assert counted["dua"] == (st.Dua().copies + 2, 0)


def test_every_public_package_is_documented(hooks: Callable[[str], ModuleType]) -> None:
    pages = "".join(hooks("api_pages").api_pages().values())
    packages = {
        path.stem for path in Path(st.__file__).parent.iterdir() if path.stem[0] != "_" and path.suffix != ".typed"
    }
    missing = {name for name in packages if f"::: synaptune.{name}" not in pages}
    assert missing == {"algorithms", "api", "cli"}


def test_every_command_and_option_is_documented(hooks: Callable[[str], ModuleType]) -> None:
    from synaptune.cli.application import COMMANDS

    parts = hooks("command_parts")
    overview, details = parts.commands(), parts.command_details()
    for name in COMMANDS:
        assert f"`synaptune {name}" in overview
        assert f"## synaptune {name}" in details
    for option in ("--compare-source", "--retry-failed", "--corruption", "--state"):
        assert option in details


def test_data_sets_and_networks_are_listed(hooks: Callable[[str], ModuleType]) -> None:
    from synaptune.data import entries
    from synaptune.models import zoo

    parts = hooks("catalogue_parts")
    assert all(f"| `{entry.name}` |" in parts.data_sets() for entry in entries())
    assert all(f"| `{name}` |" in parts.zoo_models() for name in zoo.names())
    assert "| synaptune; `synaptune train digits-mnist` makes them (Apache-2.0) |" in parts.zoo_models()


def test_recipes_are_listed_with_all_their_options(hooks: Callable[[str], ModuleType]) -> None:
    from synaptune.models.training_recipe import TrainingRecipe

    parts = hooks("recipe_parts")
    for name, _, default, text in TrainingRecipe.describe():
        assert f"| `{name}` |" in parts.recipe_options()
        assert f"| `{default!r}` | {text} |" in parts.recipe_options()
    assert "| `wrn-40-2-cifar100-augmix` | `cifar100` | `epochs=45, " in parts.recipes()
    assert "| `resnet20-cifar10` | `cifar10` | the defaults |" in parts.recipes()


def test_every_made_part_that_a_page_asks_for_can_be_made(hooks: Callable[[str], ModuleType]) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        hooks("hook").on_page_markdown(page.read_text(encoding="utf-8"))


def test_results_list_what_is_there_and_what_is_not(hooks: Callable[[str], ModuleType], tmp_path: Path) -> None:
    (tmp_path / "cifar10c.md").write_text("# CIFAR-10-C here\n")
    (tmp_path / "reproduction.md").write_text("# What reproduces\n")
    (tmp_path / "index.md").write_text("# Results\n")
    part = hooks("result_pages").results(tmp_path)
    assert "[CIFAR-10-C here](cifar10c.md)" in part
    assert "- [What reproduces](reproduction.md)" in part
    assert "index.md" not in part
    assert part.count("not measured yet") == len(table_names()) - 1


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.stem)
def test_parts_that_lie_in_files_are_as_the_code_makes_them(hooks: Callable[[str], ModuleType], path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == hooks("hook").renewed(text), "make results renews it"


def test_a_part_in_a_file_is_renewed_and_text_around_it_stays(hooks: Callable[[str], ModuleType]) -> None:
    hook = hooks("hook")
    stale = "before\n<!-- made: zoo -->\n\nstale\n\n<!-- end -->\nbetween\n<!-- made: methods -->\nafter"
    fresh = hook.renewed(stale)
    assert "stale" not in fresh
    assert fresh.startswith("before\n<!-- made: zoo -->\n\n| name |")
    assert fresh.endswith("<!-- end -->\nbetween\n<!-- made: methods -->\nafter")
    assert hook.renewed(fresh) == fresh
    shown = hook.on_page_markdown(fresh)
    assert shown.count("| `resnet20-cifar10` |") == 1
    assert "<!--" not in shown
    assert "`nhl`" in shown


def test_a_star_in_the_navigation_is_every_other_page_of_the_folder(hooks: Callable[[str], ModuleType]) -> None:
    nav = [{"Home": "index.md"}, {"Design": ["design/first.md", "design/*"]}]
    pages = ["design/b.md", "design/index.md", "design/deeper/c.md", "other/d.md"]
    assert hooks("hook").expanded(nav, pages) == [
        {"Home": "index.md"},
        {"Design": ["design/first.md", "design/index.md", "design/b.md"]},
    ]


def test_a_part_that_is_not_there_stops_the_build(hooks: Callable[[str], ModuleType]) -> None:
    hook = hooks("hook")
    assert "resnet20-cifar10" in hook.on_page_markdown("before\n<!-- made: zoo -->\nafter")
    with pytest.raises(Exception, match="the part 'zooo'"):
        hook.on_page_markdown("<!-- made: zooo -->")


def test_doctests_become_blocks_of_code(hooks: Callable[[str], ModuleType]) -> None:
    fenced = hooks("doctests").fenced
    assert fenced("Adds.\n\n>>> 1 + 1\n2\n\nMore.") == "Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    assert fenced("    >>> f()") == "    ```pycon\n    >>> f()\n    ```"
    assert fenced("No example.") == "No example."

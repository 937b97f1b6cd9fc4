"""What README and the guides show is run as it stands, and what they name exists.

All Python blocks of a page are run in order, in one namespace and an empty folder. Commands of `sh` blocks are parsed
by the program itself.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pytest
import torch
import typer

import synaptune as st
from tests.support.models import build

ROOT = Path(__file__).parents[2]
GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON = re.compile(r"(?:<!-- needs: (?P<needs>[^>]*) -->\n)?```python\n(?P<code>.*?)```", re.DOTALL)
SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def texts(pattern: re.Pattern[str]) -> Iterator[tuple[Path, re.Match[str]]]:
    for page in GUIDES:
        for match in pattern.finditer(page.read_text()):
            yield page, match


class Recorder(ModuleType):
    """A package that is not installed here: whatever is called on it is noted, and gives the recorder back."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*_args: object, **_options: object) -> Recorder:
            self.calls.append(name)
            return self

        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


# What a reader has at hand already, and a page says so in a comment before the block: values, or packages.
AT_HAND: dict[str, Callable[[], object]] = {"model": lambda: build("bn"), "images": lambda: torch.rand(8, 3, 8, 8)}
PACKAGES = {
    "wandb": ("wandb", {"init", "log", "finish"}),
    "mlflow": ("mlflow", {"start_run", "log_params", "log_metrics"}),
    "tensorboard": ("torch.utils.tensorboard", {"SummaryWriter", "add_scalar", "flush"}),
}


@pytest.fixture
def _registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page registers is gone after it; what is loaded at the first question is there before."""
    st.methods()
    for module, name in (("core.registry", "_METHODS"), ("data.catalogue", "_ENTRIES"), ("models.zoo", "_ENTRIES")):
        found = importlib.import_module(f"synaptune.{module}")
        monkeypatch.setattr(found, name, dict(getattr(found, name)))


@pytest.mark.usefixtures("_registries")
@pytest.mark.parametrize(
    "page",
    [page for page in GUIDES if PYTHON.search(page.read_text())],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_python_blocks_run_as_pasted(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    recorders: dict[str, Recorder] = {}
    for block in PYTHON.finditer(page.read_text()):
        for name in (name.strip() for name in (block["needs"] or "").split(",") if name.strip()):
            if name in AT_HAND:
                namespace[name] = AT_HAND[name]()
            else:
                recorders[name] = Recorder(PACKAGES[name][0])
                monkeypatch.setitem(sys.modules, PACKAGES[name][0], recorders[name])
        with torch.random.fork_rng():
            exec(compile(block["code"], page.name, "exec"), namespace)
    for name, recorder in recorders.items():
        assert PACKAGES[name][1] <= set(recorder.calls), f"{page.name} does not use {name} as it says"


def test_there_is_something_to_run() -> None:
    assert len(list(texts(PYTHON))) >= 25
    assert len(commands()) >= 15


def commands() -> list[tuple[Path, str]]:
    lines = [(page, line) for page, block in texts(SHELL) for line in block[1].splitlines()]
    parts = [(page, part.strip()) for page, line in lines for part in line.split("|")]
    return [(page, part) for page, part in parts if part.startswith("synaptune ")]


@pytest.mark.parametrize(("page", "line"), [pytest.param(*found, id=found[1]) for found in commands()])
def test_commands_are_spelled_as_the_program_wants_them(page: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from synaptune.cli.application import application

    called = []
    monkeypatch.setattr("typer.core.TyperCommand.invoke", lambda self, context: called.append(context.command_path))
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # the program sets its own
    try:
        typer.main.get_command(application).main(shlex.split(line)[1:], prog_name="synaptune", standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - whatever the parser raises is the finding
        pytest.fail(f"{page.name}: {line}: {error}")
    assert len(called) == 1


def test_names_in_code_exist() -> None:
    """`synaptune.x.y`, `st.x` and `NHL(option=...)`, wherever they stand in code."""
    problems = []
    for page, match in texts(re.compile(r"(?<![\w./-])(synaptune(?:\.[A-Za-z_]\w*)+|st\.\w+)")):
        dotted = re.sub(r"^st\.", "synaptune.", match[1])
        if not exists(dotted):
            problems.append(f"{page.name}: {match[1]}")
    for page, match in texts(re.compile(r"\b(NHL|Norm|Tent|Dua|Ttt)\((\w+)=")):
        if match[2] not in {item.name for item in dataclasses.fields(getattr(st, match[1]))}:
            problems.append(f"{page.name}: {match[0]}")
    assert not problems


def exists(dotted: str) -> bool:
    found: Any = st
    for depth, name in enumerate(dotted.split(".")[1:], start=2):
        if not hasattr(found, name):
            try:
                found = importlib.import_module(".".join(dotted.split(".")[:depth]))
            except ImportError:
                return False
        else:
            found = getattr(found, name)
    return True


def test_messages_in_troubleshooting_are_real() -> None:
    source = " ".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    spoken = re.sub(r'"\s*\n\s*f?"', "", source)  # sentences are broken over lines
    quoted = re.findall(r'(?:\*\*|\| )"([^"]+)"', (ROOT / "docs/troubleshooting.md").read_text())
    assert len(quoted) >= 10
    assert [message for message in quoted if message not in spoken] == []


def test_links_between_files_lead_somewhere() -> None:
    """Inside the site, the strict build of `make docs` checks links and anchors; made pages exist only there."""
    made = re.compile(r"docs/(methods|reference|results)/\w+\.md$")
    for page, match in texts(re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)")):
        target = (page.parent / match[1]).resolve()
        assert target.exists() or made.search(target.as_posix()), f"{page.name} links to {match[1]}"


def test_every_method_says_when_it_fails_or_serves() -> None:
    for info in st.methods():
        if info.base is None:
            assert "## When" in (ROOT / f"docs/methods/{info.name}.md").read_text(), info.name


def test_readme_names_every_method() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [info.name for info in st.methods() if info.base is None and f"`{info.name}`" not in readme] == []


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_picture_of_the_demo_is_shown_where_there_is_one(page: str) -> None:
    pictures = [path.name for path in (ROOT / "docs/images").glob("demo.*")]
    text = (ROOT / page).read_text()
    assert ("images/demo." in text) == bool(pictures)
    assert all(name in pictures for name in re.findall(r"images/(demo\.\w+)", text))

"""Files around the code say the same as the code, and rules for the text of the code hold."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import synaptune as st

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HOOKS = {
    hook["id"]: hook
    for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in repo["hooks"]
}
TEXT_RULES = {name: hook for name, hook in HOOKS.items() if hook["language"] == "pygrep"}


def python_files() -> list[str]:
    folders = (".ci", "benchmarks", "docs", "src", "tests")
    return [path.relative_to(ROOT).as_posix() for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("rule", sorted(TEXT_RULES))
def test_text_rules_hold(rule: str) -> None:
    hook = TEXT_RULES[rule]
    found = []
    for name in python_files():
        if re.search(hook.get("files", ""), name) and not re.search(hook.get("exclude", "^$"), name):
            lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
            found += [f"{name}:{n}" for n, line in enumerate(lines, start=1) if re.search(hook["entry"], line)]
    assert found == []


# Each is put together here, so that this file does not break the rule that it tests.
BROKEN = {
    "safe-torch-load": ["torch.load" + "(path)", "torch.load" + "(path, weights_only=False)"],
    "no-pickle": ["pick" + "le.load(file)", "np.load(path, allow_" + "pickle=True)"],
    "no-eval": ["ev" + "al(text)", "    ex" + "ec(code)"],
    "no-blanket-ignore": ["x = y  # type: " + "ignore", "x = y  # no" + "qa", "# ru" + "ff: noqa"],
}
FINE = {
    "safe-torch-load": ["torch.load(path, weights_only=True)", "torch.loader(path)"],
    "no-pickle": ["np.load(path, allow_pickle=False)", "read_plain(path)"],
    "no-eval": ["model.eval()", "retrieval(text)"],
    "no-blanket-ignore": ["x = y  # type: ignore[arg-type]  # why", "x = y  # noqa: S310 - why"],
}


@pytest.mark.parametrize("rule", sorted(TEXT_RULES))
def test_text_rules_catch_what_they_are_for_and_nothing_else(rule: str) -> None:
    pattern = TEXT_RULES[rule]["entry"]
    assert [line for line in BROKEN[rule] if not re.search(pattern, line)] == []
    assert [line for line in FINE[rule] if re.search(pattern, line)] == []


def make_targets() -> dict[str, str]:
    lines = (ROOT / "Makefile").read_text().splitlines()
    return {line.split(":")[0]: line for line in lines if re.match(r"[a-z][a-z-]*:(?!=)", line)}


def test_every_target_of_make_explains_itself() -> None:
    targets = make_targets()
    assert {"help", "demo", "test", "check", "quick", "docs", "wheel", "bench", "clean"} <= targets.keys()
    assert [name for name, line in targets.items() if "## " not in line] == []
    phony = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith(".PHONY"))
    assert set(phony.split()[1:]) == targets.keys()


@pytest.mark.parametrize("file", ["CONTRIBUTING.md", "README.md", "docs/index.md", "docs/quickstart.md"])
def test_make_targets_that_are_named_exist(file: str) -> None:
    named = set(re.findall(r"`?make ([a-z-]+)", (ROOT / file).read_text()))
    assert named
    assert named <= make_targets().keys()


def test_workflows_and_hooks_call_what_developers_call() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    commands = {step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step}
    assert {".ci/run", ".ci/wheel", "make docs"} <= commands
    assert "make test" in (ROOT / ".ci/run").read_text()
    for hook in HOOKS.values():
        if hook["language"] == "system":
            assert hook["entry"].removeprefix("make ") in make_targets()


def lower_bounds(requirements: list[str]) -> dict[str, str]:
    split = (re.match(r"([A-Za-z0-9_-]+)(?:\[[^]]*\])?>=([\d.]+)", requirement) for requirement in requirements)
    return {match[1].lower(): match[2] for match in split if match}


def test_ci_tests_the_lowest_versions_that_are_promised() -> None:
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    tested = [name for name in extras if name not in ("dev", "docs")]
    promised = lower_bounds(PROJECT["dependencies"]) | lower_bounds([r for name in tested for r in extras[name]])
    lines = (ROOT / ".ci/lowest.txt").read_text().splitlines()
    pinned = dict(line.lower().split("==") for line in lines if "==" in line)
    assert promised.keys() <= pinned.keys()
    for name, version in promised.items():
        assert f"{pinned[name]}.".startswith(f"{version}."), f"{name}: CI tests {pinned[name]}, promised is {version}"


def citation() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    return found


def test_citation_names_software_and_paper() -> None:
    file = citation()
    assert {"cff-version", "message", "title", "authors"} <= file.keys()
    assert file["title"] == PROJECT["name"]
    assert file["license"] == PROJECT["license"]
    assert [author["name"] for author in file["authors"]] == [author["name"] for author in PROJECT["authors"]]
    paper = file["preferred-citation"]
    assert paper["identifiers"][0]["value"] == next(info for info in st.methods() if info.name == "nhl").paper
    names = [author["family-names"] for author in paper["authors"]]
    assert names == ["Tang", "Zhang", "Xu", "Chen", "Cheng", "Leng", "Guo", "He"]


def test_the_version_has_a_section_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    sections = re.findall(r"^## \[([^]]+)\]", changelog, re.MULTILINE)
    assert sections[0] == "Unreleased"
    wanted = "Unreleased" if ".dev" in st.__version__ else st.__version__
    start = changelog.index(f"## [{wanted}]")
    section = changelog[start:].split("\n## ")[0]
    assert re.search(r"^### \w+", section, re.MULTILINE), f"the section {wanted} says nothing"
    assert len(re.findall(r"^- ", section, re.MULTILINE)) >= 3


def test_dependencies_are_justified() -> None:
    text = (ROOT / "docs/design/dependencies.md").read_text()
    extras = [
        requirement
        for extra, requirements in PROJECT["optional-dependencies"].items()
        if extra not in ("dev", "docs")
        for requirement in requirements
    ]
    for requirement in [*PROJECT["dependencies"], *extras]:
        name = re.split(r"[<>=\[;]", requirement)[0]
        assert f"`{name}`" in text, f"{name} is not in docs/design/dependencies.md"


def test_the_package_is_typed_and_carries_its_data() -> None:
    package = Path(st.__file__).parent
    assert (package / "py.typed").is_file()
    for name in ("bench/paper.toml", "data/sample/images.webp", "data/imagenet_classes.txt", "report/html/style.css"):
        assert (package / name).is_file()

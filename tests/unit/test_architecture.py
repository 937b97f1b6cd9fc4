"""Imports never turn back: data flows images -> stream -> adapter -> predictions -> metrics -> report."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import synaptune

ROOT = Path(synaptune.__file__).parent

# What each package may import of synaptune; `errors`, `options` and `_version` are open to all.
ALLOWED = {
    "allocator": set(),
    "functional": set(),
    "plasticity": {"functional"},
    "core": {"functional"},
    "algorithms": {"core", "functional", "plasticity"},
    "guards": {"core", "functional"},
    "models": {"functional"},
    "shifts": set(),
    "data": {"shifts"},
    "streams": {"data", "shifts"},
    "metrics": {"allocator", "functional"},
    "report": {"metrics"},
    "corrupting": {"data", "shifts"},
    "diagnosis": {"api", "core", "models", "plasticity"},
    "predicting": {"core", "data", "functional", "models"},
    "bench": {"allocator", "api", "core", "data", "metrics", "models", "shifts", "streams"},
    "api": {"core", "guards"},
    "callbacks": {"core"},
    "zoo": {"models"},
    "export": {"core"},
}
ON_TOP = {"cli"}  # may import everything; nothing may import it
OPEN = {"errors", "options", "user_file", "_version"}


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module] if node.module != "synaptune" else [f"synaptune.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("synaptune.")}
    return found


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_imports_follow_the_architecture(package: str) -> None:
    module = ROOT / f"{package}.py"
    for path in [module] if module.is_file() else (ROOT / package).rglob("*.py"):
        extra = imported(path) - ALLOWED[package] - OPEN - {package}
        assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"


def modules_after(script: str) -> set[str]:
    script = f"import sys; {script}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_import_waits_for_nothing() -> None:
    assert modules_after("import synaptune").isdisjoint({"torch", "numpy", "safetensors"})


def test_public_names_load_torch_and_nothing_heavy_beside() -> None:
    loaded = modules_after("from synaptune import *")
    assert "torch" in loaded
    heavy = {"torchvision", "timm", "matplotlib", "scipy", "h5py", "typer", "rich", "PIL", "onnx"}
    assert heavy.isdisjoint(loaded), sorted(heavy & loaded)


def test_an_unknown_public_name_is_no_attribute() -> None:
    assert set(synaptune.__all__) <= set(dir(synaptune))
    with pytest.raises(AttributeError, match="nosuch"):
        synaptune.nosuch  # noqa: B018 - looking it up is what fails


def test_the_zoo_is_a_public_name_and_a_module() -> None:
    assert synaptune.zoo.card("resnet20-cifar10").error == 8.27
    assert synaptune.zoo is importlib.import_module("synaptune.zoo")


def test_only_the_command_line_prints() -> None:
    for path in ROOT.rglob("*.py"):
        if "cli" not in path.relative_to(ROOT).parts:
            calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            printing = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
            assert not printing, f"{path.relative_to(ROOT)}:{printing[0].lineno} prints"


def test_nothing_is_unpickled() -> None:
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                assert "weights_only=True" in ast.unparse(node), f"{path.relative_to(ROOT)}:{node.lineno}"


@pytest.mark.parametrize("package", ["core", "algorithms", "guards", "plasticity", "functional"])
def test_no_label_can_reach_a_method(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.arg):
                words = set(node.arg.lower().split("_"))
                assert words.isdisjoint({"label", "labels", "target", "targets", "truth"}), f"{path}:{node.lineno}"


def test_no_device_is_taken_for_granted() -> None:
    for package in ("core", "algorithms", "guards", "plasticity", "functional"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                moves = isinstance(node, ast.Attribute) and node.attr == "cuda"
                names = isinstance(node, ast.Constant) and node.value == "cuda"
                found = moves or names
                assert not found, f"{path.relative_to(ROOT)}:{node.lineno}"

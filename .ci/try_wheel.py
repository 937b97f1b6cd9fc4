"""Try an installed synaptune from outside its tree: it is whole, it is typed, and its commands run."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import torch

import synaptune as st
from synaptune import bench, data
from synaptune.models import zoo


def run(*words: str) -> str:
    """Run the installed program as a user would."""
    program = Path(sys.executable).parent / "synaptune"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"synaptune {' '.join(words)} ended with {done.returncode}: {done.stderr}"
    return done.stdout


installed = Path(st.__file__).parent
assert installed.is_relative_to(sys.prefix), f"{installed} is not the installed package"
assert metadata.version("synaptune") == st.__version__

assert (installed / "py.typed").is_file()
assert data.sample(4).labels.tolist() == [3, 8, 8, 0]
for name in bench.table_names():
    bench.load_table(name)
for file in sorted({file for name in zoo.names() for file in zoo.entry(name).bundled}):
    assert (resources.files("synaptune.models") / "weights" / file).is_file(), f"{file} is not in the wheel"
stray = [*(installed / "bench" / "tables").rglob("*.py")]
assert not stray, f"the wheel holds scripts of the checkout: {stray}"

model = zoo.create("resnet20-cifar10", pretrained=False)
with st.adapt(model, "nhl") as adapter:
    assert adapter(torch.rand(8, 3, 32, 32)).shape == (8, 10)

assert run("--version").split() == ["synaptune", st.__version__]
assert "predict" in run("--help")
assert "nhl-tuned" in run("methods")
assert "cifar10c" in run("bench", "list")
assert "first layer" in run("doctor", "zoo:resnet20-cifar10", "--random-weights")
print(f"synaptune {st.__version__} works from {installed}")

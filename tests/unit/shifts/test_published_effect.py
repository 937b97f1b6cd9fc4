"""The effect on a trained network is that of the published generator.

`benchmarks/corruption_fidelity.py` checks all 10,000 images and several seeds against bars of 1.5 points per cell and
0.5 for the mean; here its own functions do, with 2,000 images and one seed. Their binomial error alone is about one
point per cell (0.3 for the mean of 15), and the first 2,000 images are not exactly as hard as all, hence the wider
bars of 4 and 1.5.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from synaptune import data, shifts
from synaptune.errors import DataError, WeightsError
from synaptune.models import load_model

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "corruption_fidelity.py"


@pytest.fixture(scope="module")
def benchmark_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.data
@pytest.mark.slow
def test_errors_of_a_resnet_20_are_the_published_ones(benchmark_script: ModuleType) -> None:
    if shifts.frost_source() != "published":
        pytest.skip("the published photographs of frost are not in the data folders")
    try:
        clean = data.load("cifar10").take(2_000)
        network = load_model("zoo:resnet20-cifar10", normalised=True).model
    except (DataError, WeightsError) as missing:
        pytest.skip(f"CIFAR-10 and the published ResNet-20 are needed: {missing}")
    rows = [benchmark_script.measured(network, clean, name, [0]) for name in shifts.CORRUPTIONS]
    assert not [benchmark_script.line(row, 4.0) for row in rows if benchmark_script.missed(row, 4.0)]
    total = benchmark_script.summed(rows)
    assert not benchmark_script.missed(total, 1.5), benchmark_script.line(total, 1.5)

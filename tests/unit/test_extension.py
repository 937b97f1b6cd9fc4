"""A new method is one file with one class: this file defines one, and everything else follows."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import synaptune as st
from synaptune.core.registry import _METHODS, preset, register
from synaptune.errors import OptionError, UnknownNameError
from tests.support.method_files import SHIFT
from tests.support.models import batches, build
from tests.support.state import differences, portrait


def test_a_method_of_thirty_lines_gets_everything_from_the_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len([line for line in SHIFT.splitlines() if line.strip()]) <= 30
    before = {info.name for info in st.methods()}
    try:
        (tmp_path / "shift_method.py").write_text(SHIFT)
        monkeypatch.syspath_prepend(tmp_path)
        importlib.import_module("shift_method")
        assert [info.name for info in st.methods()][-1] == "shift"
        model = build("bn")
        source = portrait(model)
        adapter = st.adapt(model, "shift", rate=0.5)
        first, second, third = batches(3)
        adapter(first)
        adapter.save(tmp_path / "state.safetensors")
        expected = adapter(second)
        twin = st.adapt(build("bn"), "shift", rate=0.5)
        twin.load(tmp_path / "state.safetensors")
        assert torch.equal(twin(second), expected)
        torch.testing.assert_close(adapter.freeze()(third), adapter.predict(third))
        adapter.detach()
        assert differences(source, portrait(model)) == []
        with pytest.raises(OptionError, match="rate must be at most 1"):
            st.adapt(model, "shift", rate=2.0)
    finally:
        for name in set(_METHODS) - before:
            del _METHODS[name]


def test_unknown_method_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean tent"):
        st.adapt(build("bn"), "tnet")


def test_unknown_option_names_the_nearest() -> None:
    with pytest.raises(OptionError, match="did you mean stages"):
        st.adapt(build("bn"), "nhl", stage=(1,))


def test_options_may_be_given_as_an_object_and_overridden() -> None:
    adapter = st.adapt(build("bn"), st.NHL(eta=3e-3, stages=(1,)), tau=0.5)
    assert adapter.info.name == "nhl"
    assert adapter.options == st.NHL(eta=3e-3, tau=0.5, stages=(1,))


def test_registration_refuses_duplicates_and_missing_defaults() -> None:
    info = next(info for info in st.methods() if info.name == "tent")
    with pytest.raises(TypeError, match="already belongs"):
        register("other", options=st.Tent, summary="Another.")(info.method)
    with pytest.raises(ValueError, match="registered twice"):
        preset("nhl-12", base="nhl", summary="Again.")


def test_registry_holds_exactly_the_files_of_the_folder() -> None:
    script = "import synaptune as st; print(*sorted({i.method.__module__ for i in st.methods()}))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    folder = Path(st.__file__).parent / "algorithms"
    assert found == sorted(f"synaptune.algorithms.{f.stem}" for f in folder.glob("*.py") if f.stem != "__init__")


def test_our_own_methods_come_first_whoever_registers_first(tmp_path: Path) -> None:
    (tmp_path / "shift_method.py").write_text(SHIFT)
    script = "import shift_method, synaptune as st; print(*[info.name for info in st.methods()])"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout.split()
    assert found == [*(info.name for info in st.methods()), "shift"]

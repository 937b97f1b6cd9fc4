"""A method in a file of the user's, named as models and data sets in files are."""

from __future__ import annotations

from pathlib import Path

import pytest

import synaptune as st
from synaptune.core import registry
from synaptune.errors import OptionError, UnknownNameError
from tests.support.method_files import forget_new_methods, method_file
from tests.support.models import batches, build


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a method; what it registers is forgotten afterwards."""
    forget_new_methods(monkeypatch)
    method_file(tmp_path / "mine.py", "my-shift")
    return tmp_path / "mine.py"


def test_a_method_in_a_file_adapts(mine: Path) -> None:
    model = build("bn")
    with st.adapt(model, f"{mine}:my-shift", rate=0.5) as adapter:
        adapter(batches(1)[0])
        assert adapter.history[-1].weight_distance > 0


def test_the_file_runs_once(mine: Path) -> None:
    first = registry.find(f"{mine}:my-shift")
    assert registry.find(f"{mine}:my-shift") is first
    assert registry.find("my-shift") is first


def test_what_is_not_in_the_file_is_told_with_what_is(mine: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"no method in mine\.py 'my-shfit'; did you mean my-shift"):
        registry.find(f"{mine}:my-shfit")
    with pytest.raises(UnknownNameError, match=r"no method in mine\.py 'tent'"):
        registry.find(f"{mine}:tent")
    empty = mine.with_name("empty.py")
    empty.write_text("")
    with pytest.raises(UnknownNameError, match=r"no method in empty\.py 'my-shift'; there are none"):
        registry.find(f"{empty}:my-shift")
    with pytest.raises(OptionError, match="there is no file"):
        registry.find(f"{mine.parent}/other.py:my-shift")


def test_a_file_that_fails_leaves_no_method_behind(mine: Path) -> None:
    method_file(mine, "my-shift", more="\nraise ValueError('half-way')\n")
    with pytest.raises(OptionError, match="failed with ValueError: half-way"):
        registry.find(f"{mine}:my-shift")
    assert "my-shift" not in {info.name for info in registry.infos()}
    method_file(mine, "my-shift")
    assert registry.find(f"{mine}:my-shift").name == "my-shift"

"""A method in a file of the user's, named as models and data sets in files are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import synaptune as st
from synaptune.core import registry
from synaptune.errors import OptionError, UnknownNameError
from tests.support.models import batches, build

SHIFT = """
from dataclasses import dataclass
import torch
from synaptune.core.method import AdaptOptions, Method, Step, Touches
from synaptune.core.registry import register
from synaptune.options import option

@dataclass(frozen=True, kw_only=True)
class Shift(AdaptOptions):
    rate: float = option(0.1, "share of the mean logit taken off per batch", at_least=0, at_most=1)

@register("my-shift", options=Shift, summary="Moves the classifier's bias against the mean logit.")
class ShiftMethod(Method[Shift]):
    def touches(self, model, anatomy):
        return Touches(parameters=frozenset({f"{anatomy.require_classifier()}.bias"}))

    def prepare(self, model, anatomy):
        self.bias = model.get_parameter(f"{anatomy.require_classifier()}.bias")

    def step(self, model, images):
        with torch.no_grad():
            logits = model(images)
            self.bias -= self.options.rate * logits.mean(dim=0)
        return Step(logits=logits)
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file with a method; what it registers is forgotten afterwards."""
    st.methods()
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    monkeypatch.setattr(registry, "_FILES", {})
    path = tmp_path / "mine.py"
    path.write_text(SHIFT)
    return path


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
    mine.write_text(SHIFT + "\nraise ValueError('half-way')\n")
    with pytest.raises(OptionError, match="failed with ValueError: half-way"):
        registry.find(f"{mine}:my-shift")
    assert "my-shift" not in {info.name for info in registry.infos()}
    mine.write_text(SHIFT)
    assert registry.find(f"{mine}:my-shift").name == "my-shift"

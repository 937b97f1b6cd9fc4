"""What users name themselves: it goes first, it is checked, and errors say what could have been named."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from torch import nn

from synaptune.core.layout import Layout, declared_layout
from synaptune.core.structure import find_anatomy
from synaptune.errors import IncompatibleModelError, OptionError, UnknownNameError


def _model() -> nn.Sequential:
    """Registered back to front: structure alone would read it the wrong way round."""
    return nn.Sequential(
        OrderedDict(
            out=nn.Linear(32, 10),
            deep=nn.Sequential(nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.Conv2d(32, 32, 3)),
            shallow=nn.Sequential(nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16), nn.Conv2d(16, 16, 3)),
            eye=nn.Sequential(nn.Conv2d(12, 8, 3), nn.BatchNorm2d(8)),
        )
    )


NAMED = Layout(first_conv="eye.0", stages=(("shallow",), ("deep.0", "deep.2")), classifier="out")


def test_named_parts_go_before_found_ones() -> None:
    found = find_anatomy(_model(), NAMED)
    assert (found.first_conv, found.stages, found.classifier) == ("eye.0", NAMED.stages, "out")
    assert found.stem_norm == "eye.1"
    assert found.how["stages"] == "named by layout="


def test_parts_left_open_are_found_around_those_that_are_named() -> None:
    found = find_anatomy(_model(), Layout(first_conv="eye.0"))
    assert (found.stem_norm, found.classifier) == ("eye.1", "out")
    assert found.stages == (("deep",), ("shallow",))
    assert found.how["first_conv"] == "named by layout="
    assert "named" not in found.how["stages"]


def test_a_plain_string_is_a_stage_of_one_module_and_lists_will_do() -> None:
    layout = Layout(stages=["shallow", ["deep.0", "deep.2"]])  # type: ignore[arg-type]
    assert layout.stages == NAMED.stages


def test_stem_norm_inside_a_named_stage_belongs_to_the_stage() -> None:
    found = find_anatomy(_model(), Layout(first_conv="eye.0", stages=(("eye.1", "shallow"),)))
    assert found.stem_norm is None


@pytest.mark.parametrize("declared", [{"first_conv": "eye.0", "stages": ["shallow"]}, Layout("eye.0", ("shallow",))])  # type: ignore[arg-type]
def test_model_may_declare_its_layout_also_inside_wrappers(declared: object) -> None:
    model = _model()
    model.synaptune_layout = declared  # type: ignore[assignment]
    assert find_anatomy(model).stages == (("shallow",),)
    found = find_anatomy(nn.Sequential(nn.Identity(), nn.Sequential(model)))
    assert (found.first_conv, found.stages) == ("1.0.eye.0", (("1.0.shallow",),))
    assert found.how["stages"] == "named by synaptune_layout of the model"


def test_user_overrules_the_declaration_part_by_part() -> None:
    model = _model()
    model.synaptune_layout = {"first_conv": "eye.0", "stages": ["shallow"]}  # type: ignore[assignment]
    found = find_anatomy(model, Layout(stages=("deep",)))  # type: ignore[arg-type]
    assert (found.first_conv, found.stages) == ("eye.0", (("deep",),))


def test_declaration_of_none_declares_nothing() -> None:
    model = _model()
    model.synaptune_layout = None  # type: ignore[assignment]
    assert declared_layout(model) == Layout()


@pytest.mark.parametrize("declared", [{"stem": "eye"}, "eye", 3])
def test_malformed_declaration_names_the_keys(declared: object) -> None:
    model = _model()
    model.synaptune_layout = declared  # type: ignore[assignment]
    with pytest.raises(OptionError, match="classifier, first_conv, stages"):
        find_anatomy(model)


@pytest.mark.parametrize(
    ("layout", "hints"),
    [
        (Layout(classifier="outt"), ["did you mean out", "deep, eye, out, shallow"]),
        (Layout(stages=(("shallow.7",),)), ["shallow.0", "shallow.1", "shallow.2"]),
        (Layout(first_conv="eye"), ["is a Sequential", "name a convolution"]),
        (Layout(first_conv=""), ["deep, eye, out, shallow"]),
        (Layout(stages=(("deep",), ("deep.0",))), ["'deep' and 'deep.0'", "one contains the other"]),
        (Layout(stages=(("deep",), ("deep",))), ["one contains the other"]),
    ],
)
def test_impossible_names_are_refused_with_what_could_be_meant(layout: Layout, hints: list[str]) -> None:
    with pytest.raises((UnknownNameError, IncompatibleModelError, OptionError)) as caught:
        find_anatomy(_model(), layout)
    for hint in hints:
        assert hint in str(caught.value)


@pytest.mark.parametrize("stages", ["layer1", (), ((),), 3, ("layer1", ())])
def test_stages_that_are_none_are_refused(stages: object) -> None:
    with pytest.raises(OptionError, match="stage"):
        Layout(stages=stages)  # type: ignore[arg-type]


def test_second_name_of_a_shared_module_may_be_used() -> None:
    shared = nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4))
    model = nn.Sequential(OrderedDict(stem=nn.Conv2d(3, 4, 3), one=shared, two=shared, out=nn.Linear(4, 2)))
    found = find_anatomy(model, Layout(stages=("two",)))  # type: ignore[arg-type]
    assert found.stages == (("one",),)
    assert set(found.stage_parameters(model, [1], kind="conv")) == {"one.0.weight", "one.0.bias"}


# Both of torch's own facilities below warn in some versions, of deprecation or of being new; that is not the point.
@pytest.mark.filterwarnings("ignore")
def test_scripted_model_is_refused_with_advice() -> None:
    scripted = torch.jit.trace(nn.Conv2d(3, 4, 3), torch.zeros(1, 3, 8, 8))
    with pytest.raises(IncompatibleModelError, match="TorchScript"):
        find_anatomy(scripted)


@pytest.mark.filterwarnings("ignore")
def test_parameters_without_shape_are_refused_with_advice() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.Flatten(), nn.LazyLinear(2))
    with pytest.raises(IncompatibleModelError, match="run one batch"):
        find_anatomy(model)

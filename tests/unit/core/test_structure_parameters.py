"""Which parameters a choice of stages means, and the errors where it means none."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from torch import nn

from synaptune.core.structure import Anatomy, find_anatomy
from synaptune.errors import IncompatibleModelError, OptionError, SynaptuneError


def _block(width_in: int, width: int, stride: int = 1, *, affine: bool = True) -> nn.Sequential:
    return nn.Sequential(
        OrderedDict(
            a=nn.Conv2d(width_in, width, 3, stride=stride, bias=False),
            n=nn.BatchNorm2d(width, affine=affine),
            act=nn.PReLU(),
            b=nn.Conv2d(width, width, 3),
        )
    )


def _model(*, affine: bool = True) -> nn.Sequential:
    return nn.Sequential(
        OrderedDict(
            stem=nn.Conv2d(3, 4, 3),
            norm=nn.BatchNorm2d(4),
            one=_block(4, 4, affine=affine),
            two=_block(4, 8, stride=2, affine=affine),
            out=nn.Linear(8, 5),
        )
    )


CONV = {"a.weight", "b.weight", "b.bias"}
AFFINE = {"n.weight", "n.bias"}


@pytest.mark.parametrize(
    ("kind", "expected"), [("all", CONV | AFFINE | {"act.weight"}), ("conv", CONV), ("affine", AFFINE)]
)
@pytest.mark.parametrize(("stages", "modules"), [([1], ["one"]), ([2], ["two"]), ([1, 2], ["one", "two"])])
def test_kind_and_stages_select(kind: str, expected: set[str], stages: list[int], modules: list[str]) -> None:
    model = _model()
    found = find_anatomy(model).stage_parameters(model, stages, kind=kind)  # type: ignore[arg-type]
    assert set(found) == {f"{module}.{name}" for module in modules for name in expected}
    assert all(parameter is model.get_parameter(name) for name, parameter in found.items())


def test_order_is_that_of_the_model_whatever_the_order_of_stages() -> None:
    model = _model()
    anatomy = find_anatomy(model)
    assert list(anatomy.stage_parameters(model, (2, 1))) == list(anatomy.stage_parameters(model, (1, 2)))


def test_attention_counts_with_all_its_weights() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.Sequential(nn.Conv2d(3, 8, 4, 4), layer, nn.Linear(8, 5))
    conv = find_anatomy(model).stage_parameters(model, [1], kind="conv")
    affine = find_anatomy(model).stage_parameters(model, [1], kind="affine")
    assert "1.self_attn.in_proj_weight" in conv
    assert set(affine) == {"1.norm1.weight", "1.norm1.bias", "1.norm2.weight", "1.norm2.bias"}
    assert set(conv) | set(affine) == {f"1.{name}" for name, _ in layer.named_parameters()}


def test_tied_parameters_count_once_under_their_first_name() -> None:
    model = _model()
    model.two.b = nn.Conv2d(8, 8, 3)
    model.two.extra = nn.Conv2d(8, 8, 3)
    model.two.extra.weight = model.two.b.weight
    found = find_anatomy(model).stage_parameters(model, [2], kind="conv")
    assert "two.b.weight" in found
    assert "two.extra.weight" not in found
    assert len({id(parameter) for parameter in found.values()}) == len(found)


def test_parameters_shared_with_first_convolution_or_classifier_stay_out() -> None:
    model = nn.Sequential(
        OrderedDict(
            stem=nn.Conv2d(3, 3, 3), one=nn.Conv2d(3, 3, 3), two=nn.Conv2d(3, 3, 3, stride=2), out=nn.Linear(3, 2)
        )
    )
    model.one.weight = model.stem.weight
    found = find_anatomy(model).stage_parameters(model, [1, 2])
    assert set(found) == {"one.bias", "two.weight", "two.bias"}


def test_a_copy_of_the_model_gives_the_parameters_of_the_copy() -> None:
    anatomy, other = find_anatomy(_model()), _model()
    assert anatomy.stage_parameters(other, [1])["one.a.weight"] is other.one.a.weight


def test_no_parameter_of_the_kind_is_an_error_that_names_a_way_out() -> None:
    model = _model(affine=False)
    with pytest.raises(IncompatibleModelError, match=r"no normalisation layers with scale and shift.*params='all'"):
        find_anatomy(model).stage_parameters(model, [1, 2], kind="affine")


@pytest.mark.parametrize("stages", [(3,), (0,), (1, 7), ()])
def test_missing_stage_is_an_error_that_lists_what_there_is(stages: tuple[int, ...]) -> None:
    with pytest.raises(IncompatibleModelError, match=r"Stages found: 1: one; 2: two.*layout=Layout\(stages"):
        find_anatomy(_model()).require_stages(stages)


def test_required_parts_are_given_back() -> None:
    found = find_anatomy(_model())
    assert found.require_stages((2,)) == (("two",),)
    assert (found.require_first_conv(), found.require_classifier()) == ("stem", "out")


def test_required_parts_that_are_missing_say_how_to_name_them() -> None:
    features = find_anatomy(nn.Sequential(nn.Flatten(), nn.LayerNorm(4)))
    with pytest.raises(IncompatibleModelError, match=r"no convolution.*layout=Layout\(first_conv"):
        features.require_first_conv()
    with pytest.raises(IncompatibleModelError, match=r"no classifier.*layout=Layout\(classifier"):
        features.require_classifier()
    with pytest.raises(IncompatibleModelError, match="Stages found: none"):
        features.require_stages((1, 2))


def test_unknown_kind_is_refused() -> None:
    model = _model()
    with pytest.raises(OptionError, match="all, conv or affine"):
        find_anatomy(model).stage_parameters(model, [1], kind="bias")  # type: ignore[arg-type]


def test_long_stages_are_shortened_in_messages() -> None:
    stage = tuple(f"body.{i}" for i in range(9))
    anatomy = Anatomy("Net", None, None, None, (stage,), (), (), (), None)
    with pytest.raises(SynaptuneError, match=r"body\.0 \.\.\. body\.8 \(9 modules\)"):
        anatomy.require_stages((2,))

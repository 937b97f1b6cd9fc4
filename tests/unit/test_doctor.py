"""`doctor` tells the truth about a model, on one screen, and leaves the model alone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

import synaptune as st
from synaptune.diagnosis import Diagnosis, Expectation, expected_input
from synaptune.diagnosis.cost import peak_bytes
from synaptune.errors import IncompatibleModelError, InputError, SynaptuneError, UnknownNameError
from tests.conformance.cases import CASES, METHODS
from tests.support.models import BUILDERS, CLASSES, batches, build
from tests.support.state import differences, portrait


def topics(model: nn.Module, sample: Tensor | None = None) -> frozenset[str]:
    return st.doctor(model, sample).topics


class _Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1)
        self.one, self.two = nn.Conv2d(6, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1, stride=2)
        self.two.weight = self.one.weight
        self.out = nn.Linear(6, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.out(self.two(self.one(self.stem(images))).mean((2, 3)))
        return logits


class _Normalising(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner
        self.register_buffer("mean", torch.full((1, 3, 1, 1), 0.5))
        self.register_buffer("std", torch.full((1, 3, 1, 1), 0.25))

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.inner((images - self.mean) / self.std)
        return logits


class _Uncopyable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = build("bn")

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.inner(images)
        return logits

    def __deepcopy__(self, memo: object) -> nn.Module:
        raise TypeError("holds a camera")


def _swap_norms(model: nn.Module, make: Callable[[nn.BatchNorm2d], nn.Module]) -> nn.Module:
    for name, layer in list(model.named_modules()):
        if isinstance(layer, nn.BatchNorm2d):
            owner, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(owner), leaf, make(layer))
    return model


@pytest.mark.parametrize("kind", BUILDERS)
@pytest.mark.parametrize("with_sample", [False, True])
def test_the_model_is_left_bit_exact(kind: str, with_sample: bool) -> None:
    model = build(kind)
    model.train()
    next(model.parameters()).requires_grad_(False)
    before = portrait(model)
    st.doctor(model, batches(1)[0] if with_sample else None)
    assert differences(before, portrait(model)) == []


@pytest.mark.parametrize("kind", BUILDERS)
def test_verdicts_agree_with_what_adapt_does(kind: str) -> None:
    found = st.doctor(build(kind))
    assert [fit.method for fit in found.fits] == METHODS
    for fit in found.fits:
        assert fit.fits == ((fit.method, kind) in CASES), fit.method
        assert bool(fit.reason) != fit.fits


@pytest.mark.parametrize("method", ["tent", "nhl", "norm-running", "hebb-conv1"])
def test_announced_changes_are_those_that_adapting_makes(method: str) -> None:
    model = build("bn")
    fit = st.doctor(model).fit(method)
    with st.adapt(model, method) as adapter:
        touched = adapter.method.touches(model, adapter.anatomy)
    assert fit.tensors == len(touched.parameters) + len(touched.buffers)
    assert fit.buffers == len(touched.buffers)
    values = sum(model.get_parameter(name).numel() for name in touched.parameters)
    assert fit.parameters == values
    assert fit.share == pytest.approx(values / sum(p.numel() for p in model.parameters()))


def test_parts_are_named_with_sizes_and_how_they_were_found() -> None:
    found = st.doctor(build("bn"))
    assert (found.first_conv.name, found.classifier.name, found.classes) == ("stem", "out", CLASSES)
    assert found.first_conv.text == "Conv2d 3 -> 6, 3x3"
    assert found.first_conv.how
    assert [stage.modules for stage in found.stages] == [("one",), ("two",), ("three",), ("four",)]
    assert found.stages[0].parameters == 6 * 8 * 9 + 2 * 8
    (norms,) = found.norms
    assert (norms.kind, norms.layers, norms.affine, norms.statistics) == ("BatchNorm2d", 5, 5, 5)
    assert found.dropouts == 5


def test_layout_overrules_the_structure() -> None:
    found = st.doctor(build("bn"), layout=st.Layout(stages=("two", "four")))
    assert [stage.modules for stage in found.stages] == [("two",), ("four",)]
    with pytest.raises(UnknownNameError, match="nowhere"):
        st.doctor(build("bn"), layout=st.Layout(first_conv="nowhere"))


@pytest.mark.parametrize("kind", BUILDERS)
def test_the_screen_is_40_lines_of_100_columns_at_most(kind: str) -> None:
    lines = str(st.doctor(build(kind), batches(1)[0])).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith(type(build(kind)).__name__)


def test_a_crowded_screen_counts_what_it_leaves_out() -> None:
    from dataclasses import replace

    from synaptune.diagnosis.record import Finding

    found = st.doctor(build("bn"), batches(1)[0])
    crowd = tuple(Finding("x", f"finding number {n} " + "with many words " * 12) for n in range(40))
    crowded = replace(found, findings=crowd)
    lines = str(crowded).splitlines()
    assert len(lines) <= 40
    shown = sum("finding number" in line for line in lines)
    assert 0 < shown < 40
    assert f"and {40 - shown} more notes" in lines[-1]


def test_the_dictionary_is_json_and_holds_the_line_to_call() -> None:
    found = json.loads(json.dumps(st.doctor(build("bn"), batches(1, 16)[0]).as_dict()))
    assert found["recommended"][0]["call"].startswith('st.adapt(model, "')
    assert {cost["method"] for cost in found["costs"]} == {advice["method"] for advice in found["recommended"]}
    assert found["sample"]["shape"] == [16, 3, 8, 8]


@pytest.mark.parametrize("kind", BUILDERS)
@pytest.mark.parametrize("size", [1, 4, 32])
def test_every_recommendation_runs_as_printed(kind: str, size: int) -> None:
    model, sample = build(kind), batches(1, size)[0]
    found = st.doctor(model, sample)
    assert found.recommended
    assert "method-failed" not in found.topics
    for advice in found.recommended:
        with st.adapt(model, advice.method, **advice.options) as adapter:
            assert torch.isfinite(adapter(sample)).all()


def test_small_batches_get_statistics_with_a_prior() -> None:
    assert st.doctor(build("bn"), batches(1, 2)[0]).recommended[0].method == "norm-partial"
    assert st.doctor(build("bn"), batches(1, 64)[0]).recommended[0].method == "nhl-tuned"


def test_costs_count_what_a_step_adds_to_plain_inference() -> None:
    found = st.doctor(build("bn"), batches(1, 32)[0])
    costs = {cost.method: cost for cost in found.costs}
    assert all(cost.ratio > 0 and cost.seconds > 0 for cost in costs.values())
    # A backward pass keeps the features of all layers; statistics alone keep nothing of the kind.
    assert costs["tent"].extra_bytes > costs["norm"].extra_bytes


def test_peak_memory_counts_live_tensors_only() -> None:
    def lets_go() -> None:
        for _ in range(10):
            torch.zeros(1000)

    def holds() -> list[Tensor]:
        return [torch.zeros(1000) for _ in range(10)]

    assert peak_bytes(lets_go) <= 2 * 4000
    assert peak_bytes(holds) == 10 * 4000


# --- findings: each condition is found, and not where it is absent --------------------------------------------------


def _half(model: nn.Module) -> nn.Module:
    return model.to(torch.bfloat16)


def _parametrised() -> nn.Module:
    model = build("bn")
    weight_norm(model.stem)
    return model


CONDITIONS: dict[str, Callable[[], nn.Module]] = {
    "no-normalisation-layers": lambda: _Tied(),
    "no-batch-normalisation": lambda: build("gn"),
    "no-running-statistics": lambda: _swap_norms(
        build("bn"), lambda old: nn.BatchNorm2d(old.num_features, track_running_stats=False)
    ),
    "first-convolution": _parametrised,
    "half-precision": lambda: _half(build("bn")),
    "tied-weights": _Tied,
    "training-mode": lambda: build("bn").train(),
    "dropout": lambda: build("bn"),
    "few-stages": lambda: nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)
    ),
    "no-classifier": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
}


@pytest.mark.parametrize("topic", CONDITIONS)
def test_each_condition_is_found(topic: str) -> None:
    assert topic in topics(CONDITIONS[topic]())


def test_a_sound_model_gives_no_warning() -> None:
    model = build("bn")
    for name, layer in list(model.named_modules()):
        if isinstance(layer, nn.Dropout):
            owner, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(owner), leaf, nn.Identity())
    assert topics(model, torch.rand(32, 3, 16, 16)) == frozenset()


def test_frozen_batch_norm_is_told_from_batch_norm() -> None:
    misc = pytest.importorskip("torchvision.ops.misc")
    model = _swap_norms(build("bn"), lambda old: misc.FrozenBatchNorm2d(old.num_features))
    found = st.doctor(model)
    assert "frozen-batch-norm" in found.topics
    assert not found.fit("norm").fits


def test_a_weight_standardised_first_layer_is_announced() -> None:
    layers = pytest.importorskip("timm.layers")
    model = build("gn")
    model.stem = layers.StdConv2d(3, 6, 3, padding=1)
    found = st.doctor(model)
    assert "first-convolution" in found.topics
    assert "standardisation" in str(found)


def test_a_sample_of_one_image_is_warned_about() -> None:
    assert "batch-of-one" in topics(build("bn"), batches(1, 1)[0])
    assert "small-batch" in topics(build("bn"), batches(1, 4)[0])
    assert not {"batch-of-one", "small-batch"} & topics(build("gn"), batches(1, 1)[0])


def test_features_of_one_place_are_warned_about() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 3)
    ).eval()
    assert "features-1x1" in topics(model, batches(1, 32)[0])


def test_a_model_that_fails_on_the_sample_is_a_finding_not_a_crash() -> None:
    found = st.doctor(build("bn"), torch.rand(2, 4, 8, 8))
    assert {"forward", "sample-shape"} <= found.topics
    assert found.costs == ()


def test_a_model_that_cannot_be_copied_is_examined_without_running_it() -> None:
    found = st.doctor(_Uncopyable(), batches(1)[0])
    assert "no-copy" in found.topics
    assert "holds a camera" in str(found)
    assert found.fit("nhl").fits


def test_an_output_that_is_no_tensor_of_logits_is_named() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = build("bn")

        def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
            return self.net(images), images

    found = st.doctor(Two(), batches(1, 32)[0])
    assert "it returned tuple. Wrap it in a module" in next(f.text for f in found.findings if f.topic == "forward")


def test_a_model_that_nothing_can_adapt_is_refused_once_with_the_reason() -> None:
    found = st.doctor(build("bn").to("meta"))
    assert not any(fit.fits for fit in found.fits)
    assert found.recommended == ()
    assert str(found).count("load its") == 1
    assert found.first_conv.name == "stem", "structure needs no values"


def test_non_finite_output_is_a_finding() -> None:
    model = build("bn")
    with torch.no_grad():
        model.out.weight.fill_(float("nan"))
    assert "logits" in topics(model, batches(1, 32)[0])


@pytest.mark.parametrize(
    "sample", [torch.zeros(2, 3, 8, 8, dtype=torch.uint8), torch.zeros(0, 3, 8, 8), torch.tensor(1.0), [[1.0]]]
)
def test_a_sample_that_is_no_batch_of_images_is_refused(sample: object) -> None:
    with pytest.raises(InputError, match="sample"):
        st.doctor(build("bn"), sample)  # type: ignore[arg-type]


def test_an_adapted_or_scripted_model_is_refused() -> None:
    model = build("bn")
    with st.adapt(model, "norm"), pytest.raises(SynaptuneError, match="being adapted"):
        st.doctor(model)
    with pytest.raises(IncompatibleModelError):
        st.doctor(3)  # type: ignore[arg-type]


# --- the expected input -----------------------------------------------------------------------------------------------


def test_a_model_that_normalises_itself_wants_images_in_0_1() -> None:
    expects = expected_input(_Normalising(build("bn")))
    assert expects.normalises_itself
    assert expects.range == (0.0, 1.0)


def test_timm_config_travels_with_the_model() -> None:
    timm = pytest.importorskip("timm")
    expects = expected_input(timm.create_model("tf_efficientnet_lite0"))
    assert expects.mean == (0.5, 0.5, 0.5)
    assert expects.std == (0.5, 0.5, 0.5)
    assert expects.size == (3, 224, 224)
    assert "timm" in str(expects)


def test_torchvision_weights_of_the_family_are_asked() -> None:
    models = pytest.importorskip("torchvision.models")
    expects = expected_input(models.resnet18())
    assert expects.mean == (0.485, 0.456, 0.406)
    assert "torchvision" in str(expects)


def test_an_unknown_expectation_says_so() -> None:
    assert str(st.doctor(build("bn")).expects).startswith("unknown: ")


NORMALISED = Expectation("the test", mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
OWN = Expectation("the test", normalises_itself=True)


@pytest.mark.parametrize(
    ("expects", "low", "high", "says"),
    [
        (NORMALISED, -2.0, 2.0, None),
        (NORMALISED, -1.5, 1.0, None),
        (NORMALISED, 0.0, 1.0, "had not been applied"),
        (NORMALISED, 0.0, 255.0, "0..255"),
        (NORMALISED, -4.0, 4.0, "expected are -2 to 2"),
        (OWN, 0.0, 1.0, None),
        (OWN, 0.2, 0.4, None),
        (OWN, -2.0, 2.0, "normalised already"),
        (OWN, 0.0, 255.0, "divide by 255"),
    ],
)
def test_the_range_of_the_sample_is_checked(expects: Expectation, low: float, high: float, says: str | None) -> None:
    sample = torch.linspace(low, high, 32 * 3 * 8 * 8).reshape(32, 3, 8, 8)
    found: Diagnosis = st.doctor(build("bn"), sample, expects=expects)
    texts = [finding.text for finding in found.findings if finding.topic == "sample-range"]
    assert [says in text for text in texts] == ([True] if says else []) if says else texts == []


def test_the_size_of_the_sample_is_checked() -> None:
    expects = Expectation("the test", size=(3, 16, 16))
    found = st.doctor(build("bn"), torch.rand(32, 3, 8, 8), expects=expects)
    assert "sample-size" in found.topics
    assert "permute" in str(st.doctor(build("bn"), torch.rand(32, 8, 8, 3)))

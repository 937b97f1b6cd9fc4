"""Models that are unlike those of the textbooks: each works, or is refused with the fix; none is harmed."""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import synaptune as st
from synaptune.core.adapter import SmallBatchWarning
from synaptune.core.freeze import FreezeWarning
from synaptune.errors import IncompatibleModelError, OptionError, SynaptuneError
from synaptune.guards import Finite
from tests.support.models import CLASSES, TinyCnn, batches, build
from tests.support.state import differences, portrait

METHODS = ["source", "norm", "norm-partial", "norm-running", "tent", "dua", "bp-conv1", "hebb-conv1", "nhl"]
METHODS += ["modulator-12", "nhl-tuned"]


class Tied(nn.Module):
    """Two convolutions with one weight, and one normalisation layer used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.stem_norm = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.one = nn.Conv2d(6, 6, 3, padding=1, stride=2)
        self.norm = nn.BatchNorm2d(6)
        self.two = nn.Conv2d(6, 6, 3, padding=1, stride=2)
        self.two.weight = self.one.weight
        self.out = nn.Linear(6, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem_norm(self.stem(images)).relu()
        x = self.norm(self.two(self.norm(self.one(x)).relu())).relu()
        logits: Tensor = self.out(x.mean(dim=(2, 3)))
        return logits


def without_norms() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 6, 3, stride=2), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(6, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8, CLASSES))


def partly_frozen() -> nn.Module:
    model = build("bn").train()
    model.stem_norm.eval().requires_grad_(False)
    return model


def with_hooks_of_its_own() -> nn.Module:
    model = build("bn")
    model.one.register_forward_hook(lambda module, args, output: output * 1.01)
    model.stem.register_forward_pre_hook(lambda module, args: (args[0] * 0.5,))
    return model


def later_layer_with_weight_norm() -> nn.Module:
    model = build("bn")
    nn.utils.parametrizations.weight_norm(model.one[0])
    return model


def with_gradients() -> nn.Module:
    model = build("bn")
    model(batches(1)[0]).sum().backward()
    return model


ODD: dict[str, Callable[[], nn.Module]] = {
    "tied weights": Tied,
    "no normalisation": without_norms,
    "partly frozen": partly_frozen,
    "hooks of its own": with_hooks_of_its_own,
    "weight norm later on": later_layer_with_weight_norm,
    "gradients waiting": with_gradients,
    "inside DataParallel": lambda: nn.DataParallel(build("bn")),
    "SyncBatchNorm": lambda: nn.SyncBatchNorm.convert_sync_batchnorm(build("bn")),
    "cumulative momentum": lambda: TinyCnn(lambda width: nn.BatchNorm2d(width, momentum=None)),
    "no running statistics": lambda: TinyCnn(lambda width: nn.BatchNorm2d(width, track_running_stats=False)),
    "instance norm": lambda: TinyCnn(lambda width: nn.InstanceNorm2d(width, affine=True, track_running_stats=True)),
    "traced by fx": lambda: torch.fx.symbolic_trace(build("bn")),
    "perceptron": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(192, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, CLASSES)
    ),
}
# What an odd model is refused by, and why; it must fit all other methods.
REFUSED = {
    "no normalisation": {"norm", "norm-partial", "norm-running", "tent", "dua"},
    "no running statistics": {"norm-partial", "norm-running", "dua"},
    "instance norm": {"norm", "norm-partial", "norm-running", "tent", "dua"},
    "perceptron": {"bp-conv1", "hebb-conv1", "nhl", "modulator-12", "nhl-tuned"},
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("method", METHODS)
def test_odd_models_adapt_or_are_refused_and_come_back_whole(method: str, kind: str) -> None:
    model = ODD[kind]()
    before = portrait(model)
    if method in REFUSED.get(kind, ()):
        with pytest.raises(IncompatibleModelError):
            st.adapt(model, method)
    else:
        with st.adapt(model, method) as adapter:
            for batch in batches(3):
                assert torch.isfinite(adapter(batch)).all()
            assert not any(event for record in adapter.history for event in record.events)
    assert differences(before, portrait(model)) == []


# --- refused with the fix


def lazy() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.LazyLinear(5))


def built_under_inference_mode() -> nn.Module:
    with torch.inference_mode():
        return build("bn")


def partly_compiled() -> nn.Module:
    model = build("bn")
    model.one.compile()
    return model


def on_two_devices() -> nn.Module:
    model = nn.DataParallel(build("bn"))
    model.device_ids = [0, 1]
    return model


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lazy, r"without a shape yet \(2.weight.*run one batch through it"),
        (lambda: build("bn").to("meta"), r"meta device, which hold no values; load its weights first"),
        (built_under_inference_mode, "built under torch.inference_mode; build it outside"),
        (
            lambda: torch.compile(build("bn")),
            r"pass the model that was given to torch.compile, and compile what.*freeze",
        ),
        (partly_compiled, r"part 'one' of the model is compiled.*without .compile\(\)"),
        (on_two_devices, r"adapt the model inside \(model.module\)"),
        (lambda: torch.jit.script(build("bn")), "compiled to TorchScript.*pass the model it came from"),
        (lambda: copy.deepcopy(st.adapt(build("bn"), "source").model), r"take adapter.freeze\(\) instead"),
        (lambda: "resnet18", "must be a torch.nn.Module, not str"),
    ],
    ids=["lazy", "meta", "inference", "compiled", "part compiled", "two devices", "script", "copy", "name"],
)
@pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning", "ignore:`torch.jit:DeprecationWarning")
def test_models_that_cannot_be_adapted_name_the_fix(make: Callable[[], nn.Module], message: str) -> None:
    with pytest.raises(SynaptuneError, match=message):
        st.adapt(make(), "nhl")


@pytest.mark.parametrize("wrap", ["parametrizations", "legacy"])
def test_a_first_convolution_with_weight_norm_is_refused_before_anything_changes(wrap: str) -> None:
    model = build("bn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the older of the two is deprecated, and in use
        (nn.utils.parametrizations if wrap == "parametrizations" else nn.utils).weight_norm(model.stem)
    before = portrait(model)
    with pytest.raises(IncompatibleModelError, match=r"computed from other tensors.*remove_parametrizations"):
        st.adapt(model, "nhl")
    assert differences(before, portrait(model)) == []
    with st.adapt(model, "modulator-12") as adapter:
        batch = batches(1)[0]
        adapter(batch)
        torch.testing.assert_close(adapter.freeze()(batch), adapter.predict(batch), rtol=0, atol=1e-5)


def test_back_propagation_reaches_a_first_convolution_with_weight_norm() -> None:
    model = build("bn-biased-conv")
    nn.utils.parametrizations.weight_norm(model.stem)
    adapter = st.adapt(model, "bp-conv1")
    adapter(batches(1)[0])
    inside = "stem.parametrizations.weight.original"
    assert adapter.method.touches(model, adapter.anatomy).parameters == {f"{inside}0", f"{inside}1"}
    assert adapter.history[-1].weight_distance > 0


class Standardised(nn.Conv2d):
    def forward(self, images: Tensor) -> Tensor:
        return self._conv_forward(images, self.weight - self.weight.mean(), self.bias)


def test_a_first_convolution_that_changes_its_weight_on_the_way_is_refused_at_once() -> None:
    model = build("bn")
    model.stem = Standardised(3, 6, 3, padding=1)
    with pytest.raises(IncompatibleModelError, match=r"Standardised replaces the forward.*modulator-12 or tent"):
        st.adapt(model, "hebb-conv1")


class MovesItsBuffers(nn.BatchNorm2d):
    """As people write it: the buffers move in train mode, whatever `track_running_stats` says."""

    def forward(self, x: Tensor) -> Tensor:
        mean, var, momentum = self.running_mean, self.running_var, 0.1 if self.momentum is None else self.momentum
        return nn.functional.batch_norm(x, mean, var, self.weight, self.bias, self.training, momentum, self.eps)


@pytest.mark.parametrize("method", METHODS)
def test_statistics_survive_layers_that_do_not_heed_the_usual_flag(method: str) -> None:
    model = TinyCnn(MovesItsBuffers)
    before = portrait(model)
    with st.adapt(model, method) as adapter:
        for batch in batches(3):
            adapter(batch)
    assert differences(before, portrait(model)) == []


@pytest.mark.parametrize("method", ["tent", "nhl", "dua"])
def test_weights_that_are_broken_to_begin_with_are_refused(method: str) -> None:
    model = build("bn")
    with torch.no_grad():
        model.stem_norm.weight[2] = float("nan")
        model.stem_norm.running_var[1] = float("inf")
        model.one[0].weight[0] = float("inf")
    with pytest.raises(
        IncompatibleModelError, match=r"holds NaN or infinity in (one.0.weight|stem_norm).*sound weights"
    ):
        st.adapt(model, method)
    st.adapt(model, "source").detach()


class HasASpareStem(nn.Module):
    """Holds a first convolution that its forward does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.spare = nn.Conv2d(3, 4, 3)
        self.net = build("bn")

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits


def test_a_first_convolution_that_is_never_used_is_noticed() -> None:
    with pytest.raises(IncompatibleModelError, match=r"does not run the layer.*layout=Layout\(first_conv="):
        st.adapt(HasASpareStem(), "hebb-conv1")(batches(1)[0])
    layout = st.Layout(first_conv="net.stem", stages=(("net.one",), ("net.two",)))
    adapter = st.adapt(HasASpareStem(), "nhl", layout=layout)
    adapter(batches(1)[0])
    assert adapter.history[-1].weight_distance > 0


class SeesTwoCrops(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = build("bn")

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images) + self.net(images.flip(3))
        return logits


@pytest.mark.parametrize("method", METHODS)
def test_models_that_look_twice_adapt_and_come_back(method: str) -> None:
    model = SeesTwoCrops()
    before = portrait(model)
    with st.adapt(model, method) as adapter:
        for batch in batches(3):
            assert torch.isfinite(adapter(batch)).all()
    assert differences(before, portrait(model)) == []


@pytest.mark.parametrize("method", METHODS)
def test_weights_in_channels_last_keep_their_strides(method: str) -> None:
    model = build("bn").to(memory_format=torch.channels_last)
    before = portrait(model)
    plain = st.adapt(build("bn"), method)
    with st.adapt(model, method) as adapter:
        for batch in batches(3):
            torch.testing.assert_close(adapter(batch), plain(batch), rtol=0, atol=1e-4)
    assert differences(before, portrait(model)) == []


class NamesItsInputs(TinyCnn):
    """Calls its first layers as `layer(input=x)`."""

    def forward(self, images: Tensor) -> Tensor:
        features = torch.relu(self.stem_norm(input=self.stem(input=images)))
        features = self.four(self.three(self.two(self.one(features))))
        logits: Tensor = self.out(self.drop(input=features.mean(dim=(2, 3))))
        return logits


@pytest.mark.parametrize("method", METHODS)
def test_inputs_may_be_passed_by_name(method: str) -> None:
    model = NamesItsInputs()
    model.load_state_dict(build("bn").state_dict())
    before = portrait(model)
    with st.adapt(model, method) as adapter, st.adapt(build("bn"), method) as usual:
        for batch in batches(3):
            assert torch.equal(adapter(batch), usual(batch))
        images = batches(1)[0]
        assert torch.equal(adapter.freeze(images)(images), usual.freeze(images)(images))
        assert adapter.history[-1].drift == usual.history[-1].drift
    assert differences(before, portrait(model)) == []


class NormalisesInPlace(TinyCnn):
    """Writes into the images it is given, as some preprocessing does."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images.sub_(0.5).mul_(2))


class NormalisesACopy(TinyCnn):
    """The same without that."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward((images - 0.5) * 2)


@pytest.mark.parametrize("method", METHODS)
def test_models_that_write_into_their_images_see_them_fresh_in_every_pass(method: str) -> None:
    weights = build("bn").state_dict()
    model, tidy = NormalisesInPlace(), NormalisesACopy()
    model.load_state_dict(weights)
    tidy.load_state_dict(weights)
    with st.adapt(model, method, predict="after") as adapter, st.adapt(tidy, method, predict="after") as usual:
        for batch in batches(2):
            given = batch.clone()
            assert torch.equal(adapter(given), usual(batch))
            assert torch.equal(adapter.predict(given), usual.predict(batch))
        plain = adapter.freeze(given)
        assert torch.equal(given, batch)
        assert torch.equal(plain(given), usual.freeze(batch)(batch))


def pooled(*inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance per channel of all values together."""
    values = torch.cat([x.transpose(0, 1).flatten(1) for x in inputs], dim=1)
    return values.mean(dim=1), values.var(dim=1, correction=0)


def normalised(x: Tensor, layer: nn.BatchNorm2d, mean: Tensor, var: Tensor) -> Tensor:
    scale = layer.weight.double() / (var + layer.eps).sqrt()
    shift = layer.bias.double() - mean * scale
    return x * scale[:, None, None] + shift[:, None, None]


@pytest.mark.parametrize(("method", "prior"), [("norm", 0), ("tent", 0), ("norm-partial", 16)])
def test_a_layer_that_runs_twice_is_frozen_with_the_statistics_of_both_passes(method: str, prior: int) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Tied()
    images = batches(1)[0]
    wide = copy.deepcopy(model).double()
    with pytest.warns(FreezeWarning, match=r"^norm run several times per batch.*norm: statistics='running'") as caught:
        plain = st.adapt(model, method).freeze(images)
    assert caught[0].filename == __file__

    def mixed(mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
        source, weight = (torch.zeros_like(mean), torch.ones_like(var)), prior / (prior + len(images))
        return weight * source[0] + (1 - weight) * mean, weight * source[1] + (1 - weight) * var

    with torch.no_grad():
        x = wide.stem(images.double())
        x = normalised(x, wide.stem_norm, *mixed(*pooled(x))).relu()
        first = wide.one(x)
        second = wide.two(normalised(first, wide.norm, *mixed(*pooled(first))).relu())
    assert first[0, 0].numel() == 4 * second[0, 0].numel(), "passes of one size would not show how they are weighed"
    mean, var = mixed(*pooled(first, second))
    torch.testing.assert_close(plain.norm.running_mean.double(), mean, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(plain.norm.running_var.double(), var, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", ["norm-running", "dua", "source", "bp-conv1"])
def test_a_layer_that_runs_twice_on_stored_statistics_is_frozen_as_it_is(method: str) -> None:
    adapter = st.adapt(Tied(), method)
    images = batches(1)[0]
    adapter(images)
    assert torch.equal(adapter.freeze(images)(images), adapter.predict(images))


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.bfloat16, 0.02)])
def test_layers_without_stored_statistics_are_given_some_by_freezing(
    dtype: torch.dtype, atol: float, affine: bool
) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = TinyCnn(lambda width: nn.BatchNorm2d(width, track_running_stats=False, affine=affine)).to(dtype)
    adapter = st.adapt(model, "norm")
    images = batches(1)[0].to(dtype)
    plain = adapter.freeze(images)
    assert plain.stem_norm.running_var.dtype == dtype
    torch.testing.assert_close(plain(images), adapter.predict(images), rtol=0, atol=atol)


class CutGraph(nn.Module):
    """Hides its output from autograd, as quantised layers do."""

    def __init__(self) -> None:
        super().__init__()
        self.net = build("bn")

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images).detach()


@pytest.mark.parametrize("method", ["tent", "nhl", "bp-conv1"])
def test_a_graph_that_is_cut_is_explained_and_nothing_moves(method: str) -> None:
    model = CutGraph()
    adapter = st.adapt(model, method)
    attached = portrait(model)
    with pytest.raises(IncompatibleModelError, match=r"no gradient from the output reaches net\..*norm or hebb-conv1"):
        adapter(batches(1)[0])
    assert differences(attached, portrait(model)) == []


# --- outputs that are no logits


class Returns(nn.Module):
    def __init__(self, change: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.net, self.change = build("bn"), change

    def forward(self, images: Tensor) -> object:
        return self.change(self.net(images))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: (y, y), r"it returned tuple\. Wrap it in a module that returns the logits alone"),
        (lambda y: {"logits": y, "loss": 0}, r"it returned dict with logits, loss\. Wrap"),
        (lambda y: y[:, :, None, None], r"for 8 images it returned shape \(8, 5, 1, 1\).*flatten\(1\)"),
        (lambda y: y.repeat(2, 1), r"for 8 images it returned shape \(16, 5\)"),
        (lambda y: y[:, 0], r"returned shape \(8,\)"),
        (lambda y: y[:, :1], r"one number per image.*torch.cat"),
    ],
    ids=["tuple", "dict", "map", "crops", "vector", "one logit"],
)
def test_outputs_that_are_no_logits_are_refused_without_a_trace(
    method: str, change: Callable[[Tensor], object], message: str
) -> None:
    model = Returns(change)
    before = portrait(model)
    adapter = st.adapt(model, method)
    attached = portrait(model)
    for call in (adapter, adapter.predict):
        with pytest.raises(IncompatibleModelError, match=message):
            call(batches(1)[0])
    changed = [key for key in differences(attached, portrait(model)) if key.startswith("tensor ")]
    # The mix of source and batch is a function of the batch at hand, and held in the buffers while it passes.
    assert all("running_" in key for key in changed) if method == "norm-partial" else changed == []
    assert adapter.steps == 0
    assert len(adapter.history) == 0
    adapter.detach()
    assert differences(before, portrait(model)) == []


def test_a_masked_class_is_no_failure() -> None:
    mask = torch.tensor([0.0, 0.0, 0.0, 0.0, float("-inf")])
    adapter = st.adapt(Returns(lambda y: y + mask), "tent")
    assert (adapter(batches(1)[0])[:, 4] == float("-inf")).all()
    assert adapter.history[-1].events == ()
    assert adapter.history[-1].weight_distance > 0


# --- one model, several adapters


class Outer(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.head = inner, nn.Linear(CLASSES, 3)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.inner(images))
        return logits


@pytest.mark.parametrize("which", [lambda model: model, lambda model: model.one, Outer], ids=["same", "part", "whole"])
def test_a_model_has_one_adapter_and_the_first_goes_on(which: Callable[[nn.Module], nn.Module]) -> None:
    model = build("bn")
    before = portrait(model)
    first, second = batches(2)
    with st.adapt(model, "tent") as adapter:
        adapter(first)
        with pytest.raises(SynaptuneError, match="being adapted already"), st.adapt(which(model), "nhl"):
            pass
        adapter(second)
    assert adapter.steps == 2
    assert differences(before, portrait(model)) == []


def shares_a_layer() -> tuple[nn.Module, nn.Module]:
    one, other = build("gn"), build("gn", seed=1)
    other.out = one.out
    return one, other


def shares_a_parameter() -> tuple[nn.Module, nn.Module]:
    one, other = build("bn"), build("bn", seed=1)
    other.out.bias = one.out.bias
    return one, other


SHARING = pytest.mark.parametrize("pair", [shares_a_layer, shares_a_parameter])


@SHARING
def test_models_with_a_part_in_common_are_adapted_one_after_the_other(
    pair: Callable[[], tuple[nn.Module, nn.Module]],
) -> None:
    one, other = pair()
    before, before_other = portrait(one), portrait(other)
    first, second = batches(2)
    with st.adapt(one, "nhl") as adapter:
        adapter(first)
        with pytest.raises(SynaptuneError, match="being adapted already"):
            st.adapt(other, "nhl")
        adapter.reset()
        with pytest.raises(SynaptuneError, match="being adapted already"):
            st.adapt(other, "nhl")
        adapter(second)
    with st.adapt(other, "nhl") as adapter:
        adapter(first)
        with pytest.raises(SynaptuneError, match="being adapted already"):
            st.adapt(one, "nhl")
    assert differences(before, portrait(one)) == []
    assert differences(before_other, portrait(other)) == []


@SHARING
def test_an_adapter_that_could_not_be_attached_lays_no_claim(
    pair: Callable[[], tuple[nn.Module, nn.Module]], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = pair()
    before = portrait(one)

    def fail(method: object, model: nn.Module, anatomy: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("synaptune.algorithms.nhl.NHLMethod.prepare", fail)
        with pytest.raises(KeyboardInterrupt):
            st.adapt(one, "nhl")
    assert differences(before, portrait(one)) == []
    st.adapt(other, "nhl").detach()


def test_a_copy_of_an_adapter_lays_claim_to_its_own_model() -> None:
    adapter = st.adapt(build("bn"), "nhl")
    twin = copy.deepcopy(adapter)
    other = build("bn", seed=1)
    other.out.bias = twin.model.out.bias
    with pytest.raises(SynaptuneError, match="being adapted already"):
        st.adapt(other, "nhl")
    before = portrait(other)
    adapter.detach()
    with pytest.raises(SynaptuneError, match="being adapted already"):
        st.adapt(other, "nhl")
    twin.detach()
    st.adapt(other, "nhl").detach()
    assert [key for key in differences(before, portrait(other)) if not key.startswith(("marks", "requires"))] == []
    assert not any(vars(parameter) for parameter in (*twin.model.parameters(), *adapter.model.parameters()))


def test_contexts_may_follow_one_another() -> None:
    model = build("bn")
    before = portrait(model)
    for method in METHODS:
        with st.adapt(model, method) as adapter:
            adapter(batches(1)[0])
    assert differences(before, portrait(model)) == []


# --- a model that its owner changes meanwhile


def test_a_module_that_joins_the_model_is_left_alone() -> None:
    model = build("bn")
    before = portrait(model)
    adapter = st.adapt(model, "nhl")
    model.extra = nn.Dropout()
    adapter(batches(1)[0])
    adapter.detach()
    assert model.extra.training
    del model.extra
    assert differences(before, portrait(model)) == []


def test_a_model_rebuilt_meanwhile_is_restored_as_far_as_it_is_there() -> None:
    model = build("bn").train()
    before = portrait(model)
    adapter = st.adapt(model, "tent")
    adapter(batches(1)[0])
    model.stem_norm = nn.Identity()
    with pytest.raises(SynaptuneError, match="detach, change it, adapt again"):
        adapter(batches(1)[0])
    with pytest.raises(SynaptuneError, match=r"no longer holds stem_norm.bias, stem_norm.weight"):
        adapter.detach()
    left = differences(before, portrait(model))
    assert left
    assert all("stem_norm" in key for key in left)
    assert adapter.detach() is model


# --- threads


class Waits(nn.Module):
    """Stays in its forward pass until told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.entered, self.go = build("bn"), threading.Event(), threading.Event()

    def forward(self, images: Tensor) -> Tensor:
        self.entered.set()
        assert self.go.wait(timeout=60)
        logits: Tensor = self.net(images)
        return logits


def test_a_second_caller_is_refused_and_the_first_is_undisturbed() -> None:
    model = Waits()
    adapter = st.adapt(model, "tent")
    batch = batches(1)[0]
    logits: list[Tensor] = []
    first = threading.Thread(target=lambda: logits.append(adapter(batch)))
    first.start()
    assert model.entered.wait(timeout=60)
    for call in (lambda: adapter(batch), lambda: adapter.predict(batch), adapter.reset):
        with pytest.raises(SynaptuneError, match="one caller at a time"):
            call()
    model.go.set()
    first.join()
    assert torch.equal(logits[0], st.adapt(build("bn"), "tent")(batch))
    assert adapter.steps == 1
    adapter(batch)


def test_adapters_in_different_threads_give_what_they_give_alone() -> None:
    methods = ["tent", "nhl", "norm-running", "dua"]
    alone, together = ({method: st.adapt(build("bn"), method) for method in methods} for _ in range(2))
    stream = batches(5)
    expected = {method: [adapter(batch) for batch in stream] for method, adapter in alone.items()}
    found: dict[str, list[Tensor]] = {}

    def task(method: str) -> None:
        # Gradient mode belongs to a thread; one of these has gradients off all the time.
        with torch.set_grad_enabled(method != "nhl"):
            found[method] = [together[method](batch) for batch in stream]

    threads = [threading.Thread(target=task, args=(method,)) for method in methods]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for method in methods:
        assert all(torch.equal(a, b) for a, b in zip(expected[method], found[method], strict=True)), method


# --- precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("method", ["tent", "nhl", "nhl-tuned", "hebb-conv1"])
def test_half_precision_moves_as_far_as_full_precision(method: str, dtype: torch.dtype) -> None:
    half, full = st.adapt(build("bn", dtype=dtype), method), st.adapt(build("bn"), method)
    for batch in batches(10):
        half(batch.to(dtype))
        full(batch)
    assert not any(record.events for record in half.history)
    assert half.history[-1].weight_distance == pytest.approx(full.history[-1].weight_distance, rel=0.1)


def test_autocast_of_the_caller_is_respected() -> None:
    adapter = st.adapt(build("bn"), "nhl")
    with torch.autocast("cpu", torch.bfloat16):
        logits = [adapter(batch) for batch in batches(3)]
    assert all(torch.isfinite(rows).all() for rows in logits)
    assert all(parameter.dtype == torch.float32 for parameter in adapter.model.parameters())
    assert not any(record.events for record in adapter.history)


@pytest.mark.parametrize("predict", ["before", "after"])
@pytest.mark.parametrize(("method", "options"), [("nhl", {"nm_steps": 2}), ("nhl-tuned", {}), ("bp-conv1", {})])
def test_one_autocast_block_around_a_stream_is_as_good_as_one_per_batch(
    method: str, options: dict[str, int], predict: str
) -> None:
    # Autocast keeps its casts of weights until the block ends; learnt weights must not be passed over for them.
    around, within = (st.adapt(build("bn"), method, lr=0.1, predict=predict, **options) for _ in range(2))
    with torch.autocast("cpu", torch.bfloat16):
        expected = [around(batch) for batch in batches(3)]
        alone = around.predict(batches(1)[0])
        assert torch.is_autocast_cache_enabled()
    for batch, logits in zip(batches(3), expected, strict=True):
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(within(batch), logits)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(within.predict(batches(1)[0]), alone)


@pytest.mark.parametrize("method", ["norm", "norm-partial", "dua", "ttt", "ttt-slow", "nhl"])
def test_the_default_device_of_the_caller_does_not_matter(method: str, tmp_path: Path) -> None:
    def run(device: str) -> list[Tensor]:
        adapter = st.adapt(build("rotation" if method.startswith("ttt") else "bn"), method)
        first, second = batches(2)
        with torch.device(device):  # meta stands for an accelerator: what lands there by mistake cannot be used
            logits = [adapter(first), adapter(second), adapter.freeze()(first)]
            adapter.save(tmp_path / "state.safetensors")
            adapter.reset()
            adapter.load(tmp_path / "state.safetensors")
            return [*logits, adapter(first)]

    assert all(torch.equal(left, right) for left, right in zip(run("cpu"), run("meta"), strict=True))


# --- words


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"guards": [Finite]}, "guards must be objects.*the class Finite itself"),
        ({"layout": {"first_conv": "stem"}}, r"layout must be a synaptune.Layout\(...\), not dict"),
        ({"on_bad_input": "ignore"}, "on_bad_input must be 'raise' or 'skip', not 'ignore'"),
        ({"method": st.NHL}, r"pass an object, NHL\(\)"),
        ({"method": "nhl", "eta": float("inf")}, "eta must be a finite number, not inf"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        st.adapt(build("bn"), **settings)


def test_warnings_point_at_the_callers_line() -> None:
    adapter = st.adapt(build("bn"))
    with pytest.warns(SmallBatchWarning) as caught:
        adapter(batches(1, size=1)[0])
    assert caught[0].filename == __file__


def test_everything_works_inside_inference_mode(tmp_path: object) -> None:
    model = build("bn")
    before = portrait(model)
    first, second = batches(2)
    with torch.inference_mode():
        adapter = st.adapt(model, "nhl")
        adapter(first)
        adapter.save(f"{tmp_path}/state.safetensors")
        plain, twin = adapter.freeze(), copy.deepcopy(adapter)
        adapter.reset()
        adapter.load(f"{tmp_path}/state.safetensors")
    assert torch.equal(adapter(second), twin(second))
    # What was made inside is of use outside: it can even be trained.
    plain.requires_grad_(True)(second).sum().backward()
    twin.detach()
    adapter.detach()
    assert differences(before, portrait(model)) == []


def test_history_begins_with_the_first_batch() -> None:
    adapter = st.adapt(build("bn"))
    assert (list(adapter.history), adapter.steps) == ([], 0)
    adapter(batches(1)[0])
    assert [(record.step, record.events) for record in adapter.history] == [(1, ())]

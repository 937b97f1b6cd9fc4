"""What every method must keep. The matrix comes from the registry: a new method is under test when it is registered."""

from __future__ import annotations

import copy
import gc
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import synaptune as st
from synaptune.core.adapter import SmallBatchWarning
from synaptune.errors import InputError, SynaptuneError
from tests.conformance.cases import CASES, HOME, METHODS
from tests.support.models import CLASSES, SIZE, batches, build
from tests.support.state import differences, portrait

each_case = pytest.mark.parametrize(("method", "kind"), CASES)
each_method = pytest.mark.parametrize("method", METHODS)


def test_matrix_covers_what_each_method_claims_to_need() -> None:
    for info in st.methods():
        accepted = {kind for method, kind in CASES if method == info.name}
        expected = {"bn", "bn-biased-conv", "bn-no-affine", "gn", "vit", "rotation"}
        if info.needs.batch_norm:
            expected -= {"gn", "vit"}
        if info.needs.affine_norm:
            expected -= {"gn", "vit", "bn-no-affine"}
        if info.needs.rotation_head:
            expected = {"rotation"}
        assert accepted == expected, info.name


class _Interrupts(nn.Module):
    """Raises in the middle of a forward pass, when told to."""

    def __init__(self, inner: nn.Module, error: BaseException):
        super().__init__()
        self.inner, self.error, self.armed = inner, error, False

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x)
        if self.armed:
            raise self.error
        return out


@each_case
def test_detach_is_bit_exact(method: str, kind: str) -> None:
    model = build(kind)
    before = portrait(model)
    adapter = st.adapt(model, method)
    for batch in batches():
        adapter(batch)
    assert adapter.detach() is model
    assert differences(before, portrait(model)) == []


@each_case
def test_detach_restores_mixed_modes_gradients_and_requires_grad(method: str, kind: str) -> None:
    model = build(kind)
    model.train()
    next(module for module in model.modules() if isinstance(module, nn.Dropout)).eval()
    parameters = list(model.parameters())
    parameters[0].requires_grad_(False)
    parameters[1].grad = torch.full_like(parameters[1], 3.0)
    before = portrait(model)
    with st.adapt(model, method) as adapter:
        adapter(batches(1)[0])
    assert differences(before, portrait(model)) == []


@each_case
@pytest.mark.parametrize("error", [RuntimeError("broken layer"), KeyboardInterrupt()])
def test_undo_survives_an_exception_inside_a_step(method: str, kind: str, error: BaseException) -> None:
    model = build(kind)
    host = model.net if kind == "rotation" else model
    host.out = _Interrupts(host.out, error)
    if kind == "rotation":
        model.synaptune_layout = {**model.synaptune_layout, "classifier": "net.out.inner"}
    before = portrait(model)
    adapter = st.adapt(model, method)
    first, second, third = batches(3)
    adapter(first)
    adapted = portrait(model)
    host.out.armed = True
    with pytest.raises(type(error)):
        adapter(second)
    host.out.armed = False
    assert _tensors_differing(adapted, portrait(model)) == [], "the failed step left traces"
    assert torch.isfinite(adapter(third)).all()
    adapter.detach()
    assert differences(before, portrait(model)) == []


def _tensors_differing(before: dict[str, object], after: dict[str, object]) -> list[str]:
    return [key for key in differences(before, after) if key.startswith("tensor ")]


@each_case
def test_a_failed_step_can_be_repeated_with_the_same_result(method: str, kind: str) -> None:
    def run(*, fail: bool) -> Tensor:
        model = build(kind)
        host = model.net if kind == "rotation" else model
        host.out = _Interrupts(host.out, RuntimeError("broken layer"))
        if kind == "rotation":
            model.synaptune_layout = {**model.synaptune_layout, "classifier": "net.out.inner"}
        with st.adapt(model, method) as adapter:
            first, second = batches(2)
            adapter(first)
            if fail:
                host.out.armed = True
                with pytest.raises(RuntimeError):
                    adapter(second)
                host.out.armed = False
            adapter(second)
            return adapter.predict(first)

    assert torch.equal(run(fail=False), run(fail=True))


@each_case
def test_only_declared_tensors_change(method: str, kind: str) -> None:
    model = build(kind)
    before = portrait(model)
    adapter = st.adapt(model, method)
    for batch in batches():
        adapter(batch)
    changed = {key.removeprefix("tensor ") for key in _tensors_differing(before, portrait(model))}
    touches = adapter.method.touches(model, adapter.anatomy)
    assert changed <= touches.parameters | touches.buffers
    adapter.detach()


@each_case
def test_what_a_method_declares_it_also_moves(method: str, kind: str) -> None:
    model = build(kind)
    before = portrait(model)
    adapter = st.adapt(model, method)
    for batch in batches():
        adapter(batch)
    if adapter.method.touches(model, adapter.anatomy).parameters:
        assert _tensors_differing(before, portrait(model)) != []
        assert adapter.history[0].weight_distance > 0
        if method != "ttt-slow":  # which starts every image from the source
            assert adapter.history[-1].weight_distance > adapter.history[0].weight_distance
    adapter.detach()


@each_case
def test_reset_is_bit_exact_and_starts_afresh(method: str, kind: str) -> None:
    adapter = st.adapt(build(kind), method)
    attached = portrait(adapter.model)
    first = [adapter(batch) for batch in batches()]
    adapter.reset()
    assert _tensors_differing(attached, portrait(adapter.model)) == []
    again = [adapter(batch) for batch in batches()]
    assert all(torch.equal(left, right) for left, right in zip(first, again, strict=True))
    adapter.detach()


@each_case
def test_save_and_load_continue_with_the_same_bits(method: str, kind: str, tmp_path: Path) -> None:
    first, second, third = batches(3)
    adapter = st.adapt(build(kind), method)
    adapter(first)
    adapter(second)
    adapter.save(tmp_path / "state.safetensors")
    expected = adapter(third)
    after = adapter.predict(first)

    other = st.adapt(build(kind), method)
    other.load(tmp_path / "state.safetensors")
    assert other.steps == 2
    assert torch.equal(other(third), expected)
    assert torch.equal(other.predict(first), after)


@each_case
@pytest.mark.parametrize("caller", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_callers_may_sit_in_any_gradient_mode(method: str, kind: str, caller: type) -> None:
    expected = [st_run(method, kind)]
    with caller():
        images = batches(2)
        adapter = st.adapt(build_outside(kind), method)
        logits = [adapter(batch) for batch in images]
    assert all(not tensor.requires_grad for tensor in logits)
    assert all(torch.equal(left, right) for left, right in zip(expected[0], logits, strict=True))


def build_outside(kind: str) -> nn.Module:
    """Build a model as if before the caller's mode was entered."""
    with torch.inference_mode(False):
        return build(kind)


def st_run(method: str, kind: str) -> list[Tensor]:
    adapter = st.adapt(build(kind), method)
    return [adapter(batch) for batch in batches(2)]


@each_case
def test_no_gradient_is_left_behind(method: str, kind: str) -> None:
    adapter = st.adapt(build(kind), method)
    adapter(batches(1)[0])
    assert all(parameter.grad is None for parameter in adapter.model.parameters())


@each_case
@pytest.mark.parametrize("constant", [False, True])
def test_a_batch_of_one_stays_finite(method: str, kind: str, constant: bool) -> None:
    adapter = st.adapt(build(kind), method)
    on_batch = any(adapter.model.get_submodule(name).training for name in adapter.anatomy.batch_norms)
    image = torch.full((1, 3, SIZE, SIZE), 0.5) if constant else batches(1, size=1)[0]
    if on_batch:
        with pytest.warns(SmallBatchWarning, match="single image"):
            logits = adapter(image)
    else:
        logits = adapter(image)
    assert logits.shape == (1, CLASSES)
    assert torch.isfinite(logits).all()
    assert torch.isfinite(adapter(image)).all()
    assert math.isfinite(adapter.history[-1].weight_distance)
    # A guard would make it finite; the method itself must.
    assert not any(event.startswith("undo") for record in adapter.history for event in record.events)


@each_case
def test_a_constant_batch_stays_finite(method: str, kind: str) -> None:
    adapter = st.adapt(build(kind), method)
    usual = batches(1)[0]
    for images in (torch.full_like(usual, 0.5), usual[:1].expand_as(usual), usual):
        assert torch.isfinite(adapter(images)).all()
    assert not any(event for record in adapter.history for event in record.events)


@each_case
def test_an_empty_batch_is_refused_and_changes_nothing(method: str, kind: str) -> None:
    adapter = st.adapt(build(kind), method)
    adapter(batches(1)[0])
    before = portrait(adapter.model)
    with pytest.raises(InputError, match="at least one image"):
        adapter(torch.zeros(0, 3, SIZE, SIZE))
    assert differences(before, portrait(adapter.model)) == []


@each_case
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_non_finite_images_are_refused_and_the_state_survives(method: str, kind: str, value: float) -> None:
    good, other = batches(2)
    bad = other.clone()
    bad[3, 0, 0, 0] = value
    adapter = st.adapt(build(kind), method)
    adapter(good)
    before = portrait(adapter.model)
    with pytest.raises(InputError, match=r"positions 3.*on_bad_input='skip'"):
        adapter(bad)
    assert differences(before, portrait(adapter.model)) == []


@each_case
def test_non_finite_images_can_be_skipped(method: str, kind: str) -> None:
    batch = batches(1)[0]
    bad = batch.clone()
    bad[3] = float("nan")
    adapter = st.adapt(build(kind), method, on_bad_input="skip")
    reference = st.adapt(build(kind), method)
    logits = adapter(bad)
    kept = [0, 1, 2, 4, 5, 6, 7]
    assert torch.isnan(logits[3]).all()
    assert torch.equal(logits[kept], reference(batch[kept]))
    assert "positions 3" in adapter.history[-1].events[0]


@each_case
def test_same_seed_same_bits(method: str, kind: str) -> None:
    assert all(torch.equal(left, right) for left, right in zip(st_run(method, kind), st_run(method, kind), strict=True))


@each_case
def test_bfloat16_models_adapt(method: str, kind: str) -> None:
    adapter = st.adapt(build(kind, dtype=torch.bfloat16), method)
    before = portrait(adapter.model)
    for batch in batches(2, dtype=torch.bfloat16):
        logits = adapter(batch)
        assert logits.dtype == torch.bfloat16
        assert torch.isfinite(logits).all()
    changed = _tensors_differing(before, portrait(adapter.model))
    touches = adapter.method.touches(adapter.model, adapter.anatomy)
    assert bool(changed) == bool(touches.parameters | touches.buffers)


@each_case
def test_a_deep_copy_is_independent_and_equal(method: str, kind: str) -> None:
    first, second, third = batches(3)
    adapter = st.adapt(build(kind), method)
    adapter(first)
    twin = copy.deepcopy(adapter)
    before = portrait(adapter.model)
    on_twin = [twin(second), twin(third)]
    assert differences(before, portrait(adapter.model)) == [], "the copy adapted the original"
    assert all(torch.equal(left, adapter(batch)) for left, batch in zip(on_twin, (second, third), strict=True))
    source = portrait(build(kind))
    restored = portrait(twin.detach())
    assert [key for key in source if key.startswith("tensor ") and source[key][0] != restored[key][0]] == []


@each_case
def test_dropout_stays_off(method: str, kind: str) -> None:
    model = build(kind).train()
    adapter = st.adapt(model, method)
    batch = batches(1)[0]
    modes: list[bool] = []
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.register_forward_pre_hook(lambda module, args: modes.append(module.training))
    adapter(batch)
    adapter.predict(batch)
    assert modes
    assert not any(modes)


@each_case
def test_eval_and_train_calls_do_not_change_what_the_method_does(method: str, kind: str) -> None:
    expected = st_run(method, kind)
    model = build(kind).train()
    adapter = st.adapt(model, method)
    seen = []
    for nth, batch in enumerate(batches(2)):
        (adapter.eval, model.eval, model.train)[nth]()
        seen.append(adapter(batch))
    assert all(torch.equal(left, right) for left, right in zip(expected, seen, strict=True))


@each_case
def test_callers_may_switch_requires_grad(method: str, kind: str) -> None:
    model = build(kind)
    adapter = st.adapt(model, method)
    seen = []
    for batch, wanted in zip(batches(2), (False, True), strict=True):
        adapter.requires_grad_(wanted)
        seen.append(adapter(batch))
    assert all(torch.equal(left, right) for left, right in zip(st_run(method, kind), seen, strict=True))
    assert all(parameter.grad is None for parameter in model.parameters())


@each_case
def test_state_dict_loads_into_a_fresh_model(method: str, kind: str) -> None:
    adapter = st.adapt(build(kind), method)
    adapter(batches(1)[0])
    build(kind, seed=5).load_state_dict(adapter.model.state_dict(), strict=True)


@each_case
def test_frozen_module_gives_what_the_adapter_predicts(method: str, kind: str) -> None:
    adapter = st.adapt(build(kind), method)
    for batch in batches():
        adapter(batch)
    before = portrait(adapter.model)
    plain = adapter.freeze()
    assert differences(before, portrait(adapter.model)) == []
    torch.testing.assert_close(plain(batch), adapter.predict(batch), rtol=0, atol=1e-5)
    assert not any(module.training for module in plain.modules())
    assert not any(hook for module in plain.modules() for hook in module._forward_pre_hooks.values())
    one_by_one = torch.cat([plain(image[None]) for image in batch])
    torch.testing.assert_close(one_by_one, plain(batch), rtol=0, atol=1e-5)


@each_method
def test_predicting_adapts_nothing(method: str) -> None:
    adapter = st.adapt(build(HOME[method]), method)
    first, second = batches(2)
    adapter(first)
    before = portrait(adapter.model)
    once = adapter.predict(second)
    assert torch.equal(adapter.predict(second), once)
    changed = {key.removeprefix("tensor ") for key in _tensors_differing(before, portrait(adapter.model))}
    # Prior-mixed statistics are a function of the batch at hand, held in the buffers while it passes.
    allowed = {name for name in changed if "running_" in name} if method == "norm-partial" else set()
    assert changed == allowed


@each_method
def test_prediction_before_and_after_the_update_are_both_to_be_had(method: str) -> None:
    batch = batches(1)[0]
    before = st.adapt(build(HOME[method]), method, predict="before")
    after = st.adapt(build(HOME[method]), method, predict="after")
    early, late = before(batch), after(batch)
    # The Hebbian layer learns from the batch before the prediction, as in the paper; only feedback comes after.
    assert torch.equal(early, late) == (before.history[-1].backwards == 0 and not method.startswith("dua"))
    if "ttt" not in method:  # TTT's state after the batch is not the one each of its images was predicted with
        assert torch.equal(before.predict(batch), late)


@each_method
def test_history_tells_what_was_done(method: str) -> None:
    adapter = st.adapt(build(HOME[method]), method)
    for batch in batches(2, size=4):
        adapter(batch)
    first, second = adapter.history
    assert (first.step, second.step) == (1, 2)
    assert first.images == 4
    assert 0 <= first.entropy <= math.log(CLASSES) + 1e-6
    assert first.drift is not None
    assert first.drift > 0
    assert first.forwards >= 4
    adapts = bool(adapter.method.touches(adapter.model, adapter.anatomy).parameters)
    assert (first.backwards > 0) == (adapts and method != "hebb-conv1")


@each_method
def test_long_streams_leak_nothing(method: str) -> None:
    adapter = st.adapt(build(HOME[method]), method)
    adapter.history = type(adapter.history)(maxlen=5)
    batch = batches(1, size=2)[0]

    def live() -> int:
        gc.collect()
        return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())

    for _ in range(10):
        adapter(batch)
    early = live()
    for _ in range(20):
        adapter(batch)
    assert live() <= early
    assert len(adapter.history) == 5


@each_method
def test_a_detached_adapter_says_so(method: str) -> None:
    adapter = st.adapt(build(HOME[method]), method)
    adapter.detach()
    adapter.detach()
    with pytest.raises(SynaptuneError, match="was detached"):
        adapter(batches(1)[0])

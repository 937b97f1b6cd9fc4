"""The adapter's own behaviour, apart from what the conformance suite asks of every method."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import synaptune as st
from synaptune.core.guard import Action, Guard, Verdict
from synaptune.core.history import BatchRecord
from synaptune.core.method import Step
from synaptune.errors import InputError, StateFileError, SynaptuneError
from synaptune.functional.entropy import softmax_entropy
from synaptune.functional.statistics import batch_statistics
from synaptune.guards import Finite
from tests.support.models import batches, build
from tests.support.state import differences, portrait


class Says(Guard):
    """Gives the verdicts it was made with, then keeps."""

    def __init__(self, *actions: Action):
        self.actions = list(actions)

    def judge(self, step: Step, record: BatchRecord) -> Verdict:
        action = self.actions.pop(0) if self.actions else Action.KEEP
        return Verdict(action, "because")


def test_a_verdict_of_undo_puts_the_step_back_and_is_recorded() -> None:
    adapter = st.adapt(build("bn"), "tent", lr=0.1, guards=[Says(Action.KEEP, Action.UNDO)])
    first, second, third = batches(3)
    adapter(first)
    before = portrait(adapter.model)
    adapter(second)
    assert [key for key in differences(before, portrait(adapter.model)) if key.startswith("tensor")] == []
    assert adapter.history[-1].events == ("undo: because",)
    reference = st.adapt(build("bn"), "tent", lr=0.1)
    reference(first)
    assert torch.equal(adapter(third), reference(third)), "the optimiser kept a trace of the undone step"


def test_the_strongest_verdict_wins_whatever_the_order() -> None:
    for guards in ([Says(Action.RESET), Says(Action.UNDO)], [Says(Action.UNDO), Says(Action.RESET)]):
        adapter = st.adapt(build("bn"), "tent", guards=guards)
        source = portrait(build("bn"))
        adapter(batches(1)[0])
        assert adapter.steps == 0
        now = portrait(adapter.model)
        assert all(source[key][0] == now[key][0] for key in source if key.startswith("tensor"))


@pytest.mark.parametrize(
    ("logits", "distance", "action"),
    [
        ([[0.0, 1.0]], 0.1, Action.KEEP),
        ([[0.0, float("nan")]], 0.1, Action.UNDO),
        ([[float("inf"), 0.0]], 0.1, Action.UNDO),
        ([[float("-inf"), 0.0]], 0.1, Action.KEEP),  # a masked class
        ([[float("-inf"), float("-inf")]], 0.1, Action.UNDO),
        ([[0.0, 1.0]], float("nan"), Action.UNDO),
        ([[0.0, 1.0]], float("inf"), Action.UNDO),
    ],
)
def test_finite_guard_truth_table(logits: list[list[float]], distance: float, action: Action) -> None:
    given = torch.tensor(logits)
    record = BatchRecord(
        step=1,
        images=1,
        entropy=float(softmax_entropy(given).mean()),
        drift=None,
        weight_distance=distance,
        seconds=0.1,
        forwards=1,
        backwards=1,
    )
    assert Finite().judge(Step(logits=given), record).action is action


def test_a_loss_that_overflows_changes_nothing_and_is_recorded() -> None:
    model = build("bn")
    adapter = st.adapt(model, "tent")
    with torch.no_grad():
        model.out.weight.fill_(1e38)
    before = portrait(model)
    adapter(batches(1)[0])
    assert [key for key in differences(before, portrait(model)) if key.startswith("tensor")] == []
    assert "loss is not finite: no update" in adapter.history[-1].events
    assert any(event.startswith("undo: logits") for event in adapter.history[-1].events)


def test_two_adapters_on_one_model_are_refused() -> None:
    model = build("bn")
    adapter = st.adapt(model)
    with pytest.raises(SynaptuneError, match="being adapted already"):
        st.adapt(model, "tent")
    with pytest.raises(SynaptuneError, match="being adapted already"):
        st.adapt(adapter)
    adapter.detach()
    st.adapt(model, "tent").detach()


def test_a_refused_method_leaves_the_model_as_it_was() -> None:
    model = build("gn").train()
    before = portrait(model)
    with pytest.raises(st.errors.IncompatibleModelError, match=r"norm adapts.*GroupNorm.*Use method='nhl'"):
        st.adapt(model, "norm")
    assert differences(before, portrait(model)) == []


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (torch.zeros(2, 3, 8, 8, dtype=torch.uint8), r"floating point, not torch.uint8; try images.float\(\) / 255"),
        (torch.zeros(0, 3, 8, 8), "at least one image"),
        (torch.zeros(3), "at least one image"),
        ([1, 2], "must be a torch.Tensor, not list"),
    ],
)
def test_unusable_batches_name_the_fix(batch: Tensor, message: str) -> None:
    adapter = st.adapt(build("bn"))
    for call in (adapter, adapter.predict):
        with pytest.raises(InputError, match=message):
            call(batch)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    adapter = st.adapt(build("bn"), "tent")
    adapter(batches(1)[0])
    adapter.save(tmp_path / "state.safetensors")
    return tmp_path / "state.safetensors"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: st.adapt(build("bn", seed=1), "tent"), "belongs to another model"),
        (lambda: st.adapt(build("bn-biased-conv"), "tent"), "belongs to another model"),
        (lambda: st.adapt(build("bn"), "nhl"), "saved by method 'tent'"),
        (lambda: st.adapt(build("bn"), "tent", lr=1e-2), r"lr=0.001 \(here 0.01\)"),
    ],
)
def test_a_strangers_state_is_refused_and_nothing_changes(
    saved: Path, make: Callable[[], st.Adapter], message: str
) -> None:
    adapter = make()
    adapter(batches(1)[0])
    before = portrait(adapter.model)
    with pytest.raises(StateFileError, match=message):
        adapter.load(saved)
    assert differences(before, portrait(adapter.model)) == []


@pytest.mark.parametrize("damage", ["truncate", "garbage", "missing", "other format"])
def test_damaged_state_files_are_refused(saved: Path, damage: str) -> None:
    from safetensors.torch import save_file

    if damage == "truncate":
        saved.write_bytes(saved.read_bytes()[:-20])
    elif damage == "garbage":
        saved.write_text("<html>not found</html>")
    elif damage == "missing":
        saved.unlink()
    else:
        save_file({"x": torch.zeros(1)}, saved)
    with pytest.raises(StateFileError, match="not a usable state file"):
        st.adapt(build("bn"), "tent").load(saved)


def rewrite(path: Path, change: Callable[[dict[str, Tensor], dict[str, str]], None]) -> None:
    """Change the content of a state file, and keep it a well-formed safetensors file."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = dict(file.metadata())
    change(tensors, metadata)
    save_file(tensors, path, metadata=metadata)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors, about: about.pop("fingerprint"), "says about itself is incomplete"),
        (lambda tensors, about: about.update(options="{"), "says about itself is incomplete"),
        (lambda tensors, about: about.update(steps="many"), "says about itself is incomplete"),
        (lambda tensors, about: tensors.update({"model/out.bias": torch.ones(5)}), "no tensors such as its out.bias"),
        (lambda tensors, about: tensors.update({"model/stem_norm.bias": torch.ones(1)}), "such as its stem_norm.bias"),
        (lambda tensors, about: tensors.update({"method/nowhere/step": torch.ones(1)}), "tent cannot go on from it"),
    ],
)
def test_a_state_file_that_went_wrong_inside_is_refused_and_nothing_changes(
    saved: Path, change: Callable[[dict[str, Tensor], dict[str, str]], None], message: str
) -> None:
    rewrite(saved, change)
    adapter, twin = (st.adapt(build("bn"), "tent") for _ in range(2))
    first, second = batches(2, seed=5)
    adapter(first)
    twin(first)
    before = portrait(adapter.model)
    with pytest.raises(StateFileError, match=message):
        adapter.load(saved)
    assert differences(before, portrait(adapter.model)) == []
    assert torch.equal(adapter(second), twin(second)), "the optimiser kept a trace of the refused file"


def test_a_file_from_before_an_option_existed_means_its_default(saved: Path) -> None:
    import json

    def forget(tensors: dict[str, Tensor], about: dict[str, str]) -> None:
        options = json.loads(about["options"])
        del options["steps"]
        about["options"] = json.dumps(options)

    rewrite(saved, forget)
    st.adapt(build("bn"), "tent").load(saved)
    with pytest.raises(StateFileError, match=r"steps=1 \(here 2\)"):
        st.adapt(build("bn"), "tent", steps=2).load(saved)


def test_saving_into_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match="there is no folder"):
        st.adapt(build("bn"), "tent").save(tmp_path / "nowhere" / "state.safetensors")


def test_a_model_with_extra_state_has_a_fingerprint(tmp_path: Path) -> None:
    class Remembers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = build("bn")

        def forward(self, images: Tensor) -> Tensor:
            logits: Tensor = self.net(images)
            return logits

        def get_extra_state(self) -> dict[str, int]:
            return {"seen": 3}

        def set_extra_state(self, state: object) -> None:
            pass

    adapter = st.adapt(Remembers(), "tent")
    adapter(batches(1)[0])
    adapter.save(tmp_path / "state.safetensors")
    st.adapt(Remembers(), "tent").load(tmp_path / "state.safetensors")


def test_state_files_hold_only_what_changed(tmp_path: Path) -> None:
    from safetensors import safe_open

    adapter = st.adapt(build("bn"), "nhl", stages=(1,))
    adapter(batches(1)[0])
    adapter.save(tmp_path / "state.safetensors")
    with safe_open(tmp_path / "state.safetensors", framework="pt") as file:
        model = {name for name in file.keys() if name.startswith("model/")}  # noqa: SIM118
    assert model == {"model/stem.weight", "model/one.0.weight", "model/one.1.weight", "model/one.1.bias"}
    assert list(tmp_path.iterdir()) == [tmp_path / "state.safetensors"], "a temporary file was left"


def test_fingerprint_is_that_of_the_source_however_far_the_model_moved() -> None:
    adapter = st.adapt(build("bn"), "tent", lr=0.1)
    twin = st.adapt(build("bn"), "nhl")
    adapter(batches(1)[0])
    assert adapter.fingerprint == twin.fingerprint
    assert adapter.fingerprint != st.adapt(build("bn", seed=1)).fingerprint


def test_freezing_needs_a_batch_where_statistics_come_from_it() -> None:
    adapter = st.adapt(build("bn"), "tent")
    with pytest.raises(SynaptuneError, match=r"adapter.freeze\(images\)"):
        adapter.freeze()
    images = batches(1)[0]
    torch.testing.assert_close(adapter.freeze(images)(images), adapter.predict(images), rtol=0, atol=1e-5)


class Deep(nn.Module):
    """Twenty normalised convolutions, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        layers = [(nn.Conv2d(width, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)) for width in (3, *[4] * 19)]
        self.blocks = nn.Sequential(*(nn.Sequential(conv, norm, nn.ReLU()) for conv, norm in layers))
        self.out = nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.out(self.blocks(images).mean(dim=(2, 3)))
        return logits


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_frozen_statistics_are_those_of_what_reaches_each_layer_in_the_plain_module(dtype: torch.dtype) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Deep().to(dtype).eval()
    images = batches(1)[0].to(dtype)
    adapter = st.adapt(model, "norm")
    plain = adapter.freeze(images)
    strange: list[int] = []

    def compare(layer: nn.Module, args: tuple[Tensor]) -> None:
        mean, var = batch_statistics(args[0])
        assert isinstance(layer, nn.BatchNorm2d)
        assert layer.running_mean is not None
        assert layer.running_var is not None
        same = torch.equal(layer.running_mean, mean.to(dtype)) and torch.equal(layer.running_var, var.to(dtype))
        strange.extend([] if same else [id(layer)])

    layers = [module for module in plain.modules() if isinstance(module, nn.BatchNorm2d)]
    handles = [layer.register_forward_pre_hook(compare) for layer in layers]
    frozen = plain(images)
    for handle in handles:
        handle.remove()
    assert len(layers) == 20
    assert strange == []
    if dtype == torch.float32:
        torch.testing.assert_close(frozen, adapter.predict(images), rtol=0, atol=1e-5)


def test_mixed_statistics_are_frozen_for_the_images_that_are_given_or_were_last_adapted_on() -> None:
    adapter = st.adapt(build("bn"), "norm-partial")
    first, second = batches(2)
    second = 3 * second + 1
    adapter(first)
    on_first, on_second = adapter.predict(first), adapter.predict(second)  # the buffers now hold those of `second`
    torch.testing.assert_close(adapter.freeze()(first), on_first, rtol=0, atol=1e-6)
    torch.testing.assert_close(adapter.freeze(second)(second), on_second, rtol=0, atol=1e-6)
    assert (adapter.freeze()(second) - on_second).abs().max() > 1e-2, "the two batches have the same statistics"


@pytest.mark.parametrize("method", ["norm", "norm-partial", "nhl"])
def test_freezing_takes_the_last_batch_as_it_was_when_it_came(method: str) -> None:
    adapter = st.adapt(build("bn"), method)
    images = batches(1)[0]
    memory = images.clone()
    adapter(memory)
    expected = adapter.freeze()(images)
    memory.fill_(0.5)  # a camera writes its next frames to the same place
    assert torch.equal(adapter.freeze()(images), expected)


@pytest.mark.parametrize("method", ["norm", "norm-partial", "nhl"])
def test_freezing_leaves_out_a_batch_whose_step_was_undone(method: str) -> None:
    adapter = st.adapt(build("bn"), method, guards=[Says(Action.KEEP, Action.UNDO)])
    first, second = batches(2)
    adapter(first)
    expected = adapter.freeze()(first)
    adapter(100 * second)
    assert torch.equal(adapter.freeze()(first), expected)


def test_freezing_on_bad_images_refuses_or_skips_them() -> None:
    images = batches(1)[0]
    spoilt = torch.cat([images, torch.full_like(images[:1], float("nan"))])
    with pytest.raises(InputError, match=r"positions 8"):
        st.adapt(build("bn"), "norm").freeze(spoilt)
    adapter = st.adapt(build("bn"), "norm", on_bad_input="skip")
    assert torch.equal(adapter.freeze(spoilt)(images), adapter.freeze(images)(images))


def test_frozen_modules_are_free_to_be_adapted_again() -> None:
    adapter = st.adapt(build("bn"), "nhl")
    images = batches(1)[0]
    adapter(images)
    plain = adapter.freeze()
    assert [name for name, module in plain.named_modules() if "_synaptune_claimed" in vars(module)] == []
    assert [name for name, parameter in plain.named_parameters() if vars(parameter)] == []
    before = portrait(plain)
    with st.adapt(plain, "nhl") as second:
        second(images)
    assert differences(before, portrait(plain)) == []


def test_snapshot_copies_the_changed_tensors_not_the_model() -> None:
    adapter = st.adapt(build("bn"), "tent")
    copied = sum(tensor.numel() for tensor in adapter._snapshot.tensors.values())
    assert copied == 2 * (6 + 8 + 8 + 12 + 12)


def test_moving_the_adapter_keeps_it_working_and_casting_is_refused() -> None:
    adapter = st.adapt(build("bn"), "tent")
    first, second = batches(2)
    adapter(first)
    twin = st.adapt(build("bn"), "tent")
    twin(first)
    assert torch.equal(adapter.to("cpu")(second), twin(second))
    with pytest.raises(SynaptuneError, match="dtype before"):
        adapter.double()


def test_pieces_may_be_named_by_the_user() -> None:
    model = build("bn")
    layout = st.Layout(first_conv="one.0", stages=(("two",), ("three", "four")))
    adapter = st.adapt(model, "nhl-12", layout=layout)
    moved = {name.split(".")[0] for name in adapter.method.touches(model, adapter.anatomy).parameters}
    assert moved == {"one", "two", "three", "four"}

"""Batches that are unlike a clean float32 tensor: each gives predictions, or an error that names the fix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import synaptune as st
from synaptune.errors import InputError
from tests.support.models import SIZE, batches, build
from tests.support.state import differences, portrait

METHODS = ["source", "norm", "norm-partial", "tent", "dua", "nhl", "nhl-tuned"]
each_method = pytest.mark.parametrize("method", METHODS)


@each_method
@pytest.mark.parametrize(
    "arrange",
    [
        lambda x: x.to(memory_format=torch.channels_last),
        lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
        lambda x: torch.stack([x, x], dim=-1)[..., 0],
        lambda x: x.clone().requires_grad_(),
        lambda x: x.clone().requires_grad_() * 1.0,
    ],
    ids=["channels last", "transposed", "strided", "leaf with gradient", "part of a graph"],
)
def test_layout_in_memory_and_gradients_of_images_do_not_matter(
    method: str, arrange: Callable[[Tensor], Tensor]
) -> None:
    plain, other = st.adapt(build("bn"), method), st.adapt(build("bn"), method)
    for batch in batches(3):
        given = arrange(batch)
        logits = other(given)
        torch.testing.assert_close(logits, plain(batch), rtol=0, atol=1e-5)
        assert not logits.requires_grad
        assert given.grad is None if given.is_leaf else True


@each_method
def test_a_batch_that_overflows_inside_the_model_is_undone(method: str) -> None:
    adapter, reference = st.adapt(build("bn"), method), st.adapt(build("bn"), method)
    first, second = batches(2)
    adapter(first)
    reference(first)
    adapter(torch.full((8, 3, SIZE, SIZE), torch.finfo(torch.float32).max))
    if method != "source":
        assert any(event.startswith("undo: ") for event in adapter.history[-1].events)
    assert torch.equal(adapter(second), reference(second))


@each_method
def test_images_are_left_as_they_are(method: str) -> None:
    batch = batches(1)[0]
    before = batch.clone()
    st.adapt(build("bn"), method)(batch)
    assert torch.equal(batch, before)


@each_method
@pytest.mark.parametrize(
    "batch",
    [
        torch.zeros(8, 3, SIZE, SIZE),
        batches(1)[0][:1].expand(8, -1, -1, -1),
        torch.full((8, 3, SIZE, SIZE), 1e30),
        -1e6 * batches(1)[0],
        1e-30 * batches(1)[0],
        batches(1)[0][:, :, :1, :1],
    ],
    ids=["black", "one image", "huge", "negative", "tiny", "one pixel"],
)
def test_extreme_values_stay_finite_and_the_state_survives(method: str, batch: Tensor) -> None:
    adapter = st.adapt(build("bn"), method)
    usual = batches(1)[0]
    adapter(usual)
    for images in (batch, batch, usual):
        assert torch.isfinite(adapter(images)).all()
    assert np.isfinite([record.weight_distance for record in adapter.history]).all()
    assert not adapter.history[-1].events


@each_method
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda x: x.double(),
            r"images are torch.float64, the model's weights torch.float32: images.to\(torch.float32\)",
        ),
        (lambda x: x.half(), r"images.to\(torch.float32\)"),
        (lambda x: x[:, :1], r"'stem' takes 3 channels, not 1.*images.expand\(-1, 3, -1, -1\)"),
        (lambda x: x[:, :2], r"'stem' takes 3 channels, not 2 \(shape \(8, 2, 8, 8\)\)"),
        (lambda x: x.movedim(1, -1), r"channels seem to come last: images.movedim\(-1, 1\)"),
        (lambda x: x[0], r"one image, not a batch: images.unsqueeze\(0\)"),
        (lambda x: x[None], r"has 5 axes; the first convolution 'stem' takes 4"),
        (lambda x: (255 * x).byte(), r"floating point, not torch.uint8; try images.float\(\) / 255"),
        (lambda x: (255 * x).long(), r"floating point, not torch.int64"),
        (lambda x: x > 0.5, r"floating point, not torch.bool"),
        (lambda x: x.to_sparse(), r"must be a dense tensor.*to_dense"),
        (lambda x: x.to("meta"), r"on the meta device, which holds no values"),
        (lambda x: x[:0], "at least one image"),
        (lambda x: x.numpy(), r"must be a torch.Tensor, not ndarray; try torch.as_tensor\(images\)"),
        (lambda x: [x], "must be a torch.Tensor, not list"),
    ],
    ids=[
        *("double", "half", "grey", "two channels", "channels last", "one image", "five axes", "bytes", "integers"),
        *("booleans", "sparse", "meta", "empty", "numpy", "list"),
    ],
)
def test_batches_that_do_not_fit_name_the_fix_and_leave_no_trace(
    method: str, spoil: Callable[[Tensor], Tensor], message: str
) -> None:
    adapter = st.adapt(build("bn"), method)
    first, second = batches(2)
    adapter(first)
    before = portrait(adapter.model)
    for call in (adapter, adapter.predict):
        with pytest.raises(InputError, match=message):
            call(spoil(second))
    changed = [key for key in differences(before, portrait(adapter.model)) if key.startswith("tensor ")]
    assert all("running_" in key for key in changed) if method == "norm-partial" else changed == []
    assert torch.isfinite(adapter(second)).all()
    assert adapter.steps == 2


def test_an_image_too_small_for_the_model_keeps_the_models_own_error() -> None:
    adapter = st.adapt(nn.Sequential(nn.Conv2d(3, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)), "source")
    with pytest.raises(RuntimeError, match=r"[Kk]ernel size") as caught:
        adapter(torch.rand(2, 3, 3, 3))
    assert "synaptune: Sequential failed on a batch of shape (2, 3, 3, 3)" in caught.value.__notes__[0]


def test_a_model_that_greys_its_input_itself_is_not_second_guessed() -> None:
    class Greys(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = build("bn")

        def forward(self, images: Tensor) -> Tensor:
            logits: Tensor = self.net(images.expand(-1, 3, -1, -1))
            return logits

    assert torch.isfinite(st.adapt(Greys(), "nhl")(batches(1)[0][:, :1])).all()


def test_a_prediction_alone_refuses_or_skips_bad_images_too() -> None:
    good = batches(1)[0]
    bad = good.clone()
    bad[2, 0, 0, 0] = float("nan")
    with pytest.raises(InputError, match="positions 2"):
        st.adapt(build("bn"), "norm").predict(bad)
    logits = st.adapt(build("bn"), "norm", on_bad_input="skip").predict(bad)
    kept = [0, 1, 3, 4, 5, 6, 7]
    assert torch.isnan(logits[2]).all()
    assert torch.equal(logits[kept], st.adapt(build("bn"), "norm").predict(good[kept]))

"""The digest follows names, shapes, types and bits, and nothing else."""

from __future__ import annotations

import hashlib

import pytest
import torch
from torch import Tensor, nn

from synaptune.core.fingerprint import fingerprint, fingerprint_of, persistent_tensors
from synaptune.errors import IncompatibleModelError


def _tensors() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {"weight": torch.randn(3, 4, generator=generator), "steps": torch.tensor(7), "none": torch.empty(0, 2)}


def test_digest_is_the_documented_one() -> None:
    header = b"weight|torch.float32|(2,)"
    expected = hashlib.sha256(len(header).to_bytes(8, "little") + header + bytes.fromhex("0000803f00000040"))
    assert fingerprint({"weight": torch.tensor([1.0, 2.0])}) == expected.hexdigest()


def test_order_strides_and_gradient_do_not_matter() -> None:
    tensors = _tensors()
    other = dict(reversed(tensors.items()))
    other["weight"] = nn.Parameter(tensors["weight"].T.contiguous().T)
    assert other["weight"].stride() != tensors["weight"].stride()
    assert fingerprint(other) == fingerprint(tensors)


def test_a_view_of_part_of_a_storage_counts_as_its_values() -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    assert fingerprint({"w": whole[:, 1:3]}) == fingerprint({"w": whole[:, 1:3].clone()})


def test_conjugate_and_negative_views_count_as_their_values() -> None:
    values = torch.tensor([1 + 2j, 3 - 1j])
    assert fingerprint({"w": values.conj()}) == fingerprint({"w": values.conj().resolve_conj()})
    assert fingerprint({"w": values.conj()}) != fingerprint({"w": values})


@pytest.mark.parametrize(
    "change",
    [
        lambda t: {**t, "weight": t["weight"] + 0},  # unchanged: the control
        lambda t: {**t, "weight": t["weight"].double()},
        lambda t: {**t, "weight": t["weight"].reshape(4, 3)},
        lambda t: {**t, "weight": torch.nextafter(t["weight"], torch.tensor(9.0))},
        lambda t: {**t, "steps": t["steps"] + 1},
        lambda t: {**t, "none": torch.empty(2, 0)},
        lambda t: {("gain" if k == "weight" else k): v for k, v in t.items()},
        lambda t: {k: v for k, v in t.items() if k != "none"},
    ],
)
def test_every_change_of_name_shape_type_or_bit_shows(change, request: pytest.FixtureRequest) -> None:
    unchanged = request.node.callspec.indices["change"] == 0
    assert (fingerprint(change(_tensors())) == fingerprint(_tensors())) is unchanged


def test_zero_and_minus_zero_differ_and_nan_equals_itself() -> None:
    assert fingerprint({"w": torch.tensor([0.0])}) != fingerprint({"w": torch.tensor([-0.0])})
    assert fingerprint({"w": torch.tensor([torch.nan])}) == fingerprint({"w": torch.tensor([torch.nan])})


def test_names_cannot_imitate_values() -> None:
    one = {"a": torch.zeros(0), "b": torch.zeros(0)}
    other = {"ab": torch.zeros(0)}
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize(
    "dtype",
    [
        torch.bfloat16,
        torch.float16,
        torch.float64,
        torch.float8_e4m3fn,
        torch.int8,
        torch.int64,
        torch.bool,
        torch.complex64,
    ],
)
def test_every_dtype_is_read_bit_by_bit(dtype: torch.dtype) -> None:
    values = torch.tensor([0.0, 1.0, 0.0, 1.0])
    one, other = values.to(dtype), values.flip(0).to(dtype)
    assert fingerprint({"w": one}) == fingerprint({"w": one.clone()})
    assert fingerprint({"w": one}) != fingerprint({"w": other})


def test_inference_tensors_and_inference_mode_give_the_same_digest() -> None:
    expected = fingerprint(_tensors())
    with torch.inference_mode():
        made_inside = _tensors()
        assert fingerprint(made_inside) == expected
    assert fingerprint(made_inside) == expected


def test_model_digest_covers_parameters_and_persistent_buffers_only() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    model.register_buffer("scratch", torch.zeros(3), persistent=False)
    before = fingerprint_of(model)
    model.get_buffer("scratch").fill_(5)
    model.train()
    model.requires_grad_(False)
    assert fingerprint_of(model) == before
    running_mean = model.get_buffer("1.running_mean")
    running_mean[0] += 1
    assert fingerprint_of(model) != before


def test_source_values_in_place_of_changed_ones_give_the_source_digest() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    before = fingerprint_of(model)
    source = {"0.weight": model.get_parameter("0.weight").detach().clone()}
    with torch.no_grad():
        model.get_parameter("0.weight").add_(1)
    assert fingerprint(persistent_tensors(model) | source) == before
    assert fingerprint_of(model) != before


def test_persistent_tensors_are_the_models_own() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    assert persistent_tensors(model)["0.weight"] is model.get_parameter("0.weight")


def test_tensors_without_values_are_refused() -> None:
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    with pytest.raises(IncompatibleModelError, match="no values"):
        fingerprint_of(model)

"""What every rule promises whatever its formula: precision, modes, finiteness, size of the step, option checks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from synaptune.errors import InputError, OptionError
from synaptune.plasticity import (
    Convolution,
    engine,
    krotov_hopfield_update,
    nhl_update,
    oja_update,
    radius_of,
    softhebb_update,
)

Rule = Callable[..., Tensor]

RULES: dict[str, Rule] = {
    "oja": oja_update,
    "krotov-hopfield": krotov_hopfield_update,
    "krotov-hopfield, p 3": partial(krotov_hopfield_update, p=3.0),
    "softhebb": softhebb_update,
    "softhebb, anti": partial(softhebb_update, sign="anti"),
    **{f"nhl, {reading}": partial(nhl_update, reading=reading) for reading in "ABCDE"},
    "nhl, centred": partial(nhl_update, centre="channel", border="valid", sign="anti"),
    "nhl, patch-centred": partial(nhl_update, centre="patch", reduce="ysum", sign="krotov"),
}
every_rule = pytest.mark.parametrize("rule", list(RULES.values()), ids=list(RULES))
LAYER = Convolution(stride=2, padding=1)


def weight_and_input(
    *, batch: int = 4, dtype: torch.dtype = torch.float32, scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(6, 3, 3, 3, generator=generator, dtype=torch.float64)
    x = torch.rand(batch, 3, 8, 8, generator=generator, dtype=torch.float64) * 2 - 0.5
    return weight.to(dtype), (x * scale).to(dtype)


@every_rule
def test_update_carries_no_graph_and_leaves_weight_and_input_alone(rule: Rule) -> None:
    weight, x = weight_and_input()
    parameter, x = nn.Parameter(weight.clone()), x.requires_grad_()
    seen = x.detach().clone()
    update = rule(parameter, x, synapses=LAYER, eta=0.1)
    assert not update.requires_grad
    assert parameter.equal(weight)
    assert x.equal(seen)
    assert parameter.grad is None
    assert update.abs().max() > 0


@every_rule
def test_caller_may_sit_inside_inference_mode(rule: Rule) -> None:
    weight, x = weight_and_input()
    expected = rule(weight, x, synapses=LAYER, eta=0.1)
    with torch.inference_mode():
        update = rule(weight, x * 1, synapses=LAYER, eta=0.1)
        assert not update.is_inference()
    assert update.equal(expected)
    parameter = nn.Parameter(weight)
    with torch.no_grad():
        parameter += update
    (parameter.sum() * 2).backward()  # the weight remains an ordinary leaf
    assert parameter.grad is not None


@every_rule
def test_autocast_does_not_lower_the_precision(rule: Rule) -> None:
    weight, x = weight_and_input()
    expected = rule(weight, x, synapses=LAYER, eta=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert rule(weight, x, synapses=LAYER, eta=0.1).equal(expected)


@every_rule
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_weights_get_the_update_of_float64_rounded_once(rule: Rule, dtype: torch.dtype) -> None:
    weight, x = weight_and_input(dtype=dtype)
    update = rule(weight, x, synapses=LAYER, eta=0.1)
    exact = rule(weight.double(), x.double(), synapses=LAYER, eta=0.1)
    assert update.dtype == dtype
    # Sums are taken in float32, so its rounding comes on top of the last one.
    tolerance = torch.finfo(dtype).eps + 100 * torch.finfo(torch.float32).eps
    torch.testing.assert_close(update.double(), exact, rtol=tolerance, atol=tolerance * 0.1)
    if dtype != torch.float32:
        # Responses in half precision would miss the rounded value now and then, not once in a hundred times.
        assert (update == exact.to(dtype)).double().mean() > 0.98


@every_rule
@pytest.mark.parametrize("chunk_bytes", [1, 2000, 2**25])
def test_update_does_not_depend_on_how_the_batch_is_cut(
    rule: Rule, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight, x = weight_and_input(batch=7, dtype=torch.float64)
    expected = rule(weight, x, synapses=LAYER, eta=0.1)
    monkeypatch.setattr(engine, "_CHUNK_BYTES", chunk_bytes)
    torch.testing.assert_close(rule(weight, x, synapses=LAYER, eta=0.1), expected, rtol=1e-10, atol=1e-12)


@every_rule
def test_empty_batch_gives_a_zero_update(rule: Rule) -> None:
    weight, x = weight_and_input(batch=0)
    assert rule(weight, x, synapses=LAYER, eta=0.1).equal(torch.zeros_like(weight))


@every_rule
def test_black_images_give_a_zero_update(rule: Rule) -> None:
    weight, x = weight_and_input()
    assert rule(weight, torch.zeros_like(x), synapses=LAYER, eta=0.1).abs().max() == 0


@every_rule
def test_zero_step_size_leaves_every_bit_of_the_weight(rule: Rule) -> None:
    weight, x = weight_and_input()
    assert (weight + rule(weight, x, synapses=LAYER, eta=0.0)).equal(weight)


@every_rule
@pytest.mark.parametrize("reduce", ["max", "mean", "sum"])
def test_finite_input_gives_a_finite_update(rule: Rule, reduce: str) -> None:
    source, images = weight_and_input()
    for scale, weight_scale in product([1e-45, 1e-30, 1e10, 1e30, 3e38], [1e-38, 1.0, 1e18, 0.0]):
        x = (images.clamp(-1, 1).double() * scale).float()
        assert x.isfinite().all()
        update = rule(source * weight_scale, x, synapses=LAYER, eta=0.1, reduce=reduce)
        assert update.isfinite().all(), f"input times {scale}, weight times {weight_scale}"


@every_rule
def test_constant_images_give_a_finite_update(rule: Rule) -> None:
    weight, x = weight_and_input()
    assert rule(weight, torch.ones_like(x), synapses=LAYER, eta=0.1).isfinite().all()


def test_nan_in_the_input_is_not_hidden() -> None:
    weight, x = weight_and_input()
    x[0, 0, 4, 4] = torch.nan
    assert nhl_update(weight, x, synapses=LAYER, eta=0.1).isnan().any()


@pytest.mark.parametrize("batch", [1, 16])
def test_reduce_max_makes_the_largest_change_eta(batch: int) -> None:
    weight, x = weight_and_input(batch=batch)
    update = nhl_update(weight, x, synapses=LAYER, eta=0.01)
    assert update.abs().max().item() == pytest.approx(0.01, rel=1e-6)


def test_reduce_mean_does_not_depend_on_how_often_the_batch_is_repeated() -> None:
    weight, x = weight_and_input(dtype=torch.float64)
    once = nhl_update(weight, x, synapses=LAYER, eta=0.1, reduce="mean")
    thrice = nhl_update(weight, x.repeat(3, 1, 1, 1), synapses=LAYER, eta=0.1, reduce="mean")
    torch.testing.assert_close(once, thrice)


def test_dead_filter_stays_dead_and_lets_the_others_learn() -> None:
    weight, x = weight_and_input()
    weight[2] = 0
    update = nhl_update(weight, x, synapses=LAYER, eta=0.1, radius=radius_of(weight))
    assert update[2].abs().max() == 0
    assert update.abs().amax((1, 2, 3)).count_nonzero() == 5


def test_valid_border_ignores_what_only_padded_places_see() -> None:
    weight, x = weight_and_input(dtype=torch.float64)
    wide = nn.functional.pad(x, (1, 1, 1, 1))
    inside = nhl_update(weight, wide, synapses=Convolution(padding=1), eta=0.1, border="valid")
    without_padding = nhl_update(weight, wide, synapses=Convolution(), eta=0.1)
    torch.testing.assert_close(inside, without_padding)


def test_valid_border_without_any_valid_place_gives_a_zero_update() -> None:
    weight, x = weight_and_input()
    tiny = x[:, :, :2, :2]
    layer = Convolution(padding=1)
    assert nhl_update(weight, tiny, synapses=layer, eta=0.1).abs().max() > 0
    assert nhl_update(weight, tiny, synapses=layer, eta=0.1, border="valid").abs().max() == 0


def test_channel_centring_forgets_a_constant_colour_cast() -> None:
    weight, x = weight_and_input(dtype=torch.float64)
    cast = torch.tensor([0.3, -2.0, 5.0], dtype=torch.float64).reshape(1, 3, 1, 1)
    centred = partial(nhl_update, synapses=LAYER, eta=0.1, centre="channel")
    torch.testing.assert_close(centred(weight, x + cast), centred(weight, x))


def test_zero_margin_stays_zero_under_channel_centring() -> None:
    weight, x = weight_and_input(dtype=torch.float64)
    by_layer = nhl_update(weight, x, synapses=Convolution(padding=1), eta=0.1, centre="channel")
    margin = Convolution(margin=((1, 1), (1, 1)))
    padded = nn.functional.pad(x, (1, 1, 1, 1))
    beforehand = nhl_update(weight, padded, synapses=margin, eta=0.1, centre="channel")
    torch.testing.assert_close(beforehand, by_layer)


def test_patch_centring_forgets_the_brightness_of_inner_patches() -> None:
    weight, x = weight_and_input(dtype=torch.float64)
    centred = partial(nhl_update, synapses=Convolution(), eta=0.1, centre="patch")
    torch.testing.assert_close(centred(weight, x + 7), centred(weight, x))


@pytest.mark.parametrize(
    ("rule", "options", "message"),
    [
        (oja_update, {"eta": -1.0}, "eta must be finite and not negative, got -1.0"),
        (oja_update, {"eta": float("nan")}, "eta must be finite"),
        (nhl_update, {"eta": 0.1, "tau": 0.0}, "tau must be finite and positive, got 0.0"),
        (nhl_update, {"eta": 0.1, "rank": 1}, "rank must be at least 2, got 1"),
        (nhl_update, {"eta": 0.1, "delta": -0.1}, "delta must be finite and not negative"),
        (nhl_update, {"eta": 0.1, "radius": torch.ones(3)}, r"radius must hold one number per filter"),
        (nhl_update, {"eta": 0.1, "radius": -torch.ones(6)}, "radius must be finite and not negative"),
        (softhebb_update, {"eta": 0.1, "inverse_temperature": 0.0}, "inverse_temperature must be finite"),
        (krotov_hopfield_update, {"eta": 0.1, "p": 0.5}, "p must be finite and at least 1"),
        (krotov_hopfield_update, {"eta": 0.1, "radius": -1.0}, "radius must be finite"),
    ],
)
def test_impossible_options_are_named(rule: Rule, options: dict[str, Any], message: str) -> None:
    weight, x = weight_and_input()
    with pytest.raises(OptionError, match=message):
        rule(weight, x, synapses=LAYER, **options)


def test_all_impossible_options_are_named_at_once() -> None:
    weight, x = weight_and_input()
    with pytest.raises(OptionError, match=r"eta must be .*; tau must be .*; rank must be"):
        nhl_update(weight, x, synapses=LAYER, eta=-1.0, tau=-1.0, rank=0)


def test_unknown_words_are_refused_rather_than_read_as_a_default() -> None:
    weight, x = weight_and_input()
    for option in ("reading", "sign", "reduce", "centre", "border", "temperature_on"):
        with pytest.raises(OptionError, match=f"{option} must be one of .*, got 'nonsense'"):
            nhl_update(weight, x, synapses=LAYER, eta=0.1, **{option: "nonsense"})


def test_input_of_another_width_is_refused() -> None:
    weight, x = weight_and_input()
    with pytest.raises(InputError, match="expected"):
        nhl_update(weight, x[:, :2], synapses=LAYER, eta=0.1)

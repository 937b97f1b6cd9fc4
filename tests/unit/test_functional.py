"""Entropy, soft likelihood ratio, diversity and channel statistics: values, extremes, gradients."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
import pytest
import torch
from torch import Tensor

from synaptune.errors import InputError, OptionError
from synaptune.functional import (
    batch_statistics,
    diversity,
    mix_statistics,
    prior_weight,
    soft_likelihood_ratio,
    softmax_entropy,
)

Objective = Callable[[Tensor], Tensor]
OBJECTIVES = [softmax_entropy, soft_likelihood_ratio, diversity]
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)

EXTREME = {
    "huge": [[1e4, -1e4, 0.0], [3e38, -3e38, 0.0]],
    "equal": [[0.0, 0.0, 0.0], [-1e30, -1e30, -1e30]],
    "masked": [[0.0, -torch.inf, 1.0], [2.0, -torch.inf, -torch.inf]],
}


def random_logits(dtype: torch.dtype = torch.float64) -> Tensor:
    return (torch.randn(7, 10, generator=torch.Generator().manual_seed(0)) * 3).to(dtype)


def probabilities(logits: Tensor) -> np.ndarray:
    powers = np.exp(logits.double().numpy())
    return powers / powers.sum(1, keepdims=True)


def test_entropy_equals_its_definition() -> None:
    p = probabilities(random_logits())
    np.testing.assert_allclose(softmax_entropy(random_logits()), -(p * np.log(p)).sum(1), rtol=1e-12)


def test_entropy_of_uniform_logits_is_log_of_the_classes() -> None:
    torch.testing.assert_close(softmax_entropy(torch.full((2, 5), 3.0)), torch.full((2,), log(5)))


def test_likelihood_ratio_clamps_the_argument_of_the_logarithm_but_not_the_weight() -> None:
    logits = torch.cat([random_logits(), torch.tensor([[30.0, *[0.0] * 9]]).double()])
    p = probabilities(logits)
    q = p.clip(0.05, 0.95)
    expected = -0.7 * (p * np.log(q / (1 - q))).sum(1)
    np.testing.assert_allclose(soft_likelihood_ratio(logits, scale=0.7, clamp=0.05), expected, rtol=1e-10)


def test_likelihood_ratio_is_exact_in_float32_for_clamps_below_its_resolution() -> None:
    logits = torch.tensor([[60.0, 0.0]])
    expected = -0.5 * log((1 - 1e-12) / 1e-12)
    assert soft_likelihood_ratio(logits, clamp=1e-12).item() == pytest.approx(expected, rel=1e-5)


def test_likelihood_ratio_still_pulls_where_the_entropy_has_gone_silent() -> None:
    logits = torch.tensor([[8.0, 0.0]], requires_grad=True)  # p = 0.99966, inside the clamp
    (entropy_pull,) = torch.autograd.grad(softmax_entropy(logits).sum(), logits)
    (ratio_pull,) = torch.autograd.grad(soft_likelihood_ratio(logits).sum(), logits)
    assert entropy_pull.abs().max() < 0.01
    assert ratio_pull.abs().max() > 0.4
    assert torch.sign(entropy_pull).equal(torch.sign(ratio_pull))


@pytest.mark.parametrize("clamp", [0.0, 0.5, -1.0])
def test_impossible_clamp_is_refused(clamp: float) -> None:
    with pytest.raises(OptionError, match=r"between 0 and 0\.5"):
        soft_likelihood_ratio(random_logits(), clamp=clamp)


def test_diversity_is_the_negative_entropy_of_the_mean_prediction() -> None:
    mean = probabilities(random_logits()).mean(0)
    assert diversity(random_logits()).item() == pytest.approx((mean * np.log(mean)).sum(), rel=1e-12)


def test_diversity_of_an_empty_batch_is_zero_and_differentiable() -> None:
    logits = torch.empty(0, 4, requires_grad=True)
    value = diversity(logits)
    value.backward()
    assert value.item() == 0


@every_objective
@pytest.mark.parametrize("name", list(EXTREME))
def test_extreme_logits_give_finite_values_and_gradients(objective: Objective, name: str) -> None:
    logits = torch.tensor(EXTREME[name], requires_grad=True)
    value = objective(logits)
    value.sum().backward()
    assert value.isfinite().all()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@every_objective
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(objective: Objective, dtype: torch.dtype) -> None:
    logits = random_logits(dtype)
    value = objective(logits)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, objective(logits.float()), rtol=0, atol=0)


@every_objective
def test_gradients_are_those_of_finite_differences(objective: Objective) -> None:
    assert torch.autograd.gradcheck(objective, random_logits().requires_grad_())


@every_objective
@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (2, 0)])
def test_logits_of_another_shape_are_refused(objective: Objective, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="batch, classes"):
        objective(torch.zeros(shape))


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 4), (2, 3, 4, 6), (2, 3, 2, 3, 4)])
def test_batch_statistics_are_per_channel_and_biased(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    mean, var = batch_statistics(x)
    per_channel = x.numpy().swapaxes(0, 1).reshape(3, -1)
    np.testing.assert_allclose(mean, per_channel.mean(1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(var, per_channel.var(1), rtol=1e-4)


def test_batch_statistics_are_those_by_which_batch_norm_divides() -> None:
    x = torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(2))
    mean, var = batch_statistics(x)
    by_hand = (x - mean.reshape(1, 3, 1, 1)) / (var.reshape(1, 3, 1, 1) + 1e-5).sqrt()
    torch.testing.assert_close(by_hand, torch.nn.functional.batch_norm(x, None, None, training=True))


def test_batch_statistics_of_one_value_have_zero_variance() -> None:
    _, var = batch_statistics(torch.ones(1, 3))
    assert var.tolist() == [0, 0, 0]


def test_batch_statistics_of_half_precision_are_float32() -> None:
    mean, var = batch_statistics(torch.full((2, 3, 300, 300), 60000.0, dtype=torch.float16))
    assert mean.dtype == var.dtype == torch.float32
    torch.testing.assert_close(mean, torch.full((3,), 60000.0))


@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 3, 0), (5,)])
def test_batch_statistics_of_nothing_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="non-empty"):
        batch_statistics(torch.zeros(shape))


def test_mixing_is_exact_at_both_ends_and_linear_between() -> None:
    generator = torch.Generator().manual_seed(3)
    source_mean, source_var, mean, var = (torch.rand(5, generator=generator) for _ in range(4))
    at = [mix_statistics(source_mean, source_var, mean, var, weight) for weight in (0.0, 0.25, 1.0)]
    assert at[0][0].equal(mean)
    assert at[0][1].equal(var)
    assert at[2][0].equal(source_mean)
    assert at[2][1].equal(source_var)
    torch.testing.assert_close(at[1][0], 0.25 * source_mean + 0.75 * mean)
    torch.testing.assert_close(at[1][1], 0.25 * source_var + 0.75 * var)


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_impossible_weight_is_refused(weight: float) -> None:
    one = torch.ones(1)
    with pytest.raises(OptionError, match=r"\[0, 1\]"):
        mix_statistics(one, one, one, one, weight)


@pytest.mark.parametrize(
    ("n", "prior", "share"), [(16, 48, 0.75), (5, 0, 0.0), (0, 8, 1.0), (0, 0, 1.0), (1, 0.5, 1 / 3)]
)
def test_prior_weight_is_the_priors_share(n: int, prior: float, share: float) -> None:
    assert prior_weight(n, prior) == pytest.approx(share)


@pytest.mark.parametrize(("n", "prior"), [(-1, 1.0), (1, -1.0), (1, float("inf")), (1, float("nan"))])
def test_impossible_prior_is_refused(n: int, prior: float) -> None:
    with pytest.raises(OptionError, match="not negative"):
        prior_weight(n, prior)

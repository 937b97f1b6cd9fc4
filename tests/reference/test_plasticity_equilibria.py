"""Where each rule comes to rest, by simulation, against what its differential equation says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from synaptune.plasticity import (
    Convolution,
    krotov_hopfield_update,
    nhl_update,
    oja_update,
    project,
    radius_of,
    softhebb_update,
)

RADIUS = torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    # Threads that wait for each other over a handful of numbers cost a hundred times the arithmetic.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def inputs_with_positive_mean(samples: int = 64, width: int = 5) -> Tensor:
    # Positive responses on average, which the derivation needs: E[y u] > 0.
    return torch.rand(samples, width, generator=generator(1), dtype=torch.float64) + 0.2


def some_filters(units: int = 4, width: int = 5) -> Tensor:
    return torch.rand(units, width, generator=generator(2), dtype=torch.float64) + 0.1


def norms_at_rest(reading: str, *, temperature_on: str | None = None) -> Tensor:
    weight, x = some_filters(), inputs_with_positive_mean()
    for _ in range(300):
        weight += nhl_update(
            weight,
            x,
            eta=0.2,
            radius=RADIUS,
            reading=reading,
            temperature_on=temperature_on,
            reduce="ysum",
        )
    return weight.norm(dim=1)


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        ("A", RADIUS.sqrt()),
        ("B", RADIUS),
        ("C", RADIUS),
        ("D", torch.ones(4, dtype=torch.float64)),
        ("E", torch.ones(4, dtype=torch.float64)),
    ],
)
def test_norm_of_each_reading_settles_where_the_derivation_says(reading: str, expected: Tensor) -> None:
    torch.testing.assert_close(norms_at_rest(reading), expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize(("reading", "temperature_on"), [("A", "normalised"), ("C", "raw")])
def test_place_of_the_temperature_does_not_move_the_equilibrium(reading: str, temperature_on: str) -> None:
    expected = RADIUS.sqrt() if reading == "A" else RADIUS
    torch.testing.assert_close(norms_at_rest(reading, temperature_on=temperature_on), expected, rtol=1e-5, atol=0)


def test_reading_c_is_reading_b_over_r_at_temperature_tau_r() -> None:
    weight, x, radius, tau = some_filters(), inputs_with_positive_mean(), 1.7, 0.6
    common = torch.full((4,), radius, dtype=torch.float64)
    c = nhl_update(weight, x, eta=0.1, tau=tau, radius=common, reading="C", reduce="mean")
    b = nhl_update(weight, x, eta=0.1, tau=tau * radius, radius=common, reading="B", reduce="mean")
    torch.testing.assert_close(c, b / radius)


def test_reading_c_with_the_current_norm_leaves_the_norm_alone() -> None:
    weight, x = some_filters(), inputs_with_positive_mean()
    update = nhl_update(weight, x, eta=1.0, reduce="mean")
    along_the_filter = (update * weight).sum(1)
    torch.testing.assert_close(along_the_filter, torch.zeros_like(along_the_filter), atol=1e-12, rtol=0)


@pytest.mark.parametrize("sign", ["plain", "anti", "hard", "krotov"])
def test_projected_filters_stay_on_their_spheres_and_others_leave(sign: str) -> None:
    rng = generator(3)
    source = torch.randn(8, 3, 3, 3, generator=rng) * torch.rand(8, 1, 1, 1, generator=rng) * 3
    source[5] = 0
    radius = radius_of(source)
    held, free = source.clone(), source.clone()
    for _ in range(30):
        x = torch.randn(4, 3, 8, 8, generator=rng)
        layer = Convolution(padding=1)
        held = project(held + nhl_update(held, x, synapses=layer, eta=0.1, radius=radius, sign=sign), radius)
        free += nhl_update(free, x, synapses=layer, eta=0.1, radius=radius, sign=sign)
    torch.testing.assert_close(radius_of(held), radius, rtol=1e-5, atol=1e-6)
    assert (radius_of(free) - radius).abs().max() > 0.01
    assert not held.equal(source)


def test_oja_finds_the_first_principal_component_at_norm_one() -> None:
    rng = generator(4)
    basis = torch.linalg.qr(torch.randn(6, 6, generator=rng, dtype=torch.float64)).Q
    spread = torch.tensor([2.0, 1.2, 0.9, 0.5, 0.3, 0.1], dtype=torch.float64)
    x = torch.randn(500, 6, generator=rng, dtype=torch.float64) * spread @ basis.T
    weight = torch.randn(3, 6, generator=rng, dtype=torch.float64)
    for _ in range(500):
        weight += oja_update(weight, x, eta=0.05)
    first = torch.linalg.eigh(x.T @ x).eigenvectors[:, -1]
    torch.testing.assert_close((weight @ first).abs(), torch.ones(3, dtype=torch.float64), rtol=1e-6, atol=0)
    torch.testing.assert_close(weight.norm(dim=1), torch.ones(3, dtype=torch.float64), rtol=1e-6, atol=0)


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_krotov_hopfield_settles_at_p_norm_r_with_one_unit_per_cluster(p: float) -> None:
    rng = generator(5)
    centres = torch.tensor([[3.0, 0.3, 0.3, 1.0], [0.3, 3.0, 0.3, 1.0], [0.3, 0.3, 3.0, 1.0]]).double()
    x = centres.repeat(40, 1) + 0.2 * torch.randn(120, 4, generator=rng, dtype=torch.float64)
    weight = centres / 3 + 0.1 * torch.rand(3, 4, generator=rng, dtype=torch.float64)
    for _ in range(1200):
        weight += krotov_hopfield_update(weight, x, eta=0.05, radius=1.5, p=p, reduce="mean")
    p_norm = weight.abs().pow(p).sum(1).pow(1 / p)
    torch.testing.assert_close(p_norm, torch.full((3,), 1.5, dtype=torch.float64), rtol=1e-4, atol=0)
    assert (weight @ centres.T).argmax(0).tolist() == [0, 1, 2]


def test_softhebb_settles_at_norm_one() -> None:
    weight, x = some_filters() * 3, inputs_with_positive_mean()
    for _ in range(600):
        weight += softhebb_update(weight, x, eta=0.05, reduce="ysum")
    torch.testing.assert_close(weight.norm(dim=1), torch.ones(4, dtype=torch.float64), rtol=1e-5, atol=0)


def test_krotov_hopfield_with_p_2_is_nhl_reading_b_with_ranked_gates() -> None:
    weight, x = some_filters(), inputs_with_positive_mean()
    radius = torch.full((4,), 1.3, dtype=torch.float64)
    torch.testing.assert_close(
        krotov_hopfield_update(weight, x, eta=0.1, radius=1.3),
        nhl_update(weight, x, eta=0.1, radius=radius, reading="B", sign="krotov"),
    )

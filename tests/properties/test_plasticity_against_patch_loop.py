"""Every rule, on every kind of layer, equals its printed formula applied patch by patch in float64."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from synaptune.plasticity import (
    engine,
    krotov_hopfield_update,
    nhl_update,
    oja_update,
    radius_of,
    softhebb_update,
    synapses_of,
)

Array = NDArray[np.float64]
# From filters (K, d) and what each of them sees (K, d) to the change (K, d) and the gates (K,).
OneSample = Callable[[Array, Array], tuple[Array, Array]]

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    # Threads that wait for each other over a handful of numbers cost a hundred times the arithmetic.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def rounds(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


@dataclass(frozen=True)
class Case:
    """A layer, its input, and the size of the chunks in which the engine takes the batch."""

    layer: nn.Module
    x: Tensor
    chunk_bytes: int


@st.composite
def convolutions(draw: st.DrawFn) -> Case:
    axes = draw(st.sampled_from([1, 2, 2, 2, 3]))

    def per_axis(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(axes))

    groups = draw(st.integers(1, 2))
    channels, filters = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 3))
    padding = draw(st.sampled_from([per_axis(0, 2), per_axis(0, 2), "same", "valid"]))
    stride = (1,) * axes if padding == "same" else per_axis(1, 3)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    layer = CONVOLUTIONS[axes](
        channels,
        filters,
        per_axis(1, 3),
        stride,
        padding,
        per_axis(1, 2),
        groups,
        bias=False,
        padding_mode=draw(st.sampled_from(["zeros", "reflect", "replicate", "circular"])),
    ).double()
    shape = layer.weight.shape
    scale = torch.rand(filters, *[1] * (axes + 1), generator=generator, dtype=torch.float64) * 3
    layer.weight.data = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
    if draw(st.integers(0, 4)) == 0:
        layer.weight.data[0] = 0  # a dead filter
    size = per_axis(3, {1: 9, 2: 6, 3: 4}[axes])
    batch = draw(st.sampled_from([1, 2, 3, 2, 1, 0]))
    x = torch.randn(batch, channels, *size, generator=generator, dtype=torch.float64) + 0.5
    spans = zip(size, padding_ends(layer), layer.kernel_size, layer.dilation, strict=True)
    assume(all(n + front + back > d * (k - 1) for n, (front, back), k, d in spans))
    return Case(layer, x, chunk_bytes=draw(st.sampled_from([1, 2**25])))


@st.composite
def dense_layers(draw: st.DrawFn) -> Case:
    inputs, units = draw(st.integers(2, 6)), draw(st.integers(1, 5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    layer = nn.Linear(inputs, units).double()
    layer.weight.data = torch.randn(units, inputs, generator=generator, dtype=torch.float64)
    leading = draw(st.sampled_from([(0,), (1,), (4,), (2, 3)]))
    x = torch.randn(*leading, inputs, generator=generator, dtype=torch.float64)
    return Case(layer, x, chunk_bytes=draw(st.sampled_from([1, 2**25])))


def source_cell(position: int, size: int, mode: str) -> int | None:
    """Which cell of an axis is read at a position that may lie outside; None where a zero is read."""
    if 0 <= position < size:
        return position
    match mode:
        case "reflect":
            return -position if position < 0 else 2 * (size - 1) - position
        case "replicate":
            return 0 if position < 0 else size - 1
        case "circular":
            return position % size
    return None


def padding_ends(layer: nn.Module) -> list[tuple[int, int]]:
    if layer.padding == "valid":
        return [(0, 0)] * len(layer.kernel_size)
    if layer.padding == "same":
        totals = [d * (k - 1) for d, k in zip(layer.dilation, layer.kernel_size, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    return [(pad, pad) for pad in layer.padding]


def patches(layer: nn.Module, x: Array, border: str) -> Iterator[Array]:
    """The patches of a batch, one by one: (K, d), each row what that filter sees."""
    if isinstance(layer, nn.Linear):
        for row in x.reshape(-1, x.shape[-1]):
            yield np.tile(row, (layer.out_features, 1))
        return
    sizes, kernel, filters = x.shape[2:], layer.kernel_size, layer.out_channels
    ends = padding_ends(layer)
    counts = [
        (size + front + back - d * (k - 1) - 1) // s + 1
        for size, (front, back), k, s, d in zip(sizes, ends, kernel, layer.stride, layer.dilation, strict=True)
    ]
    for image, place in itertools.product(range(len(x)), itertools.product(*map(range, counts))):
        patch = np.zeros((x.shape[1], *kernel))
        touches_padding = False
        for tap in itertools.product(*map(range, kernel)):
            position = [
                o * s + t * d - front
                for o, s, t, d, (front, _) in zip(place, layer.stride, tap, layer.dilation, ends, strict=True)
            ]
            touches_padding |= any(not 0 <= i < n for i, n in zip(position, sizes, strict=True))
            cell = [source_cell(i, n, layer.padding_mode) for i, n in zip(position, sizes, strict=True)]
            if None not in cell:
                patch[(slice(None), *tap)] = x[(image, slice(None), *cell)]
        if not (border == "valid" and touches_padding):
            by_group = patch.reshape(layer.groups, -1)
            yield np.repeat(by_group, filters // layer.groups, axis=0)


def patch_loop(
    case: Case, one_sample: OneSample, *, reduce: str, eta: float, centre: str = "none", border: str = "all"
) -> Array:
    filters = case.layer.weight.detach().numpy().reshape(len(case.layer.weight), -1)
    x = case.x.numpy()
    if centre == "channel" and x.size:
        others = tuple(range(x.ndim - 1)) if isinstance(case.layer, nn.Linear) else (0, *range(2, x.ndim))
        x = x - x.mean(others, keepdims=True)
    total, mass, count, noise = np.zeros_like(filters), np.zeros(len(filters)), 0, 0.0
    for seen in patches(case.layer, x, border):
        if centre == "patch":
            seen = seen - seen.mean(1, keepdims=True)
        change, gates = one_sample(filters, seen)
        total, mass, count = total + change, mass + np.abs(gates), count + 1
        noise += float(np.abs(change).max(initial=0))
    largest = float(np.abs(total).max(initial=0))
    match reduce:
        case "max":
            # Where the sum cancels exactly, both sides would scale up nothing but rounding.
            assume(largest == 0 or largest > 1e-6 * noise)
            total = total / largest if largest > 0 else total
        case "mean":
            total = total / max(count, 1)
        case "ysum":
            total = np.divide(total, mass[:, None], out=np.zeros_like(total), where=mass[:, None] > 0)
    return (eta * total).reshape(case.layer.weight.shape)


def softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def ranking(u: Array) -> list[int]:
    return sorted(range(len(u)), key=lambda k: (-u[k], k))


def gates_of(u: Array, sharpness: float, sign: str, delta: float, rank: int) -> Array:
    order = ranking(u)
    match sign:
        case "plain":
            return softmax(sharpness * u)
        case "anti":
            y = softmax(sharpness * u)
            return np.array([y[k] if k == order[0] else -y[k] for k in range(len(u))])
        case "hard":
            return np.array([float(k == order[0]) for k in range(len(u))])
    gates = np.zeros(len(u))
    gates[order[0]] = 1
    if rank <= len(u):
        gates[order[rank - 1]] = -delta
    return gates


def updated(case: Case, rule: Callable[..., Tensor], **options: object) -> Array:
    synapses, x = synapses_of(case.layer, case.x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_CHUNK_BYTES", case.chunk_bytes)
        update = rule(case.layer.weight, x, synapses=synapses, **options)
    assert update.shape == case.layer.weight.shape
    assert update.dtype == torch.float64
    return update.numpy()


def assert_same(fast: Array, slow: Array) -> None:
    np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-9 * max(1.0, np.abs(slow).max(initial=0)))


layers = st.one_of(convolutions(), convolutions(), convolutions(), dense_layers())
reductions = st.sampled_from(["max", "mean", "ysum", "sum"])


@rounds(400)
@given(
    case=layers,
    reading=st.sampled_from("ABCDE"),
    temperature_on=st.sampled_from([None, "normalised", "raw"]),
    tau=st.sampled_from([0.2, 1.0, 5.0]),
    radius_kind=st.sampled_from([None, "filter", "layer", "unit"]),
    sign=st.sampled_from(["plain", "anti", "hard", "krotov"]),
    rank=st.integers(2, 4),
    reduce=reductions,
    centre=st.sampled_from(["none", "channel", "patch"]),
    border=st.sampled_from(["all", "valid"]),
)
def test_nhl_equals_its_formula_patch_by_patch(
    case: Case,
    reading: str,
    temperature_on: str | None,
    tau: float,
    radius_kind: str | None,
    sign: str,
    rank: int,
    reduce: str,
    centre: str,
    border: str,
) -> None:
    weight = case.layer.weight.detach()
    radius = None if radius_kind is None else radius_of(weight, radius_kind)
    norm_now = np.sqrt((weight.numpy().reshape(len(weight), -1) ** 2).sum(1))
    given_radius = norm_now if radius is None else radius.numpy()
    R = {"D": norm_now, "E": np.ones(len(weight))}.get(reading, given_radius)
    inverse = np.divide(1, R, out=np.zeros_like(R), where=R > 0)

    def one_sample(W: Array, v: Array) -> tuple[Array, Array]:
        raw = (W * v).sum(1)
        normalised = raw * inverse
        u = normalised if reading == "C" else raw
        competing = {"normalised": normalised, "raw": raw, None: u}[temperature_on]
        y = gates_of(competing, 1 / tau, sign, 0.4, rank)
        pull = R**2 if reading == "B" else R
        return y[:, None] * (pull[:, None] * v - u[:, None] * W), y

    fast = updated(
        case,
        nhl_update,
        eta=0.1,
        tau=tau,
        radius=radius,
        reading=reading,
        temperature_on=temperature_on,
        sign=sign,
        rank=rank,
        reduce=reduce,
        centre=centre,
        border=border,
    )
    assert_same(fast, patch_loop(case, one_sample, reduce=reduce, eta=0.1, centre=centre, border=border))


@rounds(120)
@given(case=layers, reduce=reductions)
def test_oja_equals_its_formula_patch_by_patch(case: Case, reduce: str) -> None:
    def one_sample(W: Array, v: Array) -> tuple[Array, Array]:
        y = (W * v).sum(1)
        return y[:, None] * (v - y[:, None] * W), y

    assert_same(
        updated(case, oja_update, eta=0.1, reduce=reduce),
        patch_loop(case, one_sample, reduce=reduce, eta=0.1),
    )


@rounds(120)
@given(
    case=layers,
    inverse_temperature=st.sampled_from([0.3, 1.0, 12.0]),
    sign=st.sampled_from(["plain", "anti", "hard"]),
    reduce=reductions,
)
def test_softhebb_equals_its_formula_patch_by_patch(
    case: Case, inverse_temperature: float, sign: str, reduce: str
) -> None:
    def one_sample(W: Array, v: Array) -> tuple[Array, Array]:
        u = (W * v).sum(1)
        y = gates_of(u, inverse_temperature, sign, 0.0, 2)
        return y[:, None] * (v - u[:, None] * W), y

    fast = updated(case, softhebb_update, eta=0.1, inverse_temperature=inverse_temperature, sign=sign, reduce=reduce)
    assert_same(fast, patch_loop(case, one_sample, reduce=reduce, eta=0.1))


@rounds(120)
@given(
    case=layers,
    p=st.sampled_from([2.0, 2.5, 3.0]),
    radius=st.sampled_from([1.0, 1.7]),
    delta=st.sampled_from([0.0, 0.4]),
    rank=st.integers(2, 4),
    reduce=reductions,
)
def test_krotov_hopfield_equals_its_formula_patch_by_patch(
    case: Case, p: float, radius: float, delta: float, rank: int, reduce: str
) -> None:
    def one_sample(W: Array, v: Array) -> tuple[Array, Array]:
        products = (np.sign(W) * np.abs(W) ** (p - 1) * v).sum(1)
        g = gates_of(products, 1.0, "krotov", delta, rank)
        return g[:, None] * (radius**p * v - products[:, None] * W), g

    fast = updated(case, krotov_hopfield_update, eta=0.1, p=p, radius=radius, delta=delta, rank=rank, reduce=reduce)
    assert_same(fast, patch_loop(case, one_sample, reduce=reduce, eta=0.1))


@rounds(40)
@given(case=layers, sign=st.sampled_from(["plain", "anti", "krotov"]), seed=st.integers(0, 2**31))
def test_order_of_the_batch_does_not_matter(case: Case, sign: str, seed: int) -> None:
    order = torch.randperm(len(case.x), generator=torch.Generator().manual_seed(seed))
    shuffled = Case(case.layer, case.x[order], case.chunk_bytes)
    assert_same(
        updated(shuffled, nhl_update, eta=0.1, sign=sign, reduce="mean"),
        updated(case, nhl_update, eta=0.1, sign=sign, reduce="mean"),
    )

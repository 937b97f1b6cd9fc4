"""Synapses give back what the layer itself computes, or say why they cannot."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from synaptune.errors import IncompatibleModelError, InputError
from synaptune.plasticity import Convolution, Dense, synapses_of

SHAPES = {nn.Conv1d: (2, 4, 9), nn.Conv2d: (2, 4, 9, 7), nn.Conv3d: (2, 4, 5, 6, 5)}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Conv2dSame(nn.Conv2d):
    """Pads at run time so that ceil(size / stride) places remain, as TensorFlow does."""

    def forward(self, x: Tensor) -> Tensor:
        pads: list[int] = []
        for axis in (1, 0):
            size, k, s, d = x.shape[2 + axis], self.kernel_size[axis], self.stride[axis], self.dilation[axis]
            total = max(0, ((size + s - 1) // s - 1) * s + d * (k - 1) + 1 - size)
            pads += [total // 2, total - total // 2]
        return F.conv2d(F.pad(x, pads), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


class Standardised(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.weight - self.weight.mean(), self.bias)


class ConvForwardReplaced(nn.Conv2d):
    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return super()._conv_forward(x, weight / weight.norm(), bias)


class RenamedConv2d(nn.Conv2d):
    """A subclass that changes nothing about the forward."""


def assert_describes(layer: nn.Module, x: Tensor) -> None:
    synapses, padded = synapses_of(layer, x)
    with torch.no_grad():
        expected = layer(x)
        bias = layer.bias
        response = synapses.respond(padded, layer.weight)
        if isinstance(layer, nn.Linear):
            response = response.reshape(expected.shape)
        elif expected.ndim < response.ndim:
            response = response.squeeze(0)
        if bias is not None:
            shape = [-1] if isinstance(layer, nn.Linear) else [-1, *[1] * len(layer.kernel_size)]
            response = response + bias.reshape(shape)
    torch.testing.assert_close(response, expected)


@pytest.mark.parametrize("kind", list(SHAPES))
@pytest.mark.parametrize("padding_mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    "options",
    [
        {"stride": 2, "padding": 1},
        {"padding": "valid", "dilation": 2},
        {"padding": "same", "dilation": 2},
        {"padding": "same", "kernel_size": 2},
    ],
    ids=["stride 2", "valid", "same", "same, even kernel"],
)
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning")
def test_response_plus_bias_is_the_output_of_a_convolution(
    kind: type[nn.Conv2d], padding_mode: str, options: dict[str, object]
) -> None:
    layer = kind(4, 6, **{"kernel_size": 3, "groups": 2, "padding_mode": padding_mode, **options})
    x = random(*SHAPES[kind])
    assert_describes(layer, x)
    assert_describes(layer, x[0])  # without a batch axis


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (0,)])
def test_response_plus_bias_is_the_output_of_a_linear_layer(leading: tuple[int, ...]) -> None:
    assert_describes(nn.Linear(4, 5), random(*leading, 4))


@pytest.mark.parametrize("size", [(7, 8), (9, 5), (1, 3)])
def test_tensorflow_same_padding_is_computed_for_the_size_at_hand(size: tuple[int, int]) -> None:
    assert_describes(Conv2dSame(3, 4, (3, 2), stride=2, dilation=(1, 2)), random(2, 3, *size))


def test_unchanged_subclass_is_taken_for_what_it_inherits() -> None:
    assert_describes(RenamedConv2d(3, 4, 3, padding=1), random(2, 3, 5, 5))


@pytest.mark.parametrize("name", ["Conv2dSame", "StdConv2d", "StdConv2dSame", "ScaledStdConv2d"])
def test_convolutions_of_timm_are_described_or_refused(name: str) -> None:
    timm_layers = pytest.importorskip("timm.layers", reason="timm is an optional dependency")
    layer = getattr(timm_layers, name)(3, 8, 3, stride=2)
    if name == "Conv2dSame":
        assert_describes(layer, random(2, 3, 9, 8))
    else:
        with pytest.raises(IncompatibleModelError, match=f"{name} replaces the forward"):
            synapses_of(layer, random(2, 3, 9, 8))


def old_weight_norm(layer: nn.Module) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return torch.nn.utils.weight_norm(layer)


@pytest.mark.parametrize(
    "wrap",
    [
        parametrizations.weight_norm,
        parametrizations.spectral_norm,
        old_weight_norm,
        lambda layer: prune.l1_unstructured(layer, "weight", amount=0.5),
    ],
    ids=["weight norm", "spectral norm", "old weight norm", "pruned"],
)
def test_weight_computed_from_other_tensors_is_refused(wrap: Callable[[nn.Module], nn.Module]) -> None:
    with pytest.raises(IncompatibleModelError, match="computed from other tensors"):
        synapses_of(wrap(nn.Conv2d(3, 4, 3)), random(1, 3, 5, 5))


def test_parametrised_bias_is_no_obstacle() -> None:
    layer = nn.Linear(4, 5)
    torch.nn.utils.parametrize.register_parametrization(layer, "bias", nn.Tanh())
    assert_describes(layer, random(3, 4))


@pytest.mark.parametrize("kind", [Standardised, ConvForwardReplaced])
def test_layer_that_changes_its_weight_on_the_way_is_refused(kind: type[nn.Conv2d]) -> None:
    with pytest.raises(IncompatibleModelError, match="need not be linear in"):
        synapses_of(kind(3, 4, 3), random(1, 3, 5, 5))


def test_forward_replaced_on_the_instance_is_refused() -> None:
    layer = nn.Conv2d(3, 4, 3)
    layer.forward = lambda x: F.conv2d(x, layer.weight**2)
    with pytest.raises(IncompatibleModelError, match="replaces the forward"):
        synapses_of(layer, random(1, 3, 5, 5))


def test_other_kinds_of_layer_are_refused_by_name() -> None:
    with pytest.raises(IncompatibleModelError, match="ConvTranspose2d is neither"):
        synapses_of(nn.ConvTranspose2d(3, 4, 3), random(1, 3, 5, 5))


def test_lazy_layer_without_weight_is_refused() -> None:
    with pytest.raises(IncompatibleModelError, match="has no weight yet"):
        synapses_of(nn.LazyConv2d(4, 3), random(1, 3, 5, 5))


@pytest.mark.parametrize("kind", list(SHAPES))
def test_correlation_is_the_weight_gradient_of_the_convolution(kind: type[nn.Conv2d]) -> None:
    layer = kind(4, 6, 3, stride=2, padding=1, dilation=1, groups=2, bias=False).double()
    x = random(*SHAPES[kind]).double()
    response = layer(x)
    y = random(*response.shape, seed=1).double()
    (expected,) = torch.autograd.grad((response * y).sum(), layer.weight)
    synapses, _ = synapses_of(layer, x)
    torch.testing.assert_close(synapses.correlate(x, y, layer.weight.shape), expected)


def test_dense_correlation_sums_over_samples() -> None:
    x, y = random(7, 4), random(7, 3, seed=1)
    torch.testing.assert_close(Dense().correlate(x, y, (3, 4)), torch.einsum("nk,ni->ki", y, x))


@pytest.mark.parametrize(
    ("synapses", "weight", "x"),
    [
        (Dense(), (3, 4), (2, 5)),
        (Convolution(), (6, 3, 3, 3), (2, 4, 8, 8)),
        (Convolution(groups=2), (6, 3, 3, 3), (2, 3, 8, 8)),
        (Convolution(), (6, 3, 3, 3), (2, 3, 8)),
    ],
    ids=["dense width", "channels", "groups", "axes"],
)
def test_input_that_does_not_fit_the_weight_is_refused(
    synapses: Dense | Convolution, weight: tuple[int, ...], x: tuple[int, ...]
) -> None:
    with pytest.raises(InputError, match="got an input of shape"):
        synapses.samples(random(*x), random(*weight))

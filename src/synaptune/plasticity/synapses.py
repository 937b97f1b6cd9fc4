"""How a layer connects its inputs to its units: once (dense) or at many places (convolution).

A plasticity rule needs two operations from a layer, and nothing else. For patches v[n, p] of the input,

    respond:    u[n, k, p] = w_k · v[n, p]                 the layer itself, bias left out
    correlate:  A[k]       = sum over n, p of y[n, k, p] v[n, p]

`correlate` is the gradient of a convolution with respect to its weight when y is taken for the gradient of
the output. It is called as such, so no patch matrix is ever built, and any stride, padding, dilation or
grouping is right by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synaptune.errors import IncompatibleModelError, InputError

__all__ = ["DENSE", "Convolution", "Dense", "Synapses", "require_plastic", "synapses_of"]

_Sizes = int | tuple[int, ...]
_Convolve = Callable[..., Tensor]

_CONVOLVE: dict[int, _Convolve] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_PLAIN_LAYERS: tuple[type[nn.Module], ...] = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)

# Convolutions that pad with zeros, at run time, so that ceil(size / stride) places remain (TensorFlow's
# SAME). They come from timm and from efficientnet_pytorch; names, because neither package may be imported
# for this.
_TENSORFLOW_SAME = frozenset({"Conv2dSame", "Conv2dDynamicSamePadding"})

_INSTEAD = "or use a method without a Hebbian layer, such as modulator-12 or tent"


class Synapses(Protocol):
    """What a plasticity rule asks of a layer."""

    def samples(self, x: Tensor, weight: Tensor) -> Tensor:
        """Bring `x` to the form (N, inputs, *space), or raise `InputError` when it does not fit `weight`."""

    def places(self, x: Tensor, weight_shape: Sequence[int]) -> int:
        """How often one sample of `x` meets each unit; 0 when `x` is smaller than the kernel."""

    def respond(self, x: Tensor, weight: Tensor) -> Tensor:
        """The responses u of the units, (N, K, *space)."""

    def correlate(self, x: Tensor, y: Tensor, weight_shape: Sequence[int]) -> Tensor:
        """Sum over samples and places of y times the patch seen there; shape of the weight."""

    def interior(self, x: Tensor, weight_shape: Sequence[int]) -> tuple[Synapses, Tensor]:
        """Synapses and input without the places that see padding."""

    def channel_sum(self, x: Tensor) -> tuple[Tensor, int]:
        """Sum of each input channel over batch and space, and how many values it has; padding left out."""

    def centred(self, x: Tensor, mean: Tensor) -> Tensor:
        """A new tensor: `x` with the `mean` of each channel subtracted, zero padding left at zero."""


@dataclass(frozen=True)
class Dense:
    """A linear layer: every leading axis of the input (..., in) counts samples.

    >>> Dense().respond(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 0.5]]))
    tensor([[4.]])
    """

    def samples(self, x: Tensor, weight: Tensor) -> Tensor:
        if weight.ndim != 2 or x.ndim < 1 or x.shape[-1] != weight.shape[1]:
            raise InputError(
                f"a dense layer with a weight of shape {tuple(weight.shape)} got an input of shape "
                f"{tuple(x.shape)}; expected (..., in) for a weight of shape (K, in)"
            )
        return x.reshape(-1, x.shape[-1])

    def places(self, x: Tensor, weight_shape: Sequence[int]) -> int:
        return 1

    def respond(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.linear(x.reshape(-1, x.shape[-1]), weight)

    def correlate(self, x: Tensor, y: Tensor, weight_shape: Sequence[int]) -> Tensor:
        return torch.mm(y.transpose(0, 1), x.reshape(-1, x.shape[-1])).reshape(tuple(weight_shape))

    def interior(self, x: Tensor, weight_shape: Sequence[int]) -> tuple[Synapses, Tensor]:
        return self, x

    def channel_sum(self, x: Tensor) -> tuple[Tensor, int]:
        return x.sum(0), x.shape[0]

    def centred(self, x: Tensor, mean: Tensor) -> Tensor:
        return x - mean


DENSE = Dense()


@dataclass(frozen=True)
class Convolution:
    """A convolution over 1, 2 or 3 axes; `stride`, `padding` and `dilation` are one number or one per axis.

    Attributes:
        padding: zeros that the convolution itself adds at both ends of every axis.
        margin: (front, back) cells per axis of the *given* input that are padding already; () means none.
        zero_margin: whether that margin holds zeros, rather than copies of input cells (reflect, circular
            ...).

    >>> Convolution(padding=1).respond(torch.ones(1, 1, 3), torch.ones(1, 1, 3))
    tensor([[[2., 3., 2.]]])
    """

    stride: _Sizes = 1
    padding: _Sizes = 0
    dilation: _Sizes = 1
    groups: int = 1
    margin: tuple[tuple[int, int], ...] = ()
    zero_margin: bool = True

    def samples(self, x: Tensor, weight: Tensor) -> Tensor:
        axes = weight.ndim - 2
        if axes not in _CONVOLVE or x.ndim != axes + 2 or x.shape[1] != weight.shape[1] * self.groups:
            raise InputError(
                f"a convolution with a weight of shape {tuple(weight.shape)} and {self.groups} groups got an "
                f"input of shape {tuple(x.shape)}; expected (N, in_channels, *space), with as many axes of "
                "space as the kernel has"
            )
        return x

    def places(self, x: Tensor, weight_shape: Sequence[int]) -> int:
        return prod(
            max(0, (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1)
            for size, kernel, stride, pad, dilation in self._axes(x, weight_shape)
        )

    def respond(self, x: Tensor, weight: Tensor) -> Tensor:
        convolve = _CONVOLVE[x.ndim - 2]
        return convolve(x, weight, None, self.stride, self.padding, self.dilation, self.groups)

    def correlate(self, x: Tensor, y: Tensor, weight_shape: Sequence[int]) -> Tensor:
        axes = x.ndim - 2
        gradients = torch.ops.aten.convolution_backward(
            y,
            x,
            y.new_empty(1).expand(tuple(weight_shape)),  # only its shape is read
            None,
            _each(self.stride, axes),
            _each(self.padding, axes),
            _each(self.dilation, axes),
            False,
            [0] * axes,
            self.groups,
            (False, True, False),
        )
        return cast(Tensor, gradients[1])

    def interior(self, x: Tensor, weight_shape: Sequence[int]) -> tuple[Synapses, Tensor]:
        # The places free of padding are a contiguous range on every axis. Cropping the input to start where
        # the first of them starts turns "skip these places" into an ordinary convolution without padding.
        margin = self.margin or ((0, 0),) * (x.ndim - 2)
        for axis, ((size, _, stride, pad, _), (front, back)) in enumerate(
            zip(self._axes(x, weight_shape), margin, strict=True), start=2
        ):
            first_place = -(-(pad + front) // stride)
            start = min(first_place * stride - pad, size - back)
            x = x.narrow(axis, start, max(0, size - back - start))
        return replace(self, padding=0, margin=()), x

    def channel_sum(self, x: Tensor) -> tuple[Tensor, int]:
        cells = self._within_margin(x)
        total = cells.sum([0, *range(2, x.ndim)])
        return total.reshape(-1, *[1] * (x.ndim - 2)), cells.shape[0] * prod(cells.shape[2:])

    def centred(self, x: Tensor, mean: Tensor) -> Tensor:
        if not (self.margin and self.zero_margin):
            return x - mean
        # The layer would pad the centred input with zeros, so zeros that are there already must stay.
        shifted = x.clone()
        self._within_margin(shifted).sub_(mean)
        return shifted

    def _within_margin(self, x: Tensor) -> Tensor:
        for axis, (front, back) in enumerate(self.margin, start=2):
            x = x.narrow(axis, front, x.shape[axis] - front - back)
        return x

    def _axes(self, x: Tensor, weight_shape: Sequence[int]) -> list[tuple[int, int, int, int, int]]:
        """(size, kernel, stride, padding, dilation) of every axis."""
        axes = x.ndim - 2
        return list(
            zip(
                x.shape[2:],
                weight_shape[2:],
                _each(self.stride, axes),
                _each(self.padding, axes),
                _each(self.dilation, axes),
                strict=True,
            )
        )


def synapses_of(module: nn.Module, x: Tensor) -> tuple[Synapses, Tensor]:
    """Read the synapses off a layer, and pad its input `x` where the layer itself does.

    Plain zero padding is left to the convolution. Understands `nn.Linear` and `nn.Conv1d/2d/3d` with every
    padding mode, "same" and "valid", and convolutions that pad to TensorFlow's SAME at run time (timm's
    Conv2dSame).

    Args:
        module: the layer.
        x: the layer's own input, with or without a batch axis.

    Returns:
        The synapses, and the input that they expect: `respond(x, module.weight)` is the layer's output less
        its bias.

    Raises:
        IncompatibleModelError: the layer is of another kind, or its output is not linear in `module.weight`.
    """
    require_plastic(module)
    if isinstance(module, nn.Linear):
        return Dense(), x
    assert isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d))
    axes = len(module.kernel_size)
    x = x.unsqueeze(0) if x.ndim == axes + 1 else x
    plain = Convolution(stride=module.stride, dilation=module.dilation, groups=module.groups)
    ends = _padding_ends(module, x)
    if module.padding_mode != "zeros":
        return replace(plain, margin=ends, zero_margin=False), _pad(x, ends, mode=module.padding_mode)
    if all(front == back for front, back in ends):
        return replace(plain, padding=tuple(front for front, _ in ends)), x
    return replace(plain, margin=ends), _pad(x, ends, mode="constant")


def require_plastic(module: nn.Module) -> None:
    """Raise `IncompatibleModelError` unless a Hebbian rule can change the layer's weight, and means it.

    >>> require_plastic(nn.Conv2d(3, 4, 3))
    """
    base = next((kind for kind in _PLAIN_LAYERS if isinstance(module, kind)), None)
    name = type(module).__name__
    if base is None:
        raise IncompatibleModelError(
            f"a Hebbian rule needs a linear or convolution layer, and {name} is neither; name a layer "
            f"of type {', '.join(kind.__name__ for kind in _PLAIN_LAYERS)}, {_INSTEAD}"
        )
    if "weight" not in dict(module.named_parameters(recurse=False)):
        raise IncompatibleModelError(
            f"the weight of this {name} is computed from other tensors (weight normalisation, spectral "
            "normalisation, pruning or another parametrisation), so a Hebbian update of it would be "
            "overwritten at the next forward; fold it into a plain weight first "
            f"(torch.nn.utils.parametrize.remove_parametrizations), {_INSTEAD}"
        )
    if isinstance(module.weight, nn.parameter.UninitializedParameter):
        raise IncompatibleModelError(f"this {name} has no weight yet; run the model once on a sample first")
    if name not in _TENSORFLOW_SAME and not _runs_forward_of(base, module):
        raise IncompatibleModelError(
            f"{name} replaces the forward of nn.{base.__name__}, so its output need not be linear in "
            "`weight` (weight standardisation, for example, rescales every filter), and a Hebbian update would not "
            f"mean what the rule says; name a plain layer, {_INSTEAD}"
        )


def _runs_forward_of(base: type[nn.Module], module: nn.Module) -> bool:
    inherited = all(
        getattr(type(module), step, None) is getattr(base, step, None) for step in ("forward", "_conv_forward")
    )
    return inherited and "forward" not in vars(module)


def _padding_ends(module: nn.Conv1d | nn.Conv2d | nn.Conv3d, x: Tensor) -> tuple[tuple[int, int], ...]:
    """(front, back) cells of padding per axis."""
    kernel, stride, dilation = module.kernel_size, module.stride, module.dilation
    if type(module).__name__ in _TENSORFLOW_SAME:
        spans = zip(x.shape[2:], kernel, stride, dilation, strict=True)
        missing = [max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size) for size, k, s, d in spans]
    elif module.padding == "same":
        missing = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    elif isinstance(module.padding, str):
        missing = [0] * len(kernel)
    else:
        return tuple((pad, pad) for pad in module.padding)
    return tuple((total // 2, total - total // 2) for total in missing)


def _pad(x: Tensor, ends: tuple[tuple[int, int], ...], *, mode: str) -> Tensor:
    return F.pad(x, [cells for end in reversed(ends) for cells in end], mode=mode)


def _each(value: _Sizes, axes: int) -> list[int]:
    return [value] * axes if isinstance(value, int) else list(value)

"""What all rules share: responses, gates, the sums over samples and places, and the size of the step.

Every rule of this package has, for a patch v, gates y and a filter s_k through which unit k sees the patch,

    u_k = s_k · v,     dW_k = eta y_k (pull_k v - u_k W_k)

and summed over all samples and places this needs one large sum only:

    A_k = sum y_k v,     c_k = sum y_k u_k = s_k · A_k,     D_k = pull_k A_k - c_k W_k

`gather` computes A, chunk by chunk along the batch, so that the responses of a whole batch never exist at
once; `sized` turns D into the update. Convolutions run in the precision of the data (at least float32),
everything of the size of the weight in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Literal, ParamSpec, TypeVar, assert_never, get_args

import torch
from torch import Tensor

from synaptune.errors import OptionError
from synaptune.plasticity.radius import per_filter
from synaptune.plasticity.synapses import Synapses

__all__ = ["Border", "Centre", "Reduce", "Sums", "detached", "gather", "inner", "known", "require", "sized"]

Reduce = Literal["max", "mean", "ysum", "sum"]
Centre = Literal["none", "channel", "patch"]
Border = Literal["all", "valid"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Responses of one chunk. Large enough to keep a GPU busy, small beside the layer's own output at 224 pixels.
_CHUNK_BYTES = 32 * 2**20

# Below this the largest entry of D is taken for zero, as in the published code of Krotov and Hopfield.
_FLOOR = 1e-30


@dataclass(frozen=True)
class Sums:
    """What one batch says about every filter.

    Attributes:
        correlation: A, sum of y v over samples and places; shape of the weight.
        mass: sum of |y|, (K,).
        count: number of samples times places.
    """

    correlation: Tensor
    mass: Tensor
    count: int


def detached(rule: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run `rule` without autograd, and let it return ordinary tensors also inside `inference_mode`."""
    return torch.inference_mode(mode=False)(torch.no_grad()(rule))


def gather(
    weight: Tensor,
    x: Tensor,
    *,
    seen: Tensor,
    gate: Callable[[Tensor], Tensor],
    synapses: Synapses,
    centre: Centre = "none",
    border: Border = "all",
) -> Sums:
    """Sum the gated patches of a batch.

    Args:
        weight: decides the precision together with `x`.
        x: the input of the layer.
        seen: s, the filters that make the responses.
        gate: from responses (N, K, *space), which it may overwrite, to gates of the same shape.
        synapses: how inputs meet units.
        centre: "channel" subtracts the mean of each input channel, over batch and space; "patch" subtracts
            from each patch its mean over all its entries (the inputs of one filter, zeros of the padding
            included).
        border: "valid" leaves out the places that see padding.
    """
    precision = torch.promote_types(torch.promote_types(weight.dtype, x.dtype), torch.float32)
    x = synapses.samples(x.detach(), weight)
    sums = _accumulate(x, seen, gate, synapses, centre, border, precision)
    if precision == torch.float32 and seen.dtype == torch.float64 and not sums.correlation.isfinite().all():
        # Squares of large but finite numbers leave float32; float64 has room for all of them.
        sums = _accumulate(x, seen, gate, synapses, centre, border, torch.float64)
    return sums


def _accumulate(
    x: Tensor,
    seen: Tensor,
    gate: Callable[[Tensor], Tensor],
    synapses: Synapses,
    centre: Centre,
    border: Border,
    precision: torch.dtype,
) -> Sums:
    mean = _channel_mean(x, synapses, precision, like=seen) if centre == "channel" else None
    if border == "valid":
        synapses, x = synapses.interior(x, seen.shape)
    filters = (_without_mean(seen) if centre == "patch" else seen).to(precision)
    correlation, mass = torch.zeros_like(seen), seen.new_zeros(seen.shape[0])
    places = synapses.places(x, seen.shape)
    # Autocast would run the convolutions in half precision behind our back.
    with torch.autocast(device_type=x.device.type, enabled=False):
        for chunk in _chunks(x, seen.shape[0] * places * precision.itemsize):
            inputs = chunk.to(precision)
            if mean is not None:
                inputs = synapses.centred(inputs, mean)
            gates = gate(synapses.respond(inputs, filters))
            correlation += synapses.correlate(inputs, gates, seen.shape)
            mass += torch.linalg.vector_norm(gates, ord=1, dim=[0, *range(2, gates.ndim)])
    if centre == "patch":
        # Subtracting the mean is a symmetric projection P: w · Pv = Pw · v, and sum y Pv = P sum y v.
        # Projecting filters and sum is therefore the same as centring every patch.
        correlation = _without_mean(correlation)
    return Sums(correlation, mass, count=x.shape[0] * places)


def _chunks(x: Tensor, response_bytes: int) -> tuple[Tensor, ...]:
    """Split the batch so that the responses of one part stay small; without responses there is no part."""
    if response_bytes == 0 or x.shape[0] == 0:
        return ()
    return torch.split(x, max(1, _CHUNK_BYTES // response_bytes))


def _channel_mean(x: Tensor, synapses: Synapses, precision: torch.dtype, *, like: Tensor) -> Tensor | None:
    total: Tensor | None = None
    count = 0
    for chunk in _chunks(x, x[:1].numel() * precision.itemsize):
        part, values = synapses.channel_sum(chunk.to(precision))
        total = part.to(like.dtype) if total is None else total + part
        count += values
    return None if total is None else (total / max(count, 1)).to(precision)


def _without_mean(weight: Tensor) -> Tensor:
    return weight - weight.mean(list(range(1, weight.ndim)), keepdim=True)


def inner(seen: Tensor, correlation: Tensor) -> Tensor:
    """The decay c of every filter: sum y u = s · A, shaped to multiply filters."""
    return per_filter((seen * correlation).flatten(1).sum(1), seen)


def sized(drift: Tensor, sums: Sums, *, reduce: Reduce, eta: float, like: Tensor) -> Tensor:
    """Give the summed change D its size, and the dtype of the weight.

    Args:
        drift: D, in float64.
        sums: of the same batch.
        reduce: "max" divides by the largest |D| of the layer: the largest weight change is then eta,
            whatever the batch size and resolution. "mean" divides by the number of samples and places,
            "ysum" divides each filter by its own sum of |y|, "sum" leaves D as it is.
        eta: step size.
        like: the weight.
    """
    match reduce:
        case "max":
            drift = drift / drift.abs().amax().clamp(min=_FLOOR) if drift.numel() else drift
        case "mean":
            drift = drift / max(sums.count, 1)
        case "ysum":
            drift = drift / per_filter(sums.mass.clamp(min=torch.finfo(sums.mass.dtype).tiny), drift)
        case "sum":
            pass
        case _:
            assert_never(reduce)
    # A sum over a large batch may not fit a half-precision weight: saturate rather than hand out infinities.
    bound = torch.finfo(like.dtype).max
    return (eta * drift).clamp(-bound, bound).to(like.dtype)


def require(eta: float, claims: dict[str, bool]) -> None:
    """Raise `OptionError` unless the step size and every other claim about the options hold."""
    claims = {f"eta must be finite and not negative, got {eta}": isfinite(eta) and eta >= 0, **claims}
    broken = [claim for claim, holds in claims.items() if not holds]
    if broken:
        raise OptionError("; ".join(broken))


def known(option: str, value: object, choices: object) -> dict[str, bool]:
    """The claim that an option has one of the values of its `Literal`."""
    words = get_args(choices)
    return {f"{option} must be one of {', '.join(map(str, words))}, got {value!r}": value in words}

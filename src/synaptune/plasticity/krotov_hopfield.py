"""Krotov and Hopfield's rule: a hard winner learns, one unit further down the ranking unlearns.

    dW_k = eta g_k (R^p x - <W_k, x> W_k),     <W, x> = sum over i of sign(W_i) |W_i|^(p-1) x_i
    g = 1 for the unit with the largest <W, x>,  -delta for the unit ranked `rank`,  0 for all others

The p-norm of a filter comes to rest at R.
Paper: D. Krotov and J. Hopfield, "Unsupervised learning by competing hidden units", PNAS 116 (2019). Its fast form
(R = 1, rank 2, delta 0.4, step divided by the largest change) is the default here. The paper's time scale tau_L is
part of eta.
"""

from __future__ import annotations

from math import isfinite

from torch import Tensor

from synaptune.plasticity.competition import compete
from synaptune.plasticity.engine import Reduce, detached, gather, inner, known, require, sized
from synaptune.plasticity.radius import wide
from synaptune.plasticity.synapses import DENSE, Synapses

__all__ = ["krotov_hopfield_update"]


@detached
def krotov_hopfield_update(
    weight: Tensor,
    x: Tensor,
    *,
    synapses: Synapses = DENSE,
    eta: float,
    radius: float = 1.0,
    p: float = 2.0,
    delta: float = 0.4,
    rank: int = 2,
    reduce: Reduce = "max",
) -> Tensor:
    """The change to add to `weight` after a batch.

    Args:
        weight: (K, inputs, *kernel).
        x: input of the layer, as `synapses_of` returns it.
        synapses: how inputs meet units.
        eta: step size.
        radius: R, the p-norm at rest.
        p: exponent of the inner product; larger values make filters more local.
        delta: strength of the anti-Hebbian push; 0 turns it off.
        rank: which unit is pushed away, 2 for the runner-up. With fewer units than that, none is.
        reduce: size of the step over samples and places.

    >>> import torch
    >>> weight, x = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[2.0, 1.0]])
    >>> krotov_hopfield_update(weight, x, eta=0.1, reduce="sum")
    tensor([[ 0.0000,  0.1000],
            [-0.0800,  0.0000]])
    """
    require(
        eta,
        {
            f"radius must be finite and not negative, got {radius}": isfinite(radius) and radius >= 0,
            f"p must be finite and at least 1, got {p}": isfinite(p) and p >= 1,
            f"delta must be finite and not negative, got {delta}": isfinite(delta) and delta >= 0,
            f"rank must be at least 2, got {rank}": rank >= 2,
            **known("reduce", reduce, Reduce),
        },
    )
    w = wide(weight)
    seen = w.sign() * w.abs().pow(p - 1)  # <W, x> = seen · x
    sums = gather(
        weight,
        x,
        seen=seen,
        gate=lambda u: compete(u, sign="krotov", delta=delta, rank=rank),
        synapses=synapses,
    )
    correlation = sums.correlation  # sum of g x
    decay = inner(seen, correlation)  # sum of g <W, x>
    change = radius**p * correlation - decay * w
    return sized(change, sums, reduce=reduce, eta=eta, like=weight)

"""Oja's rule: each unit finds the first principal component of its input.

    dW_k = eta y_k (x - y_k W_k),     y_k = W_k · x

The norm comes to rest at 1. Units do not compete, so all of them find the same component.
Paper: E. Oja, "Simplified neuron model as a principal component analyzer", J. Math. Biology 15 (1982).
"""

from __future__ import annotations

from torch import Tensor

from synaptune.plasticity.engine import Reduce, detached, gather, inner, known, require, sized
from synaptune.plasticity.radius import wide
from synaptune.plasticity.synapses import DENSE, Synapses

__all__ = ["oja_update"]


@detached
def oja_update(weight: Tensor, x: Tensor, *, synapses: Synapses = DENSE, eta: float, reduce: Reduce = "mean") -> Tensor:
    """The change to add to `weight` after a batch.

    Args:
        weight: (K, inputs, *kernel).
        x: input of the layer, as `synapses_of` returns it.
        synapses: how inputs meet units.
        eta: step size.
        reduce: size of the step over samples and places. "mean" is Oja's own rule averaged over the batch;
            "ysum" divides by the sum of |y|, since y has either sign here.

    >>> import torch
    >>> oja_update(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 1.0]]), eta=0.1)
    tensor([[0.0000, 0.2000]])
    """
    require(eta, known("reduce", reduce, Reduce))
    w = wide(weight)
    sums = gather(weight, x, seen=w, gate=lambda y: y, synapses=synapses)
    correlation = sums.correlation  # sum of y x
    decay = inner(w, correlation)  # sum of y y
    change = correlation - decay * w
    return sized(change, sums, reduce=reduce, eta=eta, like=weight)

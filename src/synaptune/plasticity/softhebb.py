"""SoftHebb: a soft winner-take-all learns a mixture model of its input.

    dW_k = eta y_k (x - u_k W_k),     u_k = W_k · x,     y = softmax(u * inverse_temperature)

The norm comes to rest at 1. Papers: Moraitis et al., "SoftHebb" (2022); Journé et al., "Hebbian deep learning
without feedback" (ICLR 2023), whose convolutions negate y for every unit but the winner of a place
(sign="anti"). We leave out that work's learning rate per neuron, which depends on the distance of the norm
from 1.
"""

from __future__ import annotations

from math import isfinite
from typing import Literal

from torch import Tensor

from synaptune.plasticity.competition import compete
from synaptune.plasticity.engine import Reduce, detached, gather, inner, known, require, sized
from synaptune.plasticity.radius import wide
from synaptune.plasticity.synapses import DENSE, Synapses

__all__ = ["SoftSign", "softhebb_update"]

SoftSign = Literal["plain", "anti", "hard"]


@detached
def softhebb_update(
    weight: Tensor,
    x: Tensor,
    *,
    synapses: Synapses = DENSE,
    eta: float,
    inverse_temperature: float = 1.0,
    sign: SoftSign = "plain",
    reduce: Reduce = "max",
) -> Tensor:
    """The change to add to `weight` after a batch.

    Args:
        weight: (K, inputs, *kernel).
        x: input of the layer, as `synapses_of` returns it.
        synapses: how inputs meet units.
        eta: step size.
        inverse_temperature: sharpness of the competition.
        sign: "plain" lets every unit learn by its share, "anti" negates the share of all but the winner,
            "hard" lets only the winner learn.
        reduce: size of the step over samples and places.

    >>> import torch
    >>> weight, x = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[2.0, 1.0]])
    >>> softhebb_update(weight, x, eta=0.1, sign="hard", reduce="sum")
    tensor([[0.0000, 0.1000],
            [0.0000, 0.0000]])
    """
    sharp = isfinite(inverse_temperature) and inverse_temperature > 0
    require(
        eta,
        {
            f"inverse_temperature must be finite and positive, got {inverse_temperature}": sharp,
            **known("sign", sign, SoftSign),
            **known("reduce", reduce, Reduce),
        },
    )
    w = wide(weight)
    sums = gather(
        weight,
        x,
        seen=w,
        gate=lambda u: compete(u, sign=sign, sharpness=inverse_temperature),
        synapses=synapses,
    )
    correlation = sums.correlation  # sum of y x
    decay = inner(w, correlation)  # sum of y u
    change = correlation - decay * w
    return sized(change, sums, reduce=reduce, eta=eta, like=weight)

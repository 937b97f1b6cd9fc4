"""The soft Hebbian rule of NHL, for the first layer of a network at test time.

    dW_k = eta y_k (R x - u_k W_k),     y = softmax(u / tau)

Paper: "Neuro-Modulated Hebbian Learning for Fully Test-Time Adaptation" (CVPR 2023, arXiv:2303.00914). It speaks of
normalised weights W_k / R, writes u_k = W_k · x, and claims that filters converge to the sphere of radius R. Not all
three can hold, so the meaning of R and u is an option:

    reading   u_k             R_k            dW_k / (eta y_k)     norm at rest
    A         W_k · x         radius         R x - u W            sqrt(R)
    B         W_k · x         radius         R^2 x - u W          R
    C         (W_k / R) · x   radius         R x - u W            R
    D         W_k · x         norm now       R x - u W            1
    E         W_k · x         1              x - u W              1

C is the default: only there do text, rule and claimed radius agree. A is the rule to the letter.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Literal, assert_never

import torch
from torch import Tensor

from synaptune.errors import OptionError
from synaptune.plasticity.competition import Sign, compete
from synaptune.plasticity.engine import Border, Centre, Reduce, detached, gather, inner, known, require, sized
from synaptune.plasticity.radius import norms, per_filter, wide
from synaptune.plasticity.synapses import DENSE, Synapses

__all__ = ["Reading", "TemperatureOn", "nhl_update"]

Reading = Literal["A", "B", "C", "D", "E"]
TemperatureOn = Literal["normalised", "raw"]


@detached
def nhl_update(
    weight: Tensor,
    x: Tensor,
    *,
    synapses: Synapses = DENSE,
    eta: float,
    tau: float = 1.0,
    radius: Tensor | None = None,
    reading: Reading = "C",
    temperature_on: TemperatureOn | None = None,
    sign: Sign = "plain",
    delta: float = 0.4,
    rank: int = 2,
    reduce: Reduce = "max",
    centre: Centre = "none",
    border: Border = "all",
) -> Tensor:
    """The change to add to `weight` after a batch.

    Args:
        weight: (K, inputs, *kernel).
        x: input of the layer, as `synapses_of` returns it. A bias takes no part.
        synapses: how inputs meet units.
        eta: step size.
        tau: temperature of the competition.
        radius: R per filter, (K,), for readings A, B and C; None takes the norm of each filter now, which
            turns A into D, and leaves C without a pull towards any particular norm. D and E bring their own
            R and do not look at it. Where R is 0, a filter has no normalised response: it counts as 0, and
            with reading C the filter stays as it is.
        reading: what R and u mean; see the table of the module.
        temperature_on: what competes. "normalised" is (W_k / R_k) · x with the R of the reading, "raw" is
            W_k · x; None takes the reading's own u, normalised for C and raw for the others. It bears on y
            alone: the decay keeps the reading's u, and with it the norm at rest. With E both are the same.
            With one R for all filters, C equals B divided by R when both compete on the same response.
        sign: who learns and which way: "plain" by the softmax, "anti" with the shares of all but the winner
            negated, "hard" the winner alone, "krotov" the winner and, negatively by `delta`, the unit
            ranked `rank`. Negated units are pushed off their sphere: keep eta small, or project.
        delta: strength of the anti-Hebbian push of "krotov".
        rank: the unit that gets it, 2 for the runner-up.
        reduce: size of the step: the layer's largest change is eta ("max"); the mean over samples and places
            ("mean"); per filter, over its sum of |y| ("ysum"); or the plain sum ("sum").
        centre: subtract the mean of each channel over the batch ("channel") or the mean of each patch
            ("patch").
        border: "valid" leaves out the places that see padding.

    Returns:
        The change, like `weight`; zero for an empty batch.

    >>> weight, x = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 1.0]])
    >>> nhl_update(weight, x, eta=0.1, tau=1.0)
    tensor([[0.0000, 0.1000],
            [0.0500, 0.0000]])
    """
    require(
        eta,
        {
            f"tau must be finite and positive, got {tau}": tau > 0 and isfinite(tau) and isfinite(1 / tau),
            f"delta must be finite and not negative, got {delta}": isfinite(delta) and delta >= 0,
            f"rank must be at least 2, got {rank}": rank >= 2,
            **known("reading", reading, Reading),
            **(known("temperature_on", temperature_on, TemperatureOn) if temperature_on is not None else {}),
            **known("sign", sign, Sign),
            **known("reduce", reduce, Reduce),
            **known("centre", centre, Centre),
            **known("border", border, Border),
        },
    )
    w = wide(weight)
    rule = _read(reading, w, radius)
    factor = rule.competing(temperature_on)

    def gate(u: Tensor) -> Tensor:
        if factor is not None:
            u.mul_(factor.to(u.dtype).reshape(1, -1, *[1] * (u.ndim - 2)))
        return compete(u, sign=sign, sharpness=1 / tau, delta=delta, rank=rank)

    sums = gather(weight, x, seen=rule.seen, gate=gate, synapses=synapses, centre=centre, border=border)
    correlation = sums.correlation  # sum of y x
    decay = inner(rule.seen, correlation)  # sum of y u
    change = per_filter(rule.pull, w) * correlation - decay * w
    return sized(change, sums, reduce=reduce, eta=eta, like=weight)


@dataclass(frozen=True)
class _Rule:
    """A reading, worked out for a weight."""

    radius: Tensor  # R, (K,)
    seen: Tensor  # s, with u = s · x
    pull: Tensor  # factor of x in the update, (K,)
    normalised: bool  # whether u is the normalised response

    def competing(self, temperature_on: TemperatureOn | None) -> Tensor | None:
        """The factor per filter that turns u into what competes, None where u itself does."""
        if temperature_on is None or self.normalised == (temperature_on == "normalised"):
            return None
        return self.radius if self.normalised else _reciprocal(self.radius)


def _read(reading: Reading, w: Tensor, radius: Tensor | None) -> _Rule:
    match reading:
        case "A" | "B" | "C":
            r = norms(w) if radius is None else _checked(radius, w)
        case "D":
            r = norms(w)
        case "E":
            r = torch.ones_like(norms(w))
        case _:
            assert_never(reading)
    if reading == "C":
        return _Rule(r, seen=w * per_filter(_reciprocal(r), w), pull=r, normalised=True)
    return _Rule(r, seen=w, pull=r.square() if reading == "B" else r, normalised=False)


def _checked(radius: Tensor, w: Tensor) -> Tensor:
    r = radius.detach().to(w)
    if r.shape != w.shape[:1]:
        raise OptionError(f"radius must hold one number per filter, shape ({w.shape[0]},), got {tuple(r.shape)}")
    if not bool((r.isfinite() & (r >= 0)).all()):
        raise OptionError("radius must be finite and not negative for every filter")
    return r


def _reciprocal(radius: Tensor) -> Tensor:
    positive = radius > 0
    return torch.where(positive, radius, torch.ones_like(radius)).reciprocal() * positive

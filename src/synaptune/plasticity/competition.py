"""Competition: from the responses u of K units at one place to the gates y that say who learns there.

    plain    y = softmax(beta u)                               every unit learns, in proportion to its share
    anti     y of the winner as above, all others -y           losers are pushed away from what they saw
    hard     1 for the winner, 0 for the others
    krotov   1 for the winner, -delta for the unit ranked `rank`, 0 for the others

Among equal responses the unit with the lower index ranks higher.
"""

from __future__ import annotations

from typing import Literal, assert_never

import torch
from torch import Tensor

__all__ = ["Sign", "compete"]

Sign = Literal["plain", "anti", "hard", "krotov"]


def compete(responses: Tensor, *, sign: Sign, sharpness: float = 1.0, delta: float = 0.4, rank: int = 2) -> Tensor:
    """Turn responses (N, K, *space) into gates, in place.

    In place, because for a first convolution the responses are by far the largest tensor there is.

    Args:
        responses: overwritten.
        sign: who learns, and which way; see above.
        sharpness: inverse temperature of the softmax; "hard" and "krotov" do not depend on it.
        delta: strength of the push that the unit ranked `rank` gets ("krotov").
        rank: 2 for the runner-up; with fewer units than that nobody is pushed away ("krotov").

    >>> compete(torch.tensor([[0.0, 2.0, 1.0]]), sign="krotov", delta=0.5)
    tensor([[ 0.0000,  1.0000, -0.5000]])
    """
    match sign:
        case "plain":
            return _softmax_(responses, sharpness)
        case "anti":
            winner = responses.argmax(1, keepdim=True)
            shares = _softmax_(responses, sharpness)
            share = shares.gather(1, winner)
            return shares.neg_().scatter_(1, winner, share)
        case "hard":
            winner = responses.argmax(1, keepdim=True)
            return responses.zero_().scatter_(1, winner, 1.0)
        case "krotov":
            return _ranked_(responses, delta, rank)
        case _:
            assert_never(sign)


def _softmax_(logits: Tensor, sharpness: float) -> Tensor:
    # The largest logit becomes 0 before the temperature acts: however small the temperature, the worst that
    # can happen is exp(-inf) = 0 for the others.
    logits.sub_(logits.amax(1, keepdim=True)).mul_(sharpness).exp_()
    return logits.div_(logits.sum(1, keepdim=True))


def _ranked_(responses: Tensor, delta: float, rank: int) -> Tensor:
    winner = responses.argmax(1, keepdim=True)
    if rank > responses.shape[1]:
        return responses.zero_().scatter_(1, winner, 1.0)
    place = winner
    for _ in range(rank - 1):
        responses.scatter_(1, place, -torch.inf)
        place = responses.argmax(1, keepdim=True)
    return responses.zero_().scatter_(1, winner, 1.0).scatter_(1, place, -delta)

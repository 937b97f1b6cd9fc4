"""Objectives that need predictions only: entropy, soft likelihood ratio, diversity.

    softmax_entropy        H_b = - sum_c p_c log p_c
    soft_likelihood_ratio  L_b = - scale * sum_c p_c log(q_c / (1 - q_c)),   q = p clamped to [clamp, 1 - clamp]
    diversity              sum_c m_c log m_c,   m = mean of p over the batch

All three are to be minimised. Everything starts from log_softmax, so logits of any size are safe, classes
masked by -inf count as impossible, and half precision is computed in float32. Entropy: Wang et al., "Tent"
(ICLR 2021). Soft likelihood ratio: Marsden et al., "ROID" (WACV 2024), which clips p itself; here the
weight p_c stays as it is and only the argument of the logarithm is clamped.
"""

from __future__ import annotations

from math import log, log1p

import torch
from torch import Tensor

from synaptune.errors import InputError, OptionError

__all__ = ["diversity", "soft_likelihood_ratio", "softmax_entropy"]


def softmax_entropy(logits: Tensor) -> Tensor:
    """Entropy of each prediction in nats: (batch, classes) to (batch,).

    >>> softmax_entropy(torch.zeros(1, 4))  # log 4
    tensor([1.3863])
    """
    log_p = _log_probabilities(logits)
    return -(log_p.exp() * _finite(log_p)).sum(1)


def soft_likelihood_ratio(logits: Tensor, *, scale: float = 0.5, clamp: float = 1e-4) -> Tensor:
    """Soft likelihood ratio of each prediction: (batch, classes) to (batch,).

    Unlike that of the entropy, its gradient stays of order one until a class passes 1 - `clamp`.

    Args:
        logits: (batch, classes).
        scale: factor of the whole; under plain SGD it is a factor of the learning rate.
        clamp: how near to 0 and 1 the argument of the logarithm may come.

    >>> soft_likelihood_ratio(torch.zeros(1, 2))  # both odds are 1
    tensor([-0.])
    """
    if not 0 < clamp < 0.5:
        raise OptionError(f"clamp must lie between 0 and 0.5, got {clamp}")
    log_p = _log_probabilities(logits)
    log_q = log_p.clamp(log(clamp), log1p(-clamp))
    log_odds = log_q - (-torch.expm1(log_q)).log()
    return -scale * (log_p.exp() * log_odds).sum(1)


def diversity(logits: Tensor) -> Tensor:
    """Negative entropy of the mean prediction, a scalar.

    It is lowest, - log(classes), when all classes are predicted alike often. An empty batch gives 0.

    >>> diversity(torch.tensor([[9.0, 0.0], [0.0, 9.0]]))  # certain each, but evenly spread
    tensor(-0.6931)
    """
    log_p = _log_probabilities(logits)
    if log_p.shape[0] == 0:
        return log_p.sum()
    log_mean = _finite(log_p).logsumexp(0) - log(log_p.shape[0])
    return (log_mean.exp() * log_mean).sum()


def _log_probabilities(logits: Tensor) -> Tensor:
    if logits.ndim != 2 or logits.shape[1] == 0:
        raise InputError(f"logits must have shape (batch, classes), got {tuple(logits.shape)}")
    half = logits.dtype in (torch.float16, torch.bfloat16)
    return (logits.float() if half else logits).log_softmax(1)


def _finite(log_p: Tensor) -> Tensor:
    # 0 log 0 is 0: an impossible class must not turn the sum, or its gradient, into NaN.
    return log_p.clamp(min=torch.finfo(log_p.dtype).min)

"""Channel statistics of a batch, and how they mix with those of the source.

    mixed = weight * source + (1 - weight) * batch,     weight = N / (N + n)

for mean and variance alike, after Schneider et al., "Improving robustness against common corruptions by
covariate shift adaptation" (NeurIPS 2020): n is the size of the batch and N, the prior, says how many
images the source is worth. The variance is the biased one, by which batch normalisation divides; running
buffers hold the unbiased one, so going through them gives slightly different numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from synaptune.errors import InputError, OptionError

__all__ = ["batch_statistics", "mix_statistics", "prior_weight"]


def batch_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of every channel of (N, C, ...), in at least float32.

    >>> mean, var = batch_statistics(torch.tensor([[1.0, 0.0], [3.0, 0.0]]))
    >>> mean, var
    (tensor([2., 0.]), tensor([1., 0.]))
    """
    if x.ndim < 2 or x.numel() == 0:
        raise InputError(f"statistics per channel need a non-empty input (N, C, ...), got shape {tuple(x.shape)}")
    x = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    var, mean = torch.var_mean(x, dim=[0, *range(2, x.ndim)], correction=0)
    return mean, var


def mix_statistics(
    source_mean: Tensor, source_var: Tensor, batch_mean: Tensor, batch_var: Tensor, weight: float
) -> tuple[Tensor, Tensor]:
    """Mean and variance between source and batch; `weight` is the share of the source.

    Exactly the batch at 0 and exactly the source at 1.

    >>> one, four = torch.ones(1), torch.full((1,), 4.0)
    >>> mix_statistics(one, one, four, four, 0.5)
    (tensor([2.5000]), tensor([2.5000]))
    """
    if not 0 <= weight <= 1:
        raise OptionError(f"the weight of the source statistics must lie in [0, 1], got {weight}")
    return (
        torch.lerp(batch_mean, source_mean.to(batch_mean), weight),
        torch.lerp(batch_var, source_var.to(batch_var), weight),
    )


def prior_weight(n: int, prior: float) -> float:
    """Share of the source statistics beside a batch of `n` images: N / (N + n).

    With neither images nor prior, the source is all there is.

    >>> prior_weight(16, prior=48)
    0.75
    """
    if n < 0 or not 0 <= prior < float("inf"):
        raise OptionError(f"batch size and prior must be finite and not negative, got n={n} and prior={prior}")
    return prior / (prior + n) if prior + n > 0 else 1.0

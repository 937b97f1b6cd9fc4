"""Mathematics of predictions and statistics: tensors in, tensors out."""

from synaptune.functional.entropy import diversity, soft_likelihood_ratio, softmax_entropy
from synaptune.functional.statistics import batch_statistics, mix_statistics, prior_weight

__all__ = [
    "batch_statistics",
    "diversity",
    "mix_statistics",
    "prior_weight",
    "soft_likelihood_ratio",
    "softmax_entropy",
]

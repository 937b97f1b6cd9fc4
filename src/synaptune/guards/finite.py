"""Undo a step that left anything non-finite behind."""

from __future__ import annotations

import math

import torch

from synaptune.core.guard import KEEP, Action, Guard, Verdict
from synaptune.core.history import BatchRecord
from synaptune.core.method import Step
from synaptune.functional.entropy import softmax_entropy

__all__ = ["Finite"]


class Finite(Guard):
    """Looks for NaN and infinity in the predictions and in what the step changed.

    >>> record = BatchRecord(
    ...     step=1, images=1, entropy=0.1, drift=None, weight_distance=0.2, seconds=0.1, forwards=1, backwards=1
    ... )
    >>> Finite().judge(Step(logits=torch.tensor([[0.0, float("nan")]])), record).reason
    'logits are not finite'
    """

    def judge(self, step: Step, record: BatchRecord) -> Verdict:
        # The distance is a norm over all touched tensors: one non-finite weight makes it non-finite.
        if not math.isfinite(record.weight_distance):
            return Verdict(Action.UNDO, "adapted weights are not finite")
        # Entropies, because a logit of -inf is how some models mask a class. The record's is that of the returned
        # logits, which may come from after the update.
        before = softmax_entropy(step.logits)
        if not (bool(torch.isfinite(before).all()) and math.isfinite(record.entropy)):
            return Verdict(Action.UNDO, "logits are not finite")
        return KEEP

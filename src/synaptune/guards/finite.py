"""Undo a step that left anything non-finite behind."""

from __future__ import annotations

import math

import torch

from synaptune.core.guard import KEEP, Action, Guard, Verdict
from synaptune.core.method import Step

__all__ = ["Finite"]


class Finite(Guard):
    """Looks for NaN and infinity in the prediction and in what the step changed.

    >>> Finite().judge(Step(logits=torch.tensor([[0.0, float("nan")]])), 0.1).reason
    'logits are not finite'
    """

    def judge(self, step: Step, weight_distance: float) -> Verdict:
        # The distance is a norm over all touched tensors: one non-finite weight makes it non-finite.
        if not math.isfinite(weight_distance):
            return Verdict(Action.UNDO, "adapted weights are not finite")
        if not bool(torch.isfinite(step.logits).all()):
            return Verdict(Action.UNDO, "logits are not finite")
        return KEEP

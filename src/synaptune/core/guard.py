"""The guard contract: a guard looks at a finished step and answers; the adapter alone acts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum

from synaptune.core.method import Step

__all__ = ["Action", "Guard", "Verdict"]


class Action(IntEnum):
    """What to do about a step; when guards disagree, the strongest wins."""

    KEEP = 0
    UNDO = 1
    RESET = 2


@dataclass(frozen=True)
class Verdict:
    """A guard's answer and its reason."""

    action: Action
    reason: str = ""


KEEP = Verdict(Action.KEEP)


class Guard(ABC):
    """One question about a step."""

    @abstractmethod
    def judge(self, step: Step, weight_distance: float) -> Verdict:
        """Answer; `weight_distance` is the relative distance of the touched tensors from the source."""

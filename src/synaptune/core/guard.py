"""The guard contract: a guard looks at a finished step and answers; the adapter alone acts.

New evidence for guards becomes a field of `BatchRecord`, a new way to act becomes an `Action`; guards that know nothing
of either stay as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum

from synaptune.core.history import BatchRecord
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
    """One question about a step. A guard that remembers belongs to one adapter, and forgets on `reset`."""

    @abstractmethod
    def judge(self, step: Step, record: BatchRecord) -> Verdict:
        """Answer.

        Args:
            step: what the method gave: logits from before the update, objective.
            record: what history will hold if the step is kept: how far the weights are from the source, entropy of
                the returned logits, drift, time, counts.
        """

    def reset(self) -> None:  # noqa: B027 - most guards have nothing to forget
        """Forget what was seen: the adapter is back at the source state and a new stream begins."""

"""A finding: one plain sentence that was computed from rows, and what kind of sentence it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["FINDING_KINDS", "Finding", "FindingKind"]

FindingKind = Literal["gain", "loss", "even", "time", "cost", "missing", "protocol", "note"]
FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)


@dataclass(frozen=True)
class Finding:
    """One sentence.

    Attributes:
        kind: `gain` and `loss` are clear changes of error, `even` is within noise, `time` what changed along a stream,
            `cost` time and memory, `missing` numbers that are not there, `protocol` what must not be mixed, `note`
            the rest.
        text: the sentence.
    """

    kind: FindingKind
    text: str

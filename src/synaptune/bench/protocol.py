"""The switches under which a number was measured. Rows that differ in one are never averaged or compared silently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from synaptune.options import Options, option

__all__ = ["Protocol"]


@dataclass(frozen=True, kw_only=True)
class Protocol(Options):
    """How a cell is measured; the defaults are the paper's, as far as it states them.

    >>> Protocol(batch=200).as_dict()["batch"]
    200
    >>> Protocol(batch=0)
    Traceback (most recent call last):
    ...
    synaptune.errors.OptionError: Protocol: batch must be at least 1, not 0
    """

    images: int | None = option(None, "use the first so many images of the set; none: all", at_least=1)
    batch: int = option(128, "images per batch; the last, smaller batch is kept", at_least=1)
    order: Literal["dataset", "shuffled", "correlated"] = option(
        "dataset", "order of the images: as in the set, drawn from the seed, or with labels that stay for a while"
    )
    delta: float = option(0.1, "of a correlated order; smaller is more correlated", above=0)
    reset: Literal["corruption", "never"] = option(
        "corruption", "back to the source model at every corruption and severity, or never"
    )
    after: bool = option(True, "also predict every batch after the update on it")
    full: bool = option(True, "also predict the whole set with the state after the last batch")
    oracle_every: int = option(
        0, "evaluate the whole set after every so many batches, and note the minimum as oracle; 0: no", at_least=0
    )
    horizon: int | None = option(
        None, "stop adapting after so many batches and only evaluate the whole set; none: one pass", at_least=1
    )
    full_batch: int | None = option(
        None, "images per batch of a whole-set evaluation; none: as in the pass", at_least=1
    )
    corruption_seed: int = option(0, "seed of corruptions that are made here", at_least=0)
    threads: int = option(1, "threads of torch in each worker; they decide the last bits of a sum", at_least=1)
    channels_last: bool = option(
        False, "weights and images with channels last in memory: faster on CPUs, other last bits of a sum"
    )
    device: str = option("cpu", "torch device")

    def contradictions(self) -> list[str]:
        problems = []
        if self.horizon is not None and not (self.full or self.oracle_every):
            problems.append("horizon measures on the whole set only: switch full or oracle_every on")
        if self.horizon is not None and self.reset == "never":
            problems.append("horizon starts from the source model and contradicts reset='never'")
        return problems

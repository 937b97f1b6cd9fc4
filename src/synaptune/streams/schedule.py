"""Which domains are visited when, and where a method may be reset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synaptune.data import Recipe
from synaptune.errors import OptionError

__all__ = ["Schedule", "Visit"]


@dataclass(frozen=True)
class Visit:
    """One stretch of the stream, batched on its own.

    Attributes:
        domains: numbers of the domains whose images come, pooled if there are several.
        reset: whether the method is to start afresh before it.
    """

    domains: tuple[int, ...]
    reset: bool = False


@dataclass(frozen=True)
class Schedule:
    """Visits, repeated for some rounds.

    Attributes:
        visits: of one round.
        rounds: how often.
        shuffled: whether each round has an order of its own.

    >>> schedule = Schedule((Visit((0,), reset=True), Visit((1,))), rounds=2)
    >>> [(round_, place) for round_, place, visit in schedule.unroll(seed=0)]
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """

    visits: tuple[Visit, ...]
    rounds: int = 1
    shuffled: bool = False

    def __post_init__(self) -> None:
        if not self.visits or any(not visit.domains for visit in self.visits):
            raise OptionError("a schedule needs at least one visit, and a visit at least one domain")
        if self.rounds < 1:
            raise OptionError(f"rounds must be at least 1, not {self.rounds}")

    def unroll(self, seed: int) -> Iterator[tuple[int, int, Visit]]:
        """Yield (round, place of the visit in the schedule, visit), one at a time."""
        for round_ in range(self.rounds):
            places = range(len(self.visits))
            if self.shuffled:
                generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(round_,)))
                places = generator.permutation(len(self.visits)).tolist()
            for place in places:
                yield round_, place, self.visits[place]

    @property
    def recipe(self) -> Recipe:
        """All of it as plain values."""
        return Recipe.of(
            visits=[{"domains": list(visit.domains), "reset": visit.reset} for visit in self.visits],
            rounds=self.rounds,
            shuffled=self.shuffled,
        )

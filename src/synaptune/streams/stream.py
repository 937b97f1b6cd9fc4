"""A stream of test images: domains, their schedule, the order inside a visit, batches, a clock and a seed.

    Stream = domains x schedule x arrangement x batch x clock x seed

A stream is a frozen value; playing it twice gives the same batches, whatever the number of workers. Each visit draws
from a generator of its own, spawned from (seed, round, place), so nothing but the visit at hand is ever in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral

import numpy as np
import numpy.typing as npt

from synaptune.data import ReadReport, Recipe
from synaptune.errors import OptionError
from synaptune.streams.arrangement import Arrangement, InOrder
from synaptune.streams.clock import Clock, Ticking, Waiting
from synaptune.streams.domain import Domain, as_domains
from synaptune.streams.labels import LabelSource
from synaptune.streams.playback import Batch, PlannedBatch, Playback
from synaptune.streams.schedule import Schedule, Visit

__all__ = ["Stream"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Stream:
    """Iterate over it to get `Batch` objects without labels; `labels[batch.index]` has those, for the scorer.

    Attributes:
        domains: the conditions; sample indices number their images through, one domain after the other.
        schedule: when which domain is visited; by default each once, in turn.
        arrangement: the order inside a visit.
        batch: images per batch; the last batch of a visit holds what is left.
        clock: whether the stream waits for the method.
        seed: of all randomness.
        kind: what the stream is called in tables.

    >>> from synaptune.data import sample
    >>> stream = Stream(domains=(Domain("clean", sample(300)),), batch=128)
    >>> [len(batch.index) for batch in stream]
    [128, 128, 44]
    >>> print(stream)
    stream of 300 images: clean; InOrder, batch 128, seed 0
    """

    domains: tuple[Domain, ...]
    schedule: Schedule | None = None
    arrangement: Arrangement = field(default_factory=InOrder)
    batch: int = 128
    clock: Clock = field(default_factory=Waiting)
    seed: int = 0
    kind: str = "stream"

    def __post_init__(self) -> None:
        object.__setattr__(self, "domains", as_domains(self.domains))
        problems = []
        if not isinstance(self.batch, Integral) or self.batch < 1:
            problems.append(f"batch must be a whole number from 1 on, not {self.batch!r}")
        if not isinstance(self.seed, Integral) or self.seed < 0:
            problems.append(f"seed must be a whole number from 0 on, not {self.seed!r}")
        beyond = {number for visit in self._visits.visits for number in visit.domains} - set(range(len(self.domains)))
        if beyond:
            problems.append(f"the schedule visits domain {min(beyond)}, there are {len(self.domains)}")
        if problems:
            raise OptionError("; ".join(problems))
        object.__setattr__(self, "batch", int(self.batch))
        object.__setattr__(self, "seed", int(self.seed))

    def __iter__(self) -> Iterator[Batch]:
        return self.play()

    def play(self, *, workers: int = 0) -> Playback:
        """Begin from the start.

        Args:
            workers: threads that read batches ahead; the batches are the same for any number.
        """
        if isinstance(workers, bool) or workers < 0:
            raise OptionError(f"workers must be a whole number from 0 on, not {workers!r}")
        images = tuple(domain.data.images for domain in self.domains)
        return Playback(self.plan(), images, self.clock, workers=workers)

    def plan(self) -> Iterator[PlannedBatch]:
        """Say what comes, batch by batch, without reading an image."""
        starts = np.cumsum([0, *(len(domain.data) for domain in self.domains)])
        number = 0
        for round_, place, visit in self._visits.unroll(self.seed):
            generator = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(round_, place)))
            pool = np.concatenate([np.arange(starts[d], starts[d + 1]) for d in visit.domains]).astype(np.int64)
            order = pool[self.arrangement.arrange(self._labels_of(visit), generator)]
            name = self.domains[visit.domains[0]].name if len(visit.domains) == 1 else "mixed"
            for start in range(0, len(order), self.batch):
                yield PlannedBatch(number, order[start : start + self.batch], name, visit.reset and start == 0)
                number += 1

    @cached_property
    def labels(self) -> LabelSource:
        """The labels, by sample index: for scoring only."""
        return LabelSource(self.domains)

    @cached_property
    def samples(self) -> int:
        """Images of all visits, those that a clock will drop included."""
        return self._visits.rounds * sum(self._visit_sizes)

    def __len__(self) -> int:
        """Batches of all visits, those that a clock will drop included."""
        return self._visits.rounds * sum(-(-size // self.batch) for size in self._visit_sizes)

    @property
    def reports(self) -> dict[str, ReadReport]:
        """What went wrong with files so far, by domain; domains without trouble are left out."""
        reports = {domain.name: domain.data.report for domain in self.domains}
        return {name: report for name, report in reports.items() if not report.is_clean}

    @cached_property
    def recipe(self) -> Recipe:
        """Everything that the batches depend on. Fingerprints all images, which reads them once."""
        return Recipe.of(
            stream=self.kind,
            domains=[domain.recipe.fields for domain in self.domains],
            schedule=self._visits.recipe,
            arrangement=self.arrangement.recipe,
            batch=self.batch,
            clock=self.clock.recipe,
            seed=self.seed,
        )

    def __str__(self) -> str:
        names = [domain.name for domain in self.domains]
        shown = ", ".join(names if len(names) <= 4 else [*names[:2], f"... {len(names) - 3} more ...", names[-1]])
        rounds = f" x {self._visits.rounds} rounds" if self._visits.rounds > 1 else ""
        options = ", ".join(
            f"{name}={value}" for name, value in self.arrangement.as_dict().items() if value is not None
        )
        order = type(self.arrangement).__name__ + (f"({options})" if options else "")
        clock = f", {self.clock.rate:g} images/s" if isinstance(self.clock, Ticking) else ""
        how = f"{order}, batch {self.batch}{clock}, seed {self.seed}"
        return f"{self.kind} of {self.samples:,} images: {shown}{rounds}; {how}"

    @property
    def _visits(self) -> Schedule:
        return self.schedule or Schedule(tuple(Visit((number,)) for number in range(len(self.domains))))

    @cached_property
    def _visit_sizes(self) -> tuple[int, ...]:
        return tuple(self.arrangement.count(self._labels_of(visit)) for visit in self._visits.visits)

    def _labels_of(self, visit: Visit) -> npt.NDArray[np.int64]:
        return np.concatenate([self.domains[number].data.labels for number in visit.domains])

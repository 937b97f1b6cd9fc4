"""The order of images inside one visit to a domain, and which of them come at all.

An arrangement maps labels and a generator to positions. It may look at labels, since it plays the world; what it
looked at does not travel with the images.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synaptune.data import UNLABELLED, Recipe
from synaptune.errors import OptionError
from synaptune.options import Options, option

__all__ = ["Arrangement", "Correlated", "InOrder", "LabelShift", "Shuffled"]

Labels = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Arrangement(Options, ABC):
    """How the images of a visit follow each other."""

    @abstractmethod
    def arrange(self, labels: Labels, generator: np.random.Generator) -> Positions:
        """Return positions into `labels`, in the order in which the images come."""

    def count(self, labels: Labels) -> int:
        """Say how many images `arrange` returns."""
        return len(labels)

    @property
    def recipe(self) -> Recipe:
        """Name and options."""
        return Recipe.of(kind=type(self).__name__, **self.as_dict())


@dataclass(frozen=True, kw_only=True)
class InOrder(Arrangement):
    """As they lie in the set: the protocol of the published tables.

    >>> import numpy as np
    >>> InOrder().arrange(np.array([5, 5, 7]), np.random.default_rng(0)).tolist()
    [0, 1, 2]
    """

    def arrange(self, labels: Labels, generator: np.random.Generator) -> Positions:
        return np.arange(len(labels), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Shuffled(Arrangement):
    """In random order: independent, identically distributed."""

    def arrange(self, labels: Labels, generator: np.random.Generator) -> Positions:
        return generator.permutation(len(labels)).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Correlated(Arrangement):
    """Labels that stay for a while, as in a video (NOTE, NeurIPS 2022; RoTTA, CVPR 2023).

        q_c ~ Dirichlet(delta, ..., delta) over `slots` stretches of time, one draw per class c

    The images of class c, shuffled, are cut into the proportions q_c and dealt to the slots. Inside a slot the classes
    follow each other in random order, each as one run. The smaller delta, the longer one class stays alone; for
    delta -> infinity each slot holds every class in equal parts, still in runs. Every image comes exactly once.

    NOTE moreover keeps slots from growing past the mean length and redraws until each has ten images; that changes
    little and need not end for a small delta, so it is left out here, as in RoTTA.
    """

    delta: float = option(0.1, "concentration of the Dirichlet draw; small means strongly correlated", above=0)
    slots: int | None = option(None, "stretches of time; by default as many as there are classes", at_least=1)

    def arrange(self, labels: Labels, generator: np.random.Generator) -> Positions:
        if (labels == UNLABELLED).any():
            raise OptionError("a stream with correlated labels needs a label for every image; this set has none")
        classes = np.unique(labels)
        slots = self.slots or len(classes)
        runs: list[list[Positions]] = [[] for _ in range(slots)]
        for label in classes:
            members = generator.permutation(np.flatnonzero(labels == label))
            # Cumulated and rounded, so that all cuts together lose or double no image.
            cuts = np.rint(np.cumsum(_proportions(self.delta, slots, generator))[:-1] * len(members)).astype(np.int64)
            for slot, run in enumerate(np.split(members, cuts)):
                runs[slot].append(run)
        ordered = [slot[number] for slot in runs for number in generator.permutation(len(slot))]
        return np.concatenate(ordered).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class LabelShift(Arrangement):
    """Another class frequency than the set's own, in random order.

    Long-tailed: the class of rank r among C keeps the share ratio^(-r / (C - 1)) of its images, so the most frequent
    class is `ratio` times as frequent as the rarest. Or a given prior: as many images as can be had without repeating
    one. No image comes twice.
    """

    ratio: float = option(10.0, "frequency of the commonest class over that of the rarest", at_least=1)
    prior: tuple[float, ...] | None = option(None, "wanted frequency of each class; overrides ratio")
    ranking_seed: int | None = option(
        None, "which class is how frequent: None ranks by label, a number shuffles the ranks", at_least=0
    )

    def contradictions(self) -> list[str]:
        prior = self.prior
        if prior is not None and (not prior or min(prior) < 0 or not 0 < sum(prior) < float("inf")):
            return ["prior must be frequencies of which none is negative and not all are 0"]
        return []

    def arrange(self, labels: Labels, generator: np.random.Generator) -> Positions:
        chosen = [
            generator.permutation(np.flatnonzero(labels == label))[:count]
            for label, count in self._counts(labels).items()
        ]
        return generator.permutation(np.concatenate(chosen)).astype(np.int64)

    def count(self, labels: Labels) -> int:
        return sum(self._counts(labels).values())

    def _counts(self, labels: Labels) -> dict[int, int]:
        """How many images of each class come."""
        if (labels == UNLABELLED).any():
            raise OptionError("a stream with shifted labels needs a label for every image; this set has none")
        classes, available = np.unique(labels, return_counts=True)
        if self.prior is not None:
            return self._counts_by_prior(classes, available)
        ranks = np.arange(len(classes))
        if self.ranking_seed is not None:
            ranks = np.random.default_rng(self.ranking_seed).permutation(len(classes))
        shares = float(self.ratio) ** (-ranks / max(1, len(classes) - 1))
        # At least one of each, else the rarest class would be absent and not rare.
        counts = np.maximum(1, np.rint(shares * available)).astype(np.int64)
        return dict(zip(classes.tolist(), counts.tolist(), strict=True))

    def _counts_by_prior(self, classes: Labels, available: npt.NDArray[np.intp]) -> dict[int, int]:
        prior = np.asarray(self.prior, np.float64)
        if classes[-1] >= len(prior):
            raise OptionError(f"prior has {len(prior)} frequencies, but there is a label {classes[-1]}")
        wanted = prior[classes]
        if not wanted.any():
            raise OptionError("prior is 0 for every class that occurs")
        total = np.min(available[wanted > 0] / wanted[wanted > 0])
        counts = np.floor(wanted * total * (1 + 1e-12)).astype(np.int64)
        return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def _proportions(delta: float, slots: int, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    proportions = generator.dirichlet(np.full(slots, delta))
    if not np.isfinite(proportions).all() or proportions.sum() == 0:
        # All draws underflow for a tiny delta, whose limit is a single slot.
        proportions = np.zeros(slots)
        proportions[generator.integers(slots)] = 1.0
    return proportions

"""Does the world wait for the method?

`Waiting`: the next batch comes when it is asked for. `Ticking`: images arrive at a fixed rate. Batch k is complete at

    ready(k) = (images up to and including batch k) / rate

and is processed at once if the method is free by then; otherwise all of it is lost, since nothing buffers it. Work on n
images takes cost_per_image * n seconds, or what the caller reports with `Playback.took`. Time is simulated, so a run
with a declared cost is deterministic. With a cost of m / rate per image, one batch in m is seen: this is the relative
speed of Alfarra et al. (ICML 2024). A slow clock is a low rate.
"""

from __future__ import annotations

from dataclasses import dataclass

from synaptune.data import Recipe
from synaptune.options import Options, option

__all__ = ["Clock", "Ticking", "Waiting"]


@dataclass(frozen=True, kw_only=True)
class Waiting(Options):
    """The stream waits for the method."""

    @property
    def recipe(self) -> Recipe:
        """Name and options."""
        return Recipe.of(kind="Waiting")


@dataclass(frozen=True, kw_only=True)
class Ticking(Options):
    """The stream does not wait.

    >>> clock = Ticking(rate=30, cost_per_image=0.1)
    >>> round(clock.ready_at(128), 2), round(clock.cost_of(128), 2)
    (4.27, 12.8)
    """

    rate: float = option(30.0, "images that arrive per second", above=0)
    cost_per_image: float | None = option(
        None, "declared seconds of work per image; None means that the caller reports what each batch took", at_least=0
    )

    @property
    def recipe(self) -> Recipe:
        """Name and options."""
        return Recipe.of(kind="Ticking", **self.as_dict())

    def ready_at(self, arrived: int) -> float:
        """Time at which that many images have arrived."""
        return arrived / self.rate

    def cost_of(self, images: int) -> float | None:
        """Declared time of work on a batch, if it is declared."""
        return None if self.cost_per_image is None else images * self.cost_per_image

    @staticmethod
    def is_missed(ready: float, free: float) -> bool:
        """Whether a batch that is complete at `ready` is lost to a method that is busy until `free`."""
        # A hair of tolerance: sums of seconds that are equal on paper may differ in their last bit.
        return ready < free * (1 - 1e-9)


Clock = Waiting | Ticking

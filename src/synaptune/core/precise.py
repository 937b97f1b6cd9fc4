"""Small updates of weights that are stored in few bits.

A bfloat16 weight near 1 has no neighbour within 0.004, so steps of 1e-3 would all be rounded away, and Adam's epsilon
of 1e-8 is zero in float16. What learns is therefore a float32 value beside the stored one, which is rounded into it
after every step. Where weights have 32 bits or more, both are the same tensor.

Autocast goes the other way, from a float32 weight to a cast of few bits, and may not keep that over an update.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["Precise", "fresh_casts"]


class Precise:
    """A stored tensor and the value that learns.

    >>> stored = torch.ones(1, dtype=torch.bfloat16)
    >>> precise = Precise(stored)
    >>> for _ in range(10):
    ...     value = precise.refresh().add_(1e-3)
    ...     precise.commit()
    >>> stored
    tensor([1.0078], dtype=torch.bfloat16)
    """

    def __init__(self, stored: Tensor):
        self.stored = stored
        self.apart = stored.dtype.itemsize < torch.float32.itemsize
        self.value = stored.detach().float() if self.apart else stored

    def refresh(self) -> Tensor:
        """Return the value; taken anew from the stored tensor where someone else has written into that."""
        if self.apart:
            with torch.no_grad():
                self.value.data = self.value.data.to(self.stored.device)
                if not torch.equal(self.value.to(self.stored.dtype), self.stored):
                    self.value.copy_(self.stored)
        return self.value

    def commit(self) -> None:
        """Round the value into the stored tensor."""
        if self.apart:
            with torch.no_grad():
                self.stored.copy_(self.value)


@contextmanager
def fresh_casts() -> Iterator[None]:
    """Have autocast cast weights at every use, and forget the casts it has.

    It keeps casts of weights that require gradients until the caller's `autocast` block ends. Around a whole stream,
    every batch would be predicted by the weights of the first one, however much they have learnt since.
    """
    keeping = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(keeping)
        torch.clear_autocast_cache()

"""Labels of a stream, kept apart from its images: for whoever scores, never for a method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from synaptune.data import UNLABELLED
from synaptune.errors import InputError
from synaptune.streams.domain import Domain

__all__ = ["LabelSource"]


class LabelSource:
    """Labels by sample index, as `Batch.index` gives it.

    >>> from synaptune.data import sample
    >>> source = LabelSource([Domain("first", sample(3)), Domain("again", sample(3))])
    >>> source[torch.tensor([0, 3, 1])].tolist(), source.domain_of([0, 3, 1]).tolist()
    ([3, 3, 8], [0, 1, 0])
    """

    def __init__(self, domains: Sequence[Domain]):
        self._labels = tuple(domain.data.labels for domain in domains)
        self._starts = np.cumsum([0, *(len(labels) for labels in self._labels)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: Any) -> torch.Tensor:
        """Labels (int64) of these samples; -1 where the class is not known."""
        wanted = self._checked(index)
        domain = self.domain_of(wanted)
        labels = np.full(wanted.shape, UNLABELLED, np.int64)
        for number in np.unique(domain):
            here = domain == number
            labels[here] = self._labels[number][wanted[here] - self._starts[number]]
        return torch.from_numpy(labels)

    def domain_of(self, index: Any) -> npt.NDArray[np.int64]:
        """Number of the domain that each sample belongs to."""
        return (np.searchsorted(self._starts, self._checked(index), side="right") - 1).astype(np.int64)

    def _checked(self, index: Any) -> npt.NDArray[np.int64]:
        wanted = np.asarray(index, dtype=np.int64)
        if wanted.size and not 0 <= wanted.min() <= wanted.max() < len(self):
            raise InputError(f"sample indices lie between 0 and {len(self) - 1}, not {wanted.min()} to {wanted.max()}")
        return wanted

"""Counting right and wrong predictions over a stream, batch by batch, without keeping logits.

    error = 100 * wrong / images          (top-1, in percent)

A row of logits that holds NaN is a wrong prediction with confidence zero: argmax would call it class 0, and be right
by luck one time in ten.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from synaptune.errors import InputError
from synaptune.metrics.calibration import expected_calibration_error

__all__ = ["Tally"]


class Tally:
    """Error, error per batch, calibration error and class counts of a stream of logits.

    >>> tally = Tally()
    >>> tally.add(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]))
    >>> tally.add(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    >>> round(tally.error, 2), tally.error_per_batch
    (33.33, [50.0, 0.0])
    """

    def __init__(self) -> None:
        self._correct: list[npt.NDArray[np.bool_]] = []
        self._confidence: list[npt.NDArray[np.float32]] = []
        self._predicted: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._labels: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    def add(self, logits: Tensor, labels: Tensor) -> None:
        """Count one batch.

        Args:
            logits: (batch, classes).
            labels: (batch,), class numbers.
        """
        if logits.dim() != 2 or logits.shape[:1] != labels.shape:
            raise InputError(f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not belong together")
        usable = ~torch.isnan(logits).any(dim=1)
        confidence = logits.detach().float().softmax(dim=1).amax(dim=1)
        # Infinite logits are a prediction, but have no softmax.
        confidence = confidence.nan_to_num(nan=0.0).where(usable, torch.zeros_like(confidence))
        classes = logits.argmax(dim=1)
        correct = (classes == labels.to(logits.device)) & usable
        self._correct.append(correct.cpu().numpy())
        self._confidence.append(confidence.cpu().numpy())
        self._predicted = _counted(self._predicted, classes[usable], logits.shape[1])
        self._labels = _counted(self._labels, labels, logits.shape[1])

    @property
    def images(self) -> int:
        """How many images have been counted."""
        return sum(map(len, self._correct))

    @property
    def error(self) -> float:
        """Share of wrong predictions so far, in percent."""
        if not self.images:
            raise InputError("no image has been counted")
        right = sum(int(batch.sum()) for batch in self._correct)
        return 100 * (self.images - right) / self.images

    @property
    def error_per_batch(self) -> list[float]:
        """The same for each batch."""
        return [round(100 * float(1 - batch.mean()), 4) for batch in self._correct]

    @property
    def predicted_per_class(self) -> list[int]:
        """How often each class was predicted; NaN predicts nothing."""
        return [int(count) for count in self._predicted]

    @property
    def labels_per_class(self) -> list[int]:
        """How often each class is the right one."""
        return [int(count) for count in self._labels]

    def calibration_error(self, *, bins: int = 15) -> float:
        """Expected calibration error so far, in percent."""
        return expected_calibration_error(np.concatenate(self._confidence), np.concatenate(self._correct), bins=bins)


def _counted(so_far: npt.NDArray[np.int64], classes: Tensor, least: int) -> npt.NDArray[np.int64]:
    """Add how often each class occurs; the result is as long as the most classes asked for."""
    found = classes.cpu().numpy()
    counts = np.bincount(found[found >= 0], minlength=max(least, len(so_far))).astype(np.int64)
    counts[: len(so_far)] += so_far
    return counts

"""What the adapter did, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BatchRecord"]


@dataclass(frozen=True)
class BatchRecord:
    """One batch.

    Attributes:
        step: how many batches since attaching or the last reset, from 1.
        images: batch size.
        entropy: mean softmax entropy of the returned logits, in nats.
        drift: shift of the first normalised features from the source, in source standard deviations (RMS over
            channels); None where the model has no batch normalisation with stored statistics.
        weight_distance: relative distance of the touched tensors from the source, ||w - w0|| / ||w0||.
        seconds: wall time of the call.
        forwards: images that went through the model, repeats and augmented copies included.
        backwards: images that a gradient was computed over.
        events: what was unusual, as sentences; guards speak here.
    """

    step: int
    images: int
    entropy: float
    drift: float | None
    weight_distance: float
    seconds: float
    forwards: int
    backwards: int
    events: tuple[str, ...] = ()

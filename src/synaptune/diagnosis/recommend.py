"""Which method to take, by what was measured; the rules are few and stand here in full.

Measured (CIFAR-10 with 15 corruptions at severity 5, ResNet-20 and ResNet-32, batch 128): NHL tuned with the soft
likelihood ratio is ahead of Tent, Tent ahead of statistics alone, and all of them far ahead of the source model.
Statistics of small batches are noise, and gradients through them make it worse; a prior made of the source statistics
is safe down to one image. Models without batch normalisation were not part of these measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from synaptune.core.structure import Anatomy
from synaptune.diagnosis.record import Recommendation

__all__ = ["SMALL_BATCH", "recommend"]

SMALL_BATCH = 16
"""Below this many images, statistics of the batch say little (Schneider et al. give the source a weight of 16)."""

_Advice = tuple[str, Mapping[str, Any], str]

_SMALL: tuple[_Advice, ...] = (
    ("norm-partial", {}, "batches are small: source statistics, corrected by the batch; safe from one image on"),
    ("norm-running", {}, "statistics averaged over the stream; for a camera whose world changes slowly"),
)
_BATCH_NORM: tuple[_Advice, ...] = (
    ("nhl-tuned", {}, "lowest error measured (CIFAR-10 ResNets); needs a stream that mixes classes"),
    ("tent", {}, "fewer parameters move, less to gain and less to lose"),
    ("norm", {}, "statistics only, no gradient: the cheapest, and where to start if in doubt"),
)
_NO_BATCH_NORM: tuple[_Advice, ...] = (
    ("tent", {"norms": "all"}, "no batch statistics to adapt; tunes scale and shift, works at any batch size"),
    ("nhl", {}, "Hebbian first layer and early stages; not measured on this kind of model, compare with source"),
    ("modulator-12", {}, "early stages by entropy, no Hebbian layer; compare with source"),
)
_TUNE_STAGES = frozenset({"nhl", "nhl-tuned", "modulator-12"})
_NOTHING: _Advice = ("source", {}, "no method fits this model; name its parts with layout=, or keep it as it is")


def recommend(
    anatomy: Anatomy, *, batch: int | None, accepts: Callable[[str, Mapping[str, Any]], bool]
) -> tuple[Recommendation, ...]:
    """Rank methods for a model, the best first.

    Args:
        anatomy: its parts.
        batch: images per batch, if known.
        accepts: whether a method takes the model under these options.
    """
    if not anatomy.batch_norms:
        advice = _NO_BATCH_NORM if anatomy.norms else _NO_BATCH_NORM[1:]
    elif batch is not None and batch < SMALL_BATCH:
        advice = _SMALL
    else:
        advice = _BATCH_NORM
    single_stage = {"stages": (1,)} if len(anatomy.stages) == 1 else {}
    chosen = []
    for name, settings, why in advice:
        options = {**settings, **(single_stage if name in _TUNE_STAGES else {})}
        if accepts(name, options):
            chosen.append(Recommendation(name, options, why))
    return tuple(chosen) or (Recommendation(*_NOTHING),)

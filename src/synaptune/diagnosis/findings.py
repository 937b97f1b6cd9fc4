"""What to know about a model, or a sample, before adapting: each check looks for one thing and says it in one sentence.

A check is named after the topic of its finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from synaptune.core.structure import Anatomy
from synaptune.diagnosis.recommend import SMALL_BATCH
from synaptune.diagnosis.record import Finding
from synaptune.errors import SynaptuneError
from synaptune.plasticity import synapses_of

__all__ = ["SpatialSizes", "about_model", "about_sample"]


@dataclass(frozen=True)
class _Case:
    model: nn.Module
    anatomy: Anatomy


def about_model(model: nn.Module, anatomy: Anatomy) -> Iterator[Finding]:
    """Findings that need no sample, the weightiest first."""
    case = _Case(model, anatomy)
    for check in _CHECKS:
        text = check(case)
        if text:
            yield Finding(check.__name__.strip("_").replace("_", "-"), text)


def _no_normalisation_layers(case: _Case) -> str:
    if case.anatomy.norms:
        return ""
    return (
        "no normalisation layers: norm, tent and dua have nothing to adapt, nhl lacks the batch statistics it leans on"
    )


def _no_batch_normalisation(case: _Case) -> str:
    if case.anatomy.batch_norms or not case.anatomy.norms:
        return ""
    return "no batch normalisation: the largest and safest gain of adaptation, fresh statistics, is not to be had"


def _frozen_batch_norm(case: _Case) -> str:
    frozen = [
        name
        for name in case.anatomy.norms
        if name not in case.anatomy.batch_norms
        and getattr(case.model.get_submodule(name), "running_mean", None) is not None
    ]
    if not frozen:
        return ""
    return (
        f"{len(frozen)} frozen batch normalisation layers ({type(case.model.get_submodule(frozen[0])).__name__}) keep "
        "their statistics whatever comes; put torch.nn.BatchNorm2d in their place to adapt them"
    )


def _no_running_statistics(case: _Case) -> str:
    without = [name for name in case.anatomy.batch_norms if case.model.get_submodule(name).running_mean is None]
    if not without:
        return ""
    return (
        f"{len(without)} of {len(case.anatomy.batch_norms)} batch normalisation layers have no running statistics: "
        "plain inference uses the batch already, and there is no source to go back to"
    )


def _first_convolution(case: _Case) -> str:
    if case.anatomy.first_conv is None:
        return "no convolution found: methods with a Hebbian layer cannot run; name it by layout=Layout(first_conv=...)"
    layer = case.model.get_submodule(case.anatomy.first_conv)
    try:
        synapses_of(layer, _probe(layer))
    except SynaptuneError as refusal:
        return f"{case.anatomy.first_conv} cannot learn by the Hebbian rule: {refusal}"
    return ""


def _probe(layer: nn.Module) -> Tensor:
    """Zeros in the shape of one kernel, which any convolution can read."""
    kernel, channels = getattr(layer, "kernel_size", (1, 1)), getattr(layer, "in_channels", 1)
    sizes = kernel if isinstance(kernel, tuple) else (kernel,)
    at = next(iter(layer.parameters()), torch.zeros(1))
    return torch.zeros(1, channels, *(2 * size for size in sizes), dtype=at.dtype, device=at.device)


def _few_stages(case: _Case) -> str:
    if len(case.anatomy.stages) >= 2:
        return ""
    found = "one stage was" if case.anatomy.stages else "no stages were"
    return f"{found} found, nhl tunes two by default: choose stages=..., or name them by layout=Layout(stages=...)"


def _no_classifier(case: _Case) -> str:
    return "" if case.anatomy.classifier else "no classifier found: is this a model that puts out logits?"


def _half_precision(case: _Case) -> str:
    halves = sorted({str(p.dtype).removeprefix("torch.") for p in case.model.parameters() if p.dtype.itemsize < 4})
    if not halves:
        return ""
    return (
        f"parameters in {', '.join(halves)}: what adapts is kept in float32 beside them and rounded after each step; "
        "float32 parameters under autocast keep more of it"
    )


def _tied_weights(case: _Case) -> str:
    names: dict[int, list[str]] = {}
    for name, parameter in case.model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    tied = [shared for shared in names.values() if len(shared) > 1]
    if not tied:
        return ""
    more = f" and {len(tied) - 1} more" if len(tied) > 1 else ""
    return f"tied weights ({' = '.join(tied[0][:3])}{more}): adapting one changes the other"


def _training_mode(case: _Case) -> str:
    busy = [
        name for name in (*case.anatomy.batch_norms, *case.anatomy.dropouts) if case.model.get_submodule(name).training
    ]
    if not busy:
        return ""
    return f"the model is in training mode ({len(busy)} layers that care): call .eval() before you predict without us"


def _dropout(case: _Case) -> str:
    if not case.anatomy.dropouts:
        return ""
    count = len(case.anatomy.dropouts)
    return f"{count} dropout layer{'s stay' if count > 1 else ' stays'} off while adapting"


_CHECKS: tuple[Callable[[_Case], str], ...] = (
    _no_normalisation_layers,
    _no_batch_normalisation,
    _frozen_batch_norm,
    _no_running_statistics,
    _first_convolution,
    _few_stages,
    _no_classifier,
    _half_precision,
    _tied_weights,
    _training_mode,
    _dropout,
)


class SpatialSizes:
    """Records, during a forward pass, how many values per channel each batch normalisation layer sees."""

    def __init__(self, model: nn.Module, names: Iterable[str]):
        self.places: dict[str, int] = {}
        self._layers = {name: model.get_submodule(name) for name in names}

    def __enter__(self) -> Self:
        self._handles = [layer.register_forward_pre_hook(self._recorder(name)) for name, layer in self._layers.items()]
        return self

    def _recorder(self, name: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def record(_: nn.Module, args: tuple[Any, ...]) -> None:
            if args and isinstance(args[0], Tensor):
                self.places[name] = args[0][0, 0].numel()

        return record

    def __exit__(self, *exit_reason: object) -> None:
        for handle in self._handles:
            handle.remove()


def about_sample(logits: Tensor, *, batch: int, places: dict[str, int]) -> Iterator[Finding]:
    """Findings from a plain forward pass.

    Args:
        logits: what the model gave.
        batch: number of images.
        places: values per channel and image at each batch normalisation layer.
    """
    if not bool(torch.isfinite(logits).all()):
        yield Finding("logits", "plain inference gives NaN or infinity on the sample")
    if places and batch == 1:
        yield Finding(
            "batch-of-one", "statistics of a single image: take larger batches, norm-partial, or norm-running"
        )
    elif places and batch < SMALL_BATCH:
        yield Finding("small-batch", f"statistics of {batch} images are noisy; {SMALL_BATCH} or more are better")
    single = [name for name, count in places.items() if count == 1]
    if single:
        yield Finding(
            "features-1x1",
            f"{len(single)} batch normalisation layers ({single[0]}, ...) see 1x1 features at this image size: "
            f"{batch} values make up their statistics; use larger images or batches",
        )

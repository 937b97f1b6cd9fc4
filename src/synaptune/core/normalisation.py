"""Which statistics a batch normalisation layer uses, switched without touching what it has stored.

Batch statistics: `training` on and `track_running_stats` off. The layer's own kernel then normalises by the batch,
gradients flow through the statistics, and the running buffers stay as they are. (Setting the buffers to None, as
released TENT does, loses them; switching `track_running_stats` alone leaves an eval-mode layer on source
statistics.)

Mixed statistics: a forward pre-hook computes the statistics and writes them into the buffers, which the method has
declared; the layer stays in eval mode. They count as constants for the gradient, as in the published codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from synaptune.core.hooks import Hook, Learner, attach, hooks_of
from synaptune.core.method import Touches
from synaptune.errors import IncompatibleModelError
from synaptune.functional.statistics import batch_statistics, mix_statistics, prior_weight

__all__ = [
    "DriftMeter",
    "PriorMix",
    "RunningMix",
    "affine_parameters",
    "bake_statistics",
    "batch_norm",
    "statistics_buffers",
    "use_batch_statistics",
    "uses_the_batch",
]


def batch_norm(model: nn.Module, name: str) -> _BatchNorm:
    """Return the batch normalisation layer of this name."""
    module = model.get_submodule(name)
    assert isinstance(module, _BatchNorm)
    return module


def affine_parameters(model: nn.Module, names: Iterable[str]) -> dict[str, nn.Parameter]:
    """Scale and shift of the named layers, as far as they have them."""
    found: dict[str, nn.Parameter] = {}
    for name in names:
        for leaf, parameter in model.get_submodule(name).named_parameters(recurse=False):
            found[f"{name}.{leaf}" if name else leaf] = parameter
    return found


def statistics_buffers(model: nn.Module, names: Iterable[str]) -> Touches:
    """Declare the running statistics of the named layers as touched; refuse layers that have none."""
    buffers = set()
    for name in names:
        layer = batch_norm(model, name)
        if layer.running_mean is None or layer.running_var is None:
            raise IncompatibleModelError(
                f"batch normalisation layer {name!r} has no running statistics (track_running_stats=False), so there "
                "are no source statistics to start from; use batch statistics instead"
            )
        buffers |= {f"{name}.running_mean", f"{name}.running_var"}
        if layer.num_batches_tracked is not None:
            buffers.add(f"{name}.num_batches_tracked")
    return Touches(buffers=frozenset(buffers))


def use_batch_statistics(model: nn.Module, names: Iterable[str]) -> None:
    """Make the named layers normalise by the current batch, with their stored statistics untouched."""
    for name in names:
        layer = batch_norm(model, name)
        layer.training = True
        layer.track_running_stats = False
        layer.momentum = 0.0  # for layers with a forward of their own that moves the buffers whatever the flag says
        attach(layer, _SingleValueFallback())


class _SingleValueFallback(Hook):
    """Uses the source statistics where a batch gives one value per channel, which has no variance."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        x: Tensor = args[0]
        one_value = x.numel() == x.shape[1]
        module.training = not (one_value and module.running_mean is not None)


class PriorMix(Hook):
    """Mixes source statistics, worth `prior` images, with those of the batch (Schneider et al., NeurIPS 2020)."""

    def __init__(self, layer: _BatchNorm, prior: float):
        assert layer.running_mean is not None
        assert layer.running_var is not None
        self.prior = prior
        self.source = (layer.running_mean.clone(), layer.running_var.clone())

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        x: Tensor = args[0]
        _write(module, self.mixed(*batch_statistics(x.detach()), images=x.shape[0]))

    def mixed(self, mean: Tensor, var: Tensor, *, images: int) -> tuple[Tensor, Tensor]:
        """Statistics of a batch of that many images, with those of the source mixed in."""
        return mix_statistics(*self.source, mean, var, weight=prior_weight(images, self.prior))


class RunningMix(Learner):
    """Moves the stored statistics towards the batch by `momentum`, and uses the result."""

    def __init__(self, momentum: float):
        self.momentum = momentum

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not self.awake:
            return
        assert isinstance(module, _BatchNorm)
        assert module.running_mean is not None
        assert module.running_var is not None
        mean, var = batch_statistics(args[0].detach())
        _write(
            module,
            mix_statistics(module.running_mean, module.running_var, mean, var, weight=1 - self.momentum),
        )


def _write(module: nn.Module, statistics: tuple[Tensor, Tensor]) -> None:
    assert isinstance(module, _BatchNorm)
    assert module.running_mean is not None
    assert module.running_var is not None
    with torch.no_grad():
        module.running_mean.copy_(statistics[0])
        module.running_var.copy_(statistics[1])


class DriftMeter(Hook):
    """Measures how far the first normalised features lie from the source: RMS over channels of the shift in sigmas."""

    def __init__(self, layer: _BatchNorm):
        assert layer.running_mean is not None
        assert layer.running_var is not None
        self.mean = layer.running_mean.detach().float().clone()
        self.inverse_deviation = (layer.running_var.detach().float() + layer.eps).rsqrt()
        self.drift: float | None = None
        self.measuring = False

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not self.measuring:
            return
        x: Tensor = args[0]
        places = [dim for dim in range(x.dim()) if dim != 1]
        shift = (x.detach().float().mean(dim=places) - self.mean.to(x.device)) * self.inverse_deviation.to(x.device)
        self.drift = float(shift.square().mean().sqrt())
        self.measuring = False


class _Baker(Hook):
    """Stores the statistics of the batch that goes through a layer, and has the layer use what it has stored.

    At once, so that the layers behind see what the plain module will give them, bit for bit: statistics taken while
    the layers before still used the batch are off by roundings, which grow with depth.
    """

    def __init__(self, mix: PriorMix | None):
        self.passes = 0
        self._mix = mix
        self._count = 0
        self._sum, self._squares = torch.zeros((), device="cpu"), torch.zeros((), device="cpu")

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        assert isinstance(module, _BatchNorm)
        x: Tensor = args[0]
        module.training, module.track_running_stats = False, True
        if x.numel() == x.shape[1]:  # one value per channel: the layer used its stored statistics
            return
        mean, var = self._pooled(*batch_statistics(x.detach()), count=x.numel() // x.shape[1])
        if self._mix is not None:
            mean, var = self._mix.mixed(mean, var, images=x.shape[0])
        if module.running_mean is None:
            kind = x.dtype if module.weight is None else module.weight.dtype  # kernels take no mixture of these
            module.register_buffer("running_mean", torch.empty_like(mean, dtype=kind))
            module.register_buffer("running_var", torch.empty_like(var, dtype=kind))
        _write(module, (mean, var))

    def _pooled(self, mean: Tensor, var: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
        """Of all values that passed so far, each pass weighing as much as it has values."""
        self.passes += 1
        wide_mean, wide_var = mean.cpu().double(), var.cpu().double()  # not every accelerator has doubles
        self._count += count
        self._sum = self._sum + count * wide_mean
        self._squares = self._squares + count * (wide_var + wide_mean**2)
        if self.passes == 1:
            return mean, var
        wide_mean = self._sum / self._count
        return wide_mean.to(mean), (self._squares / self._count - wide_mean**2).clamp(min=0).to(var)


def bake_statistics(model: nn.Module, names: Iterable[str], run: Callable[[], object]) -> list[str]:
    """Store in the named layers the statistics that `run` has them use, and leave them in eval mode.

    The biased variance is stored: it is what the batch was normalised by, so that the same batch gives the same
    output afterwards. Where source statistics are mixed in, so they are here.

    Returns:
        The layers that ran several times, whose statistics are those of all passes together.
    """
    bakers = {name: _Baker(_prior_mix(model.get_submodule(name))) for name in names}
    for name, baker in bakers.items():
        attach(model.get_submodule(name), baker)
    run()
    for name in bakers:
        layer = batch_norm(model, name)
        layer.training, layer.track_running_stats = False, True
    return [name for name, baker in bakers.items() if baker.passes > 1]


def uses_the_batch(module: nn.Module) -> bool:
    """Tell whether a normalisation layer uses statistics of every batch, alone or mixed with those of the source."""
    return module.training or _prior_mix(module) is not None


def _prior_mix(module: nn.Module) -> PriorMix | None:
    return next((hook for hook in hooks_of(module) if isinstance(hook, PriorMix)), None)

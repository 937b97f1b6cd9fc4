"""Exact copy and undo: of the tensors a method declares, and of every mode, flag and gradient of the model.

Only the declared tensors are copied, not the model. Undo writes into the very tensors that are there, so whoever
holds a reference to a parameter sees the old value again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor, nn

from synaptune.core.method import Touches
from synaptune.errors import SynaptuneError

__all__ = ["Backup", "Snapshot", "named_tensors"]

# Flags of normalisation layers that methods switch; modes (`training`) are recorded for every module.
_FLAGS = ("track_running_stats", "momentum")


def named_tensors(model: nn.Module, names: Iterable[str]) -> dict[str, Tensor]:
    """Return the parameters and buffers of these names, live.

    >>> sorted(named_tensors(nn.BatchNorm1d(2), ["weight", "running_var"]))
    ['running_var', 'weight']
    """
    found: dict[str, Tensor] = {}
    for name in names:
        tensor = _find(model, name)
        if tensor is None:
            raise SynaptuneError(
                f"{name} is no tensor of {type(model).__name__}; a model may not be rebuilt while an adapter is "
                "attached: detach, change it, adapt again"
            )
        found[name] = tensor
    return found


def _find(model: nn.Module, name: str) -> Tensor | None:
    owner, _, leaf = name.rpartition(".")
    try:
        tensor = getattr(model.get_submodule(owner), leaf, None)
    except AttributeError:  # no such module
        return None
    return tensor if isinstance(tensor, Tensor) else None


class Snapshot:
    """The state of a model at the moment of attaching, as far as adapting can change it."""

    def __init__(self, model: nn.Module, touches: Touches):
        names = sorted(touches.parameters | touches.buffers)
        with torch.inference_mode(False):
            self.tensors = {name: tensor.detach().clone() for name, tensor in named_tensors(model, names).items()}
        self._modes = {name: module.training for name, module in model.named_modules()}
        self._flags = {
            name: {flag: vars(module)[flag] for flag in _FLAGS if flag in vars(module)}
            for name, module in model.named_modules()
            if isinstance(module, nn.modules.batchnorm._NormBase)
        }
        self._requires_grad = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
        self._gradients = {
            name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the copied tensors."""
        return tuple(self.tensors)

    def non_finite(self) -> list[str]:
        """Names of copied tensors that hold NaN or infinity."""
        return [name for name, tensor in self.tensors.items() if not bool(torch.isfinite(tensor).all())]

    def restore_tensors(self, model: nn.Module) -> list[str]:
        """Put the copied values back, bit for bit; return the names that the model no longer has."""
        lost = []
        with torch.no_grad():
            for name, copy in self.tensors.items():
                tensor = _find(model, name)
                if tensor is None or tensor.shape != copy.shape:
                    lost.append(name)
                else:
                    tensor.copy_(copy)
        return lost

    def restore_flags(self, model: nn.Module) -> None:
        """Put modes, flags, `requires_grad` and gradients back; what joined the model meanwhile is left alone."""
        for name, module in model.named_modules():
            if name in self._modes:
                module.training = self._modes[name]
            for flag, value in self._flags.get(name, {}).items():
                setattr(module, flag, value)
        for name, parameter in model.named_parameters():
            if name in self._requires_grad:
                parameter.requires_grad_(self._requires_grad[name])
                parameter.grad = self._gradients.get(name)

    def changed(self, model: nn.Module) -> dict[str, Tensor]:
        """The live tensors that differ from the copy in any bit."""
        live = named_tensors(model, self.tensors)
        return {name: tensor for name, tensor in live.items() if not _same(tensor, self.tensors[name])}

    def distance(self, model: nn.Module) -> float:
        """Relative distance of the live parameters from the copy: ||w - w0|| / ||w0|| over floating tensors."""
        pairs = [
            (live.detach(), self.tensors[name])
            for name, live in named_tensors(model, self.tensors).items()
            if live.is_floating_point()
        ]
        if not pairs:
            return 0.0
        moved = torch._foreach_norm([live - copy.to(live) for live, copy in pairs])
        size = torch._foreach_norm([copy for _, copy in pairs])
        place = moved[0].device  # one transfer for all, instead of one for each
        moved_norm = torch.stack([norm.float().to(place) for norm in moved]).norm()
        size_norm = torch.stack([norm.float().to(place) for norm in size]).norm()
        return float(moved_norm / size_norm.clamp_min(torch.finfo(torch.float32).tiny))


def _same(left: Tensor, right: Tensor) -> bool:
    """Compare bit patterns, so that NaN equals itself and 0.0 differs from -0.0."""
    first, second = (tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for tensor in (left, right))
    return first.equal(second)


class Backup:
    """A copy of live tensors, taken before a step and put back when the step fails."""

    def __init__(self, live: Mapping[str, Tensor], state: Mapping[str, Tensor]):
        self._tensors = {name: tensor.detach().clone() for name, tensor in live.items()}
        self._state = {name: tensor.detach().clone() for name, tensor in state.items()}

    def put_back(self, model: nn.Module, load_state: Callable[[dict[str, Tensor]], None]) -> None:
        """Undo: write the copies into the model, and hand the method its former state."""
        with torch.no_grad():
            for name, tensor in named_tensors(model, self._tensors).items():
                tensor.copy_(self._tensors[name])
        load_state(self._state)

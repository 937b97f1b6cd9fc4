"""Everything about a model that undo must bring back, as comparable values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def bits(tensor: Tensor) -> tuple[Any, ...]:
    """Bytes, dtype, shape, strides and identity of a tensor."""
    raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return (raw, tensor.dtype, tuple(tensor.shape), tensor.stride(), id(tensor))


def portrait(model: nn.Module) -> dict[str, Any]:
    """Record all state of a model: tensors and marks on them, modes, flags, gradients, hooks, attributes."""
    seen: dict[str, Any] = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        seen[f"tensor {name}"] = bits(tensor)
        seen[f"requires_grad {name}"] = tensor.requires_grad
        seen[f"grad {name}"] = None if tensor.grad is None else bits(tensor.grad)
        seen[f"marks {name}"] = sorted(vars(tensor))
    for name, module in model.named_modules():
        seen[f"training {name}"] = module.training
        seen[f"hooks {name}"] = (
            list(module._forward_pre_hooks.values()),
            list(module._forward_pre_hooks_with_kwargs),
            list(module._forward_hooks.values()),
            list(module._backward_hooks.values()),
        )
        seen[f"type {name}"] = type(module)
        seen[f"attributes {name}"] = {
            key: value for key, value in vars(module).items() if isinstance(value, bool | int | float | str | tuple)
        }
    return seen


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Name what differs between two portraits."""
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))

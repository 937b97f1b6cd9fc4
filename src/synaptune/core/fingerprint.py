"""Which model a saved state belongs to: a digest of names, shapes, types and values of its tensors.

    fingerprint = sha256( for every name in sorted order: name, dtype, shape, bytes of the values )

Device, strides and the order of registration do not enter. An adapter passes the *source* values of the tensors
that it has changed, so the fingerprint stays that of the model as it came in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor, nn

__all__ = ["fingerprint", "fingerprint_of", "persistent_tensors"]


def fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """Digest of named tensors: 64 hexadecimal digits, equal for equal names, shapes, dtypes and bits.

    >>> a = {"w": torch.zeros(2, 3)}
    >>> fingerprint(a) == fingerprint({"w": torch.zeros(3, 2).T}), fingerprint(a) == fingerprint({"v": a["w"]})
    (True, False)
    """
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        # The header carries its own length, so that no name can imitate the end of another tensor.
        header = f"{name}|{tensor.dtype}|{tuple(tensor.shape)}".encode()
        digest.update(len(header).to_bytes(8, "little") + header)
        digest.update(_value_bytes(tensor))
    return digest.hexdigest()


def fingerprint_of(model: nn.Module) -> str:
    """Digest of all parameters and persistent buffers of `model` as they are now."""
    return fingerprint(persistent_tensors(model))


def persistent_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers by name, the very tensors and not copies (tied ones under each name)."""
    return {
        name: value for name, value in model.state_dict(keep_vars=True).items() if isinstance(value, Tensor)
    }


def _value_bytes(tensor: Tensor) -> memoryview:
    # Reinterpreted as bytes inside torch, because NumPy knows neither bfloat16 nor the float8 types.
    flat = tensor.cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy())

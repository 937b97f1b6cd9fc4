"""Which model a saved state belongs to: a digest of the names, shapes, types and values of its tensors.

    fingerprint = sha256( for every name in sorted order: name, dtype, shape, bytes of the values )

Device, strides and order of registration do not enter. An adapter passes the *source* values of the tensors that
it has changed, so that the fingerprint stays that of the model as it came in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from synaptune.errors import IncompatibleModelError

__all__ = ["fingerprint", "fingerprint_of", "persistent_tensors"]


def fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """Digest of named tensors: 64 hexadecimal digits, the same for the same names, shapes, types and bits.

    >>> source = {"weight": torch.arange(6.0).reshape(2, 3)}
    >>> fingerprint({"weight": source["weight"].T.contiguous().T}) == fingerprint(source)
    True
    >>> fingerprint({"bias": source["weight"]}) == fingerprint(source)
    False
    """
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        if tensor.device.type == "meta":
            raise IncompatibleModelError(f"{name!r} is on the meta device and has no values; load the weights first.")
        # Each header tells its own length, so that no name can imitate the values before it.
        header = f"{name}|{tensor.dtype}|{tuple(tensor.shape)}".encode()
        digest.update(len(header).to_bytes(8, "little") + header)
        digest.update(_value_bytes(tensor))
    return digest.hexdigest()


def fingerprint_of(model: nn.Module) -> str:
    """Digest of all parameters and persistent buffers of `model` as they are now."""
    return fingerprint(persistent_tensors(model))


def persistent_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers by name: the very tensors, and tied ones under each of their names."""
    return {name: value for name, value in model.state_dict(keep_vars=True).items() if isinstance(value, Tensor)}


def _value_bytes(tensor: Tensor) -> memoryview:
    # Torch itself reads the values as bytes, because NumPy knows neither bfloat16 nor the 8-bit floats.
    flat = tensor.cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data

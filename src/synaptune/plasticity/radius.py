"""The sphere on which the filters of a layer live: which radius, and the way back onto it.

NHL's rule holds each filter near a sphere of radius R. The paper leaves open whose norm R is; the norms of a
trained first convolution differ by orders of magnitude between filters, so one common R inflates dead
filters, and the default is a radius per filter, read from the source model.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from synaptune.errors import InputError, OptionError

__all__ = ["RadiusKind", "norms", "per_filter", "project", "radius_of", "wide"]

RadiusKind = Literal["filter", "layer", "unit", "current"]


def radius_of(weight: Tensor, kind: RadiusKind = "filter") -> Tensor:
    """Radius of every filter's sphere, (K,), in at least float32.

    Args:
        weight: (K, ...), of the source model.
        kind: "filter", the norm of each filter; "layer", the mean of these norms for all; "unit", 1;
            "current", the norm now: the same numbers as "filter", for a caller who asks again before every
            update.

    >>> radius_of(torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([5., 1.])
    >>> radius_of(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), "layer")
    tensor([3., 3.])
    """
    with torch.no_grad():
        norm = norms(wide(weight))
        match kind:
            case "filter" | "current":
                radius = norm
            case "layer":
                radius = norm.mean().expand_as(norm) if norm.numel() else norm
            case "unit":
                radius = torch.ones_like(norm)
            case _:
                words = ", ".join(get_args(RadiusKind))
                raise OptionError(f"the kind of radius must be one of {words}, got {kind!r}")
        return radius.to(torch.promote_types(weight.dtype, torch.float32)).clone()


def project(weight: Tensor, radius: Tensor) -> Tensor:
    """Rescale every filter to its radius; a filter of zeros has no direction and stays zero.

    Args:
        weight: (K, ...).
        radius: (K,).

    Returns:
        A new tensor like `weight`.

    >>> project(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([10.0, 1.0]))
    tensor([[6., 8.],
            [0., 0.]])
    """
    if radius.shape != weight.shape[:1]:
        raise InputError(f"a weight of {weight.shape[0]} filters needs as many radii, got shape {tuple(radius.shape)}")
    with torch.no_grad():
        exact = wide(weight)
        norm = norms(exact)
        directions = exact / per_filter(torch.where(norm > 0, norm, torch.ones_like(norm)), exact)
        return (directions * per_filter(radius.to(exact), exact)).to(weight.dtype)


def norms(weight: Tensor) -> Tensor:
    """Euclidean norm of every filter, (K,), safe from overflow and underflow of the squares."""
    flat = weight.reshape(weight.shape[0], -1)
    if flat.numel() == 0:
        return flat.new_zeros(flat.shape[0])
    largest = flat.abs().amax(1)
    divisor = torch.where(largest > 0, largest, torch.ones_like(largest))
    relative: Tensor = torch.linalg.vector_norm(flat / divisor.unsqueeze(1), dim=1)
    return relative * largest


def per_filter(values: Tensor, weight: Tensor) -> Tensor:
    """Shape (K,) values so that they multiply the filters of `weight`."""
    return values.reshape(-1, *[1] * (weight.ndim - 1))


def wide(weight: Tensor) -> Tensor:
    """A detached copy in float64 (float32 on devices without it): weights are few, so exactness is free."""
    dtype = torch.float32 if weight.device.type == "mps" else torch.float64
    return weight.detach().to(dtype)

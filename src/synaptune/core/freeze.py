"""Turn an adapted model into a plain one: an eval module without hooks, flags or batch statistics."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from synaptune.core.hooks import remove_hooks
from synaptune.core.normalisation import bake_statistics
from synaptune.core.structure import Anatomy
from synaptune.errors import SynaptuneError

__all__ = ["freeze"]


def freeze(model: nn.Module, anatomy: Anatomy, images: Tensor | None) -> nn.Module:
    """Copy `model` as it is now into a plain module.

    Args:
        model: an adapted model, armed by its adapter.
        anatomy: its parts.
        images: what to take statistics from, for layers that normalise by the batch.
    """
    with torch.inference_mode(False), torch.no_grad():
        plain = copy.deepcopy(model)
        on_batch = [name for name in anatomy.batch_norms if plain.get_submodule(name).training]
        if on_batch:
            if images is None:
                raise SynaptuneError(
                    "this method normalises by the statistics of the batch, and no batch was seen since attaching or "
                    "loading: pass a representative one, adapter.freeze(images)"
                )
            batch = images.clone() if images.is_inference() else images.detach()
            bake_statistics(plain, on_batch, lambda: plain(batch))
    remove_hooks(plain)
    plain.eval()
    for parameter in plain.parameters():
        parameter.requires_grad_(False)
        parameter.grad = None
    return plain

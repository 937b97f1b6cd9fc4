"""Turn an adapted model into a plain one: an eval module without hooks, flags or batch statistics."""

from __future__ import annotations

import copy
import warnings

import torch
from torch import Tensor, nn

from synaptune.core.hooks import release, remove_hooks
from synaptune.core.normalisation import bake_statistics, uses_the_batch
from synaptune.core.structure import Anatomy
from synaptune.errors import SynaptuneError

__all__ = ["FreezeWarning", "freeze"]


class FreezeWarning(UserWarning):
    """A plain module that cannot give quite what the adapter gives."""


def freeze(model: nn.Module, anatomy: Anatomy, images: Tensor | None) -> nn.Module:
    """Copy `model` as it is now into a plain module.

    Args:
        model: an adapted model, armed by its adapter.
        anatomy: its parts.
        images: what to take statistics from, for layers that normalise by the batch or mix it in.
    """
    with torch.inference_mode(False), torch.no_grad():
        plain = copy.deepcopy(model)
        release((*plain.modules(), *plain.parameters()))
        on_batch = [name for name in anatomy.batch_norms if uses_the_batch(plain.get_submodule(name))]
        if images is None and any(plain.get_submodule(name).training for name in on_batch):
            raise SynaptuneError(
                "this method normalises by the statistics of the batch, and no batch was seen since attaching or "
                "loading: pass a representative one, adapter.freeze(images)"
            )
        if images is not None and on_batch:
            batch = images.clone() if images.is_inference() else images.detach()
            repeated = bake_statistics(plain, on_batch, lambda: plain(batch))
            if repeated:
                warnings.warn(_pooled(repeated), FreezeWarning, stacklevel=3)
    remove_hooks(plain)
    plain.eval()
    for parameter in plain.parameters():
        parameter.requires_grad_(False)
        parameter.grad = None
    return plain


def _pooled(names: list[str]) -> str:
    return (
        f"{', '.join(names[:3])} run several times per batch, each time on other statistics. A plain module has one "
        "set for each layer, which is now that of all passes together, so its outputs differ from the adapter's; "
        "running statistics can be frozen as they are (norm: statistics='running', nhl: norm_stats='running')"
    )

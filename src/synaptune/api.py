"""The front door: `adapt`, `methods`, `doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from torch import nn

from synaptune.core.adapter import Adapter
from synaptune.core.callback import Callback
from synaptune.core.guard import Guard
from synaptune.core.method import AdaptOptions, MethodInfo
from synaptune.core.registry import configure, infos
from synaptune.core.structure import Layout
from synaptune.guards import Finite

__all__ = ["adapt", "methods"]


def adapt(
    model: nn.Module,
    method: str | AdaptOptions = "nhl",
    *,
    layout: Layout | None = None,
    guards: Sequence[Guard] | None = None,
    callbacks: Sequence[Callback] = (),
    on_bad_input: Literal["raise", "skip"] = "raise",
    **options: Any,
) -> Adapter:
    """Wrap a trained classifier so that it adapts to the images it predicts.

    The model is adapted in place and reversibly: `adapter.detach()`, or leaving a `with` block, gives it back bit for
    bit.

    Args:
        model: any classifier that maps a batch of images to logits.
        method: a name (see `methods`) or an option set such as `NHL(eta=3e-3)`.
        layout: names of the first convolution, stages or classifier, where finding them by structure goes wrong.
        guards: judges of every step; by default one that undoes steps with non-finite results.
        callbacks: observers of every batch, see `synaptune.callbacks`.
        on_bad_input: refuse a batch that holds NaN or infinity, or skip those images.
        **options: fields of the method's option set, overriding `method`.

    >>> import torch
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    >>> logits = model(torch.rand(8, 3, 8, 8))
    >>> with adapt(model, "tent", lr=1e-3) as adapter:
    ...     logits = adapter(torch.rand(8, 3, 8, 8))
    >>> logits.shape
    torch.Size([8, 10])
    """
    info, chosen = configure(method, options)
    return Adapter(
        model,
        info,
        chosen,
        layout=layout,
        guards=(Finite(),) if guards is None else guards,
        callbacks=callbacks,
        on_bad_input=on_bad_input,
    )


def methods() -> tuple[MethodInfo, ...]:
    """List the methods: name, one line each, what each needs.

    >>> [info.name for info in methods()][:3]
    ['source', 'norm', 'norm-partial']
    """
    return infos()

"""Ask every registered method whether it fits a model: by its own `touches`, on the very model, nothing changed."""

from __future__ import annotations

from torch import nn

from synaptune.core.admission import refuse_model
from synaptune.core.method import MethodInfo
from synaptune.core.registry import infos
from synaptune.core.snapshot import named_tensors
from synaptune.core.structure import Anatomy
from synaptune.diagnosis.record import Fit
from synaptune.errors import SynaptuneError

__all__ = ["ask", "ask_all"]


def ask_all(model: nn.Module, anatomy: Anatomy) -> tuple[Fit, ...]:
    """What each method and preset says, in the order of the registry."""
    return tuple(ask(info, model, anatomy) for info in infos())


def ask(info: MethodInfo, model: nn.Module, anatomy: Anatomy) -> Fit:
    """What one method would change, or why it cannot."""
    try:
        refuse_model(model)
        touches = info.method(info.options).touches(model, anatomy)
    except SynaptuneError as refusal:
        return Fit(info.name, info.base, fits=False, reason=str(refusal))
    except Exception as error:  # noqa: BLE001 - a method that breaks on a model does not fit it, whoever wrote it
        return Fit(info.name, info.base, fits=False, reason=f"{type(error).__name__}: {error}")
    parameters = sum(tensor.numel() for tensor in named_tensors(model, touches.parameters).values())
    whole = sum(parameter.numel() for parameter in model.parameters())
    return Fit(
        info.name,
        info.base,
        fits=True,
        tensors=len(touches.parameters) + len(touches.buffers),
        parameters=parameters,
        buffers=len(touches.buffers),
        share=parameters / whole if whole else 0.0,
    )

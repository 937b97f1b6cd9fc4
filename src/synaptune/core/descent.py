"""Gradient descent on chosen parameters, that leaves no gradient behind and never steps on a non-finite one.

Parameters in half precision are stepped in float32 and rounded afterwards, so that small steps add up.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from synaptune.core.precise import Precise
from synaptune.errors import IncompatibleModelError

__all__ = ["Descent"]

OptimizerName = Literal["adam", "sgd"]

_EXACT = "exact"


class Descent:
    """An optimiser over named parameters, with its state by name.

    Args:
        parameters: what to tune; they are switched to require gradients.
        optimizer: Adam with the usual betas, or SGD.
        lr: step size.
        momentum: of SGD.
    """

    def __init__(
        self,
        parameters: dict[str, nn.Parameter],
        *,
        optimizer: OptimizerName,
        lr: float,
        momentum: float = 0.0,
    ):
        self.parameters = parameters
        self.backwards = 0
        for parameter in parameters.values():
            parameter.requires_grad_(True)
        self._precise = {name: Precise(parameter) for name, parameter in parameters.items()}
        tensors = [precise.value for precise in self._precise.values()]
        self._optimizer: torch.optim.Optimizer = (
            torch.optim.Adam(tensors, lr=lr)
            if optimizer == "adam"
            else torch.optim.SGD(tensors, lr=lr, momentum=momentum)
        )

    def descend(self, loss: Tensor, *, images: int) -> list[str]:
        """Take one step down `loss`; return what kept it from doing so, as sentences.

        Args:
            loss: a scalar with a graph.
            images: how many images the backward pass runs over, for the count.
        """
        if not bool(torch.isfinite(loss)):
            return ["loss is not finite: no update"]
        tensors = list(self.parameters.values())
        gradients: tuple[Tensor | None, ...] = ()
        if loss.requires_grad:
            gradients = torch.autograd.grad(loss, tensors, allow_unused=True)
        present = [gradient for gradient in gradients if gradient is not None]
        if not present:
            raise IncompatibleModelError(
                f"no gradient from the output reaches {next(iter(self.parameters))} or any other tuned parameter: "
                "something on the way (no_grad, detach, NumPy, a quantised layer) cuts the graph. Use a method "
                "without gradients, such as norm or hebb-conv1"
            )
        self.backwards += images
        if not all(bool(torch.isfinite(norm)) for norm in torch._foreach_norm(present)):
            return ["gradient is not finite: no update"]
        self._step(gradients)
        return []

    @torch.no_grad()
    def _step(self, gradients: tuple[Tensor | None, ...]) -> None:
        values = [precise.refresh() for precise in self._precise.values()]
        # `.grad` exists only during the optimiser's step; callers find none of ours.
        for value, gradient in zip(values, gradients, strict=True):
            value.grad = None if gradient is None else gradient.to(value.dtype)
        try:
            self._optimizer.step()
        finally:
            for value in values:
                value.grad = None
        for precise in self._precise.values():
            precise.commit()

    def state(self) -> dict[str, Tensor]:
        """Moments, step counts and exact values, live, keyed `parameter/moment`."""
        state = {f"{name}/{_EXACT}": precise.value for name, precise in self._precise.items() if precise.apart}
        for name, precise in self._precise.items():
            for key, value in self._optimizer.state.get(precise.value, {}).items():
                if isinstance(value, Tensor):
                    state[f"{name}/{key}"] = value
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take over what `state` gave; parameters that it does not mention start afresh."""
        self._optimizer.state.clear()
        for key, value in state.items():
            name, _, moment = key.rpartition("/")
            precise = self._precise[name]
            if moment == _EXACT:
                precise.value.data = value.detach().clone().to(precise.stored.device)
                continue
            # Adam keeps its step count on the CPU; everything else lives where the parameter lives.
            device = value.device if moment == "step" else precise.stored.device
            self._optimizer.state[precise.value][moment] = value.detach().clone().to(device)

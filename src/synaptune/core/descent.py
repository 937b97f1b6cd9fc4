"""Gradient descent on chosen parameters, that leaves no gradient behind and never steps on a non-finite one."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

__all__ = ["Descent"]

OptimizerName = Literal["adam", "sgd"]


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
        tensors = list(parameters.values())
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
        gradients = torch.autograd.grad(loss, tensors, allow_unused=True)
        self.backwards += images
        present = [gradient for gradient in gradients if gradient is not None]
        if not all(bool(torch.isfinite(norm)) for norm in torch._foreach_norm(present)):
            return ["gradient is not finite: no update"]
        # `.grad` exists only during the optimiser's step; callers find none of ours.
        for parameter, gradient in zip(tensors, gradients, strict=True):
            parameter.grad = gradient
        try:
            self._optimizer.step()
        finally:
            for parameter in tensors:
                parameter.grad = None
        return []

    def state(self) -> dict[str, Tensor]:
        """Moments and step counts, live, keyed `parameter/moment`."""
        return {
            f"{name}/{key}": value
            for name, parameter in self.parameters.items()
            for key, value in self._optimizer.state.get(parameter, {}).items()
            if isinstance(value, Tensor)
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take over moments and step counts; parameters that `state` does not mention start afresh."""
        self._optimizer.state.clear()
        for key, value in state.items():
            name, _, moment = key.rpartition("/")
            parameter = self.parameters[name]
            # Adam keeps its step count on the CPU; everything else lives where the parameter lives.
            device = value.device if moment == "step" else parameter.device
            self._optimizer.state[parameter][moment] = value.detach().clone().to(device)

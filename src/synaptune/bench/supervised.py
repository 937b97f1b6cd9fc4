"""The figures' oracle: adaptation by labels, which no method may have.

    L = mean_b cross-entropy(f(x_b), y_b),  Adam on all parameters, batch statistics as the other adapted models have

It shows what features a model would learn on a stream if it were told the answers. It works on a copy, and is no
registered method: nothing outside this package can run it by name.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synaptune.core.normalisation import use_batch_statistics
from synaptune.core.structure import find_anatomy

__all__ = ["SupervisedOracle"]


class SupervisedOracle:
    """A copy of a model that learns from labels, batch by batch.

    Args:
        model: the source model; left as it is.
        lr: step size of Adam.

    >>> from torch import nn
    >>> model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> oracle = SupervisedOracle(model.append(nn.Linear(4, 2)))
    >>> images, labels = torch.rand(8, 3, 8, 8), torch.tensor([0, 1] * 4)
    >>> first = oracle.learn(images, labels)
    >>> oracle.learn(images, labels) < first
    True
    """

    def __init__(self, model: nn.Module, *, lr: float = 1e-3):
        self.model = copy.deepcopy(model).eval()
        self.anatomy = find_anatomy(self.model)
        use_batch_statistics(self.model, self.anatomy.batch_norms)
        parameters = [parameter.requires_grad_(True) for parameter in self.model.parameters()]
        self._optimizer = torch.optim.Adam(parameters, lr=lr)

    def learn(self, images: Tensor, labels: Tensor) -> float:
        """Take one step; return the loss before it."""
        with torch.enable_grad():
            loss = F.cross_entropy(self.model(images), labels)
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self._optimizer.step()
        return float(loss.detach())

    @torch.no_grad()
    def predict(self, images: Tensor) -> Tensor:
        """Predict with the current state."""
        logits: Tensor = self.model(images)
        return logits

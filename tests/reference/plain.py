"""The methods once more, written as plainly as possible in float64, straight from their formulas.

Nothing here is shared with the library: normalisation, entropy, Adam, SGD, patches and momenta are spelled out.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Weights = dict[str, Tensor]


def normalise(x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    x = (x - mean[None, :, None, None]) / torch.sqrt(var[None, :, None, None] + 1e-5)
    return x * weight[None, :, None, None] + bias[None, :, None, None]


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    mean = x.mean(dim=(0, 2, 3))
    return mean, ((x - mean[None, :, None, None]) ** 2).mean(dim=(0, 2, 3))


Statistics = Callable[[str, Tensor, Weights], tuple[Tensor, Tensor]]


def of_batch(name: str, x: Tensor, w: Weights) -> tuple[Tensor, Tensor]:
    return moments(x)


def of_source(name: str, x: Tensor, w: Weights) -> tuple[Tensor, Tensor]:
    return w[f"{name}.running_mean"], w[f"{name}.running_var"]


def conv_norm_relu(w: Weights, x: Tensor, statistics: Statistics, conv: str, norm: str, stride: int = 1) -> Tensor:
    x = F.conv2d(x, w[f"{conv}.weight"], w.get(f"{conv}.bias"), padding=1, stride=stride)
    mean, var = statistics(norm, x, w)
    return torch.relu(normalise(x, mean, var, w[f"{norm}.weight"], w[f"{norm}.bias"]))


def features(w: Weights, images: Tensor, statistics: Statistics, *, prefix: str = "") -> Tensor:
    """tests.support.models.TinyCnn without dropout, up to its second stage."""
    x = conv_norm_relu(w, images, statistics, f"{prefix}stem", f"{prefix}stem_norm")
    x = conv_norm_relu(w, x, statistics, f"{prefix}one.0", f"{prefix}one.1")
    return conv_norm_relu(w, x, statistics, f"{prefix}two.0", f"{prefix}two.1", stride=2)


def forward(w: Weights, images: Tensor, statistics: Statistics, *, prefix: str = "") -> Tensor:
    """The whole of TinyCnn without dropout."""
    x = features(w, images, statistics, prefix=prefix)
    for stage in ("three", "four"):
        x = conv_norm_relu(w, x, statistics, f"{prefix}{stage}.0", f"{prefix}{stage}.1", stride=2)
    return x.mean(dim=(2, 3)) @ w[f"{prefix}out.weight"].T + w[f"{prefix}out.bias"]


def rotation_forward(w: Weights, images: Tensor, statistics: Statistics) -> Tensor:
    """The rotation branch of tests.support.models.TinyRotation."""
    x = features(w, images, statistics, prefix="net.")
    x = conv_norm_relu(w, x, statistics, "head.0", "head.1")
    return x.mean(dim=(2, 3)) @ w["head.5.weight"].T + w["head.5.bias"]


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    p = torch.exp(logits) / torch.exp(logits).sum(dim=1, keepdim=True)
    return -torch.log(p[torch.arange(len(labels)), labels]).mean()


def entropy(logits: Tensor) -> Tensor:
    p = torch.exp(logits) / torch.exp(logits).sum(dim=1, keepdim=True)
    return -(p * torch.log(p)).sum(dim=1)


def soft_likelihood_ratio(logits: Tensor) -> Tensor:
    p = torch.exp(logits) / torch.exp(logits).sum(dim=1, keepdim=True)
    q = p.clamp(1e-4, 1 - 1e-4)
    return -0.5 * (p * torch.log(q / (1 - q))).sum(dim=1)


def negative_entropy_of_mean(logits: Tensor) -> Tensor:
    p = torch.exp(logits) / torch.exp(logits).sum(dim=1, keepdim=True)
    mean = p.mean(dim=0)
    return (mean * torch.log(mean)).sum()


class Adam:
    """Kingma and Ba's algorithm 1."""

    def __init__(self, lr: float):
        self.lr, self.t = lr, 0
        self.m: Weights = {}
        self.v: Weights = {}

    def step(self, w: Weights, gradients: Weights) -> None:
        self.t += 1
        for name, g in gradients.items():
            self.m[name] = 0.9 * self.m.get(name, torch.zeros_like(g)) + 0.1 * g
            self.v[name] = 0.999 * self.v.get(name, torch.zeros_like(g)) + 0.001 * g * g
            m_hat, v_hat = self.m[name] / (1 - 0.9**self.t), self.v[name] / (1 - 0.999**self.t)
            w[name] = w[name] - self.lr * m_hat / (torch.sqrt(v_hat) + 1e-8)


class Sgd:
    """Heavy-ball momentum, first velocity equal to the gradient."""

    def __init__(self, lr: float, momentum: float):
        self.lr, self.momentum = lr, momentum
        self.velocity: Weights = {}

    def step(self, w: Weights, gradients: Weights) -> None:
        for name, g in gradients.items():
            previous = self.velocity.get(name)
            self.velocity[name] = g if previous is None else self.momentum * previous + g
            w[name] = w[name] - self.lr * self.velocity[name]


def gradient(w: Weights, names: list[str], loss: Callable[[Weights], Tensor]) -> Weights:
    leaves = {name: w[name].detach().clone().requires_grad_() for name in names}
    found = torch.autograd.grad(loss({**w, **leaves}), list(leaves.values()))
    return dict(zip(leaves, found, strict=True))


def hebbian_step(weight: Tensor, images: Tensor, radius: Tensor, *, eta: float, tau: float, project: bool) -> Tensor:
    """Reading C of the soft Hebbian rule with the largest change scaled to eta, patch by patch."""
    count, _, height, width = images.shape
    padded = F.pad(images, (1, 1, 1, 1))
    change = torch.zeros_like(weight)
    for n in range(count):
        for i in range(height):
            for j in range(width):
                patch = padded[n, :, i : i + 3, j : j + 3]
                u = torch.stack([(weight[k] / radius[k] * patch).sum() for k in range(len(weight))])
                y = torch.exp(u / tau) / torch.exp(u / tau).sum()
                for k in range(len(weight)):
                    change[k] += y[k] * (radius[k] * patch - u[k] * weight[k])
    weight = weight + eta * change / change.abs().max()
    if project:
        weight = torch.stack([weight[k] * radius[k] / torch.sqrt((weight[k] ** 2).sum()) for k in range(len(weight))])
    return weight

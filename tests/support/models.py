"""Tiny classifiers, one for each trait that adaptation must cope with. All take (batch, 3, 8, 8) and give 5 classes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

CLASSES = 5
SIZE = 8


def _stage(width_in: int, width: int, norm: Callable[[int], nn.Module], *, stride: int = 2) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(width_in, width, 3, stride=stride, padding=1, bias=False),
        norm(width),
        nn.ReLU(),
        nn.Dropout(0.3),
    )


class TinyCnn(nn.Module):
    """Convolution, norm, four stages, linear; dropout everywhere."""

    def __init__(self, norm: Callable[[int], nn.Module] = nn.BatchNorm2d, *, bias: bool = False):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1, bias=bias)
        self.stem_norm = norm(6)
        self.one = _stage(6, 8, norm, stride=1)
        self.two = _stage(8, 8, norm)
        self.three = _stage(8, 12, norm)
        self.four = _stage(12, 12, norm)
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(12, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        features = torch.relu(self.stem_norm(self.stem(images)))
        features = self.four(self.three(self.two(self.one(features))))
        logits: Tensor = self.out(self.drop(features.mean(dim=(2, 3))))
        return logits


class TinyRotation(nn.Module):
    """A rotation-trained classifier, as TTT needs it."""

    shared_names = ("net.stem", "net.stem_norm", "net.one", "net.two")
    head_name = "head"

    def __init__(self) -> None:
        super().__init__()
        self.net = TinyCnn()
        self.head = nn.Sequential(
            nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
        self.head.append(nn.Linear(8, 4))
        self.synaptune_layout = {
            "first_conv": "net.stem",
            "stages": (("net.one",), ("net.two",), ("net.three",), ("net.four",)),
            "classifier": "net.out",
        }

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits

    def rotation_logits(self, images: Tensor) -> Tensor:
        net = self.net
        shared = net.two(net.one(torch.relu(net.stem_norm(net.stem(images)))))
        logits: Tensor = self.head(shared)
        return logits


class TinyVit(nn.Module):
    """A patch embedding and four transformer blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 16, 2, stride=2)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 2, 24, dropout=0.1, batch_first=True, norm_first=True) for _ in range(4)
        )
        self.norm = nn.LayerNorm(16)
        self.out = nn.Linear(16, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.embed(images).flatten(2).transpose(1, 2)
        for block in self.blocks:
            tokens = block(tokens)
        logits: Tensor = self.out(self.norm(tokens).mean(dim=1))
        return logits


BUILDERS: dict[str, Callable[[], nn.Module]] = {
    "bn": TinyCnn,
    "bn-biased-conv": lambda: TinyCnn(bias=True),
    "bn-no-affine": lambda: TinyCnn(lambda width: nn.BatchNorm2d(width, affine=False)),
    "gn": lambda: TinyCnn(lambda width: nn.GroupNorm(2, width)),
    "vit": TinyVit,
    "rotation": TinyRotation,
}


def build(name: str, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> nn.Module:
    """Build a tiny classifier with settled statistics, in eval mode."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BUILDERS[name]()
        with torch.no_grad():
            for module in model.modules():
                if isinstance(module, nn.BatchNorm2d):
                    assert module.running_mean is not None
                    assert module.running_var is not None
                    module.running_mean.normal_(0, 0.1)
                    module.running_var.uniform_(0.5, 1.5)
                    assert module.num_batches_tracked is not None
                    module.num_batches_tracked.fill_(7)
    return model.to(dtype).eval()


def batches(count: int = 3, size: int = 8, *, seed: int = 1, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Draw random image batches."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(size, 3, SIZE, SIZE, generator=generator).to(dtype) for _ in range(count)]

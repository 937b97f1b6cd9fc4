"""The zoo's models for CIFAR-10 and CIFAR-100: constants, and a line of code each."""

from __future__ import annotations

from functools import partial

from torch import nn

from synaptune.models.card import Card
from synaptune.models.normalise import HALF, IMAGENET_MEAN, IMAGENET_STD
from synaptune.models.resnet26 import PreactResNet
from synaptune.models.resnet_cifar import ResNetCifar
from synaptune.models.rotation import RotationModel
from synaptune.models.wide_resnet import WideResNet
from synaptune.models.zoo import ZooEntry, register

__all__ = ["CIFAR10_CLASSES"]

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

# Published test errors, and file names with the hash that the publisher put into them.
_AKAMASTER = {
    20: (8.27, "resnet20-12fca82f.th"),
    32: (7.37, "resnet32-d509ac18.th"),
    44: (6.90, "resnet44-014dd654.th"),
    56: (6.61, "resnet56-4bfd9763.th"),
    110: (6.32, "resnet110-1d1ed7c2.th"),
}


def _cifar10(name: str, **values: object) -> Card:
    shared = {
        "trained_on": "CIFAR-10 train",
        "num_classes": 10,
        "class_names": CIFAR10_CLASSES,
        "error_on": "CIFAR-10 test",
        "normalisation": "inside",
        "mean": HALF,
        "std": HALF,
    }
    return Card(name=name, **(shared | values))  # type: ignore[arg-type]  # checked by the tests of the zoo


def _resnet_cifar(depth: int, num_classes: int) -> nn.Module:
    return ResNetCifar(depth, num_classes=num_classes)


def _resnet26(num_classes: int) -> PreactResNet:
    return PreactResNet(26, num_classes=num_classes)


def _resnet26_group_norm(num_classes: int) -> PreactResNet:
    return PreactResNet(26, num_classes=num_classes, norm="group")


def _wide(depth: int, widen: int, normalised: bool, num_classes: int) -> nn.Module:
    constants = HALF if normalised else None
    return WideResNet(depth, widen, num_classes=num_classes, mean=constants, std=constants)


for _depth, (_error, _file) in _AKAMASTER.items():
    register(
        ZooEntry(
            build=partial(_resnet_cifar, _depth),
            card=_cifar10(
                f"resnet{_depth}-cifar10",
                architecture=f"ResNet-{_depth}, option-A shortcuts",
                mean=IMAGENET_MEAN,
                std=IMAGENET_STD,
                file=_file,
                url="https://github.com/akamaster/pytorch_resnet_cifar10/tree/master/pretrained_models",
                origin="akamaster/pytorch_resnet_cifar10",
                licence="BSD-2-Clause",
                error=_error,
            ),
        )
    )

_OURS = {
    "architecture": "ResNet-26, pre-activation, batch norm",
    "origin": "synaptune, trained jointly with a rotation head",
    "licence": "Apache-2.0",
}

register(
    ZooEntry(
        build=_resnet26,
        card=_cifar10("resnet26-cifar10", **_OURS),
        bundled=("resnet26-cifar10.safetensors",),
    )
)
register(
    ZooEntry(
        build=lambda num_classes: RotationModel(_resnet26(num_classes)),
        card=_cifar10("resnet26-cifar10-rotation", **_OURS),
        bundled=("resnet26-cifar10.safetensors", "resnet26-cifar10-head.safetensors"),
    )
)
register(
    ZooEntry(
        build=_resnet26,
        card=_cifar10(
            "resnet26-cifar10-dua",
            architecture="ResNet-26, pre-activation, batch norm",
            file="resnet26-dua.pt",
            url="https://drive.google.com/file/d/12I_4qlChWMeigej3KcCtU0JyGI69tOxo/view",
            origin="jmiemirza/DUA",
            licence="not stated",
            notes="the published file has no fixed name; save it under the one given here",
        ),
    )
)
register(
    ZooEntry(
        build=lambda num_classes: RotationModel(_resnet26_group_norm(num_classes)),
        card=_cifar10(
            "resnet26-gn-cifar10-rotation",
            architecture="ResNet-26, pre-activation, 8 groups",
            file="resnet26-gn-ttt.pth",
            url="https://github.com/yueatsprograms/ttt_cifar_release",
            origin="yueatsprograms/ttt_cifar_release (main.py --shared layer2 --group_norm 8)",
            licence="MIT",
            notes="the training script calls every file ckpt.pth; save it under the one given here",
        ),
    )
)
register(
    ZooEntry(
        build=_resnet26_group_norm,
        card=_cifar10(
            "resnet26-gn-cifar10",
            architecture="ResNet-26, pre-activation, 8 groups",
            file="resnet26-gn-ttt.pth",
            url="https://github.com/yueatsprograms/ttt_cifar_release",
            origin="yueatsprograms/ttt_cifar_release (main.py --group_norm 8)",
            licence="MIT",
            notes="the training script calls every file ckpt.pth; save it under the one given here",
        ),
    )
)
register(
    ZooEntry(
        build=partial(_wide, 28, 10, False),
        card=_cifar10(
            "wrn-28-10-cifar10",
            architecture="WideResNet-28-10",
            mean=(),
            std=(),
            normalisation="none",
            file="Standard.pt",
            url="https://drive.google.com/file/d/1t98aEuzeTL8P7Kpd5DIrCoCL21BNZUhC/view",
            origin="RobustBench/robustbench, entry Standard",
            licence="MIT",
            error=5.22,
        ),
    )
)
register(
    ZooEntry(
        build=partial(_wide, 40, 2, True),
        card=_cifar10(
            "wrn-40-2-cifar10-augmix",
            architecture="WideResNet-40-2",
            file="Hendrycks2020AugMix_WRN.pt",
            url="https://drive.google.com/file/d/1wy7gSRsUZzCzj8QhmTbcnwmES_2kkNph/view",
            origin="google-research/augmix, by RobustBench/robustbench, entry Hendrycks2020AugMix_WRN",
            licence="Apache-2.0",
        ),
    )
)
register(
    ZooEntry(
        build=partial(_wide, 40, 2, True),
        card=_cifar10(
            "wrn-40-2-cifar10",
            architecture="WideResNet-40-2",
            file="wrn-40-2-cifar10.safetensors",
            origin="synaptune, trained with AugMix and its consistency loss",
            licence="Apache-2.0",
            notes="too large for the package; `synaptune train wrn-40-2-cifar10` makes it",
        ),
    )
)
register(
    ZooEntry(
        build=partial(_wide, 40, 2, True),
        card=_cifar10(
            "wrn-40-2-cifar100-augmix",
            architecture="WideResNet-40-2",
            trained_on="CIFAR-100 train",
            num_classes=100,
            class_names=(),
            error_on="CIFAR-100 test",
            file="Hendrycks2020AugMix_WRN_cifar100.pt",
            url="https://drive.google.com/file/d/1XpFFdCdU9LcDtcyNfo6_BV1RZHKKkBVE/view",
            origin="google-research/augmix, by RobustBench/robustbench, entry Hendrycks2020AugMix_WRN",
            licence="Apache-2.0",
            error=23.72,
            notes="published under the same file name as the CIFAR-10 weights; save it under the one given here",
        ),
    )
)

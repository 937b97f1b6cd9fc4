"""The zoo's models for digits: the published SVHN network, and the same one trained here on MNIST."""

from __future__ import annotations

from synaptune.models.card import Card
from synaptune.models.digit_net import DIGIT_NAMES, INDEX_OF_DIGIT, DigitNet
from synaptune.models.normalise import HALF
from synaptune.models.zoo import ZooEntry, register

__all__: list[str] = []


def _digit_net(num_classes: int) -> DigitNet:
    return DigitNet(num_classes=num_classes)


register(
    ZooEntry(
        build=_digit_net,
        card=Card(
            name="digits-svhn",
            architecture="pytorch-playground digit network, batch norm without scale and shift",
            trained_on="SVHN train",
            num_classes=10,
            class_names=DIGIT_NAMES,
            label_map=INDEX_OF_DIGIT,
            mean=HALF,
            std=HALF,
            normalisation="inside",
            file="svhn-f564f3d8.pth",
            url="http://ml.cs.tsinghua.edu.cn/~chenxi/pytorch-models/svhn-f564f3d8.pth",
            origin="aaron-xichen/pytorch-playground",
            licence="MIT",
            error=3.97,
            error_on="SVHN test",
        ),
    )
)
register(
    ZooEntry(
        build=_digit_net,
        card=Card(
            name="digits-mnist",
            architecture="pytorch-playground digit network, batch norm without scale and shift",
            trained_on="MNIST train",
            num_classes=10,
            class_names=DIGIT_NAMES,
            label_map=INDEX_OF_DIGIT,
            mean=HALF,
            std=HALF,
            normalisation="inside",
            file="digits-mnist.safetensors",
            origin="synaptune",
            licence="Apache-2.0",
            error_on="MNIST test",
            notes="1.2 MB in half precision, so not bundled; `synaptune train` makes it in minutes",
        ),
    )
)

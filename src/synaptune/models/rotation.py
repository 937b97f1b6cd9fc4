"""A classifier with a second head that tells by how many quarter turns an image was rotated.

Test-time training (Sun et al., ICML 2020) adapts the layers that both heads share by the rotation head's loss,
which needs no labels. The head is its own copy of everything behind the shared layers (third stage, norm, ReLU,
pool) and a linear layer with four outputs. Published checkpoints hold it as a sequence numbered 0 (stage), 1
(norm), ..., 5 (linear); here the parts have names, and the loader translates.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import ClassVar

from torch import Tensor, nn

from synaptune.models.resnet26 import PreactResNet

__all__ = ["RotationModel"]


class RotationModel(nn.Module):
    """A ResNet-26 with a rotation head on its second stage.

    `forward` is the classifier alone, so that everything that takes a classifier takes this too.

    Shapes: images in [0, 1], (batch, 3, 32, 32), to logits (batch, classes), or (batch, 4) for rotations, where
    index k means k quarter turns counter-clockwise.

    Args:
        net: the classifier, whose first layers are shared; it is used, not copied.
    """

    shared_names: ClassVar[tuple[str, ...]] = ("net.conv1", "net.layer1", "net.layer2")
    head_name: ClassVar[str] = "head"
    # The last linear layer of the module tree is the head's, so the classifier has to be named.
    synaptune_layout: ClassVar[dict[str, object]] = {
        "first_conv": "net.conv1",
        "stages": (("net.layer1",), ("net.layer2",), ("net.layer3",)),
        "classifier": "net.fc",
    }

    def __init__(self, net: PreactResNet):
        super().__init__()
        self.net = net
        self.head = nn.Sequential(
            OrderedDict[str, nn.Module](
                layer3=copy.deepcopy(net.layer3),
                bn=copy.deepcopy(net.bn),
                relu=copy.deepcopy(net.relu),
                avgpool=copy.deepcopy(net.avgpool),
                flatten=nn.Flatten(),
                fc=nn.Linear(net.fc.in_features, 4),
            )
        )

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits

    def rotation_logits(self, images: Tensor) -> Tensor:
        """How much each image looks turned by 0, 1, 2 or 3 quarters."""
        logits: Tensor = self.head(self.net.shared_features(images))
        return logits

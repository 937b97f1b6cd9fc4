"""Backbones of the paper, loaders for published checkpoints, and the training of source models."""

from synaptune.models import zoo, zoo_cifar, zoo_digits, zoo_imagenet
from synaptune.models.card import Card
from synaptune.models.digit_net import DigitNet
from synaptune.models.loading import LoadedModel, load_model
from synaptune.models.normalise import Normalise, Normalised
from synaptune.models.resnet26 import PreactResNet, resnet26
from synaptune.models.resnet_cifar import ResNetCifar
from synaptune.models.rotation import RotationModel
from synaptune.models.wide_resnet import WideResNet

__all__ = [
    "Card",
    "DigitNet",
    "LoadedModel",
    "Normalise",
    "Normalised",
    "PreactResNet",
    "ResNetCifar",
    "RotationModel",
    "WideResNet",
    "load_model",
    "resnet26",
    "zoo",
    "zoo_cifar",
    "zoo_digits",
    "zoo_imagenet",
]

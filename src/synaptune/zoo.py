"""The paper's backbones by name, under a short name of its own; `synaptune.models.zoo` is where it is written.

>>> "resnet20-cifar10" in names()
True
"""

from synaptune.models.zoo import ZooEntry, card, create, entry, find_weights, load, names, register, weight_folders

__all__ = ["ZooEntry", "card", "create", "entry", "find_weights", "load", "names", "register", "weight_folders"]

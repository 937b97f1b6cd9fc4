"""Split a trained ResNet-26 with rotation head into the two files that the package carries.

    synaptune train resnet26-cifar10-rotation --out runs/resnet26
    python scripts/bundle_weights.py runs/resnet26/resnet26-cifar10-rotation.safetensors

The classifier alone stays below one megabyte; the head is read only by methods that need it.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from synaptune.models import Card
from synaptune.models.checkpoint_file import read_checkpoint
from synaptune.models.weights import write_weights

BUNDLE = Path(__file__).resolve().parents[1] / "src" / "synaptune" / "models" / "weights"


def bundle(trained: Path, folder: Path) -> None:
    """Write `resnet26-cifar10.safetensors` and `resnet26-cifar10-head.safetensors` with the trained model's card."""
    checkpoint = read_checkpoint(trained)
    card = Card.from_json(checkpoint.metadata["card"], where=str(trained))
    card = dataclasses.replace(card, licence="Apache-2.0", origin="synaptune, trained jointly with a rotation head")
    for part, name in (("net.", "resnet26-cifar10"), ("head.", "resnet26-cifar10-head")):
        tensors = {key: tensor for key, tensor in checkpoint.content.items() if key.startswith(part)}
        write_weights(folder / f"{name}.safetensors", tensors, card=dataclasses.replace(card, name=name))


if __name__ == "__main__":
    bundle(Path(sys.argv[1]), BUNDLE)

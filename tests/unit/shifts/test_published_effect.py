"""The effect on a trained network is that of the published generator.

`benchmarks/corruption_fidelity.py` checks all 10,000 images against bars of 1.5 points per cell and 0.5 for the mean;
here 2,000 images do. Their binomial error alone is about one point per cell (0.3 for the mean of 15), and the first
2,000 images are not exactly as hard as all, hence the wider bars of 4 and 1.5.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from synaptune import shifts
from synaptune.models.resnet_cifar import ResNetCifar

CIFAR = Path(os.environ.get("SYNAPTUNE_DATA", "~/.cache/synaptune")).expanduser() / "cifar-10-batches-bin"
SHARED = Path(os.environ.get("SYNAPTUNE_SHARED", Path(__file__).resolve().parents[4] / "shared"))
WEIGHTS = SHARED / "data" / "weights" / "resnet20-12fca82f.th"
# Errors in percent at severity 5, data of the published generator, all 10,000 images.
SOURCE = (75.8, 69.7, 77.3, 41.5, 58.2, 40.2, 40.8, 30.8, 46.2, 34.5, 13.1, 73.4, 30.4, 60.7, 29.7)
NORM = (42.2, 42.1, 47.0, 18.2, 43.8, 21.6, 19.5, 27.9, 30.4, 21.9, 15.6, 21.6, 29.2, 29.1, 31.8)


def error(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    wrong = 0
    with torch.inference_mode():
        for pixels, truth in zip(images.split(128), labels.split(128), strict=True):
            wrong += int((network(pixels.permute(0, 3, 1, 2).float() / 255).argmax(1) != truth).sum())
    return 100 * wrong / len(labels)


@pytest.mark.data
@pytest.mark.slow
def test_errors_of_a_resnet_20_are_the_published_ones() -> None:
    for needed in (CIFAR / "test_batch.bin", WEIGHTS):
        if not needed.is_file():
            pytest.skip(f"{needed} is not there")
    if shifts.frost_source() != "published":
        pytest.skip("the published photographs of frost are not in the data folders")
    records = np.fromfile(CIFAR / "test_batch.bin", dtype=np.uint8).reshape(-1, 3073)[:2000]
    images = np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    labels = torch.from_numpy(records[:, 0].astype(np.int64))
    source, norm = ResNetCifar(20).eval(), ResNetCifar(20).eval()
    state = torch.load(WEIGHTS, map_location="cpu", weights_only=True)["state_dict"]
    for network in (source, norm):
        network.load_state_dict({name.removeprefix("module."): value for name, value in state.items()})
    for module in norm.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.train()
            module.track_running_stats = False
    gaps = np.empty((15, 2))
    for place, name in enumerate(shifts.CORRUPTIONS):
        corrupted = torch.from_numpy(shifts.corrupt(images, name, 5))
        gaps[place] = (
            error(source, corrupted, labels) - SOURCE[place],
            error(norm, corrupted, labels) - NORM[place],
        )
    assert np.abs(gaps).max() < 4, dict(zip(shifts.CORRUPTIONS, gaps.round(2).tolist(), strict=True))
    assert np.abs(gaps.mean(axis=0)).max() < 1.5, gaps.mean(axis=0)

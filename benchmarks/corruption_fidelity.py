"""Compare the effect of our corruptions with that of the published generator, on CIFAR-10 and a ResNet-20.

    python benchmarks/corruption_fidelity.py [--images 10000] [--seed 0] [--weights FILE] [--out FILE]

For each corruption at severity 5: the error of the unadapted network (source) and with the statistics of each batch
of 128 (NORM), next to the errors on data made by `make_cifar_c.py`. Bars: 1.5 points per cell, 0.5 for the mean.
Needs the CIFAR-10 test set (SYNAPTUNE_DATA) and akamaster's `resnet20-12fca82f.th` (SYNAPTUNE_SHARED or --weights).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from synaptune import shifts
from synaptune.models.resnet_cifar import ResNetCifar

ROOT = Path(__file__).resolve().parents[1]
# Errors in percent with the published generator, seed 0, the same network and test set; in the benchmark's order.
PUBLISHED_SOURCE = (75.8, 69.7, 77.3, 41.5, 58.2, 40.2, 40.8, 30.8, 46.2, 34.5, 13.1, 73.4, 30.4, 60.7, 29.7)
PUBLISHED_NORM = (42.2, 42.1, 47.0, 18.2, 43.8, 21.6, 19.5, 27.9, 30.4, 21.9, 15.6, 21.6, 29.2, 29.1, 31.8)
CELL_BAR, MEAN_BAR = 1.5, 0.5
BATCH = 128


def main() -> int:
    """Measure, print the table, write the file; 1 if a bar is missed."""
    options = parsed()
    torch.set_num_threads(options.threads)
    images, labels = cifar10_test(options.data, options.images)
    network = resnet20(options.weights)
    rows = [measured(network, images, labels, name, options.seed) for name in shifts.CORRUPTIONS]
    passed = print_table(rows)
    result = {"protocol": protocol(options), "rows": rows, "means": means(rows), "passed": passed}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if passed else 1


def parsed() -> argparse.Namespace:
    """Read the command line."""
    shared = Path(os.environ.get("SYNAPTUNE_SHARED", ROOT.parent / "shared"))
    data = Path(os.environ.get("SYNAPTUNE_DATA", "~/.cache/synaptune")).expanduser()
    parser = argparse.ArgumentParser(description="Effect of the corruptions next to the published one.")
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data", type=Path, default=data / "cifar-10-batches-bin" / "test_batch.bin")
    parser.add_argument("--weights", type=Path, default=shared / "data" / "weights" / "resnet20-12fca82f.th")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "corruption-fidelity.json")
    return parser.parse_args()


def cifar10_test(file: Path, count: int) -> tuple[NDArray[np.uint8], Tensor]:
    """Read the first images and labels of CIFAR-10's binary test batch."""
    records = np.fromfile(file, dtype=np.uint8).reshape(-1, 3073)[:count]
    images = np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return images, torch.from_numpy(records[:, 0].astype(np.int64))


def resnet20(file: Path) -> nn.Module:
    """Load the published ResNet-20."""
    network = ResNetCifar(20)
    state = torch.load(file, map_location="cpu", weights_only=True)["state_dict"]
    network.load_state_dict({name.removeprefix("module."): value for name, value in state.items()})
    return network.eval()


def measured(network: nn.Module, images: NDArray[np.uint8], labels: Tensor, name: str, seed: int) -> dict[str, Any]:
    """Return both errors on one corruption, and the published ones."""
    corrupted = torch.from_numpy(shifts.corrupt(images, name, 5, seed=seed))
    place = shifts.CORRUPTIONS.index(name)
    return {
        "corruption": name,
        "source": error(network, corrupted, labels, batch_statistics=False),
        "source_published": PUBLISHED_SOURCE[place],
        "norm": error(network, corrupted, labels, batch_statistics=True),
        "norm_published": PUBLISHED_NORM[place],
    }


def error(network: nn.Module, images: Tensor, labels: Tensor, *, batch_statistics: bool) -> float:
    """Return the error in percent, in order, the last partial batch kept."""
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.train(batch_statistics)
        norm.track_running_stats = not batch_statistics  # leaves the running buffers alone
    wrong = 0
    with torch.inference_mode():
        for pixels, truth in zip(images.split(BATCH), labels.split(BATCH), strict=True):
            scaled = pixels.permute(0, 3, 1, 2).contiguous().float() / 255
            wrong += int((network(scaled).argmax(1) != truth).sum())
    return 100 * wrong / len(labels)


def means(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Average every column of numbers."""
    columns = [key for key in rows[0] if key != "corruption"]
    return {key: float(np.mean([row[key] for row in rows])) for key in columns}


def print_table(rows: list[dict[str, Any]]) -> bool:
    """Print the rows with their differences; say whether all bars hold."""
    heads = ("", "source", "published", "diff", "NORM", "published", "diff")
    sys.stdout.write("{:20s} {:>8s} {:>10s} {:>6s}  {:>8s} {:>10s} {:>6s}\n".format(*heads))
    passed = True
    for row, bar in [(row, CELL_BAR) for row in rows] + [({"corruption": "mean", **means(rows)}, MEAN_BAR)]:
        gaps = [row[key] - row[f"{key}_published"] for key in ("source", "norm")]
        missed = any(abs(gap) > bar for gap in gaps)
        passed &= not missed
        sys.stdout.write(
            f"{row['corruption']:20s} {row['source']:8.2f} {row['source_published']:10.2f} {gaps[0]:+6.2f}  "
            f"{row['norm']:8.2f} {row['norm_published']:10.2f} {gaps[1]:+6.2f}{'  MISSED' if missed else ''}\n"
        )
    return passed


def protocol(options: argparse.Namespace) -> dict[str, Any]:
    """Return everything on which the numbers depend."""
    return {
        "data": "CIFAR-10 test, first images in the publisher's order",
        "images": options.images,
        "severity": 5,
        "seed": options.seed,
        "batch": BATCH,
        "network": "ResNet-20 (akamaster)",
        "weights_sha256": hashlib.sha256(options.weights.read_bytes()).hexdigest(),
        "generator": shifts.GENERATOR_VERSION,
        "frost": shifts.frost_source(),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
            "pillow": PIL.__version__,
        },
        "command": "python benchmarks/corruption_fidelity.py " + " ".join(sys.argv[1:]),
    }


if __name__ == "__main__":
    sys.exit(main())

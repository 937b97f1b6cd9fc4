"""Compare the effect of our corruptions with that of the published generator, on CIFAR-10 and a ResNet-20.

    python benchmarks/corruption_fidelity.py [--images 10000] [--seeds 0 1 2 3 4] [--weights FILE] [--out FILE]

For each corruption at severity 5: the error of the unadapted network (source) and with the statistics of each batch
of 128 (NORM), next to the errors on data made once by `make_cifar_c.py`. Bars: 1.5 points per cell, 0.5 for the mean.
Random numbers alone move a cell of NORM by half a point (one standard deviation between seeds, with the published
generator too), so ours is a mean over seeds; the table shows their range. Writes FILE.json and FILE.md.
Needs the CIFAR-10 test set and akamaster's `resnet20-12fca82f.th`, in the data folders or with --weights.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch
from torch import nn

import synaptune as st
from synaptune import data, shifts, streams
from synaptune.models import Card, load_model

ROOT = Path(__file__).resolve().parents[1]
# Errors in percent with the published generator, seed 0, the same network and test set; in the benchmark's order.
PUBLISHED = {
    "source": (75.8, 69.7, 77.3, 41.5, 58.2, 40.2, 40.8, 30.8, 46.2, 34.5, 13.1, 73.4, 30.4, 60.7, 29.7),
    "norm": (42.2, 42.1, 47.0, 18.2, 43.8, 21.6, 19.5, 27.9, 30.4, 21.9, 15.6, 21.6, 29.2, 29.1, 31.8),
}
KINDS = tuple(PUBLISHED)
CELL_BAR, MEAN_BAR = 1.5, 0.5
SEVERITY, BATCH = 5, 128
Row = dict[str, Any]


def main() -> int:
    """Measure, print the table, write the files; 1 if a bar is missed."""
    options = parsed()
    torch.set_num_threads(options.threads)
    clean = data.load("cifar10").take(options.images)
    loaded = load_model("zoo:resnet20-cifar10", options.weights, normalised=True)
    rows = []
    for name in shifts.CORRUPTIONS:
        rows.append(measured(loaded.model, clean, name, options.seeds))
        sys.stdout.write(f"{line(rows[-1], CELL_BAR)}\n")
        sys.stdout.flush()
    total = summed(rows)
    sys.stdout.write(f"{line(total, MEAN_BAR)}\n")
    passed = not missed(total, MEAN_BAR) and not any(missed(row, CELL_BAR) for row in rows)
    result = {"protocol": protocol(options, clean, loaded.card), "rows": rows, "mean": total, "passed": passed}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(page(result))
    return 0 if passed else 1


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Effect of the corruptions next to the published one.")
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--weights", type=Path, help="by default, where the zoo finds them")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "corruption-fidelity.json")
    return parser.parse_args()


def measured(network: nn.Module, clean: data.DataSet, name: str, seeds: list[int]) -> Row:
    """Return both errors on one corruption, seed by seed and averaged, and the published ones."""
    errors = [errors_with(network, clean, name, seed) for seed in (seeds if is_random(clean, name) else seeds[:1])]
    place = shifts.CORRUPTIONS.index(name)
    row: Row = {"corruption": name}
    for kind in KINDS:
        values = [error[kind] for error in errors]
        row |= {
            kind: float(np.mean(values)),
            f"{kind}_by_seed": values,
            f"{kind}_published": PUBLISHED[kind][place],
            f"{kind}_difference": float(np.mean(values)) - PUBLISHED[kind][place],
        }
    return row


def errors_with(network: nn.Module, clean: data.DataSet, name: str, seed: int) -> dict[str, float]:
    """Return the errors in percent without adaptation and with batch statistics."""
    corrupted = shifts.corrupt(np.asarray(clean.images), name, SEVERITY, seed=seed)
    domain = data.DataSet(name, "test", corrupted, clean.labels, clean.classes)
    stream = streams.iid(domain, shuffle=False, batch=BATCH)
    with torch.inference_mode():
        source = wrong(network, stream)
        with st.adapt(network, "norm") as adapter:
            norm = wrong(adapter, stream)
    return {"source": 100 * source / len(clean), "norm": 100 * norm / len(clean)}


def wrong(model: nn.Module, stream: streams.Stream) -> int:
    """Count wrong predictions."""
    return sum(int((model(batch.images).argmax(1) != stream.labels[batch.index]).sum()) for batch in stream)


def is_random(clean: data.DataSet, name: str) -> bool:
    """Say whether the seed matters; if it does not, one pass is enough."""
    images = np.asarray(clean.images[:8])
    one, other = (shifts.corrupt(images, name, SEVERITY, seed=seed) for seed in (0, 1))
    return not np.array_equal(one, other)


def summed(rows: list[Row]) -> Row:
    """Average every column of numbers."""
    columns = [key for key, value in rows[0].items() if isinstance(value, float)]
    return {"corruption": "mean", **{key: float(np.mean([row[key] for row in rows])) for key in columns}}


def missed(row: Row, bar: float) -> bool:
    """Say whether one of the two errors is too far from the published one."""
    return any(abs(row[f"{kind}_difference"]) > bar for kind in KINDS)


def line(row: Row, bar: float) -> str:
    """Return the row as text."""
    cells = [
        f"{kind} {row[kind]:6.2f} (published {row[f'{kind}_published']:5.2f}, {row[f'{kind}_difference']:+.2f})"
        for kind in KINDS
    ]
    return f"{row['corruption']:18s} {'   '.join(cells)}{'   MISSED' if missed(row, bar) else ''}"


def page(result: dict[str, Any]) -> str:
    """Return the result as Markdown."""
    stamp = result["protocol"]
    text = [
        "# Corruptions made here and published ones: their effect on a network",
        f"Error in percent of a ResNet-20 on {stamp['images']:,} CIFAR-10 test images at severity {SEVERITY}, batch "
        f"{BATCH}, without adaptation (source) and with batch statistics (NORM). Ours is a mean over seeds "
        f"{', '.join(map(str, stamp['seeds']))}, the range in brackets; the published generator was run once.",
        table(result),
        f"Bars: {CELL_BAR} points for a cell, {MEAN_BAR} for the mean: {'held' if result['passed'] else '**missed**'}. "
        f"Frost: {stamp['frost']} textures. Versions: "
        + ", ".join(f"{name} {version}" for name, version in stamp["versions"].items())
        + ".",
        f"Command: `{stamp['command']}`",
    ]
    return "\n\n".join(text) + "\n"


def table(result: dict[str, Any]) -> str:
    """Return the numbers as a Markdown table."""
    lines = ["| corruption | source | published | diff. | NORM | published | diff. |", "| --- |" + " ---: |" * 6]
    for row in [*result["rows"], result["mean"]]:
        cells = [row["corruption"]]
        for kind in KINDS:
            seeds = row.get(f"{kind}_by_seed", [])
            spread = f" ({min(seeds):.2f} to {max(seeds):.2f})" if len(seeds) > 1 else ""
            cells += [
                f"{row[kind]:.2f}{spread}",
                f"{row[f'{kind}_published']:.2f}",
                f"{row[f'{kind}_difference']:+.2f}",
            ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def protocol(options: argparse.Namespace, clean: data.DataSet, card: Card) -> dict[str, Any]:
    """Return everything on which the numbers depend."""
    return {
        "data": "CIFAR-10 test, first images in the publisher's order",
        "data_fingerprint": clean.fingerprint,
        "images": len(clean),
        "severity": SEVERITY,
        "seeds": options.seeds,
        "batch": BATCH,
        "network": card.name,
        "weights_sha256": hashlib.sha256(Path(card.weights).read_bytes()).hexdigest(),
        "generator": shifts.GENERATOR_VERSION,
        "frost": shifts.frost_source(),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
            "pillow": PIL.__version__,
        },
        "command": " ".join(["python benchmarks/corruption_fidelity.py", *sys.argv[1:]]),
    }


if __name__ == "__main__":
    sys.exit(main())

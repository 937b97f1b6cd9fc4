"""Measure how fast images are corrupted, on one core.

    python benchmarks/corruption_speed.py [--size 32 224] [--severity 5] [--repeats 5] [--out FILE]

Processor time of one process with one thread, and the best of several repeats, since other work on the machine can
only make it slower (it takes cache and memory bandwidth); the slowest is kept beside it. First uses (tables, textures)
are measured apart. Bars, over the 15 corruptions of the benchmark at one severity: 10,000 images of 32x32 in 16.4 s, a
tenth of the published generator's time; at 224x224 at least 25 images a second.
Images are CIFAR-10's test set and the shared ImageNet sample where they are found, else noise with the spectrum of
photographs; the rows say which. Writes FILE.json, and the table as FILE.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image

from synaptune import data, shifts
from synaptune.errors import DataError

ROOT = Path(__file__).resolve().parents[1]
COUNTS = {32: 10_000, 64: 2_000, 224: 100}
CIFAR_SECONDS = 16.4
PHOTO_RATE = 25.0
# Seconds for 10,000 images of 32x32 on one core with the published generator.
PUBLISHED_SECONDS = {
    "gaussian_noise": 0.7,
    "shot_noise": 1.5,
    "impulse_noise": 0.6,
    "defocus_blur": 1.4,
    "glass_blur": 71.8,
    "motion_blur": 8.8,
    "zoom_blur": 23.1,
    "snow": 10.8,
    "frost": 35.8,
    "fog": 2.2,
    "brightness": 2.6,
    "contrast": 0.5,
    "elastic_transform": 2.8,
    "pixelate": 0.3,
    "jpeg_compression": 0.9,
}


def main() -> int:
    """Measure, print the table, write the file; 1 if a bar is missed."""
    options = parsed()
    run_with_one_thread()
    rows: list[dict[str, Any]] = []
    for size in options.size:
        images, origin = test_images(size, options.images or COUNTS[size])
        for name in shifts.names("all"):
            rows.append(measured(images, origin, name, options.severity, options.repeats))
            print_row(rows[-1])
    verdicts = [verdict(rows, size) for size in options.size]
    for line, _ in verdicts:
        sys.stdout.write(f"{line}\n")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    result = {"protocol": protocol(options), "rows": rows, "summary": [line for line, _ in verdicts]}
    options.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(page(result))
    return 0 if all(passed for _, passed in verdicts) else 1


def run_with_one_thread() -> None:
    """Start this program again where needed: NumPy's BLAS reads the number of its threads once, when it is loaded."""
    single = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
    if any(os.environ.get(key) != value for key, value in single.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **single})  # noqa: S606


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Images corrupted per second of one core.")
    parser.add_argument("--size", type=int, nargs="+", choices=sorted(COUNTS), default=[32, 224])
    parser.add_argument("--images", type=int, help="instead of 10,000, 2,000 and 100 at 32, 64 and 224 pixels")
    parser.add_argument("--severity", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "corruption-speed.json")
    return parser.parse_args()


def test_images(size: int, count: int) -> tuple[NDArray[np.uint8], str]:
    """Return real images where there are any, and what they are."""
    try:
        if size == 32:
            return np.array(data.load("cifar10").images[:count]), "CIFAR-10 test"
        sample = data.load("imagenet-sample", "train").images[:count]
    except DataError:
        return cloudy_noise(size, count), "noise with a 1/f spectrum"
    return np.stack([np.asarray(Image.fromarray(image).resize((size, size))) for image in sample]), "ImageNet sample"


def cloudy_noise(size: int, count: int) -> NDArray[np.uint8]:
    """Make images that compress and blur like photographs."""
    white = np.random.default_rng(0).standard_normal((count, size, size, 3))
    rows, columns = np.fft.fftfreq(size)[:, None], np.fft.fftfreq(size)
    falling = 1 / np.maximum(np.hypot(rows, columns), 1 / size)
    clouds = np.fft.ifft2(np.fft.fft2(white, axes=(1, 2)) * falling[..., None], axes=(1, 2)).real
    clouds /= clouds.std(axis=(1, 2, 3), keepdims=True)
    return np.clip(128 + 60 * clouds, 0, 255).astype(np.uint8)


def measured(images: NDArray[np.uint8], origin: str, name: str, severity: int, repeats: int) -> dict[str, Any]:
    """Time one corruption; the first call fills its tables."""
    first_use = seconds_for(images[:1], name, severity)
    times = [seconds_for(images, name, severity) for _ in range(repeats)]
    return {
        "size": images.shape[1],
        "corruption": name,
        "severity": severity,
        "images": len(images),
        "data": origin,
        "seconds": round(min(times), 4),
        "slowest_seconds": round(max(times), 4),
        "images_per_s": round(len(images) / min(times), 1),
        "first_use_seconds": round(first_use, 4),
        "published_images_per_s": published_rate(name) if images.shape[1] == 32 else None,
    }


def published_rate(name: str) -> float | None:
    """Return the rate of the published generator, for the corruptions of the benchmark."""
    return round(10_000 / PUBLISHED_SECONDS[name], 1) if name in PUBLISHED_SECONDS else None


def seconds_for(images: NDArray[np.uint8], name: str, severity: int) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    shifts.corrupt(images, name, severity)
    return time.process_time() - start


def print_row(row: dict[str, Any]) -> None:
    """Print one line of the table."""
    before = f"(published: {row['published_images_per_s']:.0f} images/s)" if row["published_images_per_s"] else ""
    per_ten_thousand = 10_000 / row["images_per_s"]
    sys.stdout.write(
        f"{row['size']:4d} {row['corruption']:18s} {row['images_per_s']:10.1f} images/s "
        f"{per_ten_thousand:8.2f} s for 10,000 {before}\n"
    )
    sys.stdout.flush()


def verdict(rows: list[dict[str, Any]], size: int) -> tuple[str, bool]:
    """Sum up the 15 corruptions at one size, and hold them against the bar."""
    own = [row for row in rows if row["size"] == size and row["corruption"] in shifts.CORRUPTIONS]
    seconds = sum(row["seconds"] / row["images"] for row in own)
    rate = len(own) / seconds
    if size == 32:
        total, bar = 10_000 * seconds, f"bar: {CIFAR_SECONDS} s"
        passed = total <= CIFAR_SECONDS
    else:
        total, bar = 10_000 * seconds, f"bar: {PHOTO_RATE:g} images/s"
        passed = rate >= PHOTO_RATE
    return f"{size}x{size}: {rate:.1f} images/s over the 15, {total:.1f} s for 10,000 images under all ({bar})", passed


def page(result: dict[str, Any]) -> str:
    """Return the result as Markdown."""
    stamp = result["protocol"]
    lines = ["| size | corruption | images/s | published generator, images/s |", "| ---: | --- | ---: | ---: |"]
    for row in result["rows"]:
        before = f"{row['published_images_per_s']:,.0f}" if row["published_images_per_s"] else ""
        lines.append(f"| {row['size']} | {row['corruption']} | {row['images_per_s']:,.0f} | {before} |")
    text = [
        "# Speed of the corruptions",
        f"Severity {stamp['severity']}, {stamp['clock']}; the published generator was measured once, on another day, "
        "at 32x32.",
        "\n".join(lines),
        "\n".join(f"- {line}" for line in result["summary"]),
        f"Frost: {stamp['frost']} textures. Machine: {stamp['machine']}. Command: `{stamp['command']}`",
    ]
    return "\n\n".join(text) + "\n"


def protocol(options: argparse.Namespace) -> dict[str, Any]:
    """Return everything on which the numbers depend."""
    return {
        "clock": f"processor time of one process, one thread, best of {options.repeats}",
        "severity": options.severity,
        "generator": shifts.GENERATOR_VERSION,
        "frost": shifts.frost_source(),
        "machine": processor(),
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "pillow": PIL.__version__},
        "command": " ".join(["python", "benchmarks/corruption_speed.py", *sys.argv[1:]]),
    }


def processor() -> str:
    """Name the processor, where the system tells."""
    try:
        facts = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in facts if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    sys.exit(main())

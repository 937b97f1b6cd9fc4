"""Folders of small pictures, deterministic, for tests that read files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

__all__ = ["make_pictures"]


def make_pictures(
    folder: Path, count: int, *, size: tuple[int, int] = (8, 8), seed: int = 0, suffix: str = ".png"
) -> list[Path]:
    """Write `count` random pictures of `size` (width, height) into `folder`; return their paths in order."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    paths = []
    for number in range(count):
        pixels = random.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        path = folder / f"picture{number}{suffix}"
        Image.fromarray(pixels).save(path)
        paths.append(path)
    return paths

"""Images and a folder of frost that the tests of corruptions share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray


def picture_like(count: int, height: int, width: int, *, seed: int = 0, grain: float = 1.0) -> NDArray[np.uint8]:
    """Random images that are smooth with some edges, so that blurs and codecs have something to do.

    The larger `grain`, the finer the waves; at 1 the finest take 16 pixels.
    """
    generator = np.random.default_rng(seed)
    rows, columns = np.arange(height)[:, None, None], np.arange(width)[None, :, None]
    images = np.empty((count, height, width, 3), dtype=np.uint8)
    for image in images:
        waves = np.zeros((height, width, 3))
        for _ in range(4):
            down, right, phase = generator.uniform(-0.4, 0.4, (3, 3))
            down, right = grain * down, grain * right
            waves += np.sin(down * rows + right * columns + 7 * phase)
        waves += 2.0 * (rows > generator.integers(height)) + 1.5 * (columns > generator.integers(width))
        waves = (waves - waves.min()) / np.ptp(waves)
        image[:] = np.round(255 * waves)
    return images


@pytest.fixture
def images() -> NDArray[np.uint8]:
    return picture_like(6, 32, 32)


@pytest.fixture
def no_photographs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Hide the published photographs of frost, so that results do not depend on what lies on the disk."""
    monkeypatch.setenv("SYNAPTUNE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SYNAPTUNE_SHARED", str(tmp_path / "shared"))
    return tmp_path

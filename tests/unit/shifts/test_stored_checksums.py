"""The pixels of every release: a change here is a new generator version, or a mistake.

Everything is integer arithmetic, table look-up, single IEEE operations or exact sums, so the checksums hold on any
machine. JPEG is left out, because its bytes are the codec's; `test_digital` holds it against Pillow. To renew them
after raising GENERATOR_VERSION: python -m tests.unit.shifts.test_stored_checksums
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from synaptune import shifts

STORE = Path(__file__).with_name("checksums.json")
NAMES = tuple(name for name in shifts.names("all") if name != "jpeg_compression")


def fixed_images(height: int, width: int) -> NDArray[np.uint8]:
    """Two images of integer waves and blocks, without floating point."""
    rows, columns, channels = np.ogrid[:height, :width, :3]
    waves = (rows * rows * 3 + columns * (channels + 2) * 5 + rows * columns // 4) % 256
    blocks = ((rows // 5 + columns // 7 + channels) % 4) * 80
    return np.stack([waves, np.broadcast_to(blocks, waves.shape)]).astype(np.uint8)


def checksums(name: str) -> dict[str, str]:
    """Digest what becomes of the fixed images, at three sizes and the two ends of severity."""
    found = {}
    for height, width in ((32, 32), (64, 64), (50, 75)):
        for severity in (1, 5):
            corrupted = shifts.corrupt(fixed_images(height, width), name, severity, seed=7, indices=[3, 1_000_000])
            found[f"{height}x{width}/{severity}"] = hashlib.sha256(corrupted.tobytes()).hexdigest()[:16]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_pixels_are_those_of_the_generator_version(name: str, no_photographs: Path) -> None:
    stored = json.loads(STORE.read_text())
    assert stored["generator"] == shifts.GENERATOR_VERSION
    assert checksums(name) == stored["checksums"][name]


def test_every_corruption_has_checksums() -> None:
    assert set(json.loads(STORE.read_text())["checksums"]) == set(NAMES)


def renew() -> None:
    """Write the checksums of the code as it is now, with grown textures of ice."""
    with tempfile.TemporaryDirectory() as empty:
        os.environ |= {"SYNAPTUNE_DATA": empty, "SYNAPTUNE_SHARED": empty}
        found = {name: checksums(name) for name in NAMES}
    STORE.write_text(json.dumps({"generator": shifts.GENERATOR_VERSION, "checksums": found}, indent=1) + "\n")


if __name__ == "__main__":
    renew()

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from synaptune.errors import InputError
from synaptune.metrics import PeakMemory, latency, memory


def test_latency_is_in_milliseconds() -> None:
    summary = latency([0.001 * k for k in range(1, 101)])
    assert summary.p50 == pytest.approx(50.5)
    assert summary.p95 == pytest.approx(95.05)


def test_latency_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="no batch"):
        latency([])


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the kernel keeps no resettable high-water mark")
def test_peak_counts_what_was_freed_again_and_starts_afresh() -> None:
    with PeakMemory() as large:
        block = np.ones(25_000_000)  # 200 MB, touched
        del block
    with PeakMemory() as small:
        pass
    assert large.megabytes is not None
    assert small.megabytes is not None
    assert large.megabytes - small.megabytes > 150


def test_peak_is_unknown_where_the_mark_cannot_be_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_CLEAR", tmp_path / "no folder" / "clear_refs")
    with PeakMemory() as peak:
        pass
    assert peak.megabytes is None

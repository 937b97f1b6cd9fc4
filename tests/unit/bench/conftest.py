from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep shifted images that tests make out of the user's folder."""
    monkeypatch.setenv("SYNAPTUNE_DATA", str(tmp_path / "data"))

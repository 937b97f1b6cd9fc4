"""`synaptune predict`: a table, and a log that `report` reads."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cli.conftest import NET, Synaptune
from tests.support.pictures import make_pictures


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    make_pictures(folder, 6)
    (folder / "broken.jpg").write_text("no image")
    return folder


def test_a_list_on_stdin_becomes_a_table_and_bad_files_are_told(synaptune: Synaptune, photos: Path) -> None:
    names = "".join(f"{path}\n" for path in sorted(photos.iterdir()))
    done = synaptune("predict", NET, "-", "--size", 8, "--out", "rows.csv", stdin=names)
    assert done.returncode == 0, done.stderr
    assert "1 batch, method nhl" in done.stdout
    assert "skipped 1: not an image (broken.jpg)" in done.stdout
    with (photos.parent / "rows.csv").open() as file:
        assert [row["image"] for row in csv.DictReader(file)] == [str(path) for path in sorted(photos.glob("*.png"))]


def test_a_log_of_the_batches_can_be_reported(synaptune: Synaptune, photos: Path) -> None:
    words = ("predict", NET, photos, "--size", 8, "--batch-size", 3, "--log", "log.jsonl", "--out", "rows.csv")
    done = synaptune(*words)
    assert done.returncode == 0, done.stderr
    done = synaptune("report", "log.jsonl")
    assert done.returncode == 0, done.stderr
    page = (photos.parent / "log.html").read_text()
    assert "Entropy of predictions" in page
    assert "nhl on Net" in page

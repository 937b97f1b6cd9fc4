"""`synaptune train`: networks of one's own classes, and what can be done with them afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Synaptune

FRUIT = ("apple", "banana", "cherry", "date", "elderberry", "fig", "grape", "kiwi", "lemon", "mango")
# Small steps of a small network: the digit network on ten images takes a second.
FAST = ("--set", "epochs=1", "--set", "batch_size=5", "--set", "augmentation=none", "--set", "precision=float32")


def folders(root: Path, *names: str, each: int = 2, seed: int = 0) -> Path:
    """A folder of noise for each class."""
    rng = np.random.default_rng(seed)
    for name in names:
        (root / name).mkdir(parents=True)
        for number in range(each):
            pixels = rng.integers(0, 256, (32, 32, 3), np.uint8)
            Image.fromarray(pixels).save(root / name / f"{number}.png")
    return root


@pytest.fixture
def fruit(tmp_path: Path) -> Path:
    return folders(tmp_path / "fruit", *FRUIT)


def card_of(folder: Path, name: str = "digits-mnist") -> dict[str, object]:
    card: dict[str, object] = json.loads((folder / f"{name}.json").read_text())
    return card


def test_ten_classes_of_ones_own_give_a_card_with_their_names(synaptune: Synaptune, fruit: Path) -> None:
    done = synaptune("train", "digits-mnist", "--data", fruit, "--out", "made", *FAST)
    assert done.returncode == 0, done.stderr
    card = card_of(fruit.parent / "made")
    assert (card["num_classes"], card["class_names"], card["label_map"]) == (10, list(FRUIT), [])


def test_what_was_trained_on_three_folders_predicts_and_is_measured_as_printed(
    synaptune: Synaptune, tmp_path: Path
) -> None:
    data = folders(tmp_path / "some", *FRUIT[:3])
    done = synaptune("train", "digits-mnist", "--data", data, "--test-data", data, "--out", "made", *FAST)
    assert done.returncode == 0, done.stderr
    model, *weights = done.stderr.splitlines()[-1].removeprefix("use it as ").split()
    done = synaptune("predict", model, *weights, data, "--method", "source", "--labels", "folders")
    assert done.returncode == 0, done.stderr
    error = card_of(tmp_path / "made")["error"]
    assert f"error {error:.2f} % of 6 labelled images" in done.stderr
    words = ("--model", model, *weights, "--method", "source", "--data", "./some", "--corruptions", "clean")
    done = synaptune("bench", *words, "batch=6", "--workers", 0, "--out", "rows.jsonl")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "rows.jsonl").read_text())["error_online"] == pytest.approx(error, abs=0.01)

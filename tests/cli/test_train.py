"""`synaptune train`: networks of one's own classes, and what can be done with them afterwards."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open

from synaptune.cli import training_data
from synaptune.data.file_lock import hold
from synaptune.models import load_model, zoo
from synaptune.predicting import Preprocessing
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


def test_test_images_without_one_of_the_classes_are_numbered_by_name(synaptune: Synaptune, tmp_path: Path) -> None:
    data = folders(tmp_path / "some", "apple", "fig", "pear")
    test = folders(tmp_path / "test", "apple", "pear", each=8, seed=1)
    words = ("train", "digits-mnist", "--data", data, "--test-data", test, "--out", "made", *FAST)
    assert synaptune(*words).returncode == 0
    # As many right as a classifier that knows which output is "pear" counts on the same pictures.
    loaded = load_model("zoo:digits-mnist", tmp_path / "made" / "digits-mnist.safetensors")
    wrong = 0
    for path in sorted(test.glob("*/*.png")):
        pixels = torch.from_numpy(np.array(Image.open(path))).permute(2, 0, 1)[None] / 255
        wrong += loaded.card.class_names[int(loaded.model(pixels).argmax())] != path.parent.name
    assert card_of(tmp_path / "made")["error"] == 100 * wrong / 16
    refused = synaptune(*words[:4], "--test-data", folders(tmp_path / "other", "plum"), "--out", "none", *FAST)
    assert refused.returncode == 1
    assert "only the data have plum" in refused.stderr


def test_few_images_are_drawn_from_all_classes_and_never_take_outputs_away(synaptune: Synaptune, fruit: Path) -> None:
    for count in (10, 4):
        done = synaptune("train", "digits-mnist", "--data", fruit, "--images", count, "--out", f"made{count}", *FAST)
        assert done.returncode == 0, done.stderr
        card = card_of(fruit.parent / f"made{count}")
        assert (card["num_classes"], card["class_names"]) == (10, list(FRUIT))


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"])
def test_a_signal_saves_the_step_and_the_same_command_goes_on(
    synaptune: Synaptune,
    fruit: Path,
    tmp_path: Path,
    command: list[str],
    environment: dict[str, str],
    number: signal.Signals,
    status: int,
) -> None:
    words = ["train", "digits-mnist", "--data", str(fruit), *FAST, "--set", "epochs=500", "--evaluate-every", "9999"]
    file = tmp_path / "made" / "checkpoint.safetensors"
    # A checkpoint of step 2 is there when the loop is about to begin, so the signal comes into it.
    assert synaptune(*words, "--out", "made", "--stop-after", 2).returncode == 0
    with subprocess.Popen(
        [*command, "--verbose", *words, "--out", "made"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            begun = next(line for line in process.stderr if "going on from step" in line)
            assert "step 2 of 2000" in begun
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == status, stderr
    assert stdout == ""
    said = re.fullmatch(r".* after step ([\d,]+) of 2,000; the same command goes on from made", stderr.splitlines()[-1])
    assert said is not None, stderr
    with safe_open(file, framework="pt") as checkpoint:
        assert int(checkpoint.metadata()["step"]) == int(said[1].replace(",", "")) < 2000
    again = synaptune(*words, "--out", "made", "--stop-after", 1)
    assert again.returncode == 0, again.stderr


def test_the_card_of_the_network_names_the_data(synaptune: Synaptune) -> None:
    done = synaptune("train", "digits-mnist", "--out", "made")
    assert done.returncode == 1
    assert "`synaptune data get mnist` fetches it" in done.stderr
    done = synaptune("train", "efficientnet-lite0-imagenet", "--out", "made")
    assert done.returncode == 1
    assert "has no training data here; name --data" in done.stderr


def test_the_recipe_is_shown_with_its_values_and_meanings(synaptune: Synaptune) -> None:
    done = synaptune("train", "wrn-40-2-cifar10", "--show-recipe", "--set", "epochs=7")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert lines["epochs"].split()[2] == "7"
    assert " 12.0 " in lines["jsd_weight"]
    assert lines["jsd_weight"].endswith("0: train on one mixed view")
    document = json.loads(synaptune("train", "wrn-40-2-cifar10", "--show-recipe", "--json").stdout)
    assert (document["epochs"], document["jsd_weight"]) == (45, 12.0)
    assert synaptune("train", "wrn-40-2-cifar10").returncode == 2


def test_two_runs_in_one_folder_and_other_networks_are_refused(synaptune: Synaptune, fruit: Path) -> None:
    words = ("train", "digits-mnist", "--data", fruit, "--out", "made", *FAST)
    with hold(fruit.parent / "made" / ".lock", sleep=lambda _: None):
        done = synaptune(*words)
    assert done.returncode == 1
    assert done.stderr == "synaptune: another run trains in made; wait for its end, or name another folder\n"
    assert synaptune(*words).returncode == 0
    done = synaptune("train", "digits-svhn", *words[2:])
    assert done.returncode == 1
    assert "by a run that trains digits-mnist, not digits-svhn" in done.stderr


def test_photographs_are_cut_as_predict_cuts_them_and_read_by_batch_where_they_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "set" / "fig").mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (50, 75, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "set" / "fig" / "1.png")
    card = dataclasses.replace(
        zoo.card("digits-mnist"), input_size=(24, 24), resize=32, interpolation="bicubic", num_classes=1, class_names=()
    )
    found = training_data.load_images(str(tmp_path / "set"), "train", card)
    expected = Preprocessing.from_card(card).cut(pixels)
    assert np.array_equal(found.images[0], expected)
    whole = training_data.numbered(found, card)
    monkeypatch.setattr(training_data, "IN_MEMORY", 100)
    lazy = training_data.numbered(found, card)
    assert isinstance(whole.images, torch.Tensor)
    assert not isinstance(lazy.images, torch.Tensor)
    assert np.array_equal(lazy.batch(torch.tensor([0]))[0][0].numpy(), expected)
    wide = training_data.load_images(str(tmp_path / "set"), "train", card, with_margin=True)
    assert wide.size == (32, 32)
    assert np.array_equal(np.asarray(wide.images[0])[4:28, 4:28], expected)

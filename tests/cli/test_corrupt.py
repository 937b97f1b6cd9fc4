"""`synaptune corrupt`: what it asks for, refuses and completes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from synaptune.cli.corrupt import _complete
from synaptune.cli.picture_choice import parse_size
from synaptune.errors import OptionError
from tests.cli.conftest import Synaptune


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for number in range(2):
        noise = np.random.default_rng(number).integers(0, 256, (20, 30, 3)).astype(np.uint8)
        path = tmp_path / f"photos/cat/{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noise).save(path)
    return tmp_path / "photos"


def test_photographs_are_scaled_cropped_and_corrupted(synaptune: Synaptune, tmp_path: Path, photos: Path) -> None:
    done = synaptune("corrupt", photos, "out", "-c", "saturate", "-s", 3, "--fit", "8x12", "--shorter", 16, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["written"] == 2
    with Image.open(tmp_path / "out/saturate/3/cat/0.png") as image:
        assert image.size == (12, 8)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shorter", 16], "--shorter says how --fit scales; name the size too, such as --fit 224 --shorter 256"),
        (["--fit", "8 by 8"], "--fit must be a number or HEIGHTxWIDTH, not '8 by 8'"),
        (["--labels", "labels.npy"], "labels= (--labels) goes with a .npy file or an array"),
    ],
    ids=["shorter", "fit", "labels"],
)
def test_options_that_mean_nothing_here_are_refused(
    synaptune: Synaptune, tmp_path: Path, photos: Path, words: list[object], message: str
) -> None:
    done = synaptune("corrupt", photos, "out", "-c", "fog", *words)
    assert done.returncode == 1
    assert done.stdout == ""
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


def test_a_size_that_is_none_is_refused_under_the_name_of_its_option() -> None:
    for text in ("0", "8x", "x8", "8x8x8", "-8", "8.5", ""):
        with pytest.raises(OptionError, match=r"^--fit must be a number or HEIGHTxWIDTH"):
            parse_size(text, name="--fit")
        with pytest.raises(OptionError, match=r"^--size must be a number or HEIGHTxWIDTH"):
            parse_size(text)


def test_corruptions_beyond_the_benchmark_are_completed_too() -> None:
    assert _complete("gaussian") == ["gaussian_noise", "gaussian_blur"]
    assert _complete("s") == ["shot_noise", "snow", "speckle_noise", "spatter", "saturate"]

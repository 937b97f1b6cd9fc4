"""`synaptune data`: what it says of sets that are only half there."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Synaptune


def test_a_list_without_its_images_is_not_called_a_data_set(synaptune: Synaptune, tmp_path: Path) -> None:
    listing = tmp_path / "data/robustbench/imagenet_test_image_ids.txt"
    listing.parent.mkdir(parents=True)
    listing.write_text("n01440764/ILSVRC2012_val_00000293.JPEG\n")  # so nothing is fetched
    done = synaptune("data", "get", "imagenet-5k", "--root", "data")
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert words.startswith("imagenet-5k cannot be used yet: no val on disk.")
    assert words.endswith("the images are those of imagenet")
    done = synaptune("data", "get", "imagenet-5k", "--root", "data", "--json")
    assert json.loads(done.stdout) == {"name": "imagenet-5k", "on_disk": [], "places": [], "missing": ["val"]}

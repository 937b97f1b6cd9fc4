"""`synaptune figure`: files that are pictures, and numbers that belong to them."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.cli.conftest import IMAGES, NET, Synaptune

VIEWS = (f"model={NET}", f"data={IMAGES}", "images=32", "batch=16", "channels=3")


def check_pictures(folder: Path, name: str) -> str:
    """PNG and SVG are there and whole; give the words of the SVG."""
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    root = ElementTree.fromstring((folder / f"{name}.svg").read_text())
    return " ".join("".join(found.itertext()) for found in root.iter("{http://www.w3.org/2000/svg}text"))


def test_feature_maps_are_drawn_and_told_in_numbers(synaptune: Synaptune, tmp_path: Path) -> None:
    done = synaptune("figure", "features", *VIEWS, "methods=[source,nhl]", "--out", "figures", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["files"] == ["figures/features.png", "figures/features.svg", "figures/features.json"]
    check_pictures(tmp_path / "figures", "features")
    views = {view["view"]: view for view in document["numbers"]["views"]}
    assert list(views) == ["clean", "source", "nhl", "oracle"]
    assert views["clean"]["distance"] == 0
    assert views["source"]["distance"] > 0
    assert json.loads((tmp_path / "figures/features.json").read_text()) == {
        "command": document["command"],
        **document["numbers"],
    }
    # What it says on the way, one line for each thing it does, as stderr is no terminal here.
    assert "figure features: gaussian_noise after nhl" in done.stderr.splitlines()


def test_the_command_in_the_file_draws_the_same_bytes_again(synaptune: Synaptune, tmp_path: Path) -> None:
    first = synaptune("figure", "density", *VIEWS, "methods=[source,norm]", "corruption=fog", "-q", "--out", "figures")
    assert first.returncode == 0, first.stderr
    assert first.stderr == ""
    paths = [Path(line) for line in first.stdout.splitlines()]
    before = [(tmp_path / path).read_bytes() for path in paths]
    words = shlex.split(json.loads((tmp_path / "figures/density.json").read_text())["command"])
    again = synaptune(*words[1:])
    assert again.stdout == first.stdout
    assert [(tmp_path / path).read_bytes() for path in paths] == before
    check_pictures(tmp_path / "figures", "density")


def test_the_figure_of_stages_keeps_its_rows_and_measures_none_twice(synaptune: Synaptune, tmp_path: Path) -> None:
    words = ("figure", "batches", f"models=[{NET}]", f"data={IMAGES}", "batch=16", "oracle_every=1", "--workers", 0)
    done = synaptune(*words, "methods=[source,norm]", "--out", "figures", "--json")
    assert done.returncode == 0, done.stderr
    curves = json.loads(done.stdout)["numbers"]["curves"]
    assert {method: [batches for batches, _ in curve] for method, curve in curves.items()} == {
        "source": [0, 1, 2, 3],
        "norm": [0, 1, 2, 3],
    }
    rows = (tmp_path / "figures/batches.jsonl").read_bytes()
    again = synaptune(*words, "methods=[source,norm]", "--out", "figures", "--json")
    assert json.loads(again.stdout)["numbers"]["curves"] == curves
    assert (tmp_path / "figures/batches.jsonl").read_bytes() == rows
    assert "2/2 cells, 2 of them from before" in again.stderr


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "Missing argument"),
        (["density", "--workers", "-1"], 2, "workers"),
        (["densty"], 1, "did you mean density"),
        (["features", "imges=3"], 1, "did you mean images"),
        (["features", "place=classifier"], 1, "place=first_conv"),
        (["features", f"model={NET}", f"data={IMAGES}", "images=4", "image=4"], 1, "image 4 is not among the first 4"),
        (["density", "model=zoo:wrn-28-10-cifar10", f"data={IMAGES}", "images=4"], 1, "--weights FILE"),
    ],
)
def test_what_is_wrong_is_said(
    synaptune: Synaptune, tmp_path: Path, words: list[str], status: int, message: str
) -> None:
    done = synaptune("figure", *words)
    assert done.returncode == status
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]

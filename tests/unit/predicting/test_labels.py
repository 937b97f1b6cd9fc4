"""Labels files in all their forms, and names that match by their ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from synaptune.errors import DataError, UnknownNameError
from synaptune.predicting import read_labels
from synaptune.predicting.labels import FolderLabels

CLASSES = ("cat", "dog", "fire engine")


@pytest.mark.parametrize(
    "text",
    [
        "a.png,1\nb.png,0\n",
        "image,label\na.png,dog\nb.png,cat\n",
        "\ufeffa.png\tdog\r\nb.png\tcat\r\n",
        "a.png 1\n\nb.png 0",
        '{"a.png": 1, "b.png": "cat"}',
        '"a.png",1\n"b.png",0\n',
    ],
)
def test_all_forms_are_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_text(text, encoding="utf-8")
    labels = read_labels(path, CLASSES)
    assert (labels.of("a.png"), labels.of("photos/b.png"), labels.of("c.png")) == (1, 0, None)


def test_names_match_where_one_path_ends_with_the_other(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("x/one.png,0\ny/one.png,1\n/data/z/two.png,2\n")
    labels = read_labels(path)
    assert labels.of("photos/x/one.png") == 0
    assert labels.of("photos/y/one.png") == 1
    assert labels.of("one.png") is None, "two images of that name have different labels"
    assert labels.of("z/two.png") == 2
    assert labels.of("w/two.png") is None


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("a.png\n", DataError, "line 1 .* expected NAME,LABEL"),
        ("", DataError, "no label"),
        ("a.png,dgo\n", UnknownNameError, "did you mean dog"),
        ("{broken", DataError, "JSON"),
    ],
)
def test_what_is_wrong_is_told(text: str, error: type[Exception], says: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(error, match=says):
        read_labels(path, CLASSES)


def test_names_of_unknown_classes_ask_for_the_classes(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("a.png,dog\n")
    with pytest.raises(DataError, match="--classes"):
        read_labels(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_labels(tmp_path / "gone.csv")


def test_folders_label_their_images() -> None:
    labels = FolderLabels(CLASSES)
    assert (labels.of("in/dog/1.png"), labels.of("in/2/1.png"), labels.of("in/bird/1.png")) == (1, 2, None)

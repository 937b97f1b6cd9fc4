"""True classes for scoring, from a file or from folder names. They never come near the adapter.

A labels file has one line per image, `name,label` (or with a tab, or with blanks before the last word), or it is a
JSON object. A label is a number counted from 0, or a class name. Names match where one path ends with the other, so
`cats/1.jpg` in the file is `photos/cats/1.jpg` on the command line.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Protocol

from synaptune.errors import DataError, UnknownNameError

__all__ = ["FolderLabels", "Labels", "read_labels"]

_HEADERS = frozenset({"label", "class", "target", "category", "class_id", "label_id"})


class Labels(Protocol):
    """Where true classes come from."""

    def of(self, name: str) -> int | None:
        """The class of an image, or None if it is not known."""


class FileLabels:
    """Classes from a file.

    >>> labels = FileLabels([("cats/1.jpg", 3), ("dogs/1.jpg", 5)])
    >>> labels.of("photos/cats/1.jpg"), labels.of("1.jpg"), labels.of("birds/1.jpg")
    (3, None, None)
    """

    def __init__(self, entries: Iterable[tuple[str, int]]):
        self._by_last: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for name, label in entries:
            parts = PurePath(name).parts
            self._by_last.setdefault(parts[-1] if parts else "", []).append((parts, label))

    def __len__(self) -> int:
        return sum(map(len, self._by_last.values()))

    def of(self, name: str) -> int | None:
        wanted = PurePath(name).parts
        fitting = {
            label
            for parts, label in self._by_last.get(wanted[-1] if wanted else "", ())
            if parts[-len(wanted) :] == wanted or wanted[-len(parts) :] == parts
        }
        return fitting.pop() if len(fitting) == 1 else None


class FolderLabels:
    """Classes from the name of the folder that an image lies in."""

    def __init__(self, class_names: Sequence[str]):
        self._label_of = {name: label for label, name in enumerate(class_names)}

    def of(self, name: str) -> int | None:
        folder = PurePath(name).parent.name
        return self._label_of.get(folder, int(folder) if folder.isdecimal() else None)


def read_labels(path: str | Path, class_names: Sequence[str] = ()) -> FileLabels:
    """Read a labels file.

    Args:
        path: the file.
        class_names: by class number, for labels that are names.

    Raises:
        DataError: the file is missing, or a line of it is no pair of a name and a label.
        UnknownNameError: a label is neither a number nor one of the class names.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the labels in {path} cannot be read: {error}") from error
    label_of = {name: label for label, name in enumerate(class_names)}
    pairs = _from_json(text, path) if text.lstrip().startswith("{") else _from_lines(text, path)
    labels = FileLabels((name, _number(label, label_of, path)) for name, label in pairs)
    if not len(labels):
        raise DataError(f"there is no label in {path}; expected lines of the form NAME,LABEL")
    return labels


def _from_json(text: str, path: Path) -> Iterator[tuple[str, str]]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"the labels in {path} are no valid JSON: {error}") from error
    for name, label in content.items():
        yield name, str(label)


def _from_lines(text: str, path: Path) -> Iterator[tuple[str, str]]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    for place, (number, line) in enumerate(lines):
        name, label = _split(line)
        if not name or not label:
            raise DataError(f"line {number} of {path} is no name with a label: {line[:60]!r}; expected NAME,LABEL")
        if place == 0 and label.lower() in _HEADERS:
            continue
        yield name, label


def _split(line: str) -> tuple[str, str]:
    for mark in (",", "\t"):
        if mark in line:
            row = next(csv.reader([line], delimiter=mark))
            return row[0].strip(), row[1].strip()
    name, _, label = line.strip().rpartition(" ")
    return name.strip(), label


def _number(label: str, label_of: dict[str, int], path: Path) -> int:
    if label in label_of:
        return label_of[label]
    if label.isdecimal():
        return int(label)
    if not label_of:
        raise DataError(
            f"{path} labels images by name ({label!r}), but the names of the model's classes are not known: name them "
            "with --classes FILE, or use numbers counted from 0"
        )
    raise UnknownNameError("class", label, label_of)

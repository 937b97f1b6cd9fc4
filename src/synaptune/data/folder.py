"""Image files as a data set: any folders, files or patterns; decoded when they are asked for.

Files that cannot be used are skipped and counted, and `DataSet.report` tells at the end what and why; it is an error
only if nothing is left. Files are found by content and not by their ending, in natural order (`frame2` before
`frame10`).
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from synaptune.data.dataset import UNLABELLED, DataSet
from synaptune.data.decode import Blob, Fit, ImageProblemError, decode, measure
from synaptune.data.images import LazyImages, PixelsRead, Positions
from synaptune.data.recipe import Recipe
from synaptune.data.report import ReportKeeper
from synaptune.errors import DataError

__all__ = ["FileImages", "natural_order", "read_images"]


class FileImages(LazyImages):
    """Images that are decoded from files on each reading."""

    def __init__(self, blobs: Sequence[Blob], fit: Fit, keeper: ReportKeeper | None = None):
        self._blobs, self._fit = tuple(blobs), fit
        self.keeper = keeper or ReportKeeper(found=len(self._blobs))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self._blobs), self._fit.height, self._fit.width, 3

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each file, by position."""
        return tuple(str(blob) for blob in self._blobs)

    def read(self, positions: Positions) -> PixelsRead:
        pixels = np.empty((len(positions), *self.shape[1:]), np.uint8)
        readable = np.zeros(len(positions), np.bool_)
        for slot, position in enumerate(positions):
            blob = self._blobs[position]
            try:
                pixels[slot], steps = decode(blob, self._fit)
            except ImageProblemError as problem:
                self.keeper.skip(str(blob), problem.reason)
            else:
                readable[slot] = True
                self.keeper.convert(str(blob), steps)
        return PixelsRead(pixels if readable.all() else pixels[readable], readable)

    def fingerprint(self) -> str:
        # Of the stored bytes and the wanted size: far cheaper than decoding, and as sure to change.
        digest = hashlib.sha256(repr(self._fit).encode())
        for blob in self._blobs:
            try:
                digest.update(hashlib.sha256(blob.read()).digest())
            except OSError:
                digest.update(b"unreadable")  # it vanished after the scan; reading will skip and report it
        return digest.hexdigest()

    def describe(self, position: int) -> str:
        return str(self._blobs[position])


def read_images(
    *paths: str | Path,
    size: int | tuple[int, int] | None = None,
    how: Literal["crop", "stretch"] = "crop",
    labels: Literal["none", "folders"] = "none",
    classes: Sequence[str] | None = None,
    fit: Fit | None = None,
) -> DataSet:
    """Take the images in folders, files and patterns as a data set.

    Args:
        paths: folders (searched through), single files, and patterns such as `shots/*.jpg`.
        size: height and width that every image gets; one number means a square. By default images keep their size;
            if sizes differ, the commonest one is taken for all.
        how: "crop" scales to cover and crops the centre, "stretch" distorts.
        labels: "folders" takes the name of the folder that holds an image as its class.
        classes: the classes in order of their labels, for `labels="folders"`; by default, the folder names, sorted.
        fit: in place of `size` and `how`, what brings an image to its size.

    Returns:
        A set whose images are decoded when they are read; its `report` tells what was skipped or converted.

    Raises:
        DataError: there is no image at all.
    """
    keeper = ReportKeeper()
    blobs, sizes = [], []
    for path in _files(paths, keeper):
        keeper.found()
        try:
            sizes.append(measure(Blob(path)))
            blobs.append(Blob(path))
        except ImageProblemError as problem:
            keeper.skip(path, problem.reason)
    if not blobs:
        where = ", ".join(map(str, paths)) or "nothing"
        raise DataError(f"no image in {where}: {keeper.report()}".replace("\n", "; "))
    fit = fit or Fit(*_wanted_size(size, sizes), how=how)
    names, label_of = ((), {}) if labels == "none" else _classes(blobs, classes, keeper)
    kept = [blob for blob in blobs if labels == "none" or blob.path.parent.name in label_of]
    if not kept:
        raise DataError(
            f"no folder in {', '.join(map(str, paths))} is named after one of the {len(names)} given classes"
        )
    images = FileImages(kept, fit, keeper)
    return DataSet(
        name=Path(paths[0]).name or str(paths[0]),
        split="",
        images=images,
        labels=np.array([label_of.get(blob.path.parent.name, UNLABELLED) for blob in kept], np.int64),
        classes=names,
        origin=Recipe.of(read="image files", size=[fit.height, fit.width], how=fit.how, labels=labels),
        reading=keeper.report,
    )


def natural_order(path: Path) -> tuple[tuple[int, int, str], ...]:
    """Sort key under which `frame2` comes before `frame10`.

    >>> from pathlib import Path
    >>> sorted([Path("a/f10.png"), Path("a/f2.png")], key=natural_order)[0].name
    'f2.png'
    """
    parts = re.split(r"(\d+)", path.as_posix())
    return tuple((0, int(part), part) if part.isdecimal() else (1, 0, part.casefold()) for part in parts)


def _wanted_size(size: int | tuple[int, int] | None, sizes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    if size is not None:
        return (size, size) if isinstance(size, int) else size
    counts = Counter(sizes)
    # Of equally common sizes the largest, so that the choice does not hang on the order of files.
    return max(counts, key=lambda pair: (counts[pair], pair))


def _classes(
    blobs: Sequence[Blob], classes: Sequence[str] | None, keeper: ReportKeeper
) -> tuple[tuple[str, ...], dict[str, int]]:
    folders = {blob.path.parent.name for blob in blobs}
    names = tuple(classes) if classes is not None else tuple(sorted(folders))
    label_of = {name: label for label, name in enumerate(names)}
    for blob in blobs:
        if blob.path.parent.name not in label_of:
            keeper.skip(blob.path, "folder is not one of the classes")
    return names, label_of


def _files(paths: Iterable[str | Path], keeper: ReportKeeper) -> Iterator[Path]:
    """All files under the given paths, each once, folders in natural order."""
    seen: set[Path] = set()
    for given in paths:
        for path in _expand(given, keeper):
            key = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would merge links that are wanted twice
            if key not in seen:
                seen.add(key)
                yield path


def _expand(given: str | Path, keeper: ReportKeeper) -> Iterator[Path]:
    path = Path(given).expanduser()
    if _is_folder(path):
        yield from _walk(path, keeper, frozenset())
    elif os.path.lexists(path) or not glob.has_magic(str(given)):
        yield path
    else:
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)), key=natural_order)  # noqa: PTH207
        if not matches:
            keeper.fruitless(path, "no file matches the pattern")
        for match in matches:
            yield from _walk(match, keeper, frozenset()) if _is_folder(match) else (match,)


def _is_folder(path: Path) -> bool:
    # Path.is_dir raises where a folder above may be listed but not entered; decoding will say so, file by file.
    return os.path.isdir(path)  # noqa: PTH112


def _walk(folder: Path, keeper: ReportKeeper, above: frozenset[Path]) -> Iterator[Path]:
    real = folder.resolve()
    if real in above:
        return  # a link that leads back up would never end
    try:
        entries = sorted(folder.iterdir(), key=natural_order)
    except OSError as error:
        reason = "no permission to open" if isinstance(error, PermissionError) else "cannot be opened"
        keeper.fruitless(folder, f"folder: {reason}")
        return
    visible = [entry for entry in entries if not entry.name.startswith(".")]
    if not visible:
        keeper.fruitless(folder, "folder: empty")
    for entry in visible:
        if _is_folder(entry):
            yield from _walk(entry, keeper, above | {real})
        else:
            yield entry

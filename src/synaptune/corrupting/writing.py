"""Write corrupted copies of images to disk, in the layouts of the published sets.

    arrays   DST/CORRUPTION.npy (severities x images, h, w, 3) and DST/labels.npy         as CIFAR-10-C
    tree     DST/CORRUPTION/SEVERITY/CLASS/FILE                                           as ImageNet-C

Files appear whole or not at all; `DST/recipe.json` says what they depend on. A run that was interrupted goes on where
it stopped, and a folder made by another recipe is refused. Images that cannot be read are skipped and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from synaptune.corrupting.arrays import write_arrays
from synaptune.corrupting.files import Plan, Tally
from synaptune.corrupting.tree import FilesToCorrupt, SetToCorrupt, ToCorrupt, write_tree
from synaptune.data.catalogue import entries
from synaptune.data.dataset import UNLABELLED, DataSet
from synaptune.data.decode import Blob, Fit
from synaptune.data.entry import Entry
from synaptune.data.folder import FileImages, read_images
from synaptune.data.loading import load
from synaptune.data.readers.corrupted_arrays import load_array
from synaptune.data.report import ReadReport
from synaptune.errors import DataError, InputError, OptionError
from synaptune.shifts.corruption import CORRUPTIONS, SEVERITIES, check_request
from synaptune.shifts.presets import Size

__all__ = ["WriteReport", "write_corrupted"]

Layout = Literal["arrays", "tree"]
Source = str | Path | DataSet | NDArray[np.uint8]
Listener = Callable[[int, int], None]

_CIFAR_FOLDERS = {
    "cifar-10-batches-bin": "cifar10",
    "cifar-10-batches-py": "cifar10",
    "cifar-100-binary": "cifar100",
    "cifar-100-python": "cifar100",
}


@dataclass(frozen=True)
class WriteReport:
    """What a run did; printed once, at the end.

    Attributes:
        folder: where the images are.
        written: corrupted images that were made now.
        present: corrupted images that were there already.
        reading: which of the clean images were skipped or converted, and why.
    """

    folder: Path
    written: int
    present: int
    reading: ReadReport

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "folder": str(self.folder),
            "written": self.written,
            "present": self.present,
            "reading": self.reading.as_dict(),
        }

    def __str__(self) -> str:
        before = f", {self.present:,} were there already" if self.present else ""
        return f"{self.written:,} corrupted images written to {self.folder}{before}\n{self.reading}"


def write_corrupted(
    source: Source,
    destination: str | Path,
    *,
    corruptions: Sequence[str] = CORRUPTIONS,
    severities: Sequence[int] = SEVERITIES,
    seed: int = 0,
    size: Size | None = None,
    layout: Layout | None = None,
    labels: str | Path | NDArray[np.integer[Any]] | None = None,
    fit: Fit | None = None,
    lossless: bool = False,
    workers: int = 1,
    progress: Listener | None = None,
) -> WriteReport:
    """Write corrupted copies of all images of a source.

    Args:
        source: a folder of images (any depth; the path below it is kept), a `.npy` file or array (uint8, NHWC), a
            data set, the name of one that is on disk, or a folder of CIFAR's published files.
        destination: a new folder, an empty one, or one that an earlier run with the same recipe has begun.
        corruptions: names, see `synaptune.shifts.names`.
        severities: in the order in which arrays hold them.
        seed: chooses the random streams.
        size: take the published parameters for 32, 64 or 224 pixels as they are, whatever the size of the images.
        layout: "tree" for files, "arrays" for arrays; by default as the source.
        labels: for a `.npy` file or array: its labels, or their file; by default `labels.npy` beside the file.
        fit: bring the files of a folder to one size first; `Fit(224, 224, shorter=256)` is ImageNet-C's. Arrays
            need one size: without `fit`, the commonest is taken.
        lossless: write PNG files also for JPEG ones, which else are saved at quality 85, as published.
        workers: number of threads; the result does not depend on it.
        progress: called with (corrupted images dealt with, in all).

    Raises:
        DataError: there is no image, or the destination cannot be written.
        InputError: an array holds no images, or its labels are not whole numbers.
        OptionError: options contradict each other, or the destination holds something else.
    """
    plan = _plan(corruptions, severities, seed, size, workers)
    folder = Path(destination).expanduser()
    source = _known(source)
    if labels is not None and not _is_array(source):
        raise OptionError("labels= (--labels) goes with a .npy file or an array; other sources have their own")
    if isinstance(source, Path):
        _check_apart(source, folder)
    dataset = _dataset(source, labels, fit)
    if fit is not None and not _is_of_files(source, dataset):
        raise OptionError("fit= (--fit) brings image files to one size; the images of arrays and data sets have one")
    tally = Tally(len(dataset) * len(plan.corruptions) * len(plan.severities), progress)
    if (layout or ("tree" if _is_of_files(source, dataset) else "arrays")) == "arrays":
        write_arrays(dataset, folder, plan, tally)
    else:
        write_tree(_named(source, dataset, fit=fit, lossless=lossless), folder, plan, tally)
    return WriteReport(folder, tally.written, tally.present, dataset.report)


def _plan(corruptions: Sequence[str], severities: Sequence[int], seed: int, size: Size | None, workers: int) -> Plan:
    """Check all options before anything is read or written."""
    corruptions = (corruptions,) if isinstance(corruptions, str) else tuple(dict.fromkeys(corruptions))
    severities = tuple(dict.fromkeys(severities))
    if not corruptions or not severities:
        raise OptionError("at least one corruption and one severity are needed")
    for name in corruptions:
        for severity in severities:
            check_request(name, severity, seed=seed, size=size)
    if workers < 1:
        raise OptionError(f"workers must be at least 1, not {workers}")
    return Plan(corruptions, severities, int(seed), size, workers)


def _known(source: Source) -> Path | DataSet | NDArray[np.uint8]:
    """Turn a name or path into something that exists."""
    if not isinstance(source, str | Path):
        return source
    path = Path(source).expanduser()
    if path.exists():
        return path
    for entry in entries():
        if entry.name == str(source):
            return load(entry, _clean_split(entry))
    names = ", ".join(entry.name for entry in entries() if not entry.corruptions)
    raise DataError(f"{source} is neither a file or folder nor a known data set ({names})")


def _clean_split(entry: Entry) -> str:
    """Return the split that methods are tested on, or the only one there is."""
    if entry.corruptions:
        clean = entry.name.replace("-c", "", 1)
        raise OptionError(f"{entry.name} is corrupted already; name the clean set, {clean}")
    return next((split for split in ("test", "val") if split in entry.splits), next(iter(entry.splits)))


def _check_apart(source: Path, folder: Path) -> None:
    inside, outside = folder.resolve(), source.resolve()
    if inside == outside or outside in inside.parents:
        raise OptionError(
            f"{folder} lies in {source}, so a second run would corrupt the corrupted images; choose a folder elsewhere"
        )


def _is_array(source: Path | DataSet | NDArray[np.uint8]) -> bool:
    return isinstance(source, np.ndarray) or (isinstance(source, Path) and source.suffix == ".npy" and source.is_file())


def _is_of_files(source: Path | DataSet | NDArray[np.uint8], dataset: DataSet) -> bool:
    return isinstance(source, Path) and isinstance(dataset.images, FileImages)


def _named(
    source: Path | DataSet | NDArray[np.uint8], dataset: DataSet, *, fit: Fit | None, lossless: bool
) -> ToCorrupt:
    """Give the images the names that they will have in a tree."""
    if isinstance(source, Path) and isinstance(dataset.images, FileImages):
        base = source if source.is_dir() else source.parent
        return FilesToCorrupt(dataset.images, base, fit=fit, lossless=lossless)
    return SetToCorrupt(dataset, lossless=lossless)


def _dataset(
    source: Path | DataSet | NDArray[np.uint8],
    labels: str | Path | NDArray[np.integer[Any]] | None,
    fit: Fit | None,
) -> DataSet:
    """Read the source as a data set; images of a folder are only decoded later."""
    if isinstance(source, DataSet):
        return source
    if isinstance(source, np.ndarray):
        return _array_set("array", source, labels)
    if _is_array(source):
        beside = source.with_name("labels.npy")
        if labels is None and beside.is_file() and beside != source:
            labels = beside
        return _array_set(source.stem, load_array(source), labels)
    if source.is_dir() and source.name in _CIFAR_FOLDERS:
        return load(_CIFAR_FOLDERS[source.name], root=source)
    return _file_set(source, fit)


def _array_set(name: str, images: NDArray[Any], labels: str | Path | NDArray[np.integer[Any]] | None) -> DataSet:
    if isinstance(labels, str | Path):
        labels = load_array(Path(labels).expanduser())
    if labels is None:
        return DataSet(name, "", images, np.full(images.shape[:1], UNLABELLED))
    known = np.asarray(labels)
    if known.dtype.kind not in "iu":
        raise InputError(f"{name}: labels must be whole numbers, one for each image, not {known.dtype} {known.shape}")
    return DataSet(name, "", images, known.astype(np.int64))


def _file_set(source: Path, fit: Fit | None) -> DataSet:
    """Find the images of a folder; each gets the size that arrays need only if it is decoded as part of the set."""
    dataset = read_images(source, labels="folders")
    if fit is None or not isinstance(dataset.images, FileImages):
        return dataset
    blobs = [Blob(Path(name)) for name in dataset.images.names]
    return replace(dataset, images=FileImages(blobs, fit, dataset.images.keeper))

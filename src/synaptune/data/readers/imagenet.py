"""ImageNet in its layouts: validation, ImageNet-C, Tiny-ImageNet(-C), and a tar with one image per class.

The label of a class is the rank of its WordNet id among all ids of the set, so a tree that lacks some classes is still
read rightly. Validation images may lie in class folders, or flat with one of the lists that circulate: the
developers' kit, `val.txt` (NAME LABEL) or `LOC_val_solution.csv` (Kaggle).

Images become 224x224 by scaling the shorter side to 256 and cropping the centre. Those of ImageNet-C have that size
already and are left alone; sending them through resize and crop again is a known mistake
(RobustBench/robustbench#59).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath

import numpy as np

from synaptune.data.dataset import DataSet
from synaptune.data.decode import Blob, Fit
from synaptune.data.entry import Request
from synaptune.data.extras import need
from synaptune.data.folder import FileImages
from synaptune.data.readers.listed_files import labels_by_name, read_lines, tar_members
from synaptune.data.recipe import Recipe
from synaptune.errors import DataError

__all__ = [
    "imagenet_ids",
    "imagenet_names",
    "read_imagenet",
    "read_imagenet_c",
    "read_imagenet_listed",
    "read_imagenet_tar",
    "read_tiny_imagenet_c",
    "read_tiny_imagenet_train",
    "read_tiny_imagenet_val",
]

_LARGE, _TINY = Fit(224, 224, shorter=256), Fit(64, 64)
_ENDINGS = frozenset({".jpeg", ".jpg", ".png"})


@cache
def _imagenet_classes() -> tuple[tuple[str, str], ...]:
    lines = resources.files("synaptune.data").joinpath("imagenet_classes.txt").read_text("utf-8").splitlines()
    return tuple((line.partition(" ")[0], line.partition(" ")[2]) for line in lines)


def imagenet_ids() -> tuple[str, ...]:
    """WordNet ids of the 1,000 classes in order of their labels."""
    return tuple(identity for identity, _ in _imagenet_classes())


def imagenet_names() -> tuple[str, ...]:
    """One English name for each of the 1,000 classes.

    >>> imagenet_names()[0], imagenet_ids()[999]
    ('tench', 'n15075141')
    """
    return tuple(name for _, name in _imagenet_classes())


def read_imagenet(request: Request) -> DataSet:
    """Read the validation images, from class folders or from one folder with a list."""
    folder = request.paths[0]
    ids = imagenet_ids()
    if any((folder / identity).is_dir() for identity in ids):
        return _from_tree(request, folder, ids, _LARGE, imagenet_names())
    labels = _flat_labels(folder)
    names = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in _ENDINGS)
    unknown = [name for name in names if name not in labels]
    if not names or unknown:
        raise DataError(
            f"{folder} has {len(names)} images, of which {len(unknown)} are in no list of labels"
            + (f", such as {unknown[0]}" if unknown else "")
        )
    blobs = [Blob(folder / name) for name in names]
    return _dataset(request, blobs, [labels[name] for name in names], _LARGE, imagenet_names())


def read_imagenet_listed(request: Request) -> DataSet:
    """Read the images that a list of `WNID/FILE` names, in the order of the list; the tree comes second."""
    listing, folder = request.paths
    label_of = {identity: label for label, identity in enumerate(imagenet_ids())}
    lines = read_lines(listing)
    strange = [line for line in lines if line.partition("/")[0] not in label_of]
    if not lines or strange:
        raise DataError(f"{listing} is not a list of WNID/FILE lines" + (f": {strange[0]!r}" if strange else ""))
    in_classes = any((folder / line.partition("/")[0]).is_dir() for line in lines)
    blobs = [Blob(folder / (line if in_classes else line.partition("/")[2])) for line in lines]
    missing = [blob for blob in blobs if not blob.path.is_file()]
    if missing:
        raise DataError(f"{len(missing)} of {len(blobs)} listed images are not in {folder}: {missing[0]}")
    return _dataset(request, blobs, [label_of[line.partition("/")[0]] for line in lines], _LARGE, imagenet_names())


def read_imagenet_c(request: Request) -> DataSet:
    """Read `CORRUPTION/SEVERITY/WNID/*.JPEG`."""
    return _from_tree(request, request.paths[-1], imagenet_ids(), _LARGE, imagenet_names())


def read_tiny_imagenet_c(request: Request) -> DataSet:
    """Read `CORRUPTION/SEVERITY/WNID/*.JPEG` of 200 classes."""
    ids = _folders(request.paths[-1])
    return _from_tree(request, request.paths[-1], ids, _TINY, ids)


def read_tiny_imagenet_train(request: Request) -> DataSet:
    """Read `train/WNID/images/*.JPEG`."""
    folder = request.paths[0]
    ids = _folders(folder)
    pairs = [
        (Blob(path), label) for label, identity in enumerate(ids) for path in _image_files(folder / identity / "images")
    ]
    return _dataset(request, [blob for blob, _ in pairs], [label for _, label in pairs], _TINY, ids)


def read_tiny_imagenet_val(request: Request) -> DataSet:
    """Read `val/images` with `val_annotations.txt`, or class folders where somebody has sorted them."""
    folder = request.paths[0]
    annotations = folder / "val_annotations.txt"
    if not annotations.is_file():
        ids = _folders(folder)
        return _from_tree(request, folder, ids, _TINY, ids)
    rows = [line.split("\t")[:2] for line in read_lines(annotations)]
    if not rows or min(map(len, rows)) < 2:
        raise DataError(f"{annotations} is not a list of FILE<tab>WNID lines; get it again")
    ids = tuple(sorted({identity for _, identity in rows}))
    label_of = {identity: label for label, identity in enumerate(ids)}
    blobs = [Blob(folder / "images" / name) for name, _ in rows]
    return _dataset(request, blobs, [label_of[identity] for _, identity in rows], _TINY, ids)


def read_imagenet_tar(request: Request) -> DataSet:
    """Read a tar of `.../WNID/FILE` where it lies."""
    label_of = {identity: label for label, identity in enumerate(imagenet_ids())}
    blobs, labels = [], []
    for name, blob in sorted(tar_members(request.paths[0]).items()):
        parent = PurePosixPath(name).parent.name
        if parent in label_of:
            blobs.append(blob)
            labels.append(label_of[parent])
    if not blobs:
        raise DataError(f"{request.paths[0]} holds no folder that is named after an ImageNet class")
    return _dataset(request, blobs, labels, _LARGE, imagenet_names())


def _from_tree(request: Request, folder: Path, ids: Sequence[str], fit: Fit, names: Sequence[str]) -> DataSet:
    blobs: list[Blob] = []
    labels: list[int] = []
    for label, identity in enumerate(ids):
        found = [Blob(path) for path in _image_files(folder / identity)]
        blobs += found
        labels += [label] * len(found)
    if not blobs:
        raise DataError(f"{folder} has no folder of images that is named after a class of {request.name}")
    return _dataset(request, blobs, labels, fit, names)


def _image_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in _ENDINGS)


def _folders(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in folder.iterdir() if path.is_dir()))


def _flat_labels(folder: Path) -> Mapping[str, int]:
    """Labels by file name, from whichever list lies beside the images."""
    for base in (folder, folder.parent):
        if (base / "val.txt").is_file():
            return {PurePosixPath(name).name: label for name, label in labels_by_name(base / "val.txt")}
        if (base / "LOC_val_solution.csv").is_file():
            return _kaggle_labels(base / "LOC_val_solution.csv")
        kit = base / "ILSVRC2012_devkit_t12" / "data"
        if kit.is_dir():
            return _kit_labels(kit)
    raise DataError(
        f"{folder} holds images without class folders, and no list of labels lies beside it: put val.txt, "
        f"LOC_val_solution.csv or the folder ILSVRC2012_devkit_t12 there"
    )


def _kaggle_labels(path: Path) -> dict[str, int]:
    label_of = {identity: label for label, identity in enumerate(imagenet_ids())}
    rows = csv.DictReader(read_lines(path))
    try:
        return {f"{row['ImageId']}.JPEG": label_of[row["PredictionString"].split()[0]] for row in rows}
    except (KeyError, IndexError, AttributeError, csv.Error) as error:
        raise DataError(f"{path} has no ImageId and PredictionString in line {rows.line_num}; get it again") from error


def _kit_labels(kit: Path) -> dict[str, int]:
    # The kit counts classes 1..1000 in an order of its own; meta.mat says which WordNet id each number is.
    matlab = need("scipy.io", "ImageNet's meta.mat")
    label_of = {identity: label for label, identity in enumerate(imagenet_ids())}
    try:
        synsets = matlab.loadmat(kit / "meta.mat", squeeze_me=True)["synsets"]
        label_of_number = {str(int(row[0])): label_of[str(row[1])] for row in synsets if str(row[1]) in label_of}
    except Exception as error:
        # SciPy raises almost anything on damaged files.
        raise DataError(f"{kit / 'meta.mat'} is not the developers' kit's ({error}); unpack the kit again") from error
    truth = kit / "ILSVRC2012_validation_ground_truth.txt"
    numbers = read_lines(truth)
    if not numbers or not label_of_number.keys() >= set(numbers):
        raise DataError(f"{truth} is not a list of class numbers of meta.mat; unpack the kit again")
    return {f"ILSVRC2012_val_{index:08d}.JPEG": label_of_number[number] for index, number in enumerate(numbers, 1)}


def _dataset(request: Request, blobs: Sequence[Blob], labels: Sequence[int], fit: Fit, names: Sequence[str]) -> DataSet:
    images = FileImages(blobs, fit)
    return DataSet(
        name=request.name,
        split=request.split,
        images=images,
        labels=np.array(labels, np.int64),
        classes=tuple(names),
        origin=Recipe.of(
            read="image files",
            size=[fit.height, fit.width],
            shorter_side=fit.shorter,
            corruption=request.corruption,
            severity=request.severity,
        ),
        reading=images.keeper.report,
    )

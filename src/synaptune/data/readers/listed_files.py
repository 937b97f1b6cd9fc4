"""Image files with a list of names and labels, in a folder or in an uncompressed tar: MNIST-M as DANN released it.

List: one `NAME LABEL` per line (Ganin and Lempitsky, 2015; 9,001 test images of 32x32).
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from synaptune.data.dataset import DataSet
from synaptune.data.decode import Blob, Fit
from synaptune.data.entry import Request
from synaptune.data.folder import FileImages
from synaptune.data.recipe import Recipe
from synaptune.errors import DataError

__all__ = ["labels_by_name", "read_lines", "read_mnist_m_folder", "read_mnist_m_tar", "tar_members"]

_FIT = Fit(32, 32)


def read_mnist_m_folder(request: Request) -> DataSet:
    """Read a folder of PNG files with its list beside it."""
    folder, listing = request.paths
    return _dataset(request, labels_by_name(listing), {path.name: Blob(path) for path in folder.iterdir()})


def read_mnist_m_tar(request: Request) -> DataSet:
    """Read the PNG files inside a tar where they lie; nothing is unpacked."""
    (path,) = request.paths
    members = tar_members(path)
    listing = next((blob for name, blob in members.items() if name.endswith("_labels.txt")), None)
    if listing is None:
        raise DataError(f"{path} holds no list of labels (*_labels.txt); it is not the DANN release")
    files = {PurePosixPath(name).name: blob for name, blob in members.items()}
    return _dataset(request, _pairs(listing.read(), listing), files)


def labels_by_name(path: Path) -> list[tuple[str, int]]:
    """Read a list of `NAME LABEL` lines.

    Raises:
        DataError: it holds something else.
    """
    return _pairs(path.read_bytes(), path)


def read_lines(path: Path) -> list[str]:
    """Read the lines of a list, without blank ones.

    Raises:
        DataError: it is no plain text.
    """
    return _lines(path.read_bytes(), path)


def _lines(content: bytes, where: Path | Blob) -> list[str]:
    try:
        lines = content.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not plain text, so it is not the published list; get it again") from error
    return [line.strip() for line in lines if line.strip()]


def _pairs(content: bytes, where: Path | Blob) -> list[tuple[str, int]]:
    pairs = []
    for line in _lines(content, where):
        parts = line.split()
        if len(parts) != 2 or not parts[1].isdecimal():
            raise DataError(f"{where} is not a list of NAME LABEL lines: {line[:60]!r}; get it again")
        pairs.append((parts[0], int(parts[1])))
    if not pairs:
        raise DataError(f"{where} is an empty list; get it again")
    return pairs


def tar_members(path: Path) -> Mapping[str, Blob]:
    """Say for every regular file of an uncompressed tar where its bytes lie."""
    try:
        with tarfile.open(path, "r:") as tar:
            members = {
                member.name: Blob(path, member.offset_data, member.size, f"{path.name}/{member.name}")
                for member in tar
                if member.isfile()
            }
            end = max((blob.offset + (blob.length or 0) for blob in members.values()), default=0)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DataError(f"{path} is not a complete uncompressed tar ({error}); get it again") from error
    if end > path.stat().st_size:
        raise DataError(f"{path} ends in the middle of a file; get it again")
    return members


def _dataset(request: Request, pairs: Sequence[tuple[str, int]], files: Mapping[str, Blob]) -> DataSet:
    missing = [name for name, _ in pairs if name not in files]
    if missing:
        raise DataError(
            f"{request.name}: {len(missing)} of {len(pairs)} listed images are not there, the first is {missing[0]}; "
            f"get it again"
        )
    images = FileImages([files[name] for name, _ in pairs], _FIT)
    return DataSet(
        name=request.name,
        split=request.split,
        images=images,
        labels=np.array([label for _, label in pairs], np.int64),
        classes=request.classes,
        origin=Recipe.of(read="listed files"),
        reading=images.keeper.report,
    )

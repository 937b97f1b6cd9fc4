"""CIFAR-10 and CIFAR-100, binary and Python versions (A. Krizhevsky, 2009).

Binary: records of one label byte (CIFAR-100: coarse, then fine) and 3072 pixel bytes, red plane first. The files are
memory-mapped where they lie. Python: pickled dicts, read by `synaptune.data.pickled`, which cannot run code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from synaptune.data.dataset import DataSet
from synaptune.data.entry import Request
from synaptune.data.images import Images, JoinedImages, Pixels
from synaptune.data.pickled import read_plain
from synaptune.data.recipe import Recipe
from synaptune.errors import DataError

__all__ = ["read_cifar10_binary", "read_cifar10_python", "read_cifar100_binary", "read_cifar100_python"]

_PIXELS = 3 * 32 * 32


def read_cifar10_binary(request: Request) -> DataSet:
    """Map `test_batch.bin` or the five `data_batch_N.bin`."""
    return _read_binary(request, label_bytes=1)


def read_cifar100_binary(request: Request) -> DataSet:
    """Map `test.bin` or `train.bin`; the labels are the fine ones."""
    return _read_binary(request, label_bytes=2)


def read_cifar10_python(request: Request) -> DataSet:
    """Read `test_batch` or the five `data_batch_N`."""
    return _read_python(request, b"labels")


def read_cifar100_python(request: Request) -> DataSet:
    """Read `test` or `train`; the labels are the fine ones."""
    return _read_python(request, b"fine_labels")


def _read_binary(request: Request, label_bytes: int) -> DataSet:
    record = np.dtype([("labels", np.uint8, (label_bytes,)), ("planes", np.uint8, (3, 32, 32))])
    parts, labels = [], []
    for path in request.paths:
        size = path.stat().st_size
        if size == 0 or size % record.itemsize:
            raise DataError(
                f"{path} has {size:,} bytes, which is no whole number of images of {record.itemsize:,} bytes; "
                f"it is not complete: delete it and run `synaptune data get {request.name}`"
            )
        records = np.memmap(path, record, mode="r")
        parts.append(records["planes"].transpose(0, 2, 3, 1))
        labels.append(records["labels"][:, -1].astype(np.int64))
    return _dataset(request, parts, labels, version="binary")


def _read_python(request: Request, key: bytes) -> DataSet:
    parts, labels = [], []
    for path in request.paths:
        content = read_plain(path)
        parts.append(_python_pixels(content, path))
        labels.append(np.asarray(content.get(key, ()), np.int64))
    return _dataset(request, parts, labels, version="python")


def _python_pixels(content: object, path: Path) -> Pixels:
    data = content.get(b"data") if isinstance(content, dict) else None
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (_PIXELS,):
        raise DataError(f"{path} holds no uint8 array of {_PIXELS} columns under 'data'; it is not CIFAR")
    pixels: Pixels = data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return pixels


def _dataset(
    request: Request, parts: Sequence[Pixels], labels: Sequence[npt.NDArray[np.int64]], version: str
) -> DataSet:
    images: Images = parts[0] if len(parts) == 1 else JoinedImages(parts)
    return DataSet(
        name=request.name,
        split=request.split,
        images=images,
        labels=np.concatenate(labels),
        classes=request.classes,
        origin=Recipe.of(read=f"CIFAR {version} version"),
    )

"""USPS digits (Hull, 1994), 16x16 grey: libsvm text in bz2, or the HDF5 file that circulates.

libsvm: `LABEL INDEX:VALUE ...` per line, labels 1..10 for digits 0..9, values in -1..1, absent values are 0.
HDF5: groups `train` and `test`, each with `data` (n, 256) in 0..1 and `target` 0..9.
"""

from __future__ import annotations

import bz2
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from synaptune.data.dataset import DataSet
from synaptune.data.entry import Request
from synaptune.data.extras import need
from synaptune.data.recipe import Recipe
from synaptune.errors import DataError

__all__ = ["parse_libsvm", "read_usps_hdf5", "read_usps_libsvm"]

_SIDE = 16


def read_usps_libsvm(request: Request) -> DataSet:
    """Read libsvm text; -1..1 becomes 0..255."""
    (path,) = request.paths
    try:
        values, labels = parse_libsvm(bz2.decompress(path.read_bytes()), features=_SIDE * _SIDE)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} is not complete libsvm text in bz2 ({error}); get it again") from error
    return _dataset(request, (values + 1) / 2, labels - 1, read="libsvm text")


def read_usps_hdf5(request: Request) -> DataSet:
    """Read `data` and `target` of the split's group."""
    (path,) = request.paths
    hdf5 = need("h5py", "usps.h5")
    try:
        with hdf5.File(path, "r") as file:
            group = file[request.split]
            values, labels = np.asarray(group["data"], np.float64), np.asarray(group["target"], np.int64)
    except (OSError, KeyError) as error:
        raise DataError(f"{path} has no data and target for {request.split!r} ({error}); get it again") from error
    return _dataset(request, values, labels, read="HDF5")


def parse_libsvm(text: bytes, *, features: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    r"""Parse dense or sparse libsvm text into (n, features) values and labels.

    >>> values, labels = parse_libsvm(b"2 1:-1 3:0.5\n1 2:1\n", features=3)
    >>> values.tolist(), labels.tolist()
    ([[-1.0, 0.0, 0.5], [0.0, 1.0, 0.0]], [2, 1])
    """
    rows = text.count(b"\n") + (not text.endswith(b"\n"))
    numbers = _numbers(text)
    if numbers.size == rows * (1 + 2 * features):
        table = numbers.reshape(rows, -1)
        if (table[:, 1::2] == np.arange(1, features + 1)).all():
            return table[:, 2::2], table[:, 0].astype(np.int64)
    return _parse_sparse(text, features)


def _numbers(text: bytes) -> npt.NDArray[np.float64]:
    """All numbers of the text in a row, much faster than line by line; nothing if there is anything else in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text.replace(b":", b" ").decode("ascii"), sep=" ")
        except DeprecationWarning:
            return np.empty(0)


def _parse_sparse(text: bytes, features: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    lines = [line.replace(b":", b" ").split() for line in text.splitlines() if line.strip()]
    values = np.zeros((len(lines), features))
    for row, line in enumerate(lines):
        columns = np.array(line[1::2], np.int64) - 1
        if len(columns) and not 0 <= columns.min() <= columns.max() < features:
            raise ValueError(f"line {row + 1} has an index outside 1..{features}")
        values[row, columns] = np.array(line[2::2], np.float64)
    return values, np.array([int(float(line[0])) for line in lines], np.int64)


def _dataset(request: Request, values: npt.NDArray[Any], labels: npt.NDArray[np.int64], read: str) -> DataSet:
    grey = np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8).reshape(-1, _SIDE, _SIDE, 1)
    return DataSet(
        name=request.name,
        split=request.split,
        images=np.broadcast_to(grey, (len(grey), _SIDE, _SIDE, 3)),
        labels=labels,
        classes=request.classes,
        origin=Recipe.of(read=read, channels="grey repeated"),
    )

"""MNIST in its idx files (LeCun, Cortes, Burges), plain or gzipped.

Header: two zero bytes, a type code (8 = unsigned byte), the rank, then the sizes as big-endian 32-bit numbers.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from synaptune.data.dataset import DataSet
from synaptune.data.entry import Request
from synaptune.data.recipe import Recipe
from synaptune.errors import DataError

__all__ = ["read_idx", "read_mnist"]

_UNSIGNED_BYTE = 8


def read_mnist(request: Request) -> DataSet:
    """Read images and labels; the grey plane is shown as three equal channels without a copy."""
    images, labels = (read_idx(path) for path in request.paths)
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise DataError(
            f"{request.paths[0]} and {request.paths[1]} do not belong together: "
            f"{images.shape} images, {labels.shape} labels"
        )
    return DataSet(
        name=request.name,
        split=request.split,
        images=np.broadcast_to(images[..., np.newaxis], (*images.shape, 3)),
        labels=labels.astype(np.int64),
        classes=request.classes,
        origin=Recipe.of(read="idx files", channels="grey repeated"),
    )


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Read one idx file of bytes: a plain one is mapped where it lies, a gzipped one unpacked into memory."""
    content = _unpacked(path) if path.suffix == ".gz" else _mapped(path)
    if len(content) < 4 or content[:2].any() or content[2] != _UNSIGNED_BYTE:
        raise DataError(f"{path} does not begin like an idx file of bytes; delete it and get it again")
    start = 4 + 4 * int(content[3])
    shape = tuple(int(size) for size in content[4:start].view(">u4")) if len(content) >= start else ()
    expected = int(np.prod(shape)) if shape else -1
    if len(content) - start != expected:
        raise DataError(
            f"{path} has {len(content) - start:,} bytes of content, its header announces {expected:,}; "
            f"it is not complete: delete it and get it again"
        )
    return content[start:].reshape(shape)


def _mapped(path: Path) -> npt.NDArray[np.uint8]:
    if path.stat().st_size == 0:
        return np.empty(0, np.uint8)  # which cannot be mapped
    return np.memmap(path, np.uint8, mode="r")


def _unpacked(path: Path) -> npt.NDArray[np.uint8]:
    try:
        return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is not a complete gzip file ({error}); delete it and get it again") from error

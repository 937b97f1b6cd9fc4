"""CIFAR-10-C and CIFAR-100-C (Hendrycks and Dietterich, ICLR 2019): one array per corruption, memory-mapped.

Layout: `NAME.npy` holds five severities one after the other, each with all test images in order; `labels.npy` holds
the labels, once per severity (a file with the labels of one severity only is accepted too).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from synaptune.data.dataset import DataSet
from synaptune.data.entry import Request
from synaptune.data.recipe import Recipe
from synaptune.errors import DataError
from synaptune.shifts import SEVERITIES

__all__ = ["load_array", "read_corrupted_arrays"]

_MAGIC = b"\x93NUMPY"


def read_corrupted_arrays(request: Request) -> DataSet:
    """Map the images of one corruption and severity."""
    labels_path, images_path = request.paths
    images, labels = load_array(images_path), load_array(labels_path)
    if images.ndim != 4 or images.dtype != np.uint8 or images.shape[-1] != 3 or len(images) % len(SEVERITIES):
        raise DataError(
            f"{images_path} is {images.dtype} {images.shape}; expected uint8 (5 x n, height, width, 3), "
            f"the five severities one after the other"
        )
    count = len(images) // len(SEVERITIES)
    if labels.shape not in ((count,), (len(images),)):
        raise DataError(f"{labels_path} has shape {labels.shape}; expected {count} or {len(images)} labels")
    severity = request.severity or SEVERITIES[0]
    own = slice((severity - 1) * count, severity * count)
    return DataSet(
        name=request.name,
        split=request.split,
        images=images[own],
        labels=labels[own if len(labels) == len(images) else slice(None)].astype(np.int64),
        classes=request.classes,
        origin=Recipe.of(read="published arrays", corruption=request.corruption, severity=severity),
    )


def load_array(path: Path) -> npt.NDArray[Any]:
    """Memory-map a `.npy` file, or say that it is not a whole one."""
    try:
        with path.open("rb") as file:
            if not file.read(len(_MAGIC)) == _MAGIC:
                raise EOFError("it does not begin like one")  # NumPy would recommend to unpickle it
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}") from error
    except PermissionError as error:
        raise DataError(f"{path} may not be read; correct its permissions") from error
    except Exception as error:
        # A damaged header is sent through Python's tokenizer, which has errors of its own.
        raise DataError(f"{path} is not a complete .npy file of numbers ({error}); get or make it again") from error
    return array

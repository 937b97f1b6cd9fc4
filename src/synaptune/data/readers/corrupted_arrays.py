"""CIFAR-10-C and CIFAR-100-C (Hendrycks and Dietterich, ICLR 2019): one array per corruption, memory-mapped.

Layout: `NAME.npy` holds five severities one after the other, each with all test images in order; `labels.npy` holds
the labels, once per severity (a file with the labels of one severity only is accepted too). Arrays that were made with
`synaptune corrupt` may hold fewer severities, or in another order: the `recipe.json` beside them says which.
"""

from __future__ import annotations

import json
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
_RECIPE_FILE = "recipe.json"


def read_corrupted_arrays(request: Request) -> DataSet:
    """Map the images of one corruption and severity."""
    labels_path, images_path = request.paths
    images, labels = load_array(images_path), load_array(labels_path)
    held = _severities_in(images_path.parent)
    if images.ndim != 4 or images.dtype != np.uint8 or images.shape[-1] != 3 or len(images) % len(held):
        raise DataError(
            f"{images_path} is {images.dtype} {images.shape}; expected uint8 ({len(held)} x n, height, width, 3), "
            f"the severities {', '.join(map(str, held))} one after the other"
        )
    count = len(images) // len(held)
    if labels.shape not in ((count,), (len(images),)):
        raise DataError(f"{labels_path} has shape {labels.shape}; expected {count} or {len(images)} labels")
    severity = request.severity or held[0]
    if severity not in held:
        raise DataError(
            f"{images_path} was made with severity {', '.join(map(str, held))} only, not {severity}; make the others "
            f"too, in another folder"
        )
    place = held.index(severity)
    own = slice(place * count, (place + 1) * count)
    return DataSet(
        name=request.name,
        split=request.split,
        images=images[own],
        labels=labels[own if len(labels) == len(images) else slice(None)].astype(np.int64),
        classes=request.classes,
        origin=Recipe.of(read="published arrays", corruption=request.corruption, severity=severity),
    )


def _severities_in(folder: Path) -> tuple[int, ...]:
    """Say which severities the arrays of a folder hold, in their order: all five, unless its recipe says otherwise."""
    path = folder / _RECIPE_FILE
    try:
        recipe = json.loads(path.read_text())
    except FileNotFoundError:
        return SEVERITIES
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}), and it says which severities lie beside it") from error
    held = recipe.get("severities", SEVERITIES) if isinstance(recipe, dict) else SEVERITIES
    if not isinstance(held, list | tuple) or not held or not set(held) <= set(SEVERITIES):
        raise DataError(f"{path} names the severities {held!r}, which there are not; make the arrays anew")
    return tuple(held)


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

"""The layout of CIFAR-10-C: one array per corruption, its severities one after the other, and `labels.npy`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from synaptune.corrupting.files import Plan, Tally, in_order, open_destination, whole_file
from synaptune.data.dataset import DataSet
from synaptune.data.images import LazyImages, read_pixels
from synaptune.errors import DataError
from synaptune.shifts.corruption import corrupt

__all__ = ["write_arrays"]

_CHUNK_VALUES = 4_000_000


def write_arrays(dataset: DataSet, folder: Path, plan: Plan, tally: Tally) -> None:
    """Write every corruption that is not there yet; the index of an image is its position in the data set.

    Images that cannot be read are left out of all arrays, and of the labels.
    """
    positions = _readable_positions(dataset)
    if not len(positions):
        reason = (
            f"none of the {len(dataset)} images of {dataset.name} can be read" if len(dataset) else "there is no image"
        )
        raise DataError(f"{reason}; nothing was written")
    unreadable = len(dataset) - len(positions)
    height, width = dataset.size
    open_destination(
        folder,
        plan.stamp(
            layout="arrays",
            source=dataset.name,
            content=dataset.pixels_fingerprint,
            images=len(positions),
            height=height,
            width=width,
        ),
    )
    _write_labels(dataset, positions, folder, plan)
    for name in plan.corruptions:
        file = folder / f"{name}.npy"
        if file.exists():
            tally.add(present=len(positions) * len(plan.severities))
        else:
            _write_one(dataset, positions, file, name, plan, tally)
        tally.add(lost=unreadable * len(plan.severities))


def _readable_positions(dataset: DataSet) -> NDArray[np.int64]:
    """Return the positions of the images that every corruption will be able to read."""
    positions = np.arange(len(dataset), dtype=np.int64)
    if not isinstance(dataset.images, LazyImages):
        return positions
    readable = [read_pixels(dataset.images, part).readable for part in _chunks(positions, dataset.size)]
    return positions[np.concatenate(readable)] if readable else positions


def _chunks(positions: NDArray[np.int64], size: tuple[int, int]) -> list[NDArray[np.int64]]:
    step = max(1, _CHUNK_VALUES // (size[0] * size[1] * 3))
    return [positions[start : start + step] for start in range(0, len(positions), step)]


def _write_labels(dataset: DataSet, positions: NDArray[np.int64], folder: Path, plan: Plan) -> None:
    """Write the labels once per severity, in bytes where they fit, as published."""
    labels = dataset.labels[positions]
    if (labels < 0).any():
        return
    kind = np.uint8 if labels.max() < 256 else np.int64
    with whole_file(folder / "labels.npy") as file:
        np.save(file, np.tile(labels.astype(kind), len(plan.severities)), allow_pickle=False)


def _write_one(dataset: DataSet, positions: NDArray[np.int64], file: Path, name: str, plan: Plan, tally: Tally) -> None:
    """Stream the array of one corruption to its file.

    Plain writing, and not a memory map: on a full disk a map ends the process, a write raises.
    """
    shape = (len(plan.severities) * len(positions), *dataset.size, 3)
    with whole_file(file, durable=True) as stream:
        npy.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": shape})
        for severity in plan.severities:
            make = partial(_corrupted, dataset, name, severity, plan)
            for made in in_order(make, _chunks(positions, dataset.size), plan.workers):
                stream.write(made.data)
                tally.add(written=len(made))


def _corrupted(
    dataset: DataSet, name: str, severity: int, plan: Plan, positions: NDArray[np.int64]
) -> NDArray[np.uint8]:
    pixels, readable = read_pixels(dataset.images, positions)
    if not readable.all():
        raise DataError(
            f"{(~readable).sum()} images of {dataset.name} could be read before and cannot be read now; "
            "check the disk and run the same command again"
        )
    return corrupt(pixels, name, severity, seed=plan.seed, indices=positions, size=plan.size)

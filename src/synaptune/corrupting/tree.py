"""The layout of ImageNet-C: `CORRUPTION/SEVERITY/CLASS/FILE`, one file per image.

Photographs may differ in size; each is corrupted at its own. The index of a file is a hash of its path within the
source folder, so an image looks the same whatever other files lie beside it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from synaptune.corrupting.files import Plan, Tally, in_order, open_destination, whole_file
from synaptune.data.dataset import DataSet
from synaptune.data.decode import Blob, Fit, ImageProblemError, decode
from synaptune.data.folder import FileImages
from synaptune.data.images import read_pixels
from synaptune.data.readers.imagenet import imagenet_ids, imagenet_names
from synaptune.errors import InputError
from synaptune.shifts.corruption import corrupt

__all__ = ["FilesToCorrupt", "SetToCorrupt", "write_tree"]

_BLOCK = 32
_JPEG_ENDINGS = frozenset({".jpg", ".jpeg", ".jpe", ".jfif"})
# As the published sets were saved.
_JPEG_QUALITY = 85


class ToCorrupt(Protocol):
    """Images with the names that their files get."""

    @property
    def names(self) -> Sequence[PurePosixPath]:
        """Paths below `CORRUPTION/SEVERITY`."""
        ...

    @property
    def indices(self) -> NDArray[np.uint64]:
        """The index of each image for its random stream."""
        ...

    @property
    def stamp(self) -> Mapping[str, Any]:
        """What the recipe says of the source."""
        ...

    def read(self, position: int) -> NDArray[np.uint8] | None:
        """Return one image, or None if it cannot be read."""
        ...


class FilesToCorrupt:
    """Image files in a folder, which keep their names; other formats than JPEG and PNG become PNG."""

    def __init__(self, images: FileImages, folder: Path, *, fit: Fit | None, lossless: bool):
        self._images, self._fit = images, fit
        self._paths = tuple(Path(name) for name in images.names)
        relative = [PurePosixPath(path.relative_to(folder).as_posix()) for path in self._paths]
        self.names = [_output_name(path, lossless=lossless) for path in relative]
        _refuse_meeting(relative, self.names)
        hashes = [hashlib.blake2b(str(path).encode(), digest_size=8).digest() for path in relative]
        self.indices = np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64)
        self.stamp = {"source": folder.name, "fit": str(fit) if fit else None, "lossless": lossless}

    def read(self, position: int) -> NDArray[np.uint8] | None:
        path = self._paths[position]
        try:
            pixels, steps = decode(Blob(path), self._fit)
        except ImageProblemError as problem:
            self._images.keeper.skip(str(path), problem.reason)
            return None
        self._images.keeper.convert(str(path), steps)
        return pixels


class SetToCorrupt:
    """A data set: files keep their names below a folder of their class, other images become PNG files by position."""

    def __init__(self, dataset: DataSet, *, lossless: bool):
        self._dataset = dataset
        folders = _class_folders(dataset)
        by_position = [PurePosixPath(folder, f"{position:05d}.png") for position, folder in enumerate(folders)]
        images = dataset.images
        files = images.names if isinstance(images, FileImages) else ()
        named = [
            _output_name(PurePosixPath(folder, Path(file).name), lossless=lossless)
            for folder, file in zip(folders, files, strict=False)
        ]
        self.names = named if named and len(set(named)) == len(named) else by_position
        self.indices = np.arange(len(dataset), dtype=np.uint64)
        self.stamp = {"source": dataset.name, "content": dataset.pixels_fingerprint, "lossless": lossless}

    def read(self, position: int) -> NDArray[np.uint8] | None:
        pixels, readable = read_pixels(self._dataset.images, np.array([position], dtype=np.int64))
        return pixels[0] if readable[0] else None


class _Done(NamedTuple):
    written: int
    present: int
    lost: int


def write_tree(source: ToCorrupt, folder: Path, plan: Plan, tally: Tally) -> None:
    """Write every file that is not there yet."""
    open_destination(folder, plan.stamp(layout="tree", **source.stamp))
    blocks = [range(start, min(start + _BLOCK, len(source.names))) for start in range(0, len(source.names), _BLOCK)]
    for done in in_order(partial(_write_block, source, folder, plan), blocks, plan.workers):
        tally.add(written=done.written, present=done.present, lost=done.lost)


def _write_block(source: ToCorrupt, folder: Path, plan: Plan, block: range) -> _Done:
    """Read some images and write what is missing of them, those of one size together."""
    wanted = [(name, severity) for name in plan.corruptions for severity in plan.severities]
    missing = {position: _missing(source.names[position], folder, wanted) for position in block}
    present = sum(len(wanted) - len(still) for still in missing.values())
    by_size: defaultdict[tuple[int, ...], list[tuple[int, NDArray[np.uint8]]]] = defaultdict(list)
    lost = 0
    for position in block:
        pixels = source.read(position) if missing[position] else None
        if pixels is not None:
            by_size[pixels.shape].append((position, pixels))
        else:
            lost += len(missing[position])
    written = 0
    for alike in by_size.values():
        for request in wanted:
            written += _write_alike(source, folder, plan, request, [m for m in alike if request in missing[m[0]]])
    return _Done(written, present, lost)


def _missing(name: PurePosixPath, folder: Path, wanted: list[tuple[str, int]]) -> set[tuple[str, int]]:
    return {request for request in wanted if not _place(folder, request, name).exists()}


def _write_alike(
    source: ToCorrupt,
    folder: Path,
    plan: Plan,
    request: tuple[str, int],
    members: list[tuple[int, NDArray[np.uint8]]],
) -> int:
    """Corrupt images of one size in one go, and write a file for each."""
    if not members:
        return 0
    positions = [position for position, _ in members]
    stack = np.stack([pixels for _, pixels in members])
    corrupted = corrupt(stack, *request, seed=plan.seed, indices=source.indices[positions], size=plan.size)
    for position, pixels in zip(positions, corrupted, strict=True):
        place = _place(folder, request, source.names[position])
        content = _encoded(pixels, place.suffix)
        with whole_file(place) as file:
            file.write(content)
    return len(members)


def _place(folder: Path, request: tuple[str, int], name: PurePosixPath) -> Path:
    return folder / request[0] / str(request[1]) / name


def _encoded(pixels: NDArray[np.uint8], ending: str) -> bytes:
    file = BytesIO()
    if ending.lower() in _JPEG_ENDINGS:
        Image.fromarray(pixels).save(file, "JPEG", quality=_JPEG_QUALITY, optimize=True)
    else:
        Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def _output_name(path: PurePosixPath, *, lossless: bool) -> PurePosixPath:
    """Keep the name where the format is kept; else add an ending, so that `a.webp` and `a.png` do not meet.

    >>> _output_name(PurePosixPath("cat/a.webp"), lossless=False)
    PurePosixPath('cat/a.webp.png')
    """
    kept = {".png"} if lossless else {".png", *_JPEG_ENDINGS}
    return path if path.suffix.lower() in kept else path.with_name(f"{path.name}.png")


def _refuse_meeting(paths: Sequence[PurePosixPath], names: Sequence[PurePosixPath]) -> None:
    """Refuse two images of which one would be written over the other, such as `a.webp` and `a.webp.png`."""
    first: dict[PurePosixPath, PurePosixPath] = {}
    for path, name in zip(paths, names, strict=True):
        if name in first:
            raise InputError(f"{first[name]} and {path} would both be written as {name}; rename one of them")
        first[name] = path


def _class_folders(dataset: DataSet) -> list[str]:
    """Return the folder of each image: its class, which ImageNet's trees call by WordNet id."""
    is_imagenet = dataset.classes == imagenet_names()  # two of these names are those of two classes each
    classes = imagenet_ids() if is_imagenet else dataset.classes
    names = {label: _class_folder(dataset, classes, label) for label in np.unique(dataset.labels).tolist()}
    if len(set(names.values())) < len(names):
        raise InputError(f"several classes of {dataset.name} have the same name; write arrays instead")
    return [names[label] for label in dataset.labels.tolist()]


def _class_folder(dataset: DataSet, classes: tuple[str, ...], label: int) -> str:
    if label < 0:
        return "unlabelled"
    name = classes[label] if classes else str(label)
    if not name or name.startswith(".") or "/" in name or "\\" in name:
        raise InputError(f"class name {name!r} of {dataset.name} cannot be the name of a folder; write arrays instead")
    return name

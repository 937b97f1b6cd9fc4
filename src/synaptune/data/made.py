"""Computed images that are kept on disk, under a name that says exactly what they are.

A file lies at `made/XX/DIGEST.npy` below the data root; DIGEST is the fingerprint of the images before they are
computed: content of the source, everything that was done to it, version of the generator. So it can never be stale. It
is written under another name, flushed and renamed. Processes that make the same file at the same time each write their
own, and the last rename wins with equal bytes. Readers map it into memory.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from synaptune.data.images import LazyImages, PixelsRead, Positions
from synaptune.data.locate import data_root
from synaptune.data.progress import Listener, Progress, silent
from synaptune.data.receipt import write_atomically
from synaptune.errors import DataError

__all__ = ["KeptImages", "made_folder", "remove_made"]

_CHUNK = 256


def made_folder(root: str | Path | None = None) -> Path:
    """Folder of what is kept."""
    return data_root(root) / "made"


def remove_made(root: str | Path | None = None) -> int:
    """Delete all that is kept; return the number of bytes that were freed."""
    folder = made_folder(root)
    freed = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else 0
    shutil.rmtree(folder, ignore_errors=True)
    return freed


class KeptImages(LazyImages):
    """Images of another source, computed once and kept; the first reading makes all of them."""

    def __init__(self, images: LazyImages, folder: Path, listener: Listener = silent):
        self._images, self._folder, self._listener = images, folder, listener
        self._lock = threading.Lock()
        self._mapped: npt.NDArray[np.uint8] | None = None
        self._readable: npt.NDArray[np.bool_] = np.ones(len(images), np.bool_)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self._images.shape

    @property
    def path(self) -> Path:
        """Where they are kept, or will be."""
        digest = self.fingerprint()
        return self._folder / digest[:2] / f"{digest}.npy"

    def read(self, positions: Positions) -> PixelsRead:
        with self._lock:  # two threads of a stream must not both make it
            mapped = self._mapped
            if mapped is None:
                self._mapped = mapped = self._opened_or_made(self.path)
        readable = self._readable[positions]
        return PixelsRead(np.asarray(mapped[positions[readable]]), readable)

    def fingerprint(self) -> str:
        return self._images.fingerprint()

    def describe(self, position: int) -> str:
        return self._images.describe(position)

    def _opened_or_made(self, path: Path) -> npt.NDArray[np.uint8]:
        mapped = self._open(path)
        if mapped is None:
            self._make(path)
            mapped = self._open(path)
        if mapped is None:
            raise DataError(f"{path} vanished right after it was made; call again, or use cache=False")
        return mapped

    def _open(self, path: Path) -> npt.NDArray[np.uint8] | None:
        """Map the file, or None if it is not there or not what it should be."""
        try:
            mapped: npt.NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
            note = json.loads(path.with_suffix(".json").read_text())
            unreadable = [int(position) for position in note["unreadable"]]
        except (OSError, ValueError, EOFError, KeyError, TypeError):
            return None
        if mapped.shape != self.shape or mapped.dtype != np.uint8:
            return None
        self._readable = np.ones(len(self), np.bool_)
        self._readable[unreadable] = False
        # Whoever made the file may have been another run: read in vain again, so that this one's report has them too.
        self._images.read(np.array(unreadable, np.int64))
        return mapped

    def _make(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            needed, free = int(np.prod(self.shape)), shutil.disk_usage(path.parent).free
            if needed > free:
                raise OSError(errno.ENOSPC, f"{needed:,} bytes are needed, {free:,} are left")
            handle, scratch = tempfile.mkstemp(prefix=f".{path.stem[:8]}-", suffix=".tmp", dir=path.parent)
            try:
                unreadable = self._write(handle, path.name)
                # The note first: whoever sees the array must find it.
                note = {"unreadable": unreadable, "shape": list(self.shape)}
                write_atomically(path.with_suffix(".json"), json.dumps(note).encode())
                _rename(Path(scratch), path)
            finally:
                Path(scratch).unlink(missing_ok=True)
        except DataError:
            raise
        except OSError as error:
            raise DataError(
                f"cannot keep computed images at {path.parent} ({error}); use cache=False, make room, or choose "
                f"another folder with root= or SYNAPTUNE_DATA"
            ) from error

    def _write(self, handle: int, name: str) -> list[int]:
        """Compute and write everything; return the positions that cannot be read."""
        unreadable: list[int] = []
        total = int(np.prod(self.shape))
        with os.fdopen(handle, "wb") as file:
            npy.write_array_header_1_0(
                file, {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": self.shape}
            )
            for start in range(0, len(self), _CHUNK):
                positions = np.arange(start, min(start + _CHUNK, len(self)), dtype=np.int64)
                pixels, readable = self._images.read(positions)
                whole = np.zeros((len(positions), *self.shape[1:]), np.uint8)
                whole[readable] = pixels
                file.write(whole.data)
                unreadable += positions[~readable].tolist()
                done = int(positions[-1] + 1) * total // len(self)
                self._listener(Progress(name, "make", done, total))
            file.flush()
            os.fsync(file.fileno())
        return unreadable


def _rename(scratch: Path, path: Path) -> None:
    try:
        scratch.replace(path)
    except PermissionError:
        # Windows does not replace a file that somebody has mapped; theirs has the same bytes.
        if not path.exists():
            raise

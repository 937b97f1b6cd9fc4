"""What was downloaded when, and how its bytes measured: the only checksum there is for files that nobody has pinned.

A receipt lies at `.synaptune/NAME.json` below the data root. It is written last, after everything is in place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from synaptune.data.checksums import Digests, digests_of

__all__ = ["Receipt", "count_tree", "measure_files", "write_atomically"]

_FEW = 200
"""Up to so many files are written down one by one; of larger trees only number and bytes."""


@dataclass(frozen=True)
class Receipt:
    """Record of the downloads of one data set.

    Attributes:
        name: the data set.
        downloads: measured checksums by file name of the publisher.
        files: measured checksums by path below the data root, where there are few files.
        trees: number of files and bytes by folder below the data root, where there are many.
    """

    name: str
    downloads: Mapping[str, Digests] = field(default_factory=dict)
    files: Mapping[str, Digests] = field(default_factory=dict)
    trees: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def with_download(
        self, filename: str, digests: Digests, files: Mapping[str, Digests], trees: Mapping[str, tuple[int, int]]
    ) -> Receipt:
        """Return the receipt with one more download on it."""
        return Receipt(
            self.name, {**self.downloads, filename: digests}, {**self.files, **files}, {**self.trees, **trees}
        )

    def write(self, root: Path) -> None:
        """Put it in its place."""
        plain = {
            "name": self.name,
            "downloads": {name: asdict(digests) for name, digests in self.downloads.items()},
            "files": {path: asdict(digests) for path, digests in self.files.items()},
            "trees": {path: list(counts) for path, counts in self.trees.items()},
        }
        write_atomically(_path(root, self.name), json.dumps(plain, indent=1).encode())

    @classmethod
    def read(cls, root: Path, name: str) -> Receipt:
        """Read what is written; an empty receipt if there is none, or a damaged one."""
        try:
            plain = json.loads(_path(root, name).read_text())
            return cls(
                name,
                {key: Digests(**value) for key, value in plain["downloads"].items()},
                {key: Digests(**value) for key, value in plain["files"].items()},
                {key: (int(value[0]), int(value[1])) for key, value in plain["trees"].items()},
            )
        except (OSError, ValueError, KeyError, TypeError):
            return cls(name)


def measure_files(root: Path, paths: tuple[str, ...]) -> tuple[dict[str, Digests], dict[str, tuple[int, int]]]:
    """Measure files and folders below the root: checksums of few files, number and bytes of many."""
    files: dict[str, Digests] = {}
    trees: dict[str, tuple[int, int]] = {}
    for path in paths:
        found = root / path
        if found.is_file():
            files[path] = digests_of(found, path)
            continue
        inside = [entry for entry in found.rglob("*") if entry.is_file()]
        if len(inside) <= _FEW:
            files |= {entry.relative_to(root).as_posix(): digests_of(entry, entry.name) for entry in inside}
        else:
            trees[path] = count_tree(found)
    return files, trees


def count_tree(folder: Path) -> tuple[int, int]:
    """Number of files below a folder, and their bytes."""
    sizes = [entry.stat().st_size for entry in folder.rglob("*") if entry.is_file()]
    return len(sizes), sum(sizes)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a small file so that others see all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        scratch.write_bytes(content)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _path(root: Path, name: str) -> Path:
    return root / ".synaptune" / f"{name}.json"

"""What the catalogue knows about one data set: where it comes from, where it lies, how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

from synaptune.data.dataset import DataSet
from synaptune.errors import OptionError, UnknownNameError
from synaptune.shifts import SEVERITIES

__all__ = ["Entry", "KnownFile", "Place", "Reader", "Remote", "Request"]


@dataclass(frozen=True, kw_only=True)
class Remote:
    """One file of the publisher.

    Attributes:
        url: where it is; http or https.
        filename: under which name it is kept while it is being worked on.
        size: bytes, where known; used for the disk check and compared with what the server announces.
        md5: as documented by the publisher, or the same in two independent projects; None means not pinned.
        sha256: likewise.
        unpack: what has to be done with it.
        into: folder below the data root that it, or its content, goes to.
        gives: paths below the data root that exist afterwards; what is there already is not fetched again.
        mirrors: further addresses of the same bytes, tried in turn.
    """

    url: str
    filename: str
    size: int | None = None
    md5: str | None = None
    sha256: str | None = None
    unpack: Literal["nothing", "tar", "zip", "gz"] = "nothing"
    into: str = "."
    gives: tuple[str, ...]
    mirrors: tuple[str, ...] = ()

    @property
    def is_pinned(self) -> bool:
        """Whether a checksum is known beforehand."""
        return self.md5 is not None or self.sha256 is not None


@dataclass(frozen=True)
class KnownFile:
    """A file on disk that can be checked: its path below the data root and what is known of its content."""

    path: str
    size: int | None = None
    md5: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a reader is asked for, with the files that were found."""

    name: str
    split: str
    paths: tuple[Path, ...]
    classes: tuple[str, ...]
    corruption: str | None = None
    severity: int | None = None


Reader: TypeAlias = Callable[[Request], DataSet]


@dataclass(frozen=True)
class Place:
    """One way in which a split may lie on disk.

    Attributes:
        paths: relative paths that must all exist; `{corruption}` and `{severity}` are filled in.
        read: the reader for this layout.
    """

    paths: tuple[str, ...]
    read: Reader

    def filled(self, corruption: str | None, severity: int | None) -> tuple[str, ...]:
        """Return the paths for one corruption and severity."""
        return tuple(path.format(corruption=corruption, severity=severity) for path in self.paths)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One data set of the catalogue.

    Attributes:
        name: what users call it.
        title: its full name and what is in it.
        licence: the publisher's terms, in a few words.
        home: its page.
        counts: number of images of each split (for one corruption and severity).
        size: height and width, where all images share them.
        splits: places to look for each split, the preferred one first.
        classes: class names by label.
        corruptions: names of its shifts; empty for a clean set.
        remotes: what `get` fetches; empty if the publisher wants a person to register.
        manual: how to obtain it by hand, if there is nothing to fetch.
        files: files whose content is known, for `verify`.
        is_tree: whether it is a folder of many single files, too many to count for a listing.
    """

    name: str
    title: str
    licence: str
    home: str
    counts: Mapping[str, int]
    size: tuple[int, int] | None
    splits: Mapping[str, tuple[Place, ...]]
    classes: tuple[str, ...] = ()
    corruptions: tuple[str, ...] = ()
    remotes: tuple[Remote, ...] = ()
    manual: str = ""
    files: tuple[KnownFile, ...] = ()
    is_tree: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", MappingProxyType(dict(self.counts)))
        object.__setattr__(self, "splits", MappingProxyType(dict(self.splits)))

    @property
    def download_size(self) -> int | None:
        """Bytes that `get` fetches, if all are known."""
        sizes = [remote.size for remote in self.remotes]
        return None if not sizes or None in sizes else sum(size for size in sizes if size is not None)

    def split_named(self, split: str) -> str:
        """Return the split that is meant; sets whose test labels are secret are evaluated on "val"."""
        if split in self.splits:
            return split
        if split == "test" and "val" in self.splits:
            return "val"
        raise UnknownNameError(f"split of {self.name}", split, self.splits)

    def check_shift(self, corruption: str | None, severity: int | None) -> None:
        """Refuse a missing, unknown or unwanted corruption."""
        if not self.corruptions:
            if corruption is not None or severity is not None:
                raise OptionError(
                    f"{self.name} is a clean set; synaptune.data.corrupted(load({self.name!r}), corruption, severity) "
                    f"makes shifted images from it"
                )
            return
        if corruption is None or severity is None:
            raise OptionError(f"{self.name} needs corruption= (such as {self.corruptions[0]!r}) and severity= (1 to 5)")
        if corruption not in self.corruptions:
            raise UnknownNameError(f"corruption of {self.name}", corruption, self.corruptions)
        if severity not in SEVERITIES:
            raise OptionError(f"severity must be 1, 2, 3, 4 or 5, not {severity!r}")

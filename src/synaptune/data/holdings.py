"""What is on disk: `listing` for an overview, `verify` for proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from synaptune.data.catalogue import entries, entry_named
from synaptune.data.checksums import Digests, digests_of
from synaptune.data.entry import Entry, KnownFile
from synaptune.data.loading import load, locate
from synaptune.data.locate import search_roots
from synaptune.data.progress import Listener, silent
from synaptune.data.receipt import Receipt, count_tree
from synaptune.errors import DataError
from synaptune.shifts import SEVERITIES

__all__ = ["Check", "Holding", "Verification", "listing", "verify"]

State = Literal["ok", "readable", "differs", "damaged"]


@dataclass(frozen=True)
class Holding:
    """One line of the overview.

    Attributes:
        name: the data set.
        title: what it is.
        licence: the publisher's terms.
        home: its page.
        splits: splits that lie on disk; for a set of shifts, its corruptions that do.
        missing: those that do not.
        places: folders in which they lie.
        bytes_on_disk: size, or None where it is not there, or has too many files to count and was not downloaded
            with `get`.
        download_bytes: size of a download, where known.
        can_get: whether `get` fetches it; otherwise `manual` says how to obtain it.
        manual: what to do by hand.
    """

    name: str
    title: str
    licence: str
    home: str
    splits: tuple[str, ...]
    missing: tuple[str, ...]
    places: tuple[Path, ...]
    bytes_on_disk: int | None
    download_bytes: int | None
    can_get: bool
    manual: str

    @property
    def is_on_disk(self) -> bool:
        """Whether anything of it is there."""
        return bool(self.splits)


@dataclass(frozen=True)
class Check:
    """One file or split that was checked.

    Attributes:
        what: which.
        state: "ok" equals its checksum; "readable" has none but is well-formed and has the right number of images;
            "differs" is well-formed but not the published bytes; "damaged" cannot be used.
        detail: why.
    """

    what: str
    state: State
    detail: str = ""


@dataclass(frozen=True)
class Verification:
    """What `verify` found."""

    name: str
    checks: tuple[Check, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged or different."""
        return all(check.state in ("ok", "readable") for check in self.checks)

    def __str__(self) -> str:
        lines = [f"{self.name}: {'whole' if self.is_whole else 'NOT whole'}"]
        lines += [
            f"  {check.state:8s} {check.what}{f': {check.detail}' if check.detail else ''}" for check in self.checks
        ]
        return "\n".join(lines)


def listing(root: str | Path | None = None) -> tuple[Holding, ...]:
    """Say for every data set of the catalogue whether it is on disk, how large it is, and under which licence."""
    roots = search_roots(root)
    return tuple(_holding(entry, roots) for entry in entries())


def verify(name: str | Entry, *, root: str | Path | None = None, progress: Listener = silent) -> Verification:
    """Check everything of a data set that lies on disk: checksums where there are some, form and number otherwise.

    Raises:
        DataError: nothing of it is there.
    """
    entry = entry_named(name)
    roots = search_roots(root)
    known = _known_files(entry, roots)
    checks: list[Check] = []
    seen: set[Path] = set()
    for split, corruption, severity in _variants(entry):
        found = locate(entry, split, roots, corruption=corruption, severity=severity)
        if found is None:
            continue
        files = [path for path in found[1] if path.is_file() and path not in seen]
        seen.update(files)
        checks += [check for path in files if (check := _check_file(path, known.get(path), progress))]
        checks.append(_check_split(entry, split, root, corruption, severity))
    checks += _check_trees(entry, roots)
    if not checks:
        raise DataError(f"nothing of {entry.name} is in {', '.join(map(str, roots))}")
    return Verification(entry.name, tuple(checks))


def _variants(entry: Entry) -> Iterator[tuple[str, str | None, int | None]]:
    for split in entry.splits:
        if not entry.corruptions:
            yield split, None, None
        for corruption in entry.corruptions:
            for severity in SEVERITIES:
                yield split, corruption, severity


def _known_files(entry: Entry, roots: tuple[Path, ...]) -> Mapping[Path, KnownFile]:
    known: dict[Path, KnownFile] = {}
    for root in roots:
        measured = Receipt.read(root, entry.name).files
        for path, digests in measured.items():
            known[root / path] = KnownFile(path, digests.size, sha256=digests.sha256)
        # What is published counts more than what was once measured.
        known |= {root / file.path: file for file in entry.files}
    return known


def _check_file(path: Path, known: KnownFile | None, progress: Listener) -> Check | None:
    if known is None:
        return None
    if known.md5 is None and known.sha256 is None:
        digests = Digests(path.stat().st_size, "", "")
        wrong = digests.differences(size=known.size)
        return Check(str(path), "damaged", "; ".join(wrong)) if wrong else None
    wrong = digests_of(path, path.name, progress).differences(size=known.size, md5=known.md5, sha256=known.sha256)
    return Check(str(path), "differs" if wrong else "ok", "; ".join(wrong))


def _check_trees(entry: Entry, roots: tuple[Path, ...]) -> Iterator[Check]:
    """Compare large folders with what was counted when they were downloaded."""
    for root in roots:
        for path, expected in Receipt.read(root, entry.name).trees.items():
            counted = count_tree(root / path)
            is_same = counted == expected
            wrong = f"{counted[0]:,} files of {counted[1]:,} bytes, expected {expected[0]:,} of {expected[1]:,}"
            yield Check(str(root / path), "ok" if is_same else "damaged", "" if is_same else wrong)


def _check_split(
    entry: Entry, split: str, root: str | Path | None, corruption: str | None, severity: int | None
) -> Check:
    what = f"{entry.name}/{split}" + (f" {corruption} {severity}" if corruption else "")
    try:
        dataset = load(entry, split, root=root, corruption=corruption, severity=severity)
    except DataError as error:
        return Check(what, "damaged", str(error))
    expected = entry.counts.get(split)
    if expected is not None and len(dataset) != expected:
        return Check(what, "damaged", f"{len(dataset):,} images, expected {expected:,}")
    return Check(what, "readable", f"{len(dataset):,} images")


def _holding(entry: Entry, roots: tuple[Path, ...]) -> Holding:
    there: dict[str, tuple[Path, ...]] = {}
    absent: list[str] = []
    for split, corruption, severity in _variants(entry):
        key = corruption or split
        if key in there:
            continue
        found = locate(entry, split, roots, corruption=corruption, severity=severity)
        if found is not None:
            there[key] = found[1]
        elif key not in absent:
            absent.append(key)
    files = {path for paths in there.values() for path in paths}
    return Holding(
        name=entry.name,
        title=entry.title,
        licence=entry.licence,
        home=entry.home,
        splits=tuple(there),
        missing=tuple(key for key in absent if key not in there),
        places=tuple(sorted({path if path.is_dir() else path.parent for path in files})),
        bytes_on_disk=_counted_size(entry, roots) if entry.is_tree else _size(files) if there else None,
        download_bytes=entry.download_size,
        can_get=bool(entry.remotes),
        manual=entry.manual,
    )


def _counted_size(entry: Entry, roots: tuple[Path, ...]) -> int | None:
    """Size of large folders as it was counted when they were downloaded; counting now would take minutes."""
    sizes = [size for root in roots for _, size in Receipt.read(root, entry.name).trees.values()]
    return sum(sizes) or None


def _size(paths: set[Path]) -> int:
    return sum(
        sum(file.stat().st_size for file in path.iterdir() if file.is_file()) if path.is_dir() else path.stat().st_size
        for path in paths
    )

"""`get`: fetch a data set from its published home and put it in place, whole or not at all."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from synaptune.data.catalogue import entry_named
from synaptune.data.checksums import Digests
from synaptune.data.download import Policy, fetch
from synaptune.data.entry import Entry, Remote
from synaptune.data.file_lock import hold
from synaptune.data.locate import data_root
from synaptune.data.progress import Listener, silent
from synaptune.data.receipt import Receipt, measure_files
from synaptune.data.unpack import unpack
from synaptune.errors import DataError, UnknownNameError

__all__ = ["DOWNLOADS", "get"]

DOWNLOADS = ".downloads"
"""Folder below the data root in which half-finished work lies."""


def get(
    name: str | Entry,
    *,
    root: str | Path | None = None,
    parts: Sequence[str] | None = None,
    progress: Listener = silent,
    policy: Policy | None = None,
    force: bool = False,
    keep_archive: bool = False,
) -> Receipt:
    """Download a data set.

    What is in place already is left alone. Interrupted, it goes on where it stopped when called again.

    Args:
        name: a name from `listing()`, or an entry.
        root: folder to put it below; by default the user's data folder.
        parts: file names of the publisher (with or without ending), to fetch only these, such as `["noise"]` of
            imagenet-c.
        progress: called with a `Progress` every few hundred kilobytes.
        policy: patience of the download.
        force: fetch again what is there; it is replaced when the new one is whole.
        keep_archive: leave the archive in the folder `.downloads`.

    Returns:
        What was fetched and how it measured.

    Raises:
        DataError: it cannot be had, or is not what it should be. Nothing that looks whole is left behind.
    """
    entry = entry_named(name)
    if not entry.remotes:
        raise DataError(f"{entry.name} cannot be downloaded without you: {entry.manual or f'see {entry.home}'}")
    home, policy = data_root(root), policy or Policy()
    for remote in _wanted(entry, parts):
        try:
            # Whoever waits here finds the work done, and no receipt is overwritten by an older one.
            with hold(home / DOWNLOADS / f"{entry.name}.lock", sleep=policy.sleep):
                if force or not all((home / path).exists() for path in remote.gives):
                    done = _obtain(remote, home, policy, progress, keep_archive=keep_archive)
                    Receipt.read(home, entry.name).with_download(remote.filename, *done).write(home)
        except DataError:
            raise
        except OSError as error:
            raise _explained(error, home, remote) from error
    return Receipt.read(home, entry.name)


def _wanted(entry: Entry, parts: Sequence[str] | None) -> tuple[Remote, ...]:
    if parts is None:
        return entry.remotes
    by_name = {alias: remote for remote in entry.remotes for alias in (remote.filename, _stem(remote.filename))}
    unknown = [part for part in parts if part not in by_name]
    if unknown:
        raise UnknownNameError(f"part of {entry.name}", unknown[0], {_stem(r.filename) for r in entry.remotes})
    return tuple(dict.fromkeys(by_name[part] for part in parts))


def _stem(filename: str) -> str:
    return filename.partition(".")[0]


def _obtain(
    remote: Remote, home: Path, policy: Policy, progress: Listener, *, keep_archive: bool
) -> tuple[Digests, dict[str, Digests], dict[str, tuple[int, int]]]:
    """Fetch, unpack and put in place; return the measures of the download and of what it gave."""
    downloads = home / DOWNLOADS
    archive, digests = fetch(remote, downloads, policy=policy, listener=progress)
    prefix = f"unpacking-{remote.filename}-"
    for stale in downloads.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)  # of a process that was killed; a living one would hold the lock
    with tempfile.TemporaryDirectory(prefix=prefix, dir=downloads) as scratch:
        unpack(archive, remote, Path(scratch), listener=progress)
        _refuse_incomplete(remote, Path(scratch))
        _move_into_place(Path(scratch), home / remote.into)
    if not keep_archive:
        archive.unlink(missing_ok=True)
    return digests, *measure_files(home, remote.gives)


def _refuse_incomplete(remote: Remote, scratch: Path) -> None:
    missing = [path for path in remote.gives if not (scratch / Path(path).relative_to(remote.into)).exists()]
    if missing:
        raise DataError(
            f"{remote.filename} unpacks without {', '.join(missing[:3])}; the publisher has changed it, "
            f"nothing of it was put in place"
        )


def _move_into_place(scratch: Path, target: Path) -> None:
    """Rename what was unpacked to its final names, folder by folder where a folder of that name exists."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(scratch.iterdir()):
        goal = target / entry.name
        if entry.is_dir() and goal.is_dir():
            _move_into_place(entry, goal)
        else:
            entry.replace(goal)


def _explained(error: OSError, home: Path, remote: Remote) -> DataError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(home).free
        return DataError(
            f"the disk under {home} is full ({free:,} bytes left) while {remote.filename} was being put in place; "
            f"nothing of it is left there. Make room, or choose another folder with root= or SYNAPTUNE_DATA"
        )
    return DataError(f"cannot work below {home}: {error}; choose another folder with root= or SYNAPTUNE_DATA")

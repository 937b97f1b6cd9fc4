"""Unpack an archive into a folder without trusting it.

Members with absolute paths, `..`, links that lead out, devices or special files are refused, and so is an archive
that would unpack to more than the disk holds. The target must be a scratch folder; `obtain` moves its content into
place when all of it is there.
"""

from __future__ import annotations

import gzip
import shutil
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, cast

from synaptune.data.entry import Remote
from synaptune.data.progress import Listener, Progress
from synaptune.errors import DataError

__all__ = ["unpack"]

_CHUNK = 1 << 20


def unpack(archive: Path, remote: Remote, folder: Path, *, listener: Listener) -> None:
    """Unpack a checked download into an empty scratch folder.

    Raises:
        DataError: the archive is damaged, hostile, or too large for the disk.
    """
    try:
        match remote.unpack:
            case "tar":
                _unpack_tar(archive, folder, listener)
            case "zip":
                _unpack_zip(archive, folder, listener)
            case "gz":
                _unpack_gz(archive, folder, listener)
            case "nothing":
                shutil.copyfile(archive, folder / archive.name)
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(
            f"{archive.name} is damaged or unsafe ({type(error).__name__}: {error}); nothing of it was kept. "
            f"Delete {archive} and get it again"
        ) from error


def _unpack_tar(archive: Path, folder: Path, listener: Listener) -> None:
    total = archive.stat().st_size
    # "r:*" seeks, so the position in the compressed file serves as a measure of progress.
    with archive.open("rb") as raw, tarfile.open(fileobj=raw, mode="r:*") as tar:
        for member in tar:
            _refuse_outside(member.name, archive)
            if not (member.isfile() or member.isdir()):
                raise DataError(f"{archive.name} holds {member.name!r}, which is neither a file nor a folder; refused")
            _refuse_beyond_disk(member.size, folder, archive)
            _extract_member(tar, member, folder)
            listener(Progress(archive.name, "unpack", min(raw.tell(), total), total))


def _extract_member(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    target = folder / member.name
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    if source is None:
        raise tarfile.ReadError(f"{member.name} has no content")
    with source:
        _write(source, target, member.size)


def _unpack_zip(archive: Path, folder: Path, listener: Listener) -> None:
    with zipfile.ZipFile(archive) as file:
        members = file.infolist()
        total = sum(member.file_size for member in members)
        _refuse_beyond_disk(total, folder, archive)
        done = 0
        for member in members:
            _refuse_outside(member.filename, archive)
            if stat.S_ISLNK(member.external_attr >> 16):
                raise DataError(f"{archive.name} holds the link {member.filename!r}; refused")
            target = folder / member.filename
            if member.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with file.open(member) as source:
                _write(source, target, member.file_size)
            done += member.file_size
            listener(Progress(archive.name, "unpack", done, total))


def _unpack_gz(archive: Path, folder: Path, listener: Listener) -> None:
    with gzip.open(archive) as source:
        _write(cast("IO[bytes]", source), folder / archive.stem, None)
    size = archive.stat().st_size
    listener(Progress(archive.name, "unpack", size, size))


def _write(source: IO[bytes], target: Path, expected: int | None) -> None:
    written = 0
    with target.open("xb") as file:
        while chunk := source.read(_CHUNK):
            file.write(chunk)
            written += len(chunk)
    if expected is not None and written != expected:
        raise EOFError(f"{target.name} has {written:,} of {expected:,} bytes")


def _refuse_outside(name: str, archive: Path) -> None:
    for path in (PurePosixPath(name), PureWindowsPath(name)):
        if path.is_absolute() or path.drive or ".." in path.parts:
            raise DataError(f"{archive.name} wants to write to {name!r}, outside of its folder; refused")


def _refuse_beyond_disk(size: int, folder: Path, archive: Path) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise DataError(
            f"{archive.name} unpacks to at least {size:,} bytes, the disk under {folder} has {free:,} left; make room"
        )

"""Archives that want more than they may."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from synaptune.data import Progress, Remote
from synaptune.data import unpack as unpack_module
from synaptune.data.progress import silent
from synaptune.data.unpack import unpack
from synaptune.errors import DataError

Kind = Literal["nothing", "tar", "zip", "gz"]


def remote(kind: Kind) -> Remote:
    return Remote(url="http://nowhere.invalid/set", filename="set", unpack=kind, gives=("set",))


def write_tar(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], mode: Literal["w", "w:gz"] = "w") -> Path:
    with tarfile.open(path, mode) as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def tar_of(name: str, change: Callable[[tarfile.TarInfo], None] = lambda member: None) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    change(member)
    return member, b"" if member.type != tarfile.REGTYPE else b"content"


def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_is_unpacked_with_its_folders(tmp_path: Path, mode: Literal["w", "w:gz"]) -> None:
    archive = write_tar(tmp_path / "set.tar", [tar_of("a/b/c.bin"), tar_of("d.bin")], mode)
    folder = target(tmp_path)
    heard: list[Progress] = []
    unpack(archive, remote("tar"), folder, listener=heard.append)
    assert (folder / "a/b/c.bin").read_bytes() == b"content"
    assert (folder / "d.bin").read_bytes() == b"content"
    assert heard[-1].stage == "unpack"
    assert 0 < heard[-1].done <= archive.stat().st_size


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/tmp/evil.txt", "a/../../evil.txt", "C:\\evil.txt", "a\\..\\..\\evil"]
)
def test_a_tar_that_writes_outside_is_refused(tmp_path: Path, name: str) -> None:
    archive = write_tar(tmp_path / "set.tar", [tar_of(name)])
    with pytest.raises(DataError, match="outside of its folder"):
        unpack(archive, remote("tar"), target(tmp_path), listener=silent)
    assert not (tmp_path / "evil.txt").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_a_tar_with_links_or_devices_is_refused(tmp_path: Path, kind: bytes) -> None:
    def change(member: tarfile.TarInfo) -> None:
        member.type, member.linkname = kind, "/etc/passwd"

    archive = write_tar(tmp_path / "set.tar", [tar_of("link", change)])
    with pytest.raises(DataError, match="neither a file nor a folder"):
        unpack(archive, remote("tar"), target(tmp_path), listener=silent)


def test_a_truncated_tar_is_an_error(tmp_path: Path) -> None:
    archive = write_tar(tmp_path / "set.tar", [(tarfile.TarInfo("big.bin"), b"x" * 100_000)])
    archive.write_bytes(archive.read_bytes()[:50_000])
    with pytest.raises(DataError, match="damaged or unsafe"):
        unpack(archive, remote("tar"), target(tmp_path), listener=silent)


def test_a_zip_is_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as file:
        file.writestr("a/b.txt", "content")
        file.mkdir("empty")
    folder = target(tmp_path)
    unpack(tmp_path / "set.zip", remote("zip"), folder, listener=silent)
    assert (folder / "a/b.txt").read_text() == "content"
    assert (folder / "empty").is_dir()


@pytest.mark.parametrize("name", ["../evil.txt", "/tmp/evil.txt", "a/../../evil.txt"])
def test_a_zip_that_writes_outside_is_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as file:
        file.writestr(zipfile.ZipInfo(name), "content")
    with pytest.raises(DataError, match="outside of its folder"):
        unpack(tmp_path / "set.zip", remote("zip"), target(tmp_path), listener=silent)


def test_a_zip_with_a_link_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as file:
        file.writestr(link, "/etc/passwd")
    with pytest.raises(DataError, match="holds the link"):
        unpack(tmp_path / "set.zip", remote("zip"), target(tmp_path), listener=silent)


def test_a_zip_with_a_wrong_checksum_inside_is_an_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as file:
        file.writestr("a.txt", "content" * 100)
    content = bytearray((tmp_path / "set.zip").read_bytes())
    content[content.index(b"contentcontent")] ^= 1
    (tmp_path / "set.zip").write_bytes(content)
    with pytest.raises(DataError, match="damaged or unsafe"):
        unpack(tmp_path / "set.zip", remote("zip"), target(tmp_path), listener=silent)


def test_a_zip_bomb_is_refused_by_the_size_it_declares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 1_000

    with zipfile.ZipFile(tmp_path / "set.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros.bin", b"\0" * 1_000_000)
    folder = target(tmp_path)
    monkeypatch.setattr(unpack_module.shutil, "disk_usage", lambda path: Usage)
    with pytest.raises(DataError, match=r"unpacks to at least 1,000,000 bytes.*1,000 left"):
        unpack(tmp_path / "set.zip", remote("zip"), folder, listener=silent)
    assert list(folder.iterdir()) == []


def test_a_gz_loses_its_ending(tmp_path: Path) -> None:
    (tmp_path / "images.gz").write_bytes(gzip.compress(b"content"))
    folder = target(tmp_path)
    unpack(tmp_path / "images.gz", remote("gz"), folder, listener=silent)
    assert (folder / "images").read_bytes() == b"content"


# Names of their own: compressed bytes hold the time, and parallel workers must agree on what tests are called.
@pytest.mark.parametrize(
    "content", [gzip.compress(b"content" * 100)[:-12], b"no gzip at all"], ids=["cut short", "no gzip at all"]
)
def test_a_damaged_gz_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "images.gz").write_bytes(content)
    with pytest.raises(DataError, match="damaged or unsafe"):
        unpack(tmp_path / "images.gz", remote("gz"), target(tmp_path), listener=silent)

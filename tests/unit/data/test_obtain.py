"""`get`, `verify` and `listing` from end to end, on a made-up data set behind a local server."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synaptune.data import Entry, KnownFile, Place, Policy, Remote, entries, get, listing, load, verify
from synaptune.data import obtain as obtain_module
from synaptune.data.file_lock import hold
from synaptune.data.readers.cifar import read_cifar10_binary
from synaptune.errors import DataError, OptionError, UnknownNameError
from tests.unit.data.misbehaving_server import Act, Server, serve

RECORD = 1 + 3072


def _records(count: int, seed: int) -> bytes:
    records = np.random.default_rng(seed).integers(0, 256, (count, RECORD), np.uint8)
    records[:, 0] %= 10
    return records.tobytes()


TEST, TRAIN = _records(12, 0), _records(20, 1)


def _archive(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"toy/{name}.bin")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


ARCHIVE = _archive(test=TEST, train=TRAIN)
PATIENT = Policy(timeout=0.25, attempts=2, backoff=0, sleep=lambda seconds: None)


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with serve(ARCHIVE) as server:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    running.script.clear()
    running.requests.clear()
    return running


@pytest.fixture
def toy(server: Server) -> Entry:
    return Entry(
        name="toy",
        title="twelve and twenty random pictures",
        licence="none",
        home=server.address,
        counts={"test": 12, "train": 20},
        size=(32, 32),
        splits={
            "test": (Place(("toy/test.bin",), read_cifar10_binary),),
            "train": (Place(("toy/train.bin",), read_cifar10_binary),),
        },
        classes=tuple("abcdefghij"),
        remotes=(
            Remote(
                url=server.url("toy.tar.gz"),
                filename="toy.tar.gz",
                size=len(ARCHIVE),
                sha256=hashlib.sha256(ARCHIVE).hexdigest(),
                unpack="tar",
                gives=("toy/test.bin", "toy/train.bin"),
            ),
        ),
    )


def visible(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if not path.name.startswith("."))


def test_what_was_fetched_can_be_loaded(toy: Entry, tmp_path: Path) -> None:
    receipt = get(toy, root=tmp_path, policy=PATIENT)
    data = load(toy, root=tmp_path)
    assert len(data) == 12
    assert data.labels.tolist() == list(TEST[::RECORD])
    assert data.images[3].transpose(2, 0, 1).tobytes() == TEST[3 * RECORD + 1 : 4 * RECORD]
    assert receipt.downloads["toy.tar.gz"].sha256 == hashlib.sha256(ARCHIVE).hexdigest()
    assert visible(tmp_path) == ["toy"]
    assert not (tmp_path / ".downloads/toy.tar.gz").exists(), "the archive is not kept"


def test_the_archive_is_kept_on_request(toy: Entry, tmp_path: Path) -> None:
    get(toy, root=tmp_path, policy=PATIENT, keep_archive=True)
    assert (tmp_path / ".downloads/toy.tar.gz").read_bytes() == ARCHIVE


def test_what_is_there_is_not_fetched_again_unless_forced(toy: Entry, server: Server, tmp_path: Path) -> None:
    get(toy, root=tmp_path, policy=PATIENT)
    get(toy, root=tmp_path, policy=PATIENT)
    assert len(server.requests) == 1
    (tmp_path / "toy/test.bin").write_bytes(b"mine")
    get(toy, root=tmp_path, policy=PATIENT, force=True)
    assert (tmp_path / "toy/test.bin").read_bytes() == TEST


def test_files_of_others_in_the_same_folder_survive(toy: Entry, tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/notes.txt").write_text("mine")
    get(toy, root=tmp_path, policy=PATIENT)
    assert (tmp_path / "toy/notes.txt").read_text() == "mine"
    assert (tmp_path / "toy/test.bin").read_bytes() == TEST


def test_a_wrong_checksum_leaves_nothing_in_place(toy: Entry, server: Server, tmp_path: Path) -> None:
    server.script = [Act(content=ARCHIVE[:-1] + b"!")]
    with pytest.raises(DataError, match="sha256 is"):
        get(toy, root=tmp_path, policy=PATIENT)
    assert visible(tmp_path) == []
    with pytest.raises(DataError, match="is not on disk"):
        load(toy, root=tmp_path)


def test_an_archive_without_the_promised_files_leaves_nothing_in_place(
    toy: Entry, server: Server, tmp_path: Path
) -> None:
    other = _archive(test=TEST)
    remote = replace(toy.remotes[0], sha256=None, size=None)
    server.script = [Act(content=other)]
    with pytest.raises(DataError, match=r"unpacks without toy/train\.bin"):
        get(replace(toy, remotes=(remote,)), root=tmp_path, policy=PATIENT)
    assert visible(tmp_path) == []
    assert list((tmp_path / ".downloads").glob("unpacking-*")) == []


def test_a_disk_that_fills_up_while_unpacking_leaves_nothing_in_place(
    toy: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        (args[2] / "toy").mkdir()
        (args[2] / "toy/test.bin").write_bytes(TEST[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(obtain_module, "unpack", full)
    with pytest.raises(DataError, match=r"full .* while toy\.tar\.gz was being put in place.*SYNAPTUNE_DATA"):
        get(toy, root=tmp_path, policy=PATIENT)
    assert visible(tmp_path) == []
    assert list((tmp_path / ".downloads").glob("unpacking-*")) == []


def test_a_root_that_cannot_be_written_is_a_clear_error(toy: Entry, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot work below .*root= or SYNAPTUNE_DATA"):
        get(toy, root=tmp_path / "file", policy=PATIENT)


def test_parts_can_be_chosen(toy: Entry, server: Server, tmp_path: Path) -> None:
    remotes = tuple(
        Remote(url=server.url(f"{part}.tar.gz"), filename=f"{part}.tar.gz", unpack="tar", gives=(f"toy/{part}.bin",))
        for part in ("test", "train")
    )
    server.script = [Act(content=_archive(train=TRAIN))]
    get(replace(toy, remotes=remotes), root=tmp_path, parts=["train"], policy=PATIENT)
    assert visible(tmp_path / "toy") == ["train.bin"]
    assert [request["path"] for request in server.requests] == ["/train.tar.gz"]
    with pytest.raises(UnknownNameError, match="did you mean train"):
        get(replace(toy, remotes=remotes), root=tmp_path, parts=["trian"], policy=PATIENT)


def test_a_set_that_needs_registration_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"imagenet cannot be downloaded without you: register at"):
        get("imagenet", root=tmp_path)


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean cifar10"):
        get("cifar1O", root=tmp_path)


def test_verify_compares_with_published_checksums(toy: Entry, tmp_path: Path) -> None:
    known = replace(toy, files=(KnownFile("toy/test.bin", len(TEST), sha256=hashlib.sha256(TEST).hexdigest()),))
    get(known, root=tmp_path, policy=PATIENT)
    found = verify(known, root=tmp_path)
    assert found.is_whole
    assert {check.state for check in found.checks} == {"ok", "readable"}
    content = bytearray(TEST)
    content[500] ^= 1
    (tmp_path / "toy/test.bin").write_bytes(content)
    found = verify(known, root=tmp_path)
    assert not found.is_whole
    assert [check.state for check in found.checks if check.what.endswith("test.bin")] == ["differs"]
    assert "NOT whole" in str(found)


def test_verify_compares_files_that_the_user_put_there_with_published_checksums(toy: Entry, tmp_path: Path) -> None:
    known = replace(toy, files=(KnownFile("toy/test.bin", sha256=hashlib.sha256(TRAIN).hexdigest()),))
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/test.bin").write_bytes(TEST)
    assert [check.state for check in verify(known, root=tmp_path).checks] == ["differs", "readable"]


def test_verify_trusts_the_publisher_more_than_the_first_download(toy: Entry, tmp_path: Path) -> None:
    get(toy, root=tmp_path, policy=PATIENT)
    known = replace(toy, files=(KnownFile("toy/test.bin", sha256="0" * 64),))
    states = {check.what.rpartition("/")[2]: check.state for check in verify(known, root=tmp_path).checks}
    assert (states["test.bin"], states["train.bin"]) == ("differs", "ok")


def test_verify_compares_unpinned_files_with_the_first_download(toy: Entry, tmp_path: Path) -> None:
    unpinned = replace(toy, remotes=(replace(toy.remotes[0], sha256=None),))
    get(unpinned, root=tmp_path, policy=PATIENT)
    written = json.loads((tmp_path / ".synaptune/toy.json").read_text())
    assert written["downloads"]["toy.tar.gz"]["sha256"] == hashlib.sha256(ARCHIVE).hexdigest()
    assert written["files"]["toy/train.bin"]["sha256"] == hashlib.sha256(TRAIN).hexdigest()
    assert verify(unpinned, root=tmp_path).is_whole
    (tmp_path / "toy/train.bin").write_bytes(TRAIN[:-1] + b"!")
    assert not verify(unpinned, root=tmp_path).is_whole


def test_verify_notices_a_half_written_file_without_any_checksum(toy: Entry, tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/test.bin").write_bytes(TEST[:-10])
    found = verify(toy, root=tmp_path)
    assert [check.state for check in found.checks] == ["damaged"]
    (tmp_path / "toy/test.bin").write_bytes(TEST[: 5 * RECORD])
    found = verify(toy, root=tmp_path)
    assert found.checks[0].detail == "5 images, expected 12"


def test_a_large_tree_is_counted_when_it_is_fetched_and_again_by_verify(
    toy: Entry, server: Server, tmp_path: Path
) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for number in range(300):
            member = tarfile.TarInfo(f"tree/{number % 3}/{number}.jpg")
            member.size = 10
            tar.addfile(member, io.BytesIO(b"x" * 10))
    remote = Remote(url=server.url("tree.tar"), filename="tree.tar", unpack="tar", gives=("tree",))
    entry = replace(toy, remotes=(remote,), is_tree=True)
    server.script = [Act(content=buffer.getvalue())]
    receipt = get(entry, root=tmp_path, policy=PATIENT)
    assert receipt.trees == {"tree": (300, 3000)}
    assert [check.state for check in verify(entry, root=tmp_path).checks] == ["ok"]
    (tmp_path / "tree/0/0.jpg").unlink()
    (check,) = verify(entry, root=tmp_path).checks
    assert (check.state, check.detail) == ("damaged", "299 files of 2,990 bytes, expected 300 of 3,000")


def test_a_scratch_folder_of_a_killed_process_is_removed(toy: Entry, tmp_path: Path) -> None:
    stale = tmp_path / ".downloads/unpacking-toy.tar.gz-dead"
    stale.mkdir(parents=True)
    (stale / "half").write_bytes(b"x")
    get(toy, root=tmp_path, policy=PATIENT)
    assert list((tmp_path / ".downloads").glob("unpacking-*")) == []


def test_who_waited_for_another_process_finds_the_work_done(toy: Entry, server: Server, tmp_path: Path) -> None:
    other = hold(tmp_path / ".downloads/toy.lock", sleep=lambda seconds: None)
    other.__enter__()

    def finish_the_other(seconds: float) -> None:
        (tmp_path / "toy").mkdir()
        (tmp_path / "toy/test.bin").write_bytes(TEST)
        (tmp_path / "toy/train.bin").write_bytes(TRAIN)
        other.__exit__(None, None, None)

    get(toy, root=tmp_path, policy=replace(PATIENT, sleep=finish_the_other))
    assert server.requests == []


def test_verify_of_nothing_is_an_error(toy: Entry, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing of toy is in"):
        verify(toy, root=tmp_path)


def test_the_listing_has_a_line_for_every_set_also_in_an_empty_root(tmp_path: Path) -> None:
    lines = listing(tmp_path)
    assert [line.name for line in lines] == [entry.name for entry in entries()]
    assert not any(line.is_on_disk for line in lines)
    assert all(line.licence and line.home and line.title for line in lines)
    assert all(line.can_get or line.manual for line in lines)


def test_the_listing_shows_what_is_there_and_how_large(tmp_path: Path) -> None:
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    np.save(folder / "labels.npy", np.zeros(10, np.uint8))
    np.save(folder / "fog.npy", np.zeros((10, 32, 32, 3), np.uint8))
    (line,) = (line for line in listing(tmp_path) if line.name == "cifar10-c")
    assert line.splits == ("fog",)
    assert "snow" in line.missing
    assert line.places == (folder,)
    assert line.bytes_on_disk == sum(path.stat().st_size for path in folder.iterdir())
    assert line.download_bytes == 2_918_471_680


def test_a_name_can_be_registered_once_only() -> None:
    from synaptune.data import register

    with pytest.raises(OptionError, match="registered already"):
        register(entries()[0])

"""The downloader against a server that drops, stalls, lies and refuses."""

from __future__ import annotations

import errno
import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from synaptune.data import Policy, Progress, Remote
from synaptune.data import transfer as transfer_module
from synaptune.data.download import fetch
from synaptune.errors import DataError
from tests.unit.data.misbehaving_server import Act, Server, serve


def _tar() -> bytes:
    buffer = io.BytesIO()
    noise = np.random.default_rng(0).bytes(700_000)
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo("set/data.bin")
        member.size = len(noise)
        tar.addfile(member, io.BytesIO(noise))
    return buffer.getvalue()


CONTENT = _tar()
HTML = b"<!DOCTYPE html><html><body>Please log in</body></html>"


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with serve(CONTENT) as server:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    running.script.clear()
    running.requests.clear()
    return running


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def policy(pauses: list[float]) -> Policy:
    return Policy(timeout=0.25, attempts=3, backoff=1.0, sleep=pauses.append)


def remote_of(server: Server, **changes: Any) -> Remote:
    remote = Remote(
        url=server.url("set.tar"),
        filename="set.tar",
        size=len(CONTENT),
        md5=hashlib.md5(CONTENT).hexdigest(),
        unpack="tar",
        gives=("set/data.bin",),
    )
    return replace(remote, **changes)


def whole_looking(folder: Path) -> list[str]:
    """Files that somebody could take for a finished download."""
    return [path.name for path in folder.iterdir() if not path.name.endswith((".part", ".part.json", ".lock"))]


def test_a_plain_download_arrives_with_its_checksums(server: Server, policy: Policy, tmp_path: Path) -> None:
    path, digests = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT
    assert digests.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert digests.size == len(CONTENT)
    assert whole_looking(tmp_path) == ["set.tar"]
    assert not list(tmp_path.glob("*.part*"))


def test_progress_grows_to_the_total_and_covers_download_and_check(
    server: Server, policy: Policy, tmp_path: Path
) -> None:
    heard: list[Progress] = []
    fetch(remote_of(server), tmp_path, policy=policy, listener=heard.append)
    for stage in ("download", "check"):
        done = [progress.done for progress in heard if progress.stage == stage]
        assert done == sorted(done)
        assert done[-1] == len(CONTENT)
        assert all(progress.total == len(CONTENT) for progress in heard)


def test_a_second_call_fetches_nothing(server: Server, policy: Policy, tmp_path: Path) -> None:
    fetch(remote_of(server), tmp_path, policy=policy)
    server.requests.clear()
    fetch(remote_of(server), tmp_path, policy=policy)
    assert server.requests == []


def test_a_dropped_connection_is_taken_up_where_it_stopped(
    server: Server, policy: Policy, pauses: list[float], tmp_path: Path
) -> None:
    server.script = [Act(send=300_000), Act(send=100_000), Act()]
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT
    assert [request.get("Range") for request in server.requests] == [None, "bytes=300000-", "bytes=400000-"]
    assert all(request["If-Range"] == '"v1"' for request in server.requests[1:])
    assert pauses == [1.0, 1.0], "an attempt that brings bytes starts the count of failures afresh"


def test_a_stalled_connection_is_given_up_and_taken_up_again(server: Server, policy: Policy, tmp_path: Path) -> None:
    server.script = [Act(send=262_145, stalls=True), Act(send=100_000, stalls=True), Act()]
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT
    assert [request.get("Range") for request in server.requests] == [None, "bytes=262145-", "bytes=362145-"]


def test_a_later_call_goes_on_after_an_interruption(server: Server, policy: Policy, tmp_path: Path) -> None:
    class StopTheWorkError(Exception):
        pass

    def interrupt(progress: Progress) -> None:
        if progress.done >= 262_144:
            raise StopTheWorkError

    with pytest.raises(StopTheWorkError):
        fetch(remote_of(server), tmp_path, policy=policy, listener=interrupt)
    assert whole_looking(tmp_path) == []
    kept = (tmp_path / "set.tar.part").stat().st_size
    assert kept >= 262_144
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT
    assert server.requests[1]["Range"] == f"bytes={kept}-"


def test_a_file_that_changed_meanwhile_is_started_afresh(server: Server, policy: Policy, tmp_path: Path) -> None:
    old = b"x" * len(CONTENT)
    server.script = [
        Act(content=CONTENT[:600] + old[600:], send=300_000, tag='"old"'),
        Act(tag='"new"'),
    ]
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT
    assert server.requests[1]["If-Range"] == '"old"'


def test_a_server_that_refuses_ranges_is_read_from_the_start(server: Server, policy: Policy, tmp_path: Path) -> None:
    server.script = [Act(send=300_000), Act(ranges=False)]
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT


def test_another_range_than_the_one_asked_for_is_not_appended(server: Server, policy: Policy, tmp_path: Path) -> None:
    server.script = [Act(send=300_000), Act(shifts_range=1_000), Act()]
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT
    assert "Range" not in server.requests[2]


def test_without_proof_of_sameness_only_a_pinned_file_is_resumed(
    server: Server, policy: Policy, tmp_path: Path
) -> None:
    server.script = [Act(send=300_000, tag=None), Act(tag=None)]
    fetch(remote_of(server), tmp_path / "pinned", policy=policy)
    assert server.requests[1].get("Range") == "bytes=300000-"
    server.requests.clear()
    server.script = [Act(send=300_000, tag=None), Act(tag=None)]
    path, _ = fetch(remote_of(server, md5=None), tmp_path / "unpinned", policy=policy)
    assert "Range" not in server.requests[1]
    assert path.read_bytes() == CONTENT


def test_a_server_that_has_no_more_bytes_makes_it_start_afresh(server: Server, policy: Policy, tmp_path: Path) -> None:
    (tmp_path / "set.tar.part").write_bytes(CONTENT + b"too much")
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT
    assert [request.get("Range") for request in server.requests] == [f"bytes={len(CONTENT) + 8}-", None]


def test_a_part_that_is_complete_is_not_fetched_again(server: Server, policy: Policy, tmp_path: Path) -> None:
    (tmp_path / "set.tar.part").write_bytes(CONTENT)
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT
    assert server.requests == []


def test_a_connection_that_always_drops_ends_in_a_bounded_number_of_attempts(
    server: Server, policy: Policy, pauses: list[float], tmp_path: Path
) -> None:
    server.script = [Act(send=300_000, ranges=False)] * 10
    with pytest.raises(DataError, match=r"could not download set\.tar.*300,000 of .* bytes.*kept in"):
        fetch(remote_of(server), tmp_path, policy=policy)
    assert len(server.requests) == 1 + policy.attempts - 1
    assert pauses == [1.0, 2.0]
    assert whole_looking(tmp_path) == []


def test_a_server_that_gives_one_byte_at_a_time_is_given_up_too(server: Server, tmp_path: Path) -> None:
    policy = Policy(timeout=0.25, attempts=1, backoff=0, sleep=lambda seconds: None)
    server.script = [Act(send=1)] * 100
    with pytest.raises(DataError, match="gave up"):
        fetch(remote_of(server), tmp_path, policy=replace(policy, attempts=2))
    assert len(server.requests) <= 40


def test_server_errors_are_tried_again_with_growing_pauses(
    server: Server, policy: Policy, pauses: list[float], tmp_path: Path
) -> None:
    server.script = [Act(status=500, content=b""), Act(status=503, content=b""), Act()]
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT
    assert pauses == [1.0, 2.0]


def test_the_pause_that_the_server_asks_for_is_kept(
    server: Server, policy: Policy, pauses: list[float], tmp_path: Path
) -> None:
    server.script = [Act(status=429, content=b"", headers={"Retry-After": "7"}), Act()]
    fetch(remote_of(server), tmp_path, policy=policy)
    assert pauses == [7.0]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_missing_file_is_not_tried_again(server: Server, policy: Policy, tmp_path: Path, status: int) -> None:
    server.script = [Act(status=status, content=b"")] * 3
    with pytest.raises(DataError, match=f"HTTP {status}"):
        fetch(remote_of(server), tmp_path, policy=policy)
    assert len(server.requests) == 1
    assert whole_looking(tmp_path) == []


def test_a_mirror_steps_in(server: Server, policy: Policy, tmp_path: Path) -> None:
    server.script = [Act(status=404, content=b""), Act()]
    path, _ = fetch(remote_of(server, mirrors=(server.url("mirror.tar"),)), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT
    assert [request["path"] for request in server.requests] == ["/set.tar", "/mirror.tar"]


def test_a_mirror_goes_on_with_what_the_first_address_gave_if_a_checksum_will_tell(
    server: Server, policy: Policy, tmp_path: Path
) -> None:
    server.script = [Act(send=300_000), Act(status=404, content=b""), Act()]
    path, _ = fetch(remote_of(server, mirrors=(server.url("mirror.tar"),)), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT
    assert server.requests[2]["Range"] == "bytes=300000-"
    assert "If-Range" not in server.requests[2], "the tag belongs to the other address"


def test_a_web_page_is_recognised_by_its_type(server: Server, policy: Policy, tmp_path: Path) -> None:
    server.script = [Act(content=HTML, kind="text/html; charset=utf-8")]
    with pytest.raises(DataError, match=r"web page instead of set\.tar"):
        fetch(remote_of(server), tmp_path, policy=policy)
    assert whole_looking(tmp_path) == []
    assert not (tmp_path / "set.tar.part").exists()


def test_a_web_page_is_recognised_by_its_first_bytes(server: Server, policy: Policy, tmp_path: Path) -> None:
    server.script = [Act(content=b"\n  " + HTML)]
    with pytest.raises(DataError, match="web page"):
        fetch(remote_of(server, size=None, md5=None), tmp_path, policy=policy)
    assert whole_looking(tmp_path) == []
    assert not (tmp_path / "set.tar.part").exists()


def test_a_web_page_during_a_resume_does_not_cost_what_has_come(server: Server, policy: Policy, tmp_path: Path) -> None:
    server.script = [Act(send=300_000), Act(content=HTML, kind="text/html", ranges=False)]
    with pytest.raises(DataError, match="web page"):
        fetch(remote_of(server), tmp_path, policy=policy)
    assert (tmp_path / "set.tar.part").stat().st_size == 300_000
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT


def test_something_else_than_an_archive_is_recognised_by_its_first_bytes(
    server: Server, policy: Policy, tmp_path: Path
) -> None:
    server.script = [Act(content=b"not an archive" * 100)]
    with pytest.raises(DataError, match=r"does not begin like a \.tar file"):
        fetch(remote_of(server, size=None, md5=None), tmp_path, policy=policy)


def test_a_wrong_checksum_leaves_nothing(server: Server, policy: Policy, tmp_path: Path) -> None:
    wrong = bytearray(CONTENT)
    wrong[-1000] ^= 1
    server.script = [Act(content=bytes(wrong))]
    with pytest.raises(DataError, match=r"md5 is .*, expected .* deleted"):
        fetch(remote_of(server), tmp_path, policy=policy)
    assert whole_looking(tmp_path) == []
    assert not list(tmp_path.glob("*.part*"))


def test_a_wrong_sha256_is_noticed_too(server: Server, policy: Policy, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sha256 is"):
        fetch(remote_of(server, md5=None, sha256="0" * 64), tmp_path, policy=policy)


def test_a_file_that_went_bad_after_its_download_is_fetched_again(
    server: Server, policy: Policy, tmp_path: Path
) -> None:
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    path.write_bytes(b"rotten")
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT


def test_another_length_than_the_published_one_is_refused_before_a_byte_comes(
    server: Server, policy: Policy, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"the server offers .* bytes, the published file has 12"):
        fetch(remote_of(server, size=12), tmp_path, policy=policy)
    assert not (tmp_path / "set.tar.part").exists()


def test_a_content_length_that_is_too_long_does_not_pass_for_whole(
    server: Server, policy: Policy, tmp_path: Path
) -> None:
    server.script = [Act(announce=len(CONTENT) + 50, ranges=False)] * 5
    with pytest.raises(DataError, match="the connection ended after"):
        fetch(remote_of(server, size=None, md5=None), tmp_path, policy=policy)
    assert whole_looking(tmp_path) == []


def test_a_content_length_that_is_too_short_is_caught_by_the_checksum(
    server: Server, policy: Policy, tmp_path: Path
) -> None:
    server.script = [Act(announce=100_000)] * 5
    with pytest.raises(DataError, match="md5 is"):
        fetch(remote_of(server, size=None), tmp_path, policy=policy)
    assert whole_looking(tmp_path) == []


def test_without_a_content_length_the_published_size_tells_when_it_is_whole(
    server: Server, policy: Policy, tmp_path: Path
) -> None:
    server.script = [Act(announce=-1, send=200_000), Act(announce=-1)]
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT


def test_a_disk_that_is_too_small_is_noticed_before_the_download(
    server: Server, policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 1_000

    monkeypatch.setattr(transfer_module.shutil, "disk_usage", lambda path: Usage)
    with pytest.raises(DataError, match=r"needs .* more bytes.*1,000 left.*SYNAPTUNE_DATA"):
        fetch(remote_of(server), tmp_path, policy=policy)
    assert not (tmp_path / "set.tar.part").exists()


def test_a_disk_that_fills_up_keeps_the_part_and_says_so(
    server: Server, policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullFile:
        def __init__(self, path: Path, mode: str):
            self.file = Path.open(path, mode)
            self.room = 300_000

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, chunk: bytes) -> int:
            if len(chunk) > self.room:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.room -= len(chunk)
            return self.file.write(chunk)

    original = Path.open

    def open_(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if path.suffix == ".part" and "b" in mode and "r" not in mode:
            monkeypatch.setattr(Path, "open", original)
            return FullFile(path, mode)
        return original(path, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", open_)
    with pytest.raises(DataError, match=r"disk .* is full"):
        fetch(remote_of(server), tmp_path, policy=policy)
    assert whole_looking(tmp_path) == []
    assert 0 < (tmp_path / "set.tar.part").stat().st_size <= 300_000
    path, _ = fetch(remote_of(server), tmp_path, policy=policy)
    assert path.read_bytes() == CONTENT


def test_nobody_listening_is_a_clear_error(policy: Policy, tmp_path: Path) -> None:
    remote = Remote(url="http://127.0.0.1:9/set.tar", filename="set.tar", gives=("set",))
    with pytest.raises(DataError, match="the connection failed"):
        fetch(remote, tmp_path, policy=policy)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/set.tar"])
def test_only_web_addresses_are_fetched(url: str, policy: Policy, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only http and https"):
        fetch(Remote(url=url, filename="set.tar", gives=("set",)), tmp_path, policy=policy)


def test_a_lock_that_another_holds_is_waited_for(server: Server, policy: Policy, tmp_path: Path) -> None:
    from synaptune.data.file_lock import hold

    waits = []
    other = hold(tmp_path / "set.tar.lock", sleep=lambda seconds: None)
    other.__enter__()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            other.__exit__(None, None, None)

    fetch(remote_of(server), tmp_path, policy=replace(policy, sleep=sleep))
    assert len(waits) == 3


def test_a_lock_that_is_never_given_back_ends_in_an_error(tmp_path: Path) -> None:
    from synaptune.data.file_lock import hold

    with (
        hold(tmp_path / "a.lock", sleep=lambda seconds: None),
        pytest.raises(DataError, match="another process is at work"),
        hold(tmp_path / "a.lock", sleep=lambda seconds: None, patience=2),
    ):
        pytest.fail("two holders at once")

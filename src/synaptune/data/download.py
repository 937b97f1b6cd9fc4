"""Fetch one file over HTTP so that it is there whole, or not at all.

Bytes go to `NAME.part`. Only when length and checksum are right is it renamed to `NAME`. An interrupted download is
taken up where it stopped (`Range`, guarded by `If-Range`, so that a file that changed meanwhile is started afresh);
after failures it waits longer and longer, a bounded number of times. A web page in place of an archive, a full disk,
a server that falls silent or promises another length: each ends in a `DataError` that says what to do.
Only the standard library is used. Nothing is printed; a callback hears of the progress.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from synaptune.data.checksums import Digests, digests_of
from synaptune.data.entry import Remote
from synaptune.data.file_lock import hold
from synaptune.data.part_file import PartFile
from synaptune.data.progress import Listener, silent
from synaptune.data.transfer import FinalError, PassingError, transfer
from synaptune.errors import DataError

__all__ = ["Policy", "fetch"]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How patient a download is.

    Attributes:
        timeout: seconds without a single byte after which a connection counts as dead.
        attempts: failures in a row, without a byte of progress between them, after which an address is given up.
        backoff: seconds before the second attempt; doubled each time, at most a minute.
        sleep: how to wait.
    """

    timeout: float = 30.0
    attempts: int = 5
    backoff: float = 1.0
    sleep: Callable[[float], None] = time.sleep

    @property
    def attempts_in_all(self) -> int:
        """Failures after which even a download that advances a little each time is given up."""
        return 20 * self.attempts

    def pause(self, failures: int, asked: float | None) -> None:
        """Wait before the next attempt, as long as the server asks if it does."""
        self.sleep(min(60.0, asked if asked is not None else self.backoff * 2 ** (failures - 1)))


def fetch(
    remote: Remote, folder: Path, *, policy: Policy | None = None, listener: Listener = silent
) -> tuple[Path, Digests]:
    """Download a file into `folder`, or find it there from an earlier call.

    Returns:
        The path, and the checksums measured on the way.

    Raises:
        DataError: it could not be fetched, or is not what it should be; no file under its name is left behind.
    """
    policy = policy or Policy()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / remote.filename
    with hold(folder / f"{remote.filename}.lock", sleep=policy.sleep):
        if target.exists():
            digests = digests_of(target, remote.filename, listener)
            if not digests.differences(md5=remote.md5, sha256=remote.sha256):
                return target, digests
            target.unlink()
        part = PartFile(folder / f"{remote.filename}.part")
        _download(remote, part, policy, listener)
        digests = digests_of(part.path, remote.filename, listener)
        wrong = digests.differences(md5=remote.md5, sha256=remote.sha256)
        if wrong:
            part.discard()
            raise DataError(
                f"{remote.filename} from {remote.url} is not the published file: {'; '.join(wrong)}. It has been "
                f"deleted; try again, and if it stays so, the publisher has changed the file or something on the way "
                f"does"
            )
        part.become(target)
        return target, digests


def _download(remote: Remote, part: PartFile, policy: Policy, listener: Listener) -> None:
    """Try every address in turn until one has given the whole file."""
    reasons = []
    for url in (remote.url, *remote.mirrors):
        try:
            _persist(url, remote, part, policy, listener)
        except FinalError as failure:
            reasons.append(f"{url}: {failure}")
        else:
            return
    kept = f"{part.size:,} bytes are kept in {part.path}; the next call goes on from there"
    advice = kept if part.size else "Check the connection, or download it by hand"
    raise DataError(f"could not download {remote.filename}: {'; '.join(reasons)}. {advice}")


def _persist(url: str, remote: Remote, part: PartFile, policy: Policy, listener: Listener) -> None:
    in_a_row = in_all = 0
    while True:
        before = part.size
        try:
            transfer(url, remote, part, timeout=policy.timeout, listener=listener)
        except PassingError as failure:
            in_a_row = 1 if part.size > before else in_a_row + 1
            in_all += 1
            if in_a_row >= policy.attempts or in_all >= policy.attempts_in_all:
                raise FinalError(f"{failure} (gave up after {in_all} attempts)") from failure
            policy.pause(in_a_row, failure.retry_after)
        else:
            return

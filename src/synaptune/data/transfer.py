"""One attempt to fetch a file over HTTP, or the rest of it.

Everything that can go wrong is sorted into three kinds: worth another attempt, final for this address, and a matter of
the user's own disk.
"""

from __future__ import annotations

import errno
import http.client
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from synaptune.data.entry import Remote
from synaptune.data.part_file import PartFile
from synaptune.data.progress import Listener, Progress
from synaptune.errors import DataError

__all__ = ["FinalError", "PassingError", "transfer"]

_CHUNK = 1 << 18
_HEAD = 512
_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_MAGIC = {
    ".gz": (0, b"\x1f\x8b"),
    ".bz2": (0, b"BZh"),
    ".zip": (0, b"PK"),
    ".tar": (257, b"ustar"),
    ".h5": (0, b"\x89HDF"),
    ".mat": (0, b"MATLAB"),
}


class PassingError(Exception):
    """A failure that the next attempt may not meet."""

    def __init__(self, message: str, retry_after: float | None = None):
        self.retry_after = retry_after
        super().__init__(message)


class FinalError(Exception):
    """A failure of this address that repeating does not heal."""


def transfer(url: str, remote: Remote, part: PartFile, *, timeout: float, listener: Listener) -> None:
    """Make one attempt to complete a part from one address.

    Raises:
        PassingError: another attempt may succeed.
        FinalError: this address will not give the file.
        DataError: the disk is full or cannot be written.
    """
    if part.is_complete(remote.size):
        return
    start, validator = part.resume_point(url, is_pinned=remote.is_pinned)
    headers = {"User-Agent": "synaptune", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    if start and validator:
        headers["If-Range"] = validator
    with _response(url, headers, timeout) as reply:
        if reply.status == 416:
            # Nothing after our last byte: either it is all there, or what we have is of another file.
            part.discard()
            raise PassingError("the server has no more bytes than the part that was kept; starting afresh")
        if reply.status == 206 and _range_start(reply) != start:
            part.discard()
            raise PassingError("the server sent another range than asked for; starting afresh")
        start = start if reply.status == 206 else 0
        announced = _announced_length(reply, start)
        _check_before(remote, reply, announced, start, part)
        part.note(url, reply.headers, announced)
        done = _copy(reply, part, start, announced, remote, listener)
    expected = announced if announced is not None else remote.size
    if expected is not None and done != expected:
        raise PassingError(f"the connection ended after {done:,} of {expected:,} bytes")


@contextmanager
def _response(url: str, headers: dict[str, str], timeout: float) -> Iterator[Any]:
    if not url.startswith(("http://", "https://")):
        raise FinalError("only http and https addresses are fetched")
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme is checked above
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:  # noqa: S310
            yield reply
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:
                yield error
                return
            if error.code in _RETRY_STATUS:
                raise PassingError(f"HTTP {error.code} {error.reason}", _retry_after(error)) from error
            raise FinalError(f"HTTP {error.code} {error.reason}") from error
    except TimeoutError as error:
        raise PassingError(f"no byte came for {timeout:g} seconds") from error
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, TimeoutError):
            raise PassingError(f"no answer within {timeout:g} seconds") from error
        raise PassingError(f"the connection failed ({reason or type(reason).__name__})") from error


def _retry_after(error: urllib.error.HTTPError) -> float | None:
    value = error.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None


def _range_start(reply: Any) -> int:
    unit, _, span = reply.headers.get("Content-Range", "").partition(" ")
    first = span.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdecimal() else -1


def _announced_length(reply: Any, start: int) -> int | None:
    """Length of the whole file as the server says."""
    length = reply.headers.get("Content-Length", "")
    return start + int(length) if length.isdecimal() else None


def _check_before(remote: Remote, reply: Any, announced: int | None, start: int, part: PartFile) -> None:
    # Nothing has been written yet, so what an earlier attempt has brought stays.
    if reply.headers.get_content_type() == "text/html":
        raise FinalError(_web_page(remote))
    if announced is not None and remote.size is not None and announced != remote.size:
        raise FinalError(f"the server offers {announced:,} bytes, the published file has {remote.size:,}")
    wanted = announced if announced is not None else remote.size
    free = shutil.disk_usage(part.path.parent).free
    if wanted is not None and wanted - start > free:
        raise DataError(
            f"{remote.filename} needs {wanted - start:,} more bytes, {part.path.parent} has {free:,} left; "
            f"make room, or choose another folder with root= or SYNAPTUNE_DATA"
        )


def _copy(reply: Any, part: PartFile, start: int, announced: int | None, remote: Remote, listener: Listener) -> int:
    done = start
    try:
        with part.path.open("ab" if start else "wb") as file:
            for chunk in _chunks(reply, enough=_HEAD if done == 0 else 1):
                if done == 0:
                    _check_first_bytes(chunk, remote)
                file.write(chunk)
                done += len(chunk)
                listener(Progress(remote.filename, "download", done, announced))
    except FinalError:
        part.discard()
        raise
    except TimeoutError as error:
        raise PassingError("the server fell silent in the middle") from error
    except (http.client.HTTPException, ConnectionError) as error:
        raise PassingError(f"the connection broke in the middle ({error})") from error
    except OSError as error:
        raise _disk_trouble(error, part) from error
    return done


def _chunks(reply: Any, enough: int) -> Iterator[bytes]:
    """Give bytes as they come, so that none is lost with a connection that falls silent; first `enough` to judge by."""
    head = b""
    while len(head) < enough and (chunk := reply.read1(_CHUNK)):
        head += chunk
    if head:
        yield head
    while chunk := reply.read1(_CHUNK):
        yield chunk


def _disk_trouble(error: OSError, part: PartFile) -> Exception:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DataError(
            f"the disk under {part.path.parent} is full; make room and call again, "
            f"what has come so far is kept in {part.path}"
        )
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return DataError(
            f"cannot write to {part.path.parent} ({error}); choose another folder with root= or SYNAPTUNE_DATA"
        )
    return PassingError(f"reading failed ({error})")


def _check_first_bytes(chunk: bytes, remote: Remote) -> None:
    """Notice early that something else than the wanted kind of file is coming."""
    head = chunk[:512].lstrip().lower()
    if head.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        raise FinalError(_web_page(remote))
    offset, magic = _MAGIC.get(Path(remote.filename).suffix, (0, b""))
    if len(chunk) > offset + len(magic) and chunk[offset : offset + len(magic)] != magic:
        raise FinalError(f"what came does not begin like a {Path(remote.filename).suffix} file")


def _web_page(remote: Remote) -> str:
    return (
        f"the server sent a web page instead of {remote.filename}: a login, a consent or a quota page, or the file "
        f"has moved; open the address in a browser"
    )

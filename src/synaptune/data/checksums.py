"""Size, md5 and sha256 of a file, measured in one pass, and compared with what is published."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from synaptune.data.progress import Listener, Progress, silent

__all__ = ["Digests", "digests_of"]


@dataclass(frozen=True)
class Digests:
    """Measured checksums of a file."""

    size: int
    md5: str
    sha256: str

    def differences(self, *, size: int | None = None, md5: str | None = None, sha256: str | None = None) -> list[str]:
        """Say in words where a file is not what it should be; what is not known is not compared."""
        pairs = (("size", self.size, size), ("md5", self.md5, md5), ("sha256", self.sha256, sha256))
        return [
            f"{kind} is {measured}, expected {expected}"
            for kind, measured, expected in pairs
            if expected is not None and measured != expected
        ]


def digests_of(path: Path, name: str, tell: Listener = silent) -> Digests:
    """Measure size, md5 and sha256 in one pass."""
    total = path.stat().st_size
    md5, sha256, done = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            md5.update(chunk)
            sha256.update(chunk)
            done += len(chunk)
            tell(Progress(name, "check", done, total))
    return Digests(done, md5.hexdigest(), sha256.hexdigest())

"""A half-finished download: its bytes, and a note of which version of which file they belong to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["PartFile"]


@dataclass(frozen=True)
class PartFile:
    """The file `NAME.part` and its note `NAME.part.json`.

    Attributes:
        path: where the bytes go.
    """

    path: Path

    @property
    def size(self) -> int:
        """Bytes that are there."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def _note_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.json")

    def note(self, url: str, headers: Mapping[str, str], total: int | None) -> None:
        """Write down what the server says it is sending."""
        tag = headers.get("ETag") or ""
        # A weak tag does not promise equal bytes.
        validator = headers.get("Last-Modified") or "" if tag.startswith("W/") or not tag else tag
        self._note_path.write_text(json.dumps({"url": url, "validator": validator, "total": total}))

    def is_complete(self, size: int | None) -> bool:
        """Whether an earlier call was interrupted just between the last byte and the check."""
        return self.size > 0 and self.size in (size, self._read_note().get("total"))

    def resume_point(self, url: str, *, is_pinned: bool) -> tuple[int, str]:
        """Where to go on, and the proof for the server that it is still the same file; (0, "") to start afresh.

        Without a proof, going on is safe only if a checksum will tell at the end.
        """
        note = self._read_note()
        validator = note.get("validator", "") if note.get("url") == url else ""
        return (self.size, validator) if validator or is_pinned else (0, "")

    def discard(self) -> None:
        """Delete bytes and note."""
        self.path.unlink(missing_ok=True)
        self._note_path.unlink(missing_ok=True)

    def become(self, target: Path) -> None:
        """Take the final name."""
        self.path.replace(target)
        self._note_path.unlink(missing_ok=True)

    def _read_note(self) -> dict[str, Any]:
        try:
            note = json.loads(self._note_path.read_text())
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}

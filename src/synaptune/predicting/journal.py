"""The journal of a prediction run, `OUT.run.json`: its settings, and which saved state belongs to which row.

A run is resumed under the settings it was begun with, or not at all. When a state file is kept, the journal lists the
last states written, by digest, with the number of rows and bytes that the table had then; whatever a crash leaves
behind, the state file is one of these, and the table is cut back to where it belongs.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from synaptune.errors import DataError

__all__ = ["Journal", "SavedState", "digest_of"]

_FORMAT = "synaptune-predictions-1"


@dataclass(frozen=True)
class SavedState:
    """A state file, by digest (empty for no file: the source model), and the table that goes with it."""

    digest: str
    batches: int
    rows: int
    position: int


class Journal:
    """Kept beside the table and replaced as a whole at every change.

    Args:
        table: the file of predictions.
        settings: what must be the same for a run to be resumed.
    """

    def __init__(self, table: Path, settings: dict[str, Any]):
        self.path = table.with_name(f"{table.name}.run.json")
        self.settings: dict[str, Any] = json.loads(json.dumps(settings))
        self.saved: list[SavedState] = []
        self.batches = 0

    def resume(self) -> None:
        """Take over what an earlier run wrote; refuse other settings."""
        content = self._read()
        differing = [
            f"{name} was {content['settings'].get(name)!r} and is {self.settings.get(name)!r}"
            for name in sorted(content["settings"].keys() | self.settings.keys())
            if content["settings"].get(name) != self.settings.get(name)
        ]
        if differing:
            raise DataError(
                f"{self.path} belongs to a run with other settings: {'; '.join(differing)}. Resume with the same ones, "
                "or write to another file"
            )
        self.batches = int(content["batches"])
        self.saved = [SavedState(**entry) for entry in content["saved"]]

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            if content["format"] != _FORMAT:
                raise KeyError(content["format"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{self.path}, the journal of the run to resume, is missing or damaged ({error}); write to another "
                "file, or start again with --overwrite"
            ) from error
        return dict(content)

    def write(self, **result: Any) -> None:
        """Put the journal on disk, with the results of the run if it is over."""
        content = {
            "format": _FORMAT,
            "settings": self.settings,
            "batches": self.batches,
            "saved": [asdict(entry) for entry in self.saved],
            **result,
        }
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(content, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)

    def note(self, state: SavedState) -> None:
        """Announce a state that is about to replace the one before; both are possible until it has."""
        self.saved = [*self.saved[-1:], state]
        self.write()

    def place_of(self, state: Path) -> SavedState:
        """Find which rows a state file belongs to."""
        digest = digest_of(state)
        found = next((entry for entry in reversed(self.saved) if entry.digest == digest), None)
        if found is None and not digest:
            raise DataError(
                f"there is no state file {state} to go on from; leave --state out to go on from the source model"
            )
        if found is None:
            raise DataError(
                f"{state} was not written by the run that {self.path} describes; name the state file of that run"
            )
        return found


def digest_of(path: Path) -> str:
    """Sha256 of a file; empty where there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""What a state file says about itself: which method made it, with which options, for which model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from synaptune.errors import StateFileError

if TYPE_CHECKING:
    from synaptune.core.state_file import About

__all__ = ["about_state"]


def about_state(path: Path) -> About:
    """Read the description of a state file, without its tensors."""
    from safetensors import SafetensorError, safe_open

    from synaptune.core.state_file import About

    if not path.is_file():
        raise StateFileError(f"there is no state file {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        return About(
            metadata["method"], json.loads(metadata["options"]), metadata["fingerprint"], int(metadata["steps"])
        )
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise StateFileError(f"{path} is not a file of adapted state ({error})") from error

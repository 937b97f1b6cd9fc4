"""Files of adapted state: safetensors, only what changed, with the identity of the model they belong to."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from synaptune._version import __version__
from synaptune.errors import StateFileError

__all__ = ["About", "damaged", "read", "steps", "write"]

FORMAT = "synaptune-state-1"
_MODEL, _STATE = "model/", "method/"


@dataclass(frozen=True)
class About:
    """What a state file says about itself."""

    method: str
    options: dict[str, Any]
    fingerprint: str
    steps: int


def write(path: Path, *, changed: Mapping[str, Tensor], state: Mapping[str, Tensor], about: About) -> None:
    """Write a state file; it appears whole or not at all."""
    tensors = {_MODEL + name: tensor.detach().cpu().contiguous() for name, tensor in changed.items()}
    tensors |= {_STATE + name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
    metadata = {
        "format": FORMAT,
        "synaptune": __version__,
        "method": about.method,
        "options": json.dumps(about.options, sort_keys=True),
        "fingerprint": about.fingerprint,
        "steps": str(about.steps),
    }
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        # Tied parameters share storage, which safetensors refuses; copies are independent.
        save_file({name: tensor.clone() for name, tensor in tensors.items()}, temporary, metadata=metadata)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: Path, *, expected: About) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return (changed tensors, method state) of a file that belongs to the `expected` model and method."""
    metadata, tensors = _open(path)
    _refuse_stranger(path, metadata, expected)
    changed = {name.removeprefix(_MODEL): tensor for name, tensor in tensors.items() if name.startswith(_MODEL)}
    state = {name.removeprefix(_STATE): tensor for name, tensor in tensors.items() if name.startswith(_STATE)}
    return changed, state


def steps(path: str | Path) -> int:
    """Return how many batches the state of a file was adapted on."""
    metadata, _ = _open(Path(path), tensors=False)
    return int(metadata["steps"])


def damaged(path: str | Path, why: str) -> StateFileError:
    """Build the error for a file that is no usable state file."""
    return StateFileError(f"{path} is not a usable state file: {why}")


def _open(path: Path, *, tensors: bool = True) -> tuple[dict[str, str], dict[str, Tensor]]:
    if not path.is_file():
        raise damaged(path, "there is no such file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            found = {name: file.get_tensor(name) for name in file.keys()} if tensors else {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise damaged(path, str(error)) from error
    if metadata.get("format") != FORMAT:
        raise damaged(path, f"its format is {metadata.get('format')!r}, expected {FORMAT!r}")
    return metadata, found


def _refuse_stranger(path: Path, metadata: Mapping[str, str], expected: About) -> None:
    if metadata["fingerprint"] != expected.fingerprint:
        raise StateFileError(
            f"{path} belongs to another model (fingerprint {metadata['fingerprint'][:12]}..., this model has "
            f"{expected.fingerprint[:12]}...); load it into the same architecture with the same source weights"
        )
    if metadata["method"] != expected.method:
        raise StateFileError(
            f"{path} was saved by method {metadata['method']!r}, this adapter runs {expected.method!r}; "
            f"use synaptune.adapt(model, {metadata['method']!r})"
        )
    saved = json.loads(metadata["options"])
    differing = sorted(
        name for name in expected.options.keys() | saved if expected.options.get(name) != saved.get(name)
    )
    if differing:
        detail = ", ".join(f"{name}={saved.get(name)!r} (here {expected.options.get(name)!r})" for name in differing)
        raise StateFileError(f"{path} was saved with other options: {detail}; adapt with the same ones")

"""Files of adapted state: safetensors, only what changed, with the identity of the model they belong to."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from synaptune._version import __version__
from synaptune.errors import StateFileError

__all__ = ["About", "damaged", "read", "write"]

FORMAT = "synaptune-state-1"
_MODEL, _STATE = "model/", "method/"


@dataclass(frozen=True)
class About:
    """What a state file says about itself.

    Attributes:
        method: name of the method or preset.
        options: all its options.
        fingerprint: of the source model.
        steps: batches seen.
        defaults: the method's own options; not written. A file that does not know an option is from before it
            existed, and means its default.
    """

    method: str
    options: dict[str, Any]
    fingerprint: str
    steps: int
    defaults: dict[str, Any] = field(default_factory=dict)


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
    if not path.parent.is_dir():
        raise StateFileError(f"there is no folder {path.parent} to write {path.name} into; make it first")
    # Written by Python: files that tempfile or safetensors make are for their owner alone, and this one is to travel.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        # Tied parameters share storage, which safetensors refuses; copies are independent.
        temporary.write_bytes(save({name: tensor.clone() for name, tensor in tensors.items()}, metadata=metadata))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: Path, *, expected: About) -> tuple[dict[str, Tensor], dict[str, Tensor], int]:
    """Return (changed tensors, method state, steps) of a file that belongs to the `expected` model and method."""
    metadata, tensors = _open(path)
    about = _about(path, metadata)
    _refuse_stranger(path, about, expected)
    changed = {name.removeprefix(_MODEL): tensor for name, tensor in tensors.items() if name.startswith(_MODEL)}
    state = {name.removeprefix(_STATE): tensor for name, tensor in tensors.items() if name.startswith(_STATE)}
    return changed, state, about.steps


def damaged(path: str | Path, why: str) -> StateFileError:
    """Build the error for a file that is no usable state file."""
    return StateFileError(f"{path} is not a usable state file: {why}")


def _open(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    if not path.is_file():
        raise damaged(path, "there is no such file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise damaged(path, str(error)) from error
    if metadata.get("format") != FORMAT:
        raise damaged(path, f"its format is {metadata.get('format')!r}, expected {FORMAT!r}")
    return metadata, found


def _about(path: Path, metadata: Mapping[str, str]) -> About:
    try:
        options = json.loads(metadata["options"])
        return About(metadata["method"], dict(options), metadata["fingerprint"], int(metadata["steps"]))
    except (KeyError, ValueError, TypeError) as error:
        raise damaged(path, f"what it says about itself is incomplete ({error})") from error


def _refuse_stranger(path: Path, found: About, expected: About) -> None:
    if found.fingerprint != expected.fingerprint:
        raise StateFileError(
            f"{path} belongs to another model (fingerprint {found.fingerprint[:12]}..., this model has "
            f"{expected.fingerprint[:12]}...); load it into the same architecture with the same source weights"
        )
    if found.method != expected.method:
        raise StateFileError(
            f"{path} was saved by method {found.method!r}, this adapter runs {expected.method!r}; "
            f"use synaptune.adapt(model, {found.method!r})"
        )
    saved = expected.defaults | found.options
    differing = sorted(
        name for name in expected.options.keys() | saved if expected.options.get(name) != saved.get(name)
    )
    if differing:
        detail = ", ".join(f"{name}={saved.get(name)!r} (here {expected.options.get(name)!r})" for name in differing)
        raise StateFileError(f"{path} was saved with other options: {detail}; adapt with the same ones")

"""Reading tensors from files that others wrote, without running anything that is in them.

safetensors, and torch's own formats through `torch.load(weights_only=True)`. Many published checkpoints hold a
few values beside the tensors: an error as a NumPy scalar, the command line as a Namespace. torch refuses such
files as a whole. We let it build *stand-ins* for a short list of such types: empty objects of our own that take any
arguments and do nothing, so that the tensors beside them can be read and no code of NumPy's or the file's runs.
A file that holds a whole pickled module stays refused, and the message says how to convert it where it is trusted.
"""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from synaptune.errors import WeightsError

__all__ = ["Checkpoint", "read_checkpoint"]

# What published checkpoints hold beside tensors, by the names under which it is pickled.
_IGNORED_TYPES = (
    "argparse.Namespace",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
    "numpy.dtype",
    "numpy.ndarray",
    "pathlib.PosixPath",
    "pathlib._local.PosixPath",
    "_codecs.encode",
)
_CONVERSION = (
    "where you trust the file, convert it once: "
    'python -c "import sys, torch; from safetensors.torch import save_file; '
    "o = torch.load(sys.argv[1], map_location='cpu', weights_only=False); "
    "save_file({k: v.contiguous() for k, v in (o if isinstance(o, dict) else o.state_dict()).items()}, "
    'sys.argv[2])" FILE FILE.safetensors'
)


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds: nested dicts of tensors, and text that was stored beside them."""

    path: Path
    content: Mapping[str, Any]
    metadata: Mapping[str, str] = field(default_factory=dict)


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Read a safetensors or torch file on the CPU.

    Raises:
        WeightsError: there is no such file, it is something else (an HTML page, an archive, a pointer), it is cut
            off, or it needs code to be run.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "does not exist"
        raise WeightsError(f"the weights file {path} {kind}")
    with path.open("rb") as file:
        head = file.read(512)
    if problem := _not_a_checkpoint(head):
        raise WeightsError(f"{path} {problem}")
    if _looks_like_safetensors(head, path):
        return _read_safetensors(path)
    if not head.startswith((b"PK", b"\x80")):  # a zip archive, or a pickle of protocol 2 and up
        raise WeightsError(f"{path} is neither a safetensors file nor a torch checkpoint")
    return _read_torch(path)


def _not_a_checkpoint(head: bytes) -> str | None:
    """Say what the file is instead, going by its first bytes."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not head:
        return "is empty; download it again"
    if text.startswith((b"<!doctype", b"<html", b"<head", b"<?xml", b"<!--")):
        return (
            "is an HTML page, not weights: the server sent a login, quota or confirmation page. "
            "Open the address in a browser and save the file itself"
        )
    if text.startswith(b"version https://git-lfs"):
        return "is a Git LFS pointer, not the file; run `git lfs pull`, or download it from the project's page"
    if head[257:262] == b"ustar":
        return "is a tar archive; unpack it and give the file inside"
    if head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf")):
        return "is a compressed archive; unpack it and give the file inside"
    return None


def _looks_like_safetensors(head: bytes, path: Path) -> bool:
    # Eight bytes that give the length of a JSON header, then the header.
    return path.suffix == ".safetensors" or head[8:9] == b"{"


def _read_safetensors(path: Path) -> Checkpoint:
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            return Checkpoint(path, tensors, file.metadata() or {})
    except (SafetensorError, OSError, ValueError) as error:
        raise WeightsError(
            f"{path} is not a whole safetensors file ({error}); it may be cut off: download it again"
        ) from error


def _read_torch(path: Path) -> Checkpoint:
    try:
        with torch.serialization.safe_globals(_stand_ins()), warnings.catch_warnings():
            # Old files make torch warn about its own storage classes, which is none of the user's concern.
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise WeightsError(f"{path} {_why_not_unpickled(error)}") from error
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise WeightsError(
            f"{path} is not a whole torch checkpoint ({reason}); it may be cut off: download it again"
        ) from error
    if not isinstance(content, Mapping):
        raise WeightsError(f"{path} holds a {type(content).__name__}, not named tensors; {_CONVERSION}")
    return Checkpoint(path, content)


def _stand_ins() -> list[Any]:
    made = []
    for qualified in _IGNORED_TYPES:
        module, _, name = qualified.rpartition(".")
        made.append(type(name, (_Ignored,), {"__module__": module}))
    return made


class _Ignored:
    """Takes the place of a value that we do not need, whatever it is built from."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # noqa: ARG004 (whatever the pickle passes)
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass


def _why_not_unpickled(error: pickle.UnpicklingError) -> str:
    text = str(error)
    if "GLOBAL" not in text and "Unsupported" not in text:
        return "is not a whole torch checkpoint; it may be cut off: download it again"
    named = next((line.strip() for line in text.splitlines() if "GLOBAL" in line), text.splitlines()[0])
    return (
        f"holds Python objects beside tensors, perhaps a whole pickled model, and reading those would run code "
        f"from the file, which synaptune does not do ({named}). If its authors offer a state dict, take that; "
        f"else, {_CONVERSION}"
    )


def is_tensors(value: object) -> bool:
    """Whether `value` maps names to tensors and nothing else."""
    return (
        isinstance(value, Mapping)
        and len(value) > 0
        and all(isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in value.items())
    )

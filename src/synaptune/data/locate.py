"""Where data lies: the user's own folder first, then a shared one beside the repository.

| variable | default | meaning |
| --- | --- | --- |
| `SYNAPTUNE_DATA` | `~/.cache/synaptune` | downloads and caches go here; looked at first |
| `SYNAPTUNE_SHARED` | `../shared/data` beside a source checkout | looked at second, never written to |
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

__all__ = ["data_root", "find", "search_roots", "shared_root"]


def data_root(root: str | Path | None = None) -> Path:
    """Folder for downloads and caches: the argument, else `SYNAPTUNE_DATA`, else the default; may not exist yet."""
    chosen = root or os.environ.get("SYNAPTUNE_DATA") or "~/.cache/synaptune"
    return Path(chosen).expanduser()


def shared_root() -> Path | None:
    """Folder with data that several checkouts share, if there is one."""
    named = os.environ.get("SYNAPTUNE_SHARED")
    if named:
        folder = Path(named).expanduser()
        return next((place for place in (folder / "data", folder) if place.is_dir()), None)
    repository = Path(__file__).resolve().parents[3]
    if not (repository / "pyproject.toml").is_file():
        return None  # installed as a package: nothing lies beside it that could be meant
    folder = repository.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def search_roots(root: str | Path | None = None) -> tuple[Path, ...]:
    """Folders to look in, in this order; an explicit `root` is looked at alone."""
    if root is not None:
        return (data_root(root),)
    shared = shared_root()
    return (data_root(),) if shared is None else (data_root(), shared)


def find(paths: Sequence[str], roots: Sequence[Path]) -> tuple[Path, ...] | None:
    """Give the files at these relative paths, or None if one of them is nowhere.

    A root that has them all comes before files that are spread over several roots. A root that is itself the data
    set's folder (`.../CIFAR-10-C`) counts as if its parent had been given.
    """
    bases = [base for root in roots for base in ((root, root.parent) if _names_set(root, paths) else (root,))]
    for base in bases:
        found = tuple(base / path for path in paths)
        if all(map(_is_there, found)):
            return found
    spread = [next(filter(_is_there, (base / path for base in bases)), None) for path in paths]
    return tuple(path for path in spread if path is not None) if None not in spread else None


def _is_there(path: Path) -> bool:
    # Path.exists raises for what lies in a folder that may not be entered; to us that is not there.
    return os.path.exists(path)  # noqa: PTH110


def _names_set(root: Path, paths: Sequence[str]) -> bool:
    return any(Path(path).parts[0] == root.name for path in paths)

"""`load`: a data set by name, from wherever it lies on disk."""

from __future__ import annotations

from pathlib import Path

from synaptune.data.catalogue import entry_named
from synaptune.data.dataset import DataSet
from synaptune.data.entry import Entry, Place, Request
from synaptune.data.folder import read_images
from synaptune.data.locate import find, search_roots
from synaptune.errors import DataError

__all__ = ["load", "locate"]


def load(
    name: str | Entry,
    split: str = "test",
    *,
    root: str | Path | None = None,
    corruption: str | None = None,
    severity: int | None = None,
) -> DataSet:
    """Load a data set of the catalogue, or a folder of images in class folders.

    Nothing is downloaded; pixels stay on disk where the format allows it.

    Args:
        name: a name from `listing()`, the path of an existing folder (with a slash in it), or an entry.
        split: "train", "test" or "val"; "test" means "val" where test labels are not public.
        root: folder to look in; by default the user's data folder, then the shared one.
        corruption: which shift, for sets that consist of shifts (their names end in -c).
        severity: 1 to 5, likewise.

    Raises:
        DataError: it is not there, or not whole; the message says what to do.
    """
    if isinstance(name, str) and _looks_like_path(name):
        return read_images(Path(name).expanduser(), labels="folders")
    entry = entry_named(name)
    entry.check_shift(corruption, severity)
    split = entry.split_named(split)
    roots = search_roots(root)
    found = locate(entry, split, roots, corruption=corruption, severity=severity)
    if found is None:
        raise DataError(_not_there(entry, split, roots, corruption, severity))
    place, paths = found
    request = Request(
        name=entry.name, split=split, paths=paths, classes=entry.classes, corruption=corruption, severity=severity
    )
    try:
        return place.read(request)
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{entry.name} is on disk but cannot be read ({error}); check the permissions") from error
    except MemoryError as error:
        raise DataError(f"{', '.join(map(str, paths))}: not enough memory to read it; close other programs") from error
    except Exception as error:
        # Whatever else a reader stumbles over is something in a file that does not belong there.
        raise DataError(f"{', '.join(map(str, paths))}: damaged ({error}); delete it and get it again") from error


def _looks_like_path(name: str) -> bool:
    return ("/" in name or "\\" in name or name.startswith((".", "~"))) and Path(name).expanduser().is_dir()


def locate(
    entry: Entry,
    split: str,
    roots: tuple[Path, ...],
    *,
    corruption: str | None = None,
    severity: int | None = None,
) -> tuple[Place, tuple[Path, ...]] | None:
    """Find the first place where a split lies whole, and its files."""
    for place in entry.splits[split]:
        paths = find(place.filled(corruption, severity), roots)
        if paths is not None:
            return place, paths
    return None


def _not_there(entry: Entry, split: str, roots: tuple[Path, ...], corruption: str | None, severity: int | None) -> str:
    wanted = " or ".join(", ".join(place.filled(corruption, severity)) for place in entry.splits[split])
    what = f"{entry.name}/{split}" + (f" ({corruption}, severity {severity})" if corruption else "")
    advice = []
    if entry.remotes and not entry.manual:
        size = entry.download_size
        advice.append(f"`synaptune data get {entry.name}` fetches it" + (f" ({size / 1e6:,.0f} MB)" if size else ""))
    if entry.manual:
        advice.append(entry.manual)
    if entry.corruptions and not entry.is_tree:
        clean = entry.name.removesuffix("-c")
        advice.append(f"corrupted(load({clean!r}), ...) in synaptune.data makes the same kind of shift without it")
    return f"{what} is not on disk: no {wanted} in {', '.join(map(str, roots))}. To get it: {'; or '.join(advice)}."

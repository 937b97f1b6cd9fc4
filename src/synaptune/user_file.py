"""Python files of the user: `path/to/file.py:name`, executed because the user asked, as `python path/to/file.py` would.

What a file is asked for (a model, a method, a data set) is checked where it is asked for.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from synaptune.errors import OptionError

__all__ = ["run_file"]


def run_file(path: Path, spec: str) -> ModuleType:
    """Execute a file as a module of its own.

    Args:
        path: the file; its neighbours may be imported while it runs.
        spec: what the user said, for messages.

    Raises:
        OptionError: there is no such file, or running it failed (the cause is chained).
    """
    if not path.is_file():
        raise OptionError(f"{spec}: there is no file {path}")
    # A name of its own, so that the file can neither shadow nor be shadowed by an installed module or its namesake.
    place = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    module_name = f"synaptune_user_file_{path.stem}_{place}"
    found = importlib.util.spec_from_file_location(module_name, path)
    if found is None or found.loader is None:
        raise OptionError(f"{spec}: {path} is not a Python file")
    module = importlib.util.module_from_spec(found)
    # Its dataclasses and pickles look the module up while it runs.
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        found.loader.exec_module(module)
    except Exception as error:
        raise OptionError(f"{spec}: running {path} failed with {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module

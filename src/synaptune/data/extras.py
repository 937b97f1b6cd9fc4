"""Optional packages, imported when a file needs them."""

from __future__ import annotations

import importlib
from typing import Any

from synaptune.errors import DataError

__all__ = ["need"]


def need(module: str, purpose: str) -> Any:
    """Import an optional module, or say how to install it.

    Raises:
        DataError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise DataError(f"reading {purpose} needs {package}: pip install 'synaptune[data]'") from error

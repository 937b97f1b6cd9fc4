"""Reference pages of the Python interface: one per package, from its public names and their docstrings."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import synaptune

# What methods, guards and callbacks of one's own are written with; the rest of `core` is the adapter's inside.
CONTRACTS = ("method", "registry", "structure", "guard", "callback", "history", "hooks", "normalisation", "descent")
# Not for import: the program, the methods (they have pages of their own), the front door (it is `synaptune` itself).
APART = ("algorithms", "api", "cli", "core")


def api_pages() -> dict[str, str]:
    """Return the page of `synaptune` itself, one for each of its packages, and one for the contracts in `core`."""
    own = [name for name in synaptune.__all__ if not name.startswith("_") and name != "errors"]
    pages = {"reference/api.md": _page("synaptune", [_block("synaptune", own)])}
    for info in pkgutil.iter_modules(synaptune.__path__):
        if not info.name.startswith("_") and info.name not in APART:
            module = importlib.import_module(f"synaptune.{info.name}")
            pages[f"reference/{info.name}.md"] = _page(module.__name__, [_block(module.__name__, public_names(module))])
    contracts = [importlib.import_module(f"synaptune.core.{name}") for name in CONTRACTS]
    blocks = [_block(module.__name__, public_names(module)) for module in contracts]
    return pages | {"reference/core.md": _page("synaptune.core", blocks)}


def public_names(module: ModuleType) -> list[str]:
    """Names that a module offers: its `__all__`, or else what it has that is ours and not private."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    ]


def _page(title: str, blocks: list[str]) -> str:
    return "\n\n".join([f"# {title}", *blocks]) + "\n"


def _block(module: str, names: list[str]) -> str:
    members = "".join(f"\n        - {name}" for name in names)
    return f"::: {module}\n    options:\n      members:{members}"

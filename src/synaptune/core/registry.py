"""The registry of methods: explicit, checked at registration, and the one source of every list of methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from synaptune.core.method import AdaptOptions, Method, MethodInfo, Needs
from synaptune.errors import OptionError, UnknownNameError
from synaptune.user_file import run_file

__all__ = ["configure", "find", "infos", "preset", "register"]

_METHODS: dict[str, MethodInfo] = {}
_FILES: dict[Path, frozenset[str]] = {}
_plugins_loaded = False

MethodT = TypeVar("MethodT", bound=type[Method[Any]])


def register(
    name: str,
    *,
    options: type[AdaptOptions],
    summary: str,
    needs: Needs | None = None,
    paper: str = "",
    code: str = "",
) -> Callable[[MethodT], MethodT]:
    """Class decorator: make a method known under `name`.

    Args:
        name: what users type.
        options: its option set; every field must have a default.
        summary: one sentence, with a full stop.
        needs: what it asks of a model.
        paper: where it was published.
        code: the authors' repository.
    """
    _load_own()  # so that they come first in every list, whoever registers when

    def add(method: MethodT) -> MethodT:
        if not (isinstance(method, type) and issubclass(method, Method)):
            raise TypeError(f"{method!r} is registered as method {name!r} but does not derive from Method")
        required = [item.name for item in dataclasses.fields(options) if item.default is dataclasses.MISSING]
        if required:
            raise TypeError(f"options of method {name!r} lack a default: {', '.join(required)}")
        if any(type(info.options) is options for info in _METHODS.values()):
            raise TypeError(f"{options.__name__} already belongs to another method")
        info = MethodInfo(name, summary, method, options(), needs or Needs(), paper, code)
        _add(info)
        method.info = info
        return method

    return add


def preset(name: str, *, base: str, summary: str, needs: Needs | None = None, **overrides: Any) -> None:
    """Make a configuration of the method `base` known under a name of its own."""
    _load_own()
    origin = _METHODS[base]
    _add(
        dataclasses.replace(
            origin,
            name=name,
            summary=summary,
            options=origin.options.replace(**overrides),
            needs=needs or origin.needs,
            base=base,
        )
    )


def infos() -> tuple[MethodInfo, ...]:
    """All methods and presets, in the order of registration."""
    _load_plugins()
    return tuple(_METHODS.values())


def find(name: str) -> MethodInfo:
    """Look a method up by name; `FILE.py:NAME` is one that the user's file registers."""
    if name not in _METHODS:
        _load_plugins()
    if name not in _METHODS and ".py:" in name:
        return _find_in_file(name)
    if name not in _METHODS:
        raise UnknownNameError("method", name, _METHODS)
    return _METHODS[name]


def _find_in_file(spec: str) -> MethodInfo:
    """Execute a file, once in the life of the process, and return a method that it registered."""
    file, _, name = spec.rpartition(":")
    path = Path(file).expanduser().resolve()
    if path not in _FILES:
        before = set(_METHODS)
        try:
            run_file(path, spec)
        except BaseException:
            for added in set(_METHODS) - before:
                del _METHODS[added]
            raise
        _FILES[path] = frozenset(_METHODS) - before
    if name not in _FILES[path]:
        raise UnknownNameError(f"method in {path.name}", name, sorted(_FILES[path]))
    return _METHODS[name]


def configure(method: str | AdaptOptions, overrides: dict[str, Any]) -> tuple[MethodInfo, AdaptOptions]:
    """Turn what the user said into a method and its validated options."""
    if isinstance(method, str):
        info = find(method)
        return info, info.options.replace(**overrides)
    for info in infos():
        if info.base is None and type(info.options) is type(method):
            return info, method.replace(**overrides)
    hint = f"; pass an object, {method.__name__}()" if isinstance(method, type) else ""
    raise OptionError(f"method must be a name or an option set of a registered method, not {method!r}{hint}")


def _add(info: MethodInfo) -> None:
    if info.name in _METHODS:
        raise ValueError(f"method {info.name!r} is registered twice")
    _METHODS[info.name] = info


def _load_own() -> None:
    # By name, like the methods of other packages: nothing here depends on what they are.
    import_module("synaptune.algorithms")


def _load_plugins() -> None:
    """Import the methods that other packages declare under the entry point `synaptune.methods`."""
    global _plugins_loaded
    _load_own()
    if not _plugins_loaded:
        _plugins_loaded = True
        for point in entry_points(group="synaptune.methods"):
            point.load()

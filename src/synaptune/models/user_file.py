"""A model from the user's own file: `path/to/model.py:factory`.

The file is executed, as `python path/to/model.py` would; this is the user's code, run because the user asked.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import nn

from synaptune.errors import IncompatibleModelError, OptionError, UnknownNameError
from synaptune.user_file import run_file

__all__ = ["model_from_file"]


def model_from_file(spec: str) -> nn.Module:
    """Execute the file and call its factory without arguments.

    Args:
        spec: `FILE.py:factory`.

    Raises:
        OptionError: no factory is named, the file does not exist, or running it failed (the cause is chained).
        UnknownNameError: the file defines no such name.
        IncompatibleModelError: the name is no function, or what it returns is no `nn.Module`.
    """
    file, separator, name = spec.rpartition(":")
    if not separator or not name.isidentifier():
        raise OptionError(f"{spec}: name the function that makes the model, as in {spec.rstrip(':')}:make_model")
    factory = _defined_in(Path(file).expanduser(), name, spec)
    try:
        model = factory()
    except Exception as error:
        raise OptionError(
            f"{spec}: {name}() failed with {type(error).__name__}: {error}. It is called without arguments"
        ) from error
    if not isinstance(model, nn.Module):
        raise IncompatibleModelError(f"{spec}: {name}() returned {type(model).__name__}, not a torch.nn.Module")
    return model


def _defined_in(path: Path, name: str, spec: str) -> Callable[[], object]:
    module = run_file(path, spec)
    if not hasattr(module, name):
        own = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UnknownNameError(f"function in {path}", name, own)
    factory = getattr(module, name)
    if not callable(factory):
        raise IncompatibleModelError(f"{spec}: {name} is a {type(factory).__name__}, not a function")
    return factory  # type: ignore[no-any-return]  # anything callable; what it returns is checked

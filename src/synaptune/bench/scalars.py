"""YAML as people mean it: 1e-3 is a number, `on` is a word, and a key stands once.

PyYAML follows YAML 1.1, where `1e-3` is text, `on`, `yes` and `off` are booleans and `1:30` is ninety. This loader
is its safe one (nothing is executed) with the scalars of YAML 1.2's core schema, in which none of that is so.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synaptune.errors import OptionError

if TYPE_CHECKING:
    import yaml

__all__ = ["read_text", "read_yaml"]

_NUMBER = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_SCALARS = (
    ("tag:yaml.org,2002:bool", re.compile(r"true|True|TRUE|false|False|FALSE"), "tTfF"),
    ("tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]+"), "-+0123456789"),
    ("tag:yaml.org,2002:float", _NUMBER, "-+0123456789."),
    ("tag:yaml.org,2002:null", re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
)


def read_yaml(path: Path) -> Any:
    """Read a file; what is wrong with it is said with line and column."""
    try:
        return read_text(path.read_text(encoding="utf-8"), where=str(path))
    except OSError as error:
        raise OptionError(f"{path} cannot be read: {error.strerror}") from error


def read_text(text: str, *, where: str) -> Any:
    """Read YAML from a text.

    >>> read_text("{lr: 1e-3, project: on, steps: [1, 2]}", where="here")
    {'lr': 0.001, 'project': 'on', 'steps': [1, 2]}
    """
    yaml = _yaml()
    try:
        return yaml.load(text, Loader=_loader())  # derives from SafeLoader
    except yaml.YAMLError as error:
        raise OptionError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from error


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise OptionError("benchmark tables are YAML files and need PyYAML: pip install pyyaml") from error
    return yaml


@functools.cache
def _loader() -> type[yaml.SafeLoader]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Safe loader with core-schema scalars that refuses repeated keys."""

    # The resolvers of a parent class are shared, so the child starts from none.
    Loader.yaml_implicit_resolvers = {}
    for tag, pattern, first in _SCALARS:
        Loader.add_implicit_resolver(tag, re.compile(f"(?:{pattern.pattern})$"), list(first))
    # The parent reads 010 as eight.
    Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value))
    Loader.add_constructor("tag:yaml.org,2002:map", _unrepeated)
    return Loader


def _unrepeated(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    import yaml

    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a word", key.start_mark)
        if key.value in seen:
            raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} stands twice", key.start_mark)
        seen.add(key.value)
    return loader.construct_mapping(node, deep=True)

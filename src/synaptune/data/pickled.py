"""Read CIFAR's Python version without unpickling: a small interpreter over symbols that cannot call anything.

The file format is a program for a stack machine, and the usual machine lets it call any function of any module. This
one knows only the instructions that build dicts, lists, tuples, strings, numbers and numeric NumPy arrays. A function
is to it a name from a list of five; "calling" one of them fills in a record, and every other name is an error.
The instructions are decoded by the standard library's `pickletools`, which only parses.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from synaptune.errors import DataError

__all__ = ["Plain", "read_plain"]

Plain = Any
"""Nested dicts, lists and tuples of bytes, str, numbers, None and NumPy arrays."""


class _Name(Enum):
    """The only names that a file may mention."""

    RECONSTRUCT = "numpy.core.multiarray _reconstruct"
    NDARRAY = "numpy ndarray"
    DTYPE = "numpy dtype"
    ENCODE = "_codecs encode"


_SPELLINGS = {name.value: name for name in _Name} | {"numpy._core.multiarray _reconstruct": _Name.RECONSTRUCT}
_MARK = object()
_NUMERIC = re.compile(r"[iuf][1248]|b1")


class _ArrayPlan:
    """An array of which the file has said nothing yet but that it will come."""

    def __init__(self) -> None:
        self.array: npt.NDArray[Any] | None = None


class _DtypePlan:
    """An element type and the order of its bytes."""

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "|"


def read_plain(source: Path | bytes) -> Plain:
    r"""Build the plain data that a pickle describes.

    Args:
        source: a file, or its content.

    Raises:
        DataError: the file asks for anything but plain data, or is damaged.

    >>> read_plain(b"\x80\x02}q\x00U\x06labelsq\x01]q\x02(K\x06K\x09es.")
    {b'labels': [6, 9]}
    """
    content = source.read_bytes() if isinstance(source, Path) else source
    name = str(source) if isinstance(source, Path) else "pickle"
    try:
        return _Machine().run(content)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, UnicodeError) as error:
        raise DataError(f"{name} is damaged, or not a pickle of plain data ({error}); download it again") from error


class _Machine:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Plain:
        for opcode, argument, _ in pickletools.genops(content):
            if opcode.name == "STOP":
                result = _finished(self.stack.pop())
                _refuse_unfinished(result, set())
                return result
            handler = self.handlers.get(opcode.name)
            if handler is None:
                raise DataError(f"contains the instruction {opcode.name}, which plain data does not need; not read")
            handler(self, argument)
        raise ValueError("it ends too early")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def since_mark(self) -> list[Any]:
        start = len(self.stack) - 1
        while self.stack[start] is not _MARK:
            start -= 1
            if start < 0:
                raise ValueError("a group has no beginning")
        values = [_finished(value) for value in self.stack[start + 1 :]]
        del self.stack[start:]
        return values

    def last(self, count: int) -> tuple[Any, ...]:
        values = tuple(_finished(value) for value in self.stack[-count:])
        del self.stack[-count:]
        return values

    def append(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise ValueError("appends to something that is no list")
        target.extend(values)

    def set_items(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise ValueError("sets an item of something that is no dict")
        target.update(zip(values[::2], values[1::2], strict=True))

    def push_name(self, spelling: str) -> None:
        if spelling not in _SPELLINGS:
            raise DataError(f"wants to call {spelling.replace(' ', '.')!r}; only plain data and arrays are read")
        self.push(_SPELLINGS[spelling])

    def push_stacked_name(self, _: Any) -> None:
        module, name = self.last(2)
        self.push_name(f"{module} {name}")

    def memoize(self, key: int | None) -> None:
        self.memo[len(self.memo) if key is None else key] = self.stack[-1]

    def reduce(self, _: Any) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if function is _Name.RECONSTRUCT and arguments[0] is _Name.NDARRAY:
            self.push(_ArrayPlan())
        elif function is _Name.DTYPE:
            self.push(_DtypePlan(_text(arguments[0])))
        elif function is _Name.ENCODE and arguments[1:] == ("latin1",):
            self.push(arguments[0].encode("latin-1"))
        else:
            raise DataError("calls something that is not the making of an array; not read")

    def build(self, _: Any) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, _DtypePlan):
            target.order = _text(state[1])
        elif isinstance(target, _ArrayPlan):
            target.array = _array(*state[1:5])
        else:
            raise DataError("sets the inside of an object; only plain data and arrays are read")

    handlers: ClassVar[dict[str, Callable[[_Machine, Any], None]]] = {
        **dict.fromkeys(("PROTO", "FRAME"), lambda _machine, _: None),
        "MARK": lambda machine, _: machine.push(_MARK),
        "NONE": lambda machine, _: machine.push(None),
        "NEWTRUE": lambda machine, _: machine.push(True),
        "NEWFALSE": lambda machine, _: machine.push(False),
        **dict.fromkeys(
            (
                *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "BINFLOAT"),
                *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
                *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
            ),
            lambda machine, value: machine.push(value),
        ),
        # Strings of Python 2 are bytes; the parser has turned them into text, one character per byte.
        **dict.fromkeys(
            ("STRING", "BINSTRING", "SHORT_BINSTRING"), lambda machine, value: machine.push(value.encode("latin-1"))
        ),
        "EMPTY_DICT": lambda machine, _: machine.push({}),
        "EMPTY_LIST": lambda machine, _: machine.push([]),
        "EMPTY_TUPLE": lambda machine, _: machine.push(()),
        "TUPLE": lambda machine, _: machine.push(tuple(machine.since_mark())),
        "TUPLE1": lambda machine, _: machine.push(machine.last(1)),
        "TUPLE2": lambda machine, _: machine.push(machine.last(2)),
        "TUPLE3": lambda machine, _: machine.push(machine.last(3)),
        "APPEND": lambda machine, _: machine.append(list(machine.last(1))),
        "APPENDS": lambda machine, _: machine.append(machine.since_mark()),
        "SETITEM": lambda machine, _: machine.set_items(list(machine.last(2))),
        "SETITEMS": lambda machine, _: machine.set_items(machine.since_mark()),
        **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), memoize),
        **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda machine, value: machine.push(machine.memo[value])),
        "GLOBAL": push_name,
        "STACK_GLOBAL": push_stacked_name,
        "REDUCE": reduce,
        "BUILD": build,
    }


def _finished(value: Any) -> Any:
    if not isinstance(value, _ArrayPlan):
        return value
    if value.array is None:
        raise ValueError("an array has no content")
    return value.array


def _refuse_unfinished(value: Any, seen: set[int]) -> None:
    """Let no name and no half-built array out, however deep it lies."""
    if isinstance(value, _Name | _DtypePlan | _ArrayPlan) or value is _MARK:
        raise DataError("ends in something that is not plain data; not read")
    if isinstance(value, dict | list | tuple) and id(value) not in seen:
        seen.add(id(value))
        for inner in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
            _refuse_unfinished(inner, seen)


def _array(shape: Any, dtype: Any, is_fortran: Any, content: Any) -> npt.NDArray[Any]:
    if not isinstance(dtype, _DtypePlan) or not _NUMERIC.fullmatch(dtype.code) or dtype.order not in "<>|=":
        raise DataError(f"holds an array of {getattr(dtype, 'code', dtype)!r}; only arrays of numbers are read")
    if not isinstance(content, bytes):
        raise ValueError("the content of an array is not a string of bytes")
    flat = np.frombuffer(content, np.dtype(dtype.order.replace("|", "=") + dtype.code))
    return flat.reshape(shape, order="F" if is_fortran else "C")


def _text(value: bytes | str) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)

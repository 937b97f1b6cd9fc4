"""How far a long piece of work is; the library prints nothing, whoever wants to know passes a listener."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Listener", "Progress", "silent"]


@dataclass(frozen=True)
class Progress:
    """How far one file is.

    Attributes:
        name: the file.
        stage: what is being done with it.
        done: bytes so far.
        total: bytes in all, where known.
    """

    name: str
    stage: Literal["download", "check", "unpack", "make"]
    done: int
    total: int | None


Listener: TypeAlias = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Stand in for a listener that nobody gave."""

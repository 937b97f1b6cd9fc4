"""A cell: the smallest thing that is measured, and its identity.

    key = first 16 hexadecimal digits of sha256(canonical JSON of everything that determines the numbers)

All options of the method enter, defaults included, so a row stops counting when a default changes. Where nothing is
reset, what was adapted on before enters too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from synaptune.bench.protocol import Protocol
from synaptune.core.method import AdaptOptions
from synaptune.core.registry import configure, find
from synaptune.errors import OptionError

__all__ = ["CLEAN", "MIXED", "Cell", "Shift", "in_turn", "method_label"]

Shift = tuple[str, int]
"""A corruption and its severity."""

_BUILT_IN = "synaptune.algorithms."

CLEAN = "clean"
"""The corruption of images that are taken as they are; its severity is 0."""


MIXED = "mixed"
"""All 15 corruptions at one severity, pooled into one stream whose order is drawn from the seed."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One measurement: model x method x shift x protocol.

    Attributes:
        model: what `synaptune.models.load_model` takes.
        weights: a weights file, or "" for the model's own.
        method: registered name of the method or preset.
        options: all its options.
        data: a data set of the catalogue, a folder, or `FILE.py:function`.
        corruption: name of the corruption, "clean", or "mixed".
        severity: 1 to 5; 0 for clean images.
        seed: of the order and of the method's own draws.
        protocol: everything else.
        earlier: what the same adapter has adapted on before, where the protocol never resets it; see `in_turn`.

    >>> Cell.of(model="zoo:resnet20-cifar10", method="tent", data="cifar10", options={"lr": 0.01}).options.lr
    0.01
    """

    model: str
    weights: str = ""
    method: str
    options: AdaptOptions
    data: str
    corruption: str = CLEAN
    severity: int = 0
    seed: int = 0
    protocol: Protocol = field(default_factory=Protocol)
    earlier: tuple[Shift, ...] = ()

    def __post_init__(self) -> None:
        if self.corruption == MIXED and self.protocol.order == "dataset":
            raise OptionError(
                "corruptions=mixed pools all corruptions, and order=dataset would play the pool one after the other; "
                "add order=shuffled (or order=correlated)"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        # As plain values: another process knows the options of a method only once it has looked the method up.
        plain = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return _made_again, (plain | {"options": self.options.as_dict()},)

    @classmethod
    def of(cls, *, method: str, options: Mapping[str, Any] | None = None, seed: int = 0, **others: Any) -> Cell:
        """Make a cell from the method's name and the options that differ from its defaults.

        A method that draws (it has an option `seed`) draws from the cell's seed, unless `options` fixes it.
        """
        changes = dict(options or {})
        if hasattr(find(method).options, "seed"):
            changes.setdefault("seed", seed)
        _, chosen = configure(method, changes)
        return cls(method=method, options=chosen, seed=seed, **others)

    @property
    def is_seeded(self) -> bool:
        """Whether the seed changes anything: the order, or draws of the method.

        A method that draws says so by an option `seed`. One that is not built in may also draw from global generators,
        which are seeded for every cell, so without that option it is taken to draw.
        """
        if self.protocol.order != "dataset":
            return True
        if hasattr(self.options, "seed"):
            return bool(self.options.seed == self.seed)
        return not type(self.options).__module__.startswith(_BUILT_IN)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the numbers, as plain values."""
        # Only cells with a past name it, so that all others are called the same under either way to reset.
        past = {"earlier": [list(shift) for shift in self.earlier]} if self.earlier else {}
        return {
            **past,
            "model": self.model,
            "weights": self.weights,
            "method": self.method,
            "options": self.options.as_dict(),
            "data": self.data,
            "corruption": self.corruption,
            "severity": self.severity,
            "seed": self.seed,
            "protocol": self.protocol.as_dict(),
        }

    @cached_property
    def key(self) -> str:
        """Name of this cell in the file of rows."""
        text = json.dumps(self.identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """The method with the options that differ from its defaults."""
        return method_label(self.method, self.options.as_dict())

    @property
    def shift(self) -> Shift:
        """Corruption and severity."""
        return self.corruption, self.severity

    @property
    def stream(self) -> tuple[Any, ...]:
        """What cells share that one adapter sees in turn when nothing is reset."""
        return (self.model, self.weights, self.method, self.options, self.data, self.seed, self.protocol)

    def __str__(self) -> str:
        shift = self.data if self.corruption == CLEAN else f"{self.data}/{self.corruption}/{self.severity}"
        return f"{self.label} on {self.model}, {shift}, seed {self.seed}"


def _made_again(plain: dict[str, Any]) -> Cell:
    return Cell.of(**plain)


def in_turn(cells: Iterable[Cell]) -> list[Cell]:
    """Tell each cell of a stream that is never reset what comes before it there; all other cells stay as they are.

    The order of the cells is that of the stream. A shift that comes again in the same stream is left out.

    >>> clean = Cell.of(model="m", method="tent", data="d", protocol=Protocol(reset="never"))
    >>> [cell.earlier for cell in in_turn([clean, dataclasses.replace(clean, corruption="fog", severity=5)])]
    [(), (('clean', 0),)]
    """
    streams: dict[object, list[Shift]] = {}
    placed = []
    for cell in cells:
        if cell.protocol.reset != "never":
            placed.append(cell)
            continue
        past = streams.setdefault(cell.stream, [])
        if cell.shift not in past:
            placed.append(dataclasses.replace(cell, earlier=tuple(past)))
            past.append(cell.shift)
    return placed


def method_label(method: str, options: Mapping[str, Any]) -> str:
    """Spell a method with what differs from its defaults; the seed is told elsewhere.

    >>> method_label("tent", {"lr": 0.01, "steps": 1})
    'tent(lr=0.01)'
    """
    try:
        usual = find(method).options.as_dict()
    except KeyError:  # a method of a plug-in that is not installed here
        return method
    changed = [f"{name}={_spell(value)}" for name, value in options.items() if _differs(name, value, usual)]
    return f"{method}({', '.join(changed)})" if changed else method


def _differs(name: str, value: Any, usual: Mapping[str, Any]) -> bool:
    return name != "seed" and name in usual and value != usual[name]


def _spell(value: Any) -> str:
    if isinstance(value, list):
        return "".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)

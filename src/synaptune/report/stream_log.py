"""Stream logs: what an adapter did without anyone knowing labels, as `synaptune.callbacks.JsonlCallback` writes it.

One JSON object per line. `attach` begins a stream, `batch` is a batch, `reset` and `detach` say so. Lines that are torn
(a kill in the middle of one) are left out and counted.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from synaptune.report.wording import spell_option

__all__ = ["Batch", "Stream", "is_stream_line", "parse_streams"]

_KINDS = frozenset({"attach", "batch", "reset", "detach"})


@dataclass(frozen=True)
class Batch:
    """One batch of a stream; what the log does not say is None."""

    images: int
    entropy: float | None = None
    drift: float | None = None
    weight_distance: float | None = None
    seconds: float | None = None
    forwards: int | None = None
    backwards: int | None = None
    events: tuple[str, ...] = ()
    predicted: Mapping[int, int] = field(default_factory=dict)


@dataclass
class Stream:
    """Everything from one `attach` to the next.

    Attributes:
        head: the `attach` line.
        batches: in the order of the log.
        resets: numbers of batches before which the model went back to its source.
        classes: how many there are, 0 when the log does not say.
        torn: lines that could not be read.
    """

    head: Mapping[str, Any]
    batches: list[Batch] = field(default_factory=list)
    resets: list[int] = field(default_factory=list)
    classes: int = 0
    torn: int = 0

    @property
    def method(self) -> str:
        """Name of the method."""
        return str(self.head.get("method") or "unknown method")

    @property
    def title(self) -> str:
        """Method and model, in a few words."""
        return f"{self.method} on {self.head.get('model') or 'an unnamed model'}"

    @property
    def images(self) -> int:
        """Images that were seen."""
        return sum(batch.images for batch in self.batches)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, where the log has them."""
        names = self.head.get("class_names")
        return tuple(map(str, names)) if isinstance(names, list) else ()

    @property
    def events(self) -> list[tuple[int, str]]:
        """Unusual events with the number of their batch, from 1."""
        return [(number, event) for number, batch in enumerate(self.batches, start=1) for event in batch.events]

    def predicted(self, start: int = 0, stop: int | None = None) -> Counter[int]:
        """How often each class was predicted in a stretch of batches."""
        total: Counter[int] = Counter()
        for batch in self.batches[start:stop]:
            total.update(batch.predicted)
        return total

    def stamp(self) -> list[tuple[str, str]]:
        """Name and value of everything that the head says, options and versions taken apart."""
        said: list[tuple[str, str]] = []
        for key, value in self.head.items():
            if key in ("kind", "format", "class_names") or value is None:
                continue
            if isinstance(value, Mapping):
                said += [(f"{key.removesuffix('s')}: {name}", spell_option(entry)) for name, entry in value.items()]
            else:
                said.append((key, spell_option(value)))
        return said


def is_stream_line(values: Mapping[str, Any]) -> bool:
    """Whether a line belongs to a stream log, and not to a run."""
    return values.get("kind") in _KINDS


def parse_streams(lines: Iterable[str]) -> list[Stream]:
    """Read a log; a log without a head (its beginning was cut off) is one stream of an unknown method.

    >>> log = ['{"kind": "attach", "method": "tent"}', '{"kind": "batch", "images": 8, "entropy": 0.5}']
    >>> parse_streams(log)[0].images
    8
    """
    streams: list[Stream] = []
    for line in lines:
        values = _object(line)
        if values is not None and values.get("kind") == "attach":
            streams.append(Stream(values))
            continue
        if not streams:
            streams.append(Stream({}))
        _take(streams[-1], values)
    return streams


def _take(stream: Stream, values: Mapping[str, Any] | None) -> None:
    kind = None if values is None else values.get("kind")
    batch = None if values is None or kind != "batch" else _batch(values)
    if batch is not None and values is not None:
        stream.batches.append(batch)
        stream.classes = max(stream.classes, _whole(values.get("classes")) or 0)
    elif kind == "reset":
        stream.resets.append(len(stream.batches))
    elif kind != "detach":
        stream.torn += 1


def _object(line: str) -> dict[str, Any] | None:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _batch(values: Mapping[str, Any]) -> Batch | None:
    images = _whole(values.get("images"))
    events = values.get("events")
    if images is None:
        return None
    return Batch(
        images=images,
        entropy=_number(values.get("entropy")),
        drift=_number(values.get("drift")),
        weight_distance=_number(values.get("weight_distance")),
        seconds=_number(values.get("seconds")),
        forwards=_whole(values.get("forwards")),
        backwards=_whole(values.get("backwards")),
        events=tuple(map(str, events)) if isinstance(events, list) else (),
        predicted=_counts(values.get("predicted")),
    )


def _counts(value: Any) -> dict[int, int]:
    if not isinstance(value, Mapping):
        return {}
    pairs = [(_whole_text(name), _whole(amount)) for name, amount in value.items()]
    return {number: amount for number, amount in pairs if number is not None and amount is not None}


def _whole_text(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _number(value: Any) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if usable else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None or number < 0 else int(number)

"""Result rows as the report sees them: read from JSON lines, checked, and nothing assumed that is not there.

The report reads files and knows no method, so it has its own reader: rows of other tools, of older and of later
versions are welcome as long as the keys that it needs have the right types.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from synaptune.errors import DataError

__all__ = [
    "CLEAN",
    "ERROR_KINDS",
    "MEASUREMENTS",
    "MIXED",
    "SWITCHES",
    "ErrorKind",
    "ResultRow",
    "RowLike",
    "parse_row",
]

CLEAN = "clean"
"""The corruption of images that are taken as they are."""

MIXED = "mixed"
"""All corruptions in one stream."""

ErrorKind = Literal["error_online", "error_after", "error_full", "error_oracle"]
ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)

RowLike = Mapping[str, Any] | Any
"""A mapping, or a dataclass object such as `synaptune.bench` makes."""

SWITCHES = (
    "model",
    "weights",
    "fingerprint",
    "data",
    "severity",
    "images",
    "batch",
    "order",
    "delta",
    "reset",
    "horizon",
    "oracle_every",
    "full_batch",
    "corruption_seed",
    "threads",
    "channels_last",
    "device",
    "versions",
)
"""Keys that decide a number, or the time it took. Rows that differ in one are never put into one table.

The images themselves (`recipe_digest`) count too; they differ by corruption, so they tell columns apart.
"""

MEASUREMENTS = frozenset(
    {"run", "method", "options", "corruption", "seed", "cell", "seeded", "earlier", "status", "error"}  # identity
    | {"weights_asked", "images_asked"}  # the same, as it was spelled
    | {"predict", "after", "full"}  # what is measured; each error has a key of its own
    | {*ERROR_KINDS, "ece", "ms_per_batch_p50", "ms_per_batch_p95", "forwards", "backwards", "peak_mb", "seconds"}
    | {"error_per_batch", "error_per_stage", "weight_distance", "events", "recipe", "recipe_digest", "frost"}
    | {"entropy_per_batch", "drift_per_batch", "weight_distance_per_batch"}
    | {"predicted_per_class", "labels_per_class", "class_names", "files"}
)
"""All other keys: what the row is of, and what came out."""


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """One measured (or failed) cell.

    Attributes:
        run: name of the run.
        method: name of the method.
        options: its options.
        corruption: corruption, or "clean".
        seed: of order and draws.
        status: "ok", or why there is no number.
        problem: what was wrong, for rows without a number.
        cell: key of the cell, "" where the file has none.
        predict: when the method's own prediction is taken.
        switches: the protocol, one value (as it stands in the file) for each of `SWITCHES`.
        errors: those of the four errors that were measured, in percent.
        ece: calibration error in percent.
        ms_p50: median milliseconds per batch.
        ms_p95: what one batch in twenty exceeds.
        forwards: images that went through the network.
        backwards: images that a gradient was computed over.
        peak_mb: peak memory.
        weight_distance: of the adapted tensors, at the end.
        error_per_batch: error of each batch.
        error_per_stage: pairs of batches adapted on and whole-set error.
        entropy_per_batch: mean entropy of each batch, in nats.
        drift_per_batch: shift of the first features, in source standard deviations.
        distance_per_batch: weight distance after each batch.
        predicted: how often each class was predicted.
        labels: how often each class is the right one.
        class_names: names of the classes.
        events: what was unusual.
        recipe_digest: identity of the images.
    """

    run: str = ""
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    corruption: str = CLEAN
    seed: int = 0
    status: str = "ok"
    problem: str = ""
    cell: str = ""
    predict: str = ""
    switches: Mapping[str, Any]
    errors: Mapping[ErrorKind, float] = field(default_factory=dict)
    ece: float | None = None
    ms_p50: float | None = None
    ms_p95: float | None = None
    forwards: int | None = None
    backwards: int | None = None
    peak_mb: float | None = None
    weight_distance: float | None = None
    error_per_batch: tuple[float, ...] = ()
    error_per_stage: tuple[tuple[float, float], ...] = ()
    entropy_per_batch: tuple[float, ...] = ()
    drift_per_batch: tuple[float, ...] = ()
    distance_per_batch: tuple[float, ...] = ()
    predicted: tuple[int, ...] = ()
    labels: tuple[int, ...] = ()
    class_names: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    recipe_digest: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether the row holds an error."""
        return self.status == "ok" and bool(self.errors)

    @property
    def images(self) -> int | None:
        """Images in the evaluated set."""
        return cast("int | None", self.switches["images"])

    @property
    def batch(self) -> int | None:
        """Images per batch."""
        return cast("int | None", self.switches["batch"])


def parse_row(row: RowLike, *, where: str = "the row") -> ResultRow:
    """Check one row.

    Args:
        row: a mapping, or a dataclass object.
        where: how messages call it.

    Raises:
        DataError: a key that the report needs is missing or has an impossible value; all are named at once.

    >>> parse_row({"method": "norm", "model": "net", "error_online": 21.5}).errors
    {'error_online': 21.5}
    """
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        row = dataclasses.asdict(row)
    if not isinstance(row, Mapping):
        raise DataError(f"{where} is {type(row).__name__}; a result row is a mapping of keys to values")
    reader = _Reader(row)
    parsed = _read(reader)
    if reader.problems:
        raise DataError(f"{where} is no result row: {'; '.join(reader.problems)}")
    return parsed


def _read(reader: _Reader) -> ResultRow:
    errors = {kind: reader.number(kind, most=100.0) for kind in ERROR_KINDS}
    return ResultRow(
        run=reader.text("run"),
        method=reader.text("method", required=True),
        options=reader.mapping("options"),
        corruption=reader.text("corruption") or CLEAN,
        seed=reader.whole("seed") or 0,
        status=reader.text("status") or "ok",
        problem=reader.text("error"),
        cell=reader.text("cell"),
        predict=reader.text("predict"),
        switches=_switches(reader),
        errors={kind: error for kind, error in errors.items() if error is not None},
        ece=reader.number("ece", most=100.0),
        ms_p50=reader.number("ms_per_batch_p50"),
        ms_p95=reader.number("ms_per_batch_p95"),
        forwards=reader.whole("forwards"),
        backwards=reader.whole("backwards"),
        peak_mb=reader.number("peak_mb"),
        weight_distance=reader.number("weight_distance"),
        error_per_batch=reader.numbers("error_per_batch"),
        error_per_stage=reader.pairs("error_per_stage"),
        entropy_per_batch=reader.numbers("entropy_per_batch"),
        drift_per_batch=reader.numbers("drift_per_batch"),
        distance_per_batch=reader.numbers("weight_distance_per_batch"),
        predicted=tuple(int(count) for count in reader.numbers("predicted_per_class")),
        labels=tuple(int(count) for count in reader.numbers("labels_per_class")),
        class_names=reader.texts("class_names"),
        events=reader.texts("events"),
        recipe_digest=reader.text("recipe_digest"),
    )


def _switches(reader: _Reader) -> dict[str, Any]:
    switches = {name: reader.row.get(name) for name in SWITCHES}
    switches["model"] = reader.text("model", required=True)
    for name in ("severity", "images", "batch"):
        switches[name] = reader.whole(name)
    # Only a correlated order has it; rows from before it existed must not differ from those after.
    switches["delta"] = reader.number("delta") if switches["order"] == "correlated" else None
    # Images as they are have no severity, whatever a file says.
    if (reader.row.get("corruption") or CLEAN) == CLEAN:
        switches["severity"] = 0
    return switches


class _Reader:
    """Takes values out of a row and notes what is wrong with them."""

    def __init__(self, row: Mapping[str, Any]):
        self.row = row
        self.problems: list[str] = []

    def text(self, key: str, *, required: bool = False) -> str:
        value = self.row.get(key)
        if value is None or value == "":
            if required:
                self.problems.append(f"{key} is missing")
            return ""
        return str(value)

    def mapping(self, key: str) -> Mapping[str, Any]:
        value = self.row.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.problems.append(f"{key} must be an object, not {value!r}")
            return {}
        return value

    def number(self, key: str, *, most: float = math.inf) -> float | None:
        value = self.row.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.problems.append(f"{key} must be a number or null, not {value!r}")
            return None
        if not math.isfinite(value):
            return None
        if not 0 <= value <= most:
            bounds = "at least 0" if most == math.inf else f"between 0 and {most:g}"
            self.problems.append(f"{key} must be {bounds}, not {value:g}")
            return None
        return float(value)

    def whole(self, key: str) -> int | None:
        value = self.number(key)
        return None if value is None else int(value)

    def numbers(self, key: str) -> tuple[float, ...]:
        values = self._sequence(key)
        # A batch without a number (NaN is written as null) must not shift those behind it.
        if any(isinstance(value, bool) or not isinstance(value, int | float | None) for value in values):
            self.problems.append(f"{key} must hold numbers only")
            return ()
        return tuple(math.nan if value is None else float(value) for value in values)

    def pairs(self, key: str) -> tuple[tuple[float, float], ...]:
        values = self._sequence(key)
        if not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in values):
            self.problems.append(f"{key} must hold pairs")
            return ()
        return tuple((float(x), float(y)) for x, y in values if x is not None and y is not None)

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(str(value) for value in self._sequence(key))

    def _sequence(self, key: str) -> Sequence[Any]:
        value = self.row.get(key)
        if value is None:
            return ()
        if isinstance(value, str) or not isinstance(value, Sequence):
            self.problems.append(f"{key} must be a list, not {type(value).__name__}")
            return ()
        return value

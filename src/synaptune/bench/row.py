"""A row: what one cell gave, as one line of JSON.

The first keys are those that other tools read. All keys are always there, and null means not measured. Errors and
calibration errors are in percent, times in milliseconds.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from synaptune.bench.cell import Cell, method_label
from synaptune.bench.protocol import Protocol
from synaptune.errors import DataError, SynaptuneError

__all__ = ["BEFORE_THE_STREAM", "ERRORS", "ErrorKey", "Row", "Status"]

Status = Literal["ok", "failed", "missing", "inapplicable"]
ErrorKey = Literal["error_online", "error_after", "error_full", "error_oracle"]
ERRORS: tuple[ErrorKey, ...] = get_args(ErrorKey)

BEFORE_THE_STREAM = "0: "
"""How an event begins that is of the data as a whole; those of batches begin with the batch's number, from 1."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a run.

    Attributes:
        run: name of the run.
        model: model specification.
        weights: where the weights came from.
        method: registered name.
        options: all options of the method.
        data: data set.
        corruption: corruption, "clean", or "mixed".
        severity: 1 to 5, 0 for clean.
        seed: of order and draws.
        images: images in the evaluated set.
        batch: images per batch.
        order: order of the images.
        reset: when the model goes back to its source.
        error_online: top-1 error of predictions from before the update on a batch.
        error_after: of predictions from after it.
        error_full: of the whole set, state frozen after the last batch.
        error_oracle: lowest whole-set error over stages, chosen by labels.
        ece: expected calibration error of the online predictions (15 bins).
        ms_per_batch_p50: median time of a batch.
        ms_per_batch_p95: what one batch in twenty exceeds.
        forwards: images that went through the network because of the method.
        backwards: images that a gradient was computed over.
        peak_mb: peak memory, see `synaptune.metrics.PeakMemory`.
        versions: of the libraries.
        status: "ok"; "failed"; "missing" when model or data are not on this machine; "inapplicable" when the method
            does not fit the model.
        error: what was wrong, and how to mend it.
        cell: key of the cell.
        predict: when the method's own prediction is taken.
        delta: of a correlated order.
        after: whether predictions after the update were asked for.
        full: whether the whole set was asked for.
        oracle_every: batches between whole-set evaluations; 0: none.
        horizon: batches after which adaptation stopped; null: one pass.
        full_batch: images per batch of whole-set evaluations.
        corruption_seed: seed of corruptions made here.
        threads: threads of torch.
        channels_last: whether channels were last in memory.
        device: torch device.
        seeded: whether the seed changes anything.
        earlier: pairs of corruption and severity that the same adapter had adapted on before; null where the model
            goes back to its source.
        error_per_batch: online error of each batch (after the update where there is no other).
        entropy_per_batch: mean softmax entropy of each batch, in nats.
        drift_per_batch: shift of the first features from the source, in its standard deviations; null where the model
            has no batch normalisation with stored statistics.
        weight_distance_per_batch: `weight_distance` after each batch.
        predicted_per_class: how often each class was predicted, by the predictions of `error_per_batch`.
        labels_per_class: how often each class is the right one.
        class_names: names of these classes, where the model's card has them and they are at most 100.
        error_per_stage: pairs of batches adapted on and whole-set error, from 0 batches on.
        weight_distance: relative distance of the adapted tensors from the source, at the end.
        events: what was unusual, guards' verdicts included: "batch: sentence".
        files: digests of the user's own files (FILE.py:NAME) by name, null if there are none.
        fingerprint: of the source model's tensors.
        recipe: how the images came about, as plain values.
        recipe_digest: sha256 of the recipe.
        frost: textures that frost was made of, where frost was made here.
        seconds: wall time of the cell, everything included.
        weights_asked: the weights file that was named, "" for the model's own.
        images_asked: how many images were asked for, null for all.
    """

    run: str
    model: str
    weights: str
    method: str
    options: Mapping[str, Any]
    data: str
    corruption: str
    severity: int
    seed: int
    images: int | None
    batch: int
    order: str
    reset: str
    error_online: float | None = None
    error_after: float | None = None
    error_full: float | None = None
    error_oracle: float | None = None
    ece: float | None = None
    ms_per_batch_p50: float | None = None
    ms_per_batch_p95: float | None = None
    forwards: int | None = None
    backwards: int | None = None
    peak_mb: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    status: Status = "ok"
    error: str | None = None
    cell: str
    predict: str = "before"
    delta: float = 0.1
    after: bool = True
    full: bool = True
    oracle_every: int = 0
    horizon: int | None = None
    full_batch: int | None = None
    corruption_seed: int = 0
    threads: int = 1
    channels_last: bool = False
    device: str = "cpu"
    seeded: bool = False
    earlier: list[list[Any]] | None = None
    error_per_batch: list[float] | None = None
    entropy_per_batch: list[float] | None = None
    drift_per_batch: list[float | None] | None = None
    weight_distance_per_batch: list[float] | None = None
    predicted_per_class: list[int] | None = None
    labels_per_class: list[int] | None = None
    class_names: list[str] | None = None
    error_per_stage: list[list[float]] | None = None
    weight_distance: float | None = None
    events: list[str] = field(default_factory=list)
    files: Mapping[str, str] | None = None
    fingerprint: str | None = None
    recipe: Mapping[str, Any] | None = None
    recipe_digest: str | None = None
    frost: str | None = None
    seconds: float | None = None
    weights_asked: str = ""
    images_asked: int | None = None

    @classmethod
    def of(cls, cell: Cell, *, run: str, **measured: Any) -> Row:
        """Make the row of a cell: its stamp, and what was measured."""
        switches = {key: value for key, value in cell.protocol.as_dict().items() if key != "images"}
        stamp: dict[str, Any] = {
            "run": run,
            "model": cell.model,
            "weights": cell.weights,
            "method": cell.method,
            "options": cell.options.as_dict(),
            "data": cell.data,
            "corruption": cell.corruption,
            "severity": cell.severity,
            "seed": cell.seed,
            "images": cell.protocol.images,
            "cell": cell.key,
            "predict": cell.options.predict,
            "seeded": cell.is_seeded,
            "earlier": [list(shift) for shift in cell.earlier] if cell.protocol.reset == "never" else None,
            "weights_asked": cell.weights,
            "images_asked": cell.protocol.images,
        }
        return cls(**(stamp | switches | measured))

    @property
    def label(self) -> str:
        """The method with the options that differ from its defaults."""
        return method_label(self.method, self.options)

    def error_of(self, key: ErrorKey) -> float | None:
        """One of the four errors, in percent."""
        value: float | None = getattr(self, key)
        return value

    @property
    def first_error(self) -> float | None:
        """The first of the four errors that was measured: what stands for the row in one number."""
        return next((error for error in map(self.error_of, ERRORS) if error is not None), None)

    def to_json(self) -> str:
        """One line of JSON; a value that is not finite becomes null."""
        return json.dumps(_plain(dataclasses.asdict(self)), allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Row:
        """Read what `to_json` wrote; keys of later versions are left out.

        A row outlives options and switches that are new since it was written: it stands for the cell that has these
        at their defaults, and whose others are as the row says.
        """
        try:
            values = json.loads(text)
            known = {item.name for item in dataclasses.fields(cls)}
            row = cls(**{key: value for key, value in values.items() if key in known})
            return dataclasses.replace(row, cell=row._key())
        except (TypeError, AttributeError, ValueError) as error:
            raise DataError(f"not a row of a run: {error}") from error

    def _key(self) -> str:
        """Key of the row's cell under today's options, or the recorded one where today knows no such cell."""
        if self.reset == "never" and self.earlier is None:
            return f"{self.cell}?"  # what it was adapted on is unknown, so it stands for no cell
        switches = {
            item.name: getattr(self, item.name) for item in dataclasses.fields(Protocol) if item.name != "images"
        }
        try:
            return Cell.of(
                model=self.model,
                weights=self.weights_asked,
                method=self.method,
                options=dict(self.options),
                data=self.data,
                corruption=self.corruption,
                severity=self.severity,
                seed=self.seed,
                protocol=Protocol(**switches, images=self.images_asked),
                earlier=tuple((str(name), int(severity)) for name, severity in self.earlier or ()),
            ).key
        except SynaptuneError:  # of a plug-in that is not installed here, or of an option that is no more
            return self.cell


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

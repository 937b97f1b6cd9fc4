"""Callbacks: where the numbers of a running adapter go.

One small interface (`Callback`) and two implementations: a log that `synaptune report` reads, and TensorBoard. Anything
else is a class of a few lines:

    class ToMlflow(Callback):
        def on_batch(self, record, logits):
            mlflow.log_metrics({"entropy": record.entropy, "weight_distance": record.weight_distance})

    adapter = synaptune.adapt(model, "nhl", callbacks=[ToMlflow(), JsonlCallback("stream.jsonl")])

The log holds one JSON object per line; `kind` says which: `attach` (what adapts which model), `batch` (one
`BatchRecord`, and how often each class was predicted), `reset`, `detach`. Lines are appended whole, so a kill costs one
line at most, and a second stream goes on in the same file under its own `attach`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from synaptune._version import __version__
from synaptune.core.callback import Callback, Callbacks, CallbackWarning
from synaptune.core.history import BatchRecord
from synaptune.errors import DataError, OptionError

if TYPE_CHECKING:
    from synaptune.core.adapter import Adapter

__all__ = ["Callback", "CallbackWarning", "Callbacks", "JsonlCallback", "TensorBoardCallback", "predicted_counts"]

LOG_FORMAT = 1


def predicted_counts(logits: Tensor) -> dict[int, int]:
    """Count how often each class is predicted; rows that hold NaN predict nothing.

    Args:
        logits: (images, classes).

    >>> predicted_counts(torch.tensor([[0.0, 2.0], [1.0, 5.0], [float("nan"), 0.0]]))
    {1: 2}
    """
    usable = ~torch.isnan(logits).any(dim=1)
    classes, counts = logits[usable].argmax(dim=1).unique(return_counts=True)
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


class JsonlCallback(Callback):
    r"""Write a stream log, one JSON object per line; `synaptune report FILE` shows it.

    Args:
        path: file to append to; its folder is made when it is not there.
        class_names: names of the classes, in the order of the logits.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = JsonlCallback(Path(folder) / "stream.jsonl")
    ...     log.on_reset()
    ...     log.path.read_text()
    '{"kind": "reset"}\n'
    """

    def __init__(self, path: str | Path, *, class_names: Sequence[str] | None = None):
        self.path = Path(path)
        self.class_names = None if class_names is None else [str(name) for name in class_names]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._append("")
        except OSError as error:
            raise DataError(f"the log {self.path} cannot be written: {error.strerror}; choose another file") from error

    def on_attach(self, adapter: Adapter) -> None:
        self._close_torn_line()
        self._write(
            kind="attach",
            format=LOG_FORMAT,
            time=_now(),
            model=type(adapter.model).__name__,
            fingerprint=adapter.fingerprint,
            method=adapter.info.name,
            options=adapter.options.as_dict(),
            class_names=self.class_names,
            versions={"synaptune": __version__, "torch": torch.__version__, "python": platform.python_version()},
        )

    def on_batch(self, record: BatchRecord, logits: Tensor) -> None:
        predicted = predicted_counts(logits)
        self._write(
            kind="batch", time=_now(), **dataclasses.asdict(record), classes=logits.shape[1], predicted=predicted
        )

    def on_reset(self) -> None:
        self._write(kind="reset")

    def on_detach(self) -> None:
        self._write(kind="detach", time=_now())

    def _write(self, **values: Any) -> None:
        finite = {name: None if _is_lost(value) else value for name, value in values.items()}
        self._append(json.dumps(finite, allow_nan=False, ensure_ascii=False) + "\n")

    def _append(self, text: str) -> None:
        # Opened for each line: nothing to close when a program ends early, and a log may be moved away meanwhile.
        with self.path.open("ab", buffering=0) as file:
            file.write(text.encode())

    def _close_torn_line(self) -> None:
        with self.path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return
            file.seek(-1, os.SEEK_END)
            torn = file.read() != b"\n"
        if torn:
            self._append("\n")


class ScalarWriter(Protocol):
    """What is used of a `torch.utils.tensorboard.SummaryWriter`."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...

    def add_text(self, tag: str, text_string: str, global_step: int) -> None: ...

    def flush(self) -> None: ...


class TensorBoardCallback(Callback):
    """Send entropy, drift, weight distance, time and class balance to TensorBoard.

    The step counts batches since the callback was made, across resets; a reset and unusual events appear as text.

    Args:
        folder: where event files go; unused when `writer` is given.
        writer: a `SummaryWriter` of yours, which you close.
        tag: what every name begins with.
        every: send every so many batches; events are sent always.
    """

    def __init__(
        self,
        folder: str | Path = "runs/synaptune",
        *,
        writer: ScalarWriter | None = None,
        tag: str = "synaptune",
        every: int = 1,
    ):
        if every < 1:
            raise OptionError(f"every must be at least 1, not {every}")
        self.writer: ScalarWriter = _summary_writer(folder) if writer is None else writer
        self.tag = tag
        self.every = every
        self.batches = 0
        self.images = 0

    def on_attach(self, adapter: Adapter) -> None:
        options = ", ".join(f"{name}={value}" for name, value in adapter.options.as_dict().items())
        self._say("stream", f"{adapter.info.name} on {type(adapter.model).__name__}: {options}")

    def on_batch(self, record: BatchRecord, logits: Tensor) -> None:
        self.batches += 1
        self.images += record.images
        for event in record.events:
            self._say("events", event)
        if self.batches % self.every == 0:
            for name, value in _scalars(record, logits).items():
                if not _is_lost(value):
                    self.writer.add_scalar(f"{self.tag}/{name}", value, self.batches)
            self.writer.add_scalar(f"{self.tag}/images", self.images, self.batches)

    def on_reset(self) -> None:
        self._say("events", "reset to the source model")

    def on_detach(self) -> None:
        self.writer.flush()

    def _say(self, name: str, text: str) -> None:
        self.writer.add_text(f"{self.tag}/{name}", text, self.batches)


def _scalars(record: BatchRecord, logits: Tensor) -> dict[str, float]:
    counts = predicted_counts(logits)
    values = {
        "entropy": record.entropy,
        "weight_distance": record.weight_distance,
        "ms_per_batch": 1000 * record.seconds,
    }
    if record.drift is not None:
        values["drift"] = record.drift
    if counts:
        values["largest_class_share"] = max(counts.values()) / sum(counts.values())
    return values


def _summary_writer(folder: str | Path) -> ScalarWriter:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise OptionError(
            "TensorBoardCallback needs the package tensorboard, which is not installed: pip install tensorboard"
        ) from error
    writer: ScalarWriter = SummaryWriter(str(folder))
    return writer


def _is_lost(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

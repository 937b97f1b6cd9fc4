"""The loop around `Trainer`: when to measure, to report, to save and to stop. None of it changes the result."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from synaptune.models.evaluation import error_on, rotation_error_on
from synaptune.models.image_set import ImageSet
from synaptune.models.rotation import RotationModel
from synaptune.models.training import Trainer
from synaptune.models.training_recipe import TrainingRecipe, learning_rate

__all__ = ["Progress", "TrainingResult", "train"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """Where a run stands, handed to `on_progress`; with a test error where one was just measured."""

    step: int
    total_steps: int
    epoch: float
    lr: float
    loss: float | None
    rotation_loss: float | None
    images_per_second: float
    test_error: float | None


@dataclass(frozen=True)
class TrainingResult:
    """A finished run: the trained model (in eval mode) and what was measured."""

    model: nn.Module
    steps: int
    images_per_second: float
    devices: tuple[str, ...]
    test_error: float | None
    rotation_test_error: float | None
    history: tuple[dict[str, float | None], ...]


def train(
    model: nn.Module,
    data: ImageSet,
    *,
    recipe: TrainingRecipe,
    size: tuple[int, int] | None = None,
    test: ImageSet | None = None,
    directory: Path | None = None,
    network: str = "",
    checkpoint_every: int = 200,
    checkpoint_seconds: float = 60.0,
    evaluate_every: int | None = None,
    report_seconds: float = 2.0,
    stop_after: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> TrainingResult | None:
    """Train `model` in place; with a directory, go on from its checkpoint if there is one.

    Args:
        model: as for `Trainer`.
        data: the training set.
        recipe: how to train.
        size: as for `Trainer`.
        test: images whose error is measured during and after training; they decide nothing.
        directory: where the checkpoint lives; without one the run cannot be resumed.
        network: name in the checkpoint, from which only a run of the same name goes on.
        checkpoint_every: most steps between two checkpoints.
        checkpoint_seconds: most seconds between two checkpoints, but for the length of a step.
        evaluate_every: steps between two measurements of the test error; one epoch by default.
        report_seconds: least seconds between two reports without a measurement.
        stop_after: stop at this step with a checkpoint, and return None.
        should_stop: asked before each step; True is as if `stop_after` were the step.
        on_progress: called with each measurement, in between every few seconds, and when the run stops.
    """
    trainer = Trainer(model, data, recipe=recipe, size=size)
    state = trainer.state
    save = _resumed(trainer, directory, network)
    interval = evaluate_every or trainer.steps_per_epoch
    last_step = min(trainer.total_steps, stop_after or trainer.total_steps)
    saving, reporting = _Interval(checkpoint_seconds), _Interval(report_seconds)
    losses: dict[str, float] = {}
    report = on_progress or (lambda _now: None)
    while state.step < last_step and not (should_stop is not None and should_stop()):
        losses = _timed_step(trainer)
        if state.step % interval == 0 or state.step == trainer.total_steps:
            measured = _progress(trainer, losses, _error_now(trainer, test))
            state.history.append(asdict(measured))
            reporting.begin()
            report(measured)
        elif reporting.is_over():
            reporting.begin()
            report(_progress(trainer, losses, None))
        if state.step % checkpoint_every == 0 or saving.is_over():
            save()
            saving.begin()
    save()
    if state.step < trainer.total_steps:
        report(_progress(trainer, losses, None))
        return None
    return _result(trainer, test)


class _Interval:
    """Whether so many seconds have gone by since it was begun."""

    def __init__(self, seconds: float):
        self._seconds = seconds
        self.begin()

    def begin(self) -> None:
        self._since = time.monotonic()

    def is_over(self) -> bool:
        return time.monotonic() - self._since >= self._seconds


def _resumed(trainer: Trainer, directory: Path | None, network: str) -> Callable[[], None]:
    """Go on from the directory's checkpoint; returns what writes the next one, unless nothing has happened since."""
    if directory is None:
        return lambda: None
    directory.mkdir(parents=True, exist_ok=True)
    file, digest, state = directory / "checkpoint.safetensors", trainer.data.digest(), trainer.state
    saved: int | None = None
    if file.exists():
        state.load(file, data_digest=digest, network=network)
        saved = state.step
        log.info("going on from step %d of %d", state.step, trainer.total_steps)

    def save() -> None:
        nonlocal saved
        if saved != state.step:
            state.save(file, data_digest=digest, network=network)
            saved = state.step

    return save


def _timed_step(trainer: Trainer) -> dict[str, float]:
    started = time.perf_counter()
    # On a GPU: kernels that sum in a fixed order.
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=True):
        losses = trainer.step()
    trainer.state.seconds += time.perf_counter() - started
    return losses


def _error_now(trainer: Trainer, test: ImageSet | None) -> float | None:
    if test is None:
        return None
    with trainer.state.average_in_place():
        return error_on(trainer.model, test)


def _progress(trainer: Trainer, losses: dict[str, float], error: float | None) -> Progress:
    state, step = trainer.state, trainer.state.step
    return Progress(
        step=step,
        total_steps=trainer.total_steps,
        epoch=step / trainer.steps_per_epoch,
        lr=learning_rate(max(0, step - 1), trainer.total_steps, recipe=trainer.recipe),
        loss=losses.get("class"),
        rotation_loss=losses.get("rotation"),
        images_per_second=step * trainer.batch_size / max(state.seconds, 1e-9),
        test_error=error,
    )


def _result(trainer: Trainer, test: ImageSet | None) -> TrainingResult:
    model, state = trainer.finish(), trainer.state
    error = rotation = None
    if test is not None:
        error = error_on(model, test)
        if isinstance(model, RotationModel):
            rotation = rotation_error_on(model, test)
    speed = state.step * trainer.batch_size / max(state.seconds, 1e-9)
    log.info("trained: %s", json.dumps({"test_error": error, "images_per_second": speed}))
    return TrainingResult(
        model=model,
        steps=state.step,
        images_per_second=speed,
        devices=tuple(state.devices),
        test_error=error,
        rotation_test_error=rotation,
        history=tuple(state.history),
    )

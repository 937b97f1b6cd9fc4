"""The adapter: the module that users hold. It predicts, lets the method adapt, guards, records, and undoes.

It alone changes the model. Attaching records exactly what a method may change; a step is a transaction; leaving
gives the model back bit for bit, whatever happened in between. The file is long because this is one promise; what it is
kept with (snapshot, admission, state file, freeze) stands in files of its own.
"""

from __future__ import annotations

import copy
import dataclasses
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from synaptune.core import freeze as freezing
from synaptune.core import state_file
from synaptune.core.admission import LogitsCheck, mismatch, refuse_batch, refuse_model, refuse_settings
from synaptune.core.callback import Callback, Callbacks
from synaptune.core.fingerprint import fingerprint, persistent_tensors
from synaptune.core.guard import KEEP, Action, Guard, Verdict
from synaptune.core.history import BatchRecord
from synaptune.core.hooks import FreshInput, PassCounter, attach, claim, release, remove_hooks
from synaptune.core.method import AdaptOptions, Method, MethodInfo
from synaptune.core.normalisation import DriftMeter, uses_the_batch
from synaptune.core.precise import fresh_casts
from synaptune.core.snapshot import Backup, Snapshot, named_tensors
from synaptune.core.structure import Anatomy, Layout, find_anatomy
from synaptune.core.turn import Turn
from synaptune.errors import IncompatibleModelError, InputError, SynaptuneError
from synaptune.functional.entropy import softmax_entropy

__all__ = ["Adapter", "SmallBatchWarning"]


class SmallBatchWarning(UserWarning):
    """A batch too small for its own statistics to say much."""


class Adapter(nn.Module):
    """A classifier that adapts while it predicts. Made by `synaptune.adapt`.

    One adapter serves one stream and one caller at a time: a second caller is refused while a batch is under way.
    Adapters on different models share nothing and may run in different threads.

    Args:
        model: the classifier; adapted in place, and given back by `detach`.
        info: the registered method.
        options: its options.
        layout: names of parts, where the structure finder should not look for itself.
        guards: judges of every step.
        callbacks: observers, told what was done after it is done.
        on_bad_input: what to do about images with NaN or infinity: `"raise"` refuses the batch before anything
            has changed; `"skip"` adapts on the others and returns NaN logits for these.
        history_limit: how many batches `history` keeps.
    """

    def __init__(
        self,
        model: nn.Module,
        info: MethodInfo,
        options: AdaptOptions,
        *,
        layout: Layout | None = None,
        guards: Sequence[Guard] = (),
        callbacks: Sequence[Callback] = (),
        on_bad_input: Literal["raise", "skip"] = "raise",
        history_limit: int = 10_000,
    ):
        super().__init__()
        refuse_model(model)
        refuse_settings(guards, layout, on_bad_input)
        self.model = model
        self.info = info
        self.options = options
        self.anatomy: Anatomy = find_anatomy(model, layout)
        self.guards = tuple(guards)
        self.callbacks = Callbacks(callbacks)
        self.on_bad_input = on_bad_input
        self.history: deque[BatchRecord] = deque(maxlen=history_limit)
        self.steps = 0
        self._attached = False
        self._claimed: list[nn.Module | nn.Parameter] = []
        self._turn = Turn()
        self._warned_small_batch = False
        self._last_images: Tensor | None = None
        self._source_fingerprint: str | None = None
        self.method: Method[AdaptOptions] = info.method(options)
        touches = self.method.touches(model, self.anatomy)
        self._snapshot = Snapshot(model, touches)
        if broken := self._snapshot.non_finite():
            raise IncompatibleModelError(
                f"{type(model).__name__} holds NaN or infinity in {_shorten(broken)}, and nothing can be learnt from "
                "there; load sound weights"
            )
        self._attach()
        self.callbacks.on_attach(self)

    # --- predicting and adapting -------------------------------------------------------------------------------

    def forward(self, images: Tensor) -> Tensor:
        """Predict a batch and adapt on it; works inside callers' `no_grad` and `inference_mode`."""
        with self._turn:
            self._require_attached()
            usable, complaint = self._sift(images)
            logits, record = self._step(images if usable is None else images[usable], complaint)
        self.callbacks.on_batch(record, logits)
        return _spread(logits, usable)

    def predict(self, images: Tensor) -> Tensor:
        """Predict with the current state, adapting nothing."""
        with self._turn:
            self._require_attached()
            usable, _ = self._sift(images)
            return _spread(self._predict(images if usable is None else images[usable]), usable)

    def _sift(self, images: Tensor) -> tuple[Tensor | None, list[str]]:
        """Which images can be used (None: all of them), and what is wrong with the others."""
        refuse_batch(images)
        finite = torch.isfinite(images).flatten(1).all(dim=1)
        if bool(finite.all()):
            return None, []
        bad = (~finite).nonzero().flatten().tolist()
        complaint = f"{len(bad)} of {len(images)} images hold NaN or infinity (positions {_shorten(bad)})"
        if self.on_bad_input == "raise" or len(bad) == len(images):
            raise InputError(
                f"{complaint}; nothing was adapted. Repair or drop them, or pass on_bad_input='skip' to synaptune.adapt"
            )
        return finite, [f"skipped: {complaint}"]

    def _predict(self, images: Tensor) -> Tensor:
        self._arm()
        with torch.no_grad(), fresh_casts(), self._explaining(images):
            return self.method.predict(self.model, images)

    def _step(self, images: Tensor, notes: list[str]) -> tuple[Tensor, BatchRecord]:
        """One transaction: the method's step, the guards' verdict, and what follows from it."""
        start = time.perf_counter()
        forwards, backwards = self._counter.images, self.method.backwards
        with torch.inference_mode(False), torch.enable_grad(), fresh_casts():
            # Tensors made under inference_mode cannot be saved for a backward pass; a clone made here can.
            images = images.clone() if images.is_inference() else images.detach()
            self._arm()
            if self._drift_meter is not None:
                self._drift_meter.measuring = True
            backup = Backup(named_tensors(self.model, self._snapshot.names), self.method.state())
            try:
                with self._explaining(images):
                    step = self.method.step(self.model, images)
                step.logits = logits = step.logits.detach()
                if self.options.predict == "after":
                    logits = self._predict(images) if step.after is None else step.after
                record = BatchRecord(
                    step=self.steps + 1,
                    images=len(images),
                    entropy=_mean_entropy(logits),
                    drift=self._drift_meter.drift if self._drift_meter is not None else None,
                    weight_distance=self._snapshot.distance(self.model),
                    seconds=time.perf_counter() - start,
                    forwards=self._counter.images - forwards + step.extra_forwards,
                    backwards=self.method.backwards - backwards,
                    events=(*notes, *step.events, *self._small_batch_events(images)),
                )
                verdict = max((guard.judge(step, record) for guard in self.guards), key=_strength, default=KEEP)
            except BaseException:
                backup.put_back(self.model, self.method.load_state)
                raise
            self.steps += 1
            if self._freezes_on_images and verdict.action is Action.KEEP:
                self._last_images = images.clone()  # whoever gave it may use its memory for the next batch
            if verdict.action is not Action.KEEP:
                logits, record = self._take_back(images, step.logits, verdict, record, backup)
        self.history.append(record)
        return logits, record

    def _take_back(
        self, images: Tensor, logits: Tensor, verdict: Verdict, record: BatchRecord, backup: Backup
    ) -> tuple[Tensor, BatchRecord]:
        """Undo a step as a guard asked for; the prediction is then the one from before the update."""
        backup.put_back(self.model, self.method.load_state)
        distance = self._snapshot.distance(self.model)
        if verdict.action is Action.RESET:
            self._reset()
        if not bool(torch.isfinite(softmax_entropy(logits)).all()):
            # What was undone has spoilt even this prediction (Hebbian learning comes before it).
            logits = self._predict(images)
        return logits, dataclasses.replace(
            record,
            entropy=_mean_entropy(logits),
            weight_distance=distance,
            events=(*record.events, f"{verdict.action.name.lower()}: {verdict.reason}"),
        )

    @contextmanager
    def _explaining(self, images: Tensor) -> Iterator[None]:
        """Turn a failure that the batch explains into an error that names the fix; put a note on any other."""
        try:
            yield
        except Exception as error:
            if isinstance(error, SynaptuneError) and not isinstance(error, InputError):
                raise
            name, fix = type(self.model).__name__, mismatch(self.model, self.anatomy, images)
            if fix is not None:
                raise InputError(f"{name} cannot take this batch: {fix}. Nothing was adapted") from error
            error.add_note(
                f"synaptune: {name} failed on a batch of shape {tuple(images.shape)}, {images.dtype}, {images.device}. "
                "The adapted state is as before this batch."
            )
            raise

    # --- undo --------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Go back to the source state: weights, statistics, optimiser, guards, counters. `history` is kept."""
        with self._turn:
            self._require_attached()
            self._reset()

    def _reset(self) -> None:
        self._undo()
        for guard in self.guards:
            guard.reset()
        self.method = self.info.method(self.options)
        # The declaration is the same as before; a method may derive things from making it.
        self.method.touches(self.model, self.anatomy)
        self.steps = 0
        self._last_images = None
        self._attach()
        self.callbacks.on_reset()

    def detach(self) -> nn.Module:
        """Undo everything and return the model that came in; calling it twice is harmless."""
        if self._attached:
            self._undo()
            self.callbacks.on_detach()
        return self.model

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.detach()

    def _attach(self) -> None:
        """Prepare the model for the method; a failure on the way leaves the model as it was."""
        try:
            self._claimed = claim(self.model)
            for module in self.model.modules():
                module.training = False
            for parameter in self.model.parameters():
                parameter.requires_grad_(False)
                parameter.grad = None
            attach(self.model, FreshInput())
            self._counter = PassCounter()
            attach(self.model, self._counter)
            attach(self.model, LogitsCheck())
            self._drift_meter = self._attach_drift_meter()
            with torch.inference_mode(False):
                self.method.prepare(self.model, self.anatomy)
        except BaseException:
            self._undo()
            raise
        self._modes = {
            name: (module.training, vars(module).get("track_running_stats"))
            for name, module in self.model.named_modules()
        }
        self._freezes_on_images = any(uses_the_batch(self.model.get_submodule(n)) for n in self.anatomy.batch_norms)
        self._learning = frozenset(name for name, parameter in self.model.named_parameters() if parameter.requires_grad)
        self._attached = True

    def _attach_drift_meter(self) -> DriftMeter | None:
        for name in self.anatomy.batch_norms[:1]:
            layer = self.model.get_submodule(name)
            if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.running_mean is not None:
                meter = DriftMeter(layer)
                attach(layer, meter)
                return meter
        return None

    def _undo(self) -> None:
        with torch.inference_mode(False):
            remove_hooks(self.model)
            lost = self._snapshot.restore_tensors(self.model)
            self._snapshot.restore_flags(self.model)
        release(self._claimed)
        self._attached = False
        if lost:
            raise SynaptuneError(
                f"{type(self.model).__name__} was rebuilt while an adapter was attached, and no longer holds "
                f"{_shorten(lost)} as before; everything else was put back"
            )

    def _arm(self) -> None:
        """Set modes and `requires_grad` as the method prepared them.

        Callers like to say `.eval()`, `.train()` or `.requires_grad_(False)` in between.
        """
        for name, module in self.model.named_modules():
            if name in self._modes:
                module.training, tracking = self._modes[name]
                if tracking is not None:
                    module.track_running_stats = tracking
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad is not (name in self._learning):
                parameter.requires_grad_(name in self._learning)

    # --- saving, loading, shipping -----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write what changed, the method's state and the model's fingerprint, as safetensors."""
        with self._turn:
            self._require_attached()
            changed = self._snapshot.changed(self.model)
            state_file.write(Path(path), changed=changed, state=self.method.state(), about=self._about())

    def load(self, path: str | Path) -> None:
        """Take over a saved state; refuses the state of another model, method or option set."""
        with self._turn:
            self._require_attached()
            changed, state, steps = state_file.read(Path(path), expected=self._about())
            live = named_tensors(self.model, self._snapshot.names)
            misfits = sorted(n for n, t in changed.items() if n not in live or t.shape != live[n].shape)
            if misfits:
                raise state_file.damaged(path, f"{self.info.name} has no tensors such as its {_shorten(misfits)}")
            with torch.inference_mode(False), torch.no_grad():
                backup = Backup(live, self.method.state())
                try:
                    for name, tensor in live.items():
                        tensor.copy_(changed.get(name, self._snapshot.tensors[name]))
                    self.method.load_state(state)
                except Exception as error:
                    backup.put_back(self.model, self.method.load_state)
                    raise state_file.damaged(path, f"{self.info.name} cannot go on from it ({error!r})") from error
            self.steps = steps

    def _about(self) -> state_file.About:
        usual = type(self.options)().as_dict()
        return state_file.About(self.info.name, self.options.as_dict(), self.fingerprint, self.steps, usual)

    def freeze(self, images: Tensor | None = None) -> nn.Module:
        """Return a plain eval module with the adapted state baked in; the adapter goes on unharmed.

        Where normalisation layers use the statistics of the batch, a plain module needs fixed ones: those of
        `images`, or else of the last batch whose step was not undone. On these images the plain module gives what
        `predict` gives, unless a layer runs several times per batch on statistics of its own each time: a
        `FreezeWarning` says so.

        Args:
            images: a representative batch to take the statistics from.
        """
        with self._turn:
            self._require_attached()
            if images is None:
                images = self._last_images
            elif (usable := self._sift(images)[0]) is not None:
                images = images[usable]
            self._arm()
            return freezing.freeze(self.model, self.anatomy, images)

    @property
    def touched(self) -> frozenset[str]:
        """Names of the parameters and buffers that the method may change; empty if it only predicts."""
        return frozenset(self._snapshot.names)

    @property
    def fingerprint(self) -> str:
        """Identity of the source model: names, shapes, types and values of its tensors."""
        if self._source_fingerprint is None:
            now = persistent_tensors(self.model)
            self._source_fingerprint = fingerprint(
                {name: self._snapshot.tensors.get(name, tensor) for name, tensor in now.items()}
            )
        return self._source_fingerprint

    # --- being a module ----------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Change nothing: the method decides about the model's modes, in training and evaluation alike."""
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        probe = torch.zeros(1, dtype=torch.float32)
        if fn(probe).dtype != probe.dtype:
            raise SynaptuneError("change the model's dtype before synaptune.adapt: undo is exact only in one dtype")
        state = {name: tensor.detach().clone() for name, tensor in self.method.state().items()}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if state:
            self.method.load_state(state)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = self.__new__(type(self))
        memo[id(self)] = twin
        with torch.inference_mode(False):  # under which copies would be tensors that can learn no more
            vars(twin).update({name: copy.deepcopy(value, memo) for name, value in vars(self).items()})
        if twin._attached:
            twin._claimed = claim(twin.model)  # copies of parameters leave marks behind
        return twin

    def extra_repr(self) -> str:
        return f"method={self.info.name}, steps={self.steps}, attached={self._attached}"

    # --- telling -----------------------------------------------------------------------------------------------

    def _require_attached(self) -> None:
        if not self._attached:
            raise SynaptuneError("this adapter was detached; call synaptune.adapt(model, ...) for a new one")

    def _small_batch_events(self, images: Tensor) -> list[str]:
        if len(images) > 1 or not any(self._modes[name][0] for name in self.anatomy.batch_norms):
            return []
        if not self._warned_small_batch:
            self._warned_small_batch = True
            warnings.warn(
                f"{self.info.name} normalises by the statistics of the batch, and this batch is a single image; "
                "collect several images per call, or use running statistics "
                "(norm: statistics='running', nhl: norm_stats='running')",
                SmallBatchWarning,
                stacklevel=6,
            )
        return ["statistics of a single image"]


def _spread(logits: Tensor, usable: Tensor | None) -> Tensor:
    """Put the rows of the usable images where they belong, NaN in the others."""
    if usable is None:
        return logits
    full = logits.new_full((len(usable), *logits.shape[1:]), float("nan"))
    full[usable] = logits
    return full


def _mean_entropy(logits: Tensor) -> float:
    return float(softmax_entropy(logits).mean())


def _strength(verdict: Verdict) -> Action:
    return verdict.action


def _shorten(values: Sequence[Any], most: int = 8) -> str:
    shown = ", ".join(map(str, values[:most]))
    return f"{shown}, ..." if len(values) > most else shown

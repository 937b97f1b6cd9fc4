"""When the adapter calls its observers, and that nothing an observer does reaches the stream."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

import synaptune as st
from synaptune.callbacks import Callback, CallbackWarning
from synaptune.core.guard import Action, Guard, Verdict
from synaptune.core.history import BatchRecord
from synaptune.core.method import Step
from synaptune.errors import OptionError, SynaptuneError
from tests.support.models import batches, build


class Notes(Callback):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_attach(self, adapter: st.Adapter) -> None:
        self.heard.append(f"attach {adapter.info.name}")

    def on_batch(self, record: BatchRecord, logits: Tensor) -> None:
        self.heard.append(f"batch {record.step} of {len(logits)}")

    def on_reset(self) -> None:
        self.heard.append("reset")

    def on_detach(self) -> None:
        self.heard.append("detach")


class Resets(Guard):
    """Asks for a reset at every second step."""

    def __init__(self) -> None:
        self.seen = 0

    def judge(self, step: Step, record: BatchRecord) -> Verdict:
        self.seen += 1
        return Verdict(Action.RESET if self.seen == 2 else Action.KEEP, "second step")

    def reset(self) -> None:
        self.seen = 0


def test_each_thing_is_told_once_and_in_order() -> None:
    notes = Notes()
    first, second = batches(2)
    with st.adapt(build("bn"), "tent", callbacks=[notes]) as adapter:
        adapter(first)
        adapter.predict(first)
        adapter(second)
        adapter.reset()
        adapter(first)
    adapter.detach()
    assert notes.heard == ["attach tent", "batch 1 of 8", "batch 2 of 8", "reset", "batch 1 of 8", "detach"]


def test_a_reset_by_a_guard_is_told_before_its_batch_and_empties_the_guard() -> None:
    notes, guard = Notes(), Resets()
    adapter = st.adapt(build("bn"), "tent", callbacks=[notes], guards=[guard])
    for batch in batches(4):
        adapter(batch)
    # Four batches, two resets: the guard began to count anew after the first.
    assert notes.heard[1:] == [*["batch 1 of 8", "reset", "batch 2 of 8"] * 2]
    assert guard.seen == 0


def test_skipped_images_are_left_out_and_refused_batches_are_not_told() -> None:
    notes = Notes()
    adapter = st.adapt(build("bn"), "tent", callbacks=[notes], on_bad_input="skip")
    batch = batches(1)[0]
    batch[3] = float("nan")
    adapter(batch)
    with pytest.raises(SynaptuneError):
        adapter(batch[:0])
    assert notes.heard == ["attach tent", "batch 1 of 7"]


def test_a_callback_may_use_the_adapter_that_it_observes() -> None:
    class Saves(Callback):
        def on_attach(self, adapter: st.Adapter) -> None:
            self.adapter = adapter

        def on_batch(self, record: BatchRecord, logits: Tensor) -> None:
            if record.step == 2:
                self.adapter.reset()

    adapter = st.adapt(build("bn"), "tent", callbacks=[Saves()])
    for batch in batches(3):
        adapter(batch)
    assert [record.step for record in adapter.history] == [1, 2, 1]


class Spoils(Callback):
    def on_batch(self, record: BatchRecord, logits: Tensor) -> None:
        logits.zero_()
        raise OSError("disk full")


def test_what_a_callback_does_wrong_stays_with_it() -> None:
    notes = Notes()
    adapter = st.adapt(build("bn"), "tent", callbacks=[Spoils(), notes])
    batch = batches(1)[0]
    with pytest.warns(CallbackWarning, match=r"Spoils.on_batch raised OSError: disk full"):
        logits = adapter(batch)
    assert torch.equal(logits, st.adapt(build("bn"), "tent")(batch))
    assert notes.heard[-1] == "batch 1 of 8"


def test_a_copy_of_an_adapter_reports_to_the_same_place() -> None:
    notes = Notes()
    twin = copy.deepcopy(st.adapt(build("bn"), "tent", callbacks=[notes]))
    twin(batches(1)[0])
    assert notes.heard == ["attach tent", "batch 1 of 8"]


def test_what_is_no_callback_is_refused_before_anything_is_touched() -> None:
    model = build("bn").train()
    with pytest.raises(OptionError, match="the class Notes itself"):
        st.adapt(model, "tent", callbacks=[Notes])
    assert model.training
    st.adapt(model, "tent").detach()

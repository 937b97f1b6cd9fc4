from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import synaptune as st
from synaptune.bench.cell import Cell
from synaptune.bench.job import Job, jobs_of
from synaptune.bench.measure import measure
from synaptune.bench.row import Row
from synaptune.bench.sources import load_subject
from synaptune.core.adapter import Adapter
from tests.support.models import build
from tests.unit.bench import own_methods, tiny
from tests.unit.bench.cells import cell


def rows_of(*cells: Cell) -> list[Row]:
    return [row for job in jobs_of(cells, run="test", done=()) for row in measure(job)]


def row_of(method: str = "tent", **others: Any) -> Row:
    (row,) = rows_of(cell(method, **others))
    assert row.status == "ok", row.error
    return row


def tiny_batches(size: int = 16) -> list[tuple[torch.Tensor, torch.Tensor]]:
    data = tiny.make_data()
    images = torch.from_numpy(data.images).permute(0, 3, 1, 2).float() / 255
    labels = torch.tensor(data.labels)
    return list(zip(images.split(size), labels.split(size), strict=True))


def wrong(logits: torch.Tensor, labels: torch.Tensor) -> int:
    return int((logits.argmax(1) != labels).sum())


STRONG = {"options": {"lr": 0.3}}


def test_the_four_errors_are_what_a_plain_loop_gives() -> None:
    row = row_of("tent", **STRONG, protocol={"oracle_every": 2})
    adapter = st.adapt(tiny.make_model(), "tent", lr=0.3)
    before = after = 0
    batches = tiny_batches()
    stages = []
    for number, (images, labels) in enumerate(batches, start=1):
        before += wrong(adapter(images), labels)
        after += wrong(adapter.predict(images), labels)
        if number % 2 == 0:
            stages.append(2 * sum(wrong(adapter.predict(x), y) for x, y in batches))
    full = 2 * sum(wrong(adapter.predict(x), y) for x, y in batches)
    assert (row.error_online, row.error_after, row.error_full) == (2.0 * before, 2.0 * after, full)
    assert row.error_oracle == min(stages)
    assert row.error_per_stage is not None
    assert [error for _, error in row.error_per_stage[1:]] == stages
    assert len({row.error_online, row.error_after, row.error_full}) > 1, "the example should tell them apart"
    # Rows are measured on one thread, which sums in another order.
    assert row.weight_distance == pytest.approx(adapter.history[-1].weight_distance, rel=1e-5)


def test_every_batch_leaves_its_numbers_and_classes_are_counted() -> None:
    row = row_of("tent", **STRONG)
    adapter = st.adapt(tiny.make_model(), "tent", lr=0.3)
    records, predicted, labelled = [], torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)
    for images, labels in tiny_batches():
        predicted = torch.cat([predicted, adapter(images).argmax(1)])
        labelled = torch.cat([labelled, labels])
        records.append(adapter.history[-1])
    assert row.entropy_per_batch == pytest.approx([record.entropy for record in records], abs=1e-3)
    assert row.drift_per_batch == pytest.approx([record.drift for record in records], abs=1e-3)
    assert row.weight_distance_per_batch == pytest.approx([record.weight_distance for record in records], rel=1e-3)
    assert row.labels_per_class is not None
    classes = len(row.labels_per_class)
    assert row.predicted_per_class == predicted.bincount(minlength=classes).tolist()
    assert row.labels_per_class == labelled.bincount(minlength=classes).tolist()
    again = Row.from_json(row.to_json())
    assert (again.drift_per_batch, again.predicted_per_class) == (row.drift_per_batch, row.predicted_per_class)


def test_what_else_is_measured_changes_nothing_that_the_method_does() -> None:
    bare = row_of("nhl", protocol={"after": False, "full": False})
    rich = row_of("nhl", protocol={"oracle_every": 1})
    for key in ("error_online", "forwards", "backwards", "weight_distance", "error_per_batch", "ece"):
        assert getattr(bare, key) == getattr(rich, key), key
    assert (bare.error_after, bare.error_full, bare.error_oracle, bare.error_per_stage) == (None, None, None, None)


@pytest.mark.parametrize("method", ["tent", "nhl", "dua", "norm-running"])
def test_both_predictions_are_known_whichever_the_method_returns(method: str) -> None:
    before = row_of(method, options={"predict": "before"})
    after = row_of(method, options={"predict": "after"})
    assert (before.error_online, before.error_after) == (after.error_online, after.error_after)
    assert (before.predict, after.predict) == ("before", "after")
    assert before.forwards is not None
    assert after.forwards is not None
    assert after.forwards > before.forwards, "the second prediction of the method's own counts as its cost"


def test_passes_are_those_that_the_method_really_made() -> None:
    assert (row_of("source").forwards, row_of("source").backwards) == (50, 0)
    tent = row_of("tent", options={"steps": 2})
    assert (tent.forwards, tent.backwards) == (100, 100)
    dua = row_of("dua", options={"images": 5, "copies": 4, "predict": "before"})
    assert (dua.forwards, dua.backwards) == (50 + 5 * 4, 0)


def test_oracle_is_the_minimum_over_stages_with_adaptation() -> None:
    row = row_of("tent", options={"lr": 3.0}, protocol={"oracle_every": 1})
    assert row.error_per_stage is not None
    stages = dict(row.error_per_stage)
    assert sorted(stages) == [0, 1, 2, 3, 4]
    assert row.error_oracle == min(error for batches, error in stages.items() if batches > 0)
    assert stages[0] < row.error_oracle, "here every step harms, so the stage without one would be the lowest"


def test_a_horizon_stops_adapting_and_leaves_only_errors_on_the_whole_set() -> None:
    row = row_of("tent", **STRONG, protocol={"horizon": 1, "oracle_every": 1})
    whole = row_of("tent", **STRONG, protocol={"oracle_every": 1})
    assert (row.error_online, row.error_after, row.ece) == (None, None, None)
    assert whole.error_per_stage is not None
    assert row.error_full == dict(whole.error_per_stage)[1]
    assert (row.images, row.forwards) == (50, 16)


def test_whole_set_evaluations_may_have_batches_of_their_own() -> None:
    # Batch statistics depend on the batch, so the sizes can be told apart; the state comes from the same steps.
    small = row_of("norm", protocol={"batch": 5})
    large = row_of("norm", protocol={"batch": 5, "full_batch": 50})
    assert small.error_online == large.error_online
    assert small.error_full == small.error_online
    assert large.error_full == row_of("norm", protocol={"batch": 50}).error_online


@pytest.mark.parametrize("method", ["source", "norm"])
def test_a_method_that_changes_nothing_is_asked_once_and_would_say_the_same_again(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    predict = Adapter.predict
    monkeypatch.setattr(Adapter, "predict", lambda self, images: asked.append(1) or predict(self, images))
    row = row_of(method)
    assert asked == []
    stages = row_of(method, protocol={"oracle_every": 2}).error_per_stage
    assert len(asked) == 4, "the whole set once"
    assert stages == [[batches, row.error_full] for batches in (0, 2, 4)]
    monkeypatch.setattr(Adapter, "touched", frozenset({"all"}))
    again = row_of(method)
    assert len(asked) > 0
    for key in ("error_online", "error_after", "error_full", "error_per_batch", "ece"):
        assert getattr(row, key) == getattr(again, key), key
    assert row.error_full is not None


@pytest.mark.parametrize("kind", [own_methods.Centring, own_methods.CentringWithState])
def test_state_outside_of_the_model_counts_after_a_batch_and_at_the_end(kind: type[own_methods.Own]) -> None:
    with own_methods.registered(kind) as name:
        row = row_of(name, protocol={"oracle_every": 2})
        adapter = st.adapt(tiny.make_model(), name)
        before = after = 0
        stages = []
        batches = tiny_batches()
        for number, (images, labels) in enumerate(batches, start=1):
            before += wrong(adapter(images), labels)
            after += wrong(adapter.predict(images), labels)
            if number % 2 == 0:
                stages.append(2 * sum(wrong(adapter.predict(x), y) for x, y in batches))
    assert (row.error_online, row.error_after, row.error_full) == (2.0 * before, 2.0 * after, stages[-1])
    assert row.error_oracle == min(stages)
    assert before != after, "the example should tell them apart"


def test_a_method_that_touches_nothing_may_hand_over_predictions_from_after_the_update() -> None:
    with own_methods.registered(own_methods.After) as name:
        before, row = row_of(name), row_of(name, options={"predict": "after"})
    plain = tiny.make_model()
    batches = tiny_batches()
    after = sum(wrong(plain(images).roll(1, dims=1), labels) for images, labels in batches)
    full = sum(wrong(plain(images), labels) for images, labels in batches)
    assert (row.error_online, row.error_after, row.error_full) == (None, 2.0 * after, 2.0 * full)
    assert (before.error_online, before.error_after, before.error_full) == (2.0 * full,) * 3
    assert after != full, "the example should tell them apart"


@pytest.mark.parametrize("method", ["source", "tent", "nhl", "dua"])
def test_channels_last_in_memory_is_a_switch_that_moves_last_bits_only(method: str) -> None:
    row, other = row_of(method), row_of(method, protocol={"channels_last": True})
    assert (row.channels_last, other.channels_last) == (False, True)
    assert other.error_online == pytest.approx(row.error_online, abs=2.0)
    assert other.weight_distance == pytest.approx(row.weight_distance, rel=1e-3, abs=1e-12)


def test_images_and_weights_have_channels_last_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    forward = Adapter.forward

    def spy(self: Adapter, images: torch.Tensor) -> torch.Tensor:
        weights = [weight for weight in self.model.parameters() if weight.dim() == 4 and weight.shape[1] > 1]
        if len(images) <= 16:  # the data set itself is labelled by a model, in one batch
            seen.append(all(x.is_contiguous(memory_format=torch.channels_last) for x in (images, *weights)))
        return forward(self, images)

    monkeypatch.setattr(Adapter, "forward", spy)
    row_of("tent", protocol={"channels_last": True})
    assert len(seen) == 4
    assert all(seen)
    seen.clear()
    row_of("tent")
    assert not any(seen)


def test_a_method_that_learns_image_by_image_has_no_prediction_before() -> None:
    rotation = {"model": tiny.ROTATION_MODEL, "options": {"copies": 2}}
    online = row_of("ttt", **rotation)
    assert online.error_online is None
    assert online.error_after is not None
    assert online.error_full is not None
    assert online.ece is not None
    assert online.error_per_batch is not None
    slow = row_of("ttt-slow", model=tiny.ROTATION_MODEL, options={"copies": 2, "iterations": 1})
    assert (slow.error_online, slow.error_full) == (None, None)
    assert slow.error_after is not None
    asked = row_of("ttt", model=tiny.ROTATION_MODEL, options={"copies": 2, "predict": "before"})
    assert asked.error_online is not None


def test_files_that_cannot_be_read_stand_in_the_row(tmp_path: Path) -> None:
    for name in "abcde":
        folder = tmp_path / name
        folder.mkdir()
        for number in range(2):
            Image.fromarray(np.full((8, 8, 3), 40 * number, np.uint8)).save(folder / f"{number}.png")
    (tmp_path / "c" / "0.png").write_text("no picture")
    found = row_of("source", data=str(tmp_path), protocol={"batch": 4})
    assert (found.status, found.images) == ("ok", 9)
    assert found.events == ["0: files of the data left out: 1, not an image (0.png)"]


def test_labels_reach_no_method(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = row_of("nhl")
    from synaptune.bench import sources

    monkeypatch.setattr(sources, "numbering_for", lambda dataset, card: torch.tensor([3, 4, 0, 1, 2]))
    other = row_of("nhl")
    assert other.error_online != honest.error_online
    for key in ("weight_distance", "forwards", "backwards", "events"):
        assert getattr(other, key) == getattr(honest, key)


def test_order_and_seed_change_the_stream_and_nothing_else() -> None:
    plain = row_of("tent", **STRONG)
    one, again, two = (row_of("tent", **STRONG, seed=seed, protocol={"order": "shuffled"}) for seed in (1, 1, 2))
    assert one.error_per_batch == again.error_per_batch
    assert one.error_per_batch != two.error_per_batch != plain.error_per_batch
    assert one.recipe_digest == two.recipe_digest == plain.recipe_digest


def test_nothing_is_reset_between_the_cells_of_one_stream() -> None:
    options = {"options": {"lr": 0.3}}
    shifts = [{"corruption": "brightness", "severity": 5}, {"corruption": "contrast", "severity": 5}]
    first, second = rows_of(*(cell("tent", **options, **shift, protocol={"reset": "never"}) for shift in shifts))
    alone = row_of("tent", **options, **shifts[1])
    assert first.error_online == row_of("tent", **options, **shifts[0]).error_online
    assert first.weight_distance is not None
    assert second.weight_distance is not None
    assert alone.weight_distance is not None
    assert second.weight_distance > alone.weight_distance
    assert second.error_per_batch != alone.error_per_batch


def test_a_stream_that_is_half_done_is_replayed_for_the_rows_that_are_missing() -> None:
    cells = [cell("tent", corruption=name, severity=3, protocol={"reset": "never"}) for name in ("fog", "contrast")]
    whole = rows_of(*cells)
    (job,) = jobs_of(cells, run="test", done={cells[0].key})
    assert job.cells == tuple(cells)
    (late,) = measure(job)
    assert late.corruption == "contrast"
    assert late.error_per_batch == whole[1].error_per_batch


def test_one_cell_that_fails_costs_only_itself() -> None:
    good, bad, ill = rows_of(
        cell("tent"), cell("tent", model=tiny.MODEL + "_nowhere"), cell("tent", model=tiny.GROUP_NORM_MODEL)
    )
    assert good.status == "ok"
    assert bad.status == "failed"
    assert "UnknownNameError" in str(bad.error)
    assert ill.status == "inapplicable"
    assert "norm" in str(ill.error)
    assert bad.error_online is None


def test_a_method_that_ends_the_program_costs_its_cell() -> None:
    with own_methods.registered(own_methods.Leaving) as name:
        bad, good = rows_of(cell(name), cell("source"))
    assert (bad.status, good.status) == ("failed", "ok")
    assert bad.error == "SystemExit: the method has had enough"


def test_a_cell_in_a_stream_fails_with_the_one_before_it() -> None:
    shared = {"model": tiny.GROUP_NORM_MODEL, "severity": 5, "protocol": {"reset": "never"}}
    first, second = rows_of(*(cell("tent", corruption=name, **shared) for name in ("fog", "contrast")))
    assert first.status == "inapplicable"
    assert second.status == "failed"
    assert "earlier cell" in str(second.error)


def test_what_is_not_on_this_machine_is_missing_not_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("SYNAPTUNE_DATA", str(tmp_path))
    monkeypatch.setenv("SYNAPTUNE_SHARED", str(tmp_path))
    no_data, no_weights = rows_of(cell(data="svhn"), cell(model="zoo:wrn-28-10-cifar10"))
    assert (no_data.status, no_weights.status) == ("missing", "missing")
    assert "synaptune data get svhn" in str(no_data.error)
    assert "Standard.pt" in str(no_weights.error)


@pytest.mark.parametrize(("named", "told"), [(True, "$SYNAPTUNE_DATA"), (False, "~/.cache/synaptune")])
def test_messages_in_rows_name_places_as_the_user_would(
    named: bool, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if named:
        monkeypatch.setenv("SYNAPTUNE_DATA", str(tmp_path / "data"))
    else:
        monkeypatch.delenv("SYNAPTUNE_DATA")
    (row,) = rows_of(cell(model="zoo:wrn-28-10-cifar10"))
    assert f"Save it in {told}/weights" in str(row.error)
    assert str(tmp_path) not in str(row.error)


class Poisonous(nn.Module):
    """Gives NaN for every batch but the first."""

    def __init__(self) -> None:
        super().__init__()
        self.net = build("bn")
        self.calls = 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        logits: torch.Tensor = self.net(images)
        return logits if self.calls < 2 else logits * float("nan")


def test_guards_verdicts_stand_in_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from synaptune.bench import sources
    from synaptune.models import Card, LoadedModel

    card = Card(name="poisonous", num_classes=5)
    monkeypatch.setattr(sources, "load_model_of", lambda model, weights: LoadedModel(Poisonous(), card))
    row = row_of("source", protocol={"after": False, "full": False})
    assert [event.split(":")[:2] for event in row.events] == [[str(n), " undo"] for n in (2, 3, 4)]
    assert row.error_per_batch is not None
    assert row.error_per_batch[1:] == [100.0, 100.0, 100.0]


def test_threads_and_the_global_generator_are_put_back() -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    try:
        torch.set_num_threads(2)
        row = row_of("tent", protocol={"threads": 1})
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert row.threads == 1
    assert torch.equal(torch.get_rng_state(), state)


def generators() -> tuple[Any, ...]:
    return random.getstate(), str(np.random.get_state())  # noqa: NPY002


def test_draws_from_any_global_generator_follow_the_seed_and_leave_the_caller_s_alone() -> None:
    states = generators()
    with own_methods.registered(own_methods.Drawing) as name:
        one, other, again = (row_of(name, seed=seed) for seed in (1, 2**33, 1))
    assert one.error_per_batch == again.error_per_batch
    assert one.error_per_batch != other.error_per_batch
    assert generators() == states


def test_rows_carry_the_whole_stamp() -> None:
    row = row_of("tent", corruption="frost", severity=2, seed=4, protocol={"images": 20, "corruption_seed": 3})
    assert row.versions.keys() == {"synaptune", "torch", "numpy", "python"}
    assert row.fingerprint == st.adapt(tiny.make_model(), "norm").fingerprint
    assert (row.images, row.batch, row.order, row.reset, row.seed) == (20, 16, "dataset", "corruption", 4)
    assert row.frost is not None
    assert row.recipe is not None
    assert row.recipe["origin"]["then"]["name"] == "frost"
    assert row.recipe["origin"]["then"]["seed"] == 3
    assert row.ms_per_batch_p50 is not None
    assert row.ms_per_batch_p95 is not None
    assert 0 < row.ms_per_batch_p50 <= row.ms_per_batch_p95


def test_asking_for_more_images_than_there_are_fails_with_the_number() -> None:
    (row,) = rows_of(cell(protocol={"images": 51}))
    assert row.status == "failed"
    assert "51" in str(row.error)
    assert "50" in str(row.error)


def test_all_corruptions_may_be_pooled_into_one_stream() -> None:
    pool = {"corruption": "mixed", "severity": 1}
    row = row_of("source", **pool, protocol={"images": 4, "batch": 64, "order": "shuffled"})
    assert row.images == 60
    assert row.recipe is not None
    assert len(row.recipe["mixed"]) == 15
    assert row.seeded
    subject = load_subject(cell("source", **pool, protocol={"images": 4, "batch": 15, "order": "shuffled"}))
    assert all(len(set(batch.index // 4)) > 4 for batch in subject.stream), "every batch holds several corruptions"


def test_only_wanted_rows_are_given() -> None:
    cells = (cell("tent"), cell("norm"))
    assert list(measure(Job("test", cells, frozenset()))) == []

"""What holds for streams of any size and kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from synaptune import streams
from synaptune.data import DataSet
from synaptune.streams import Domain, Stream


def dataset(name: str, count: int, classes: int, seed: int) -> DataSet:
    generator = np.random.default_rng(seed)
    pixels = generator.integers(0, 256, (count, 2, 3, 3), np.uint8)
    return DataSet(name, "test", pixels, generator.integers(0, classes, count), tuple(map(str, range(classes))))


@st.composite
def any_domains(draw: st.DrawFn) -> tuple[Domain, ...]:
    classes = draw(st.integers(1, 6))
    counts = draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))
    return tuple(
        Domain(f"d{number}", dataset(f"d{number}", count, classes, number), corruption="c", severity=number + 1)
        for number, count in enumerate(counts)
    )


@st.composite
def any_stream(draw: st.DrawFn, *, dropping: bool = False) -> Stream:
    domains = draw(any_domains())
    common: dict[str, Any] = {"batch": draw(st.integers(1, 17)), "seed": draw(st.integers(0, 2**40))}
    if dropping:
        cost = draw(st.floats(0, 5, allow_nan=False))
        common["clock"] = streams.Ticking(rate=draw(st.floats(0.01, 100)), cost_per_image=cost)
    kind = draw(st.sampled_from(["iid", "one", "gradual", "mixed", "correlated", "shift", "recurring"]))
    return {
        "iid": lambda: streams.iid(domains[0], shuffle=draw(st.booleans()), **common),
        "one": lambda: streams.one_by_one(domains, reset=draw(st.booleans()), shuffle=draw(st.booleans()), **common),
        "gradual": lambda: streams.gradual(domains, **common),
        "mixed": lambda: streams.mixed(domains, **common),
        "correlated": lambda: streams.correlated(
            domains, delta=draw(st.floats(1e-6, 1e6)), mix=draw(st.booleans()), **common
        ),
        "shift": lambda: streams.label_shift(domains, ratio=draw(st.floats(1, 1e4)), **common),
        "recurring": lambda: streams.recurring(
            domains, rounds=draw(st.integers(1, 3)), shuffle_rounds=draw(st.booleans()), **common
        ),
    }[kind]()


def indices(stream: Stream, *, workers: int = 0) -> list[list[int]]:
    return [batch.index.tolist() for batch in stream.play(workers=workers)]


@settings(max_examples=60, deadline=None)
@given(any_stream())
def test_length_and_batch_sizes_are_as_announced(stream: Stream) -> None:
    batches = indices(stream)
    assert len(batches) == len(stream)
    assert sum(map(len, batches)) == stream.samples
    assert all(1 <= len(batch) <= stream.batch for batch in batches)


@settings(max_examples=60, deadline=None)
@given(any_stream())
def test_images_and_labels_belong_to_the_index(stream: Stream) -> None:
    starts = np.cumsum([0, *(len(domain.data) for domain in stream.domains)])
    for batch in stream:
        for image, index, label in zip(batch.images, batch.index.tolist(), stream.labels[batch.index], strict=True):
            number = int(np.searchsorted(starts, index, side="right")) - 1
            domain = stream.domains[number]
            expected = torch.from_numpy(np.array(domain.data.images[index - starts[number]])).permute(2, 0, 1)
            assert torch.equal((image * 255).round().byte(), expected)
            assert int(label) == domain.data.labels[index - starts[number]]
            assert batch.domain in (domain.name, "mixed")


@settings(max_examples=40, deadline=None)
@given(any_domains(), st.integers(1, 17), st.integers(0, 100), st.floats(1e-6, 1e6), st.booleans())
def test_orders_are_permutations(domains: tuple[Domain, ...], batch: int, seed: int, delta: float, mix: bool) -> None:
    total = sum(len(domain.data) for domain in domains)
    for stream in (
        streams.mixed(domains, batch=batch, seed=seed),
        streams.one_by_one(domains, shuffle=True, batch=batch, seed=seed),
        streams.correlated(domains, delta=delta, mix=mix, batch=batch, seed=seed),
    ):
        assert sorted(index for part in indices(stream) for index in part) == list(range(total))


@settings(max_examples=25, deadline=None)
@given(any_stream(dropping=True), st.integers(1, 3))
def test_neither_replay_nor_workers_change_anything(stream: Stream, workers: int) -> None:
    first = indices(stream)
    assert first == indices(stream)
    assert first == indices(stream, workers=workers)


@settings(max_examples=60, deadline=None)
@given(any_stream(dropping=True))
def test_what_is_not_seen_is_missed_and_nothing_is_lost(stream: Stream) -> None:
    playback = stream.play()
    order: list[int] = []
    resets = 0
    for batch in playback:
        order += batch.missed.tolist() + batch.index.tolist()
        resets += batch.reset
    order += playback.missed_at_end.tolist()
    planned = list(stream.plan())
    assert order == [int(index) for part in planned for index in part.index]
    assert resets <= sum(part.reset for part in planned)


@settings(max_examples=40, deadline=None)
@given(any_stream(dropping=True))
def test_no_batch_comes_while_the_method_is_busy(stream: Stream) -> None:
    clock = stream.clock
    assert isinstance(clock, streams.Ticking)
    busy_until = 0.0
    for batch in stream:
        assert batch.time is not None
        assert batch.time >= busy_until * (1 - 1e-9)
        busy_until = batch.time + (clock.cost_of(len(batch)) or 0.0)

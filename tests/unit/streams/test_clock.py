"""Streams that do not wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synaptune import streams
from synaptune.data import DataSet
from synaptune.errors import OptionError
from synaptune.streams import Domain, Ticking


def toy(count: int = 120, name: str = "toy") -> DataSet:
    return DataSet(name, "", np.zeros((count, 2, 2, 3), np.uint8), np.arange(count) % 5, tuple("abcde"))


def numbers(stream: Any) -> list[int]:
    return [batch.number for batch in stream]


@pytest.mark.parametrize("slowness", [1, 2, 3, 7])
@pytest.mark.parametrize("rate", [1.0, 30.0, 1 / 3, 1e6])
def test_a_method_that_is_m_times_too_slow_sees_one_batch_in_m(slowness: int, rate: float) -> None:
    stream = streams.iid(toy(), batch=10, clock=Ticking(rate=rate, cost_per_image=slowness / rate))
    assert numbers(stream) == list(range(0, 12, slowness))


@pytest.mark.parametrize("cost", [0.0, 0.5, 0.999])
def test_a_method_that_keeps_up_misses_nothing(cost: float) -> None:
    playback = streams.iid(toy(), batch=10, clock=Ticking(rate=1.0, cost_per_image=cost)).play()
    assert numbers(playback) == list(range(12))
    assert playback.missed == 0


def test_a_method_that_is_a_little_too_slow_misses_now_and_then() -> None:
    # Batches are complete at 10, 20, ...; work takes 12.5: free at 22.5, 42.5, ... so every second one is lost.
    assert numbers(streams.iid(toy(), batch=10, clock=Ticking(rate=1.0, cost_per_image=1.25))) == [0, 2, 4, 6, 8, 10]


def test_the_next_batch_says_what_was_missed() -> None:
    stream = streams.iid(toy(), shuffle=False, batch=10, clock=Ticking(rate=1.0, cost_per_image=5.0))
    playback = stream.play()
    batches = list(playback)
    assert [batch.missed.tolist() for batch in batches] == [[], list(range(10, 50)), list(range(60, 100))]
    assert playback.missed_at_end.tolist() == list(range(110, 120))
    assert playback.missed == 90
    assert [batch.time for batch in batches] == [10.0, 60.0, 110.0]


def test_what_was_missed_is_counted_while_it_goes_on() -> None:
    stream = streams.iid(toy(), batch=10, clock=Ticking(rate=1.0, cost_per_image=5.0))
    for workers in (0, 3):
        playback = stream.play(workers=workers)
        counts = []
        for _ in playback:
            counts.append(playback.missed)
            assert len(playback.missed_at_end) == 0
        assert (counts, playback.missed) == ([0, 40, 80], 90)


def test_a_reset_that_falls_into_a_gap_is_not_lost() -> None:
    domains = [Domain(name, toy(20, name)) for name in "abc"]
    stream = streams.one_by_one(domains, batch=10, clock=Ticking(rate=1.0, cost_per_image=3.0))
    batches = list(stream)
    assert [(batch.number, batch.domain, batch.reset) for batch in batches] == [(0, "a", True), (3, "b", True)]
    never = streams.one_by_one(domains, batch=10, reset=False, clock=Ticking(rate=1.0, cost_per_image=3.0))
    assert not any(batch.reset for batch in never)


def test_a_partial_batch_costs_less() -> None:
    # 25 images: batches of 10, 10, 5 are complete at 10, 20, 25; with cost 1 per image all are seen.
    assert numbers(streams.iid(toy(25), batch=10, clock=Ticking(rate=1.0, cost_per_image=1.0))) == [0, 1]
    assert numbers(streams.iid(toy(25), batch=10, clock=Ticking(rate=1.0, cost_per_image=0.5))) == [0, 1, 2]


def test_reported_work_counts_like_declared_work() -> None:
    declared = streams.iid(toy(), batch=10, clock=Ticking(rate=2.0, cost_per_image=1.3))
    playback = streams.iid(toy(), batch=10, clock=Ticking(rate=2.0)).play(workers=2)
    seen = []
    for batch in playback:
        seen.append(batch.number)
        playback.took(1.3 * len(batch))
    assert seen == numbers(declared)


def test_reported_work_may_change_from_batch_to_batch() -> None:
    playback = streams.iid(toy(), batch=10, clock=Ticking(rate=1.0)).play()
    seen = []
    for batch, seconds in zip(playback, [0, 25, 0, 0, 45, 0, 0], strict=False):
        seen.append(batch.number)
        playback.took(seconds)
    assert seen == [0, 1, 4, 5, 6, 11]


def test_forgetting_to_report_is_an_error_that_shows_how() -> None:
    playback = streams.iid(toy(), batch=10, clock=Ticking()).play()
    next(playback)
    with pytest.raises(OptionError, match=r"call took\(seconds\).*or declare cost_per_image"):
        next(playback)


def test_a_report_is_used_once() -> None:
    playback = streams.iid(toy(), batch=10, clock=Ticking()).play()
    next(playback)
    playback.took(0.1)
    next(playback)
    with pytest.raises(OptionError, match="took"):
        next(playback)


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_negative_work_is_refused(seconds: float) -> None:
    playback = streams.iid(toy(), clock=Ticking()).play()
    next(playback)
    with pytest.raises(OptionError, match="0 seconds or more"):
        playback.took(seconds)


@pytest.mark.parametrize("wrong", [{"rate": 0.0}, {"rate": -1.0}, {"cost_per_image": -0.1}, {"rate": float("nan")}])
def test_impossible_clocks_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(OptionError):
        Ticking(**wrong)  # type: ignore[arg-type]


def test_a_stream_that_waits_has_no_time() -> None:
    playback = streams.iid(toy(), batch=50).play()
    assert [batch.time for batch in playback] == [None] * 3
    assert playback.missed == 0

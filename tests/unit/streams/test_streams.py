"""Streams: what comes, in which batches, and what cannot be seen."""

from __future__ import annotations

import dataclasses
import gc
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from synaptune import streams
from synaptune.data import DataSet, LazyImages, Recipe, corrupted, load, sample
from synaptune.data.images import PixelsRead, Positions
from synaptune.errors import DataError, OptionError
from synaptune.streams import Batch, Correlated, Domain, Schedule, Stream, Visit


def toy(name: str = "toy", count: int = 20, side: int = 4, seed: int = 0, offset: int = 0) -> DataSet:
    """Images whose first pixel says which image of which set it is."""
    pixels = np.random.default_rng(seed).integers(0, 256, (count, side, side, 3), np.uint8)
    pixels[:, 0, 0, 0] = np.arange(count) + offset
    return DataSet(name, "test", pixels, np.arange(count) % 5, tuple("abcde"))


def shifted(corruptions: tuple[str, ...] = ("fog", "snow"), severities: Any = range(1, 6)) -> tuple[Domain, ...]:
    return tuple(
        Domain(f"{name}-{severity}", toy(seed=severity), corruption=name, severity=severity)
        for name in corruptions
        for severity in severities
    )


def first_pixels(batches: list[Batch]) -> list[int]:
    return [round(float(value) * 255) for batch in batches for value in batch.images[:, 0, 0, 0]]


def assert_same(first: list[Batch], second: list[Batch]) -> None:
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        for field in dataclasses.fields(Batch):
            a, b = getattr(one, field.name), getattr(other, field.name)
            assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b, field.name


class TestBatches:
    def test_images_are_float_channels_first_between_0_and_1(self) -> None:
        data = toy()
        (batch,) = streams.iid(data, shuffle=False, batch=20)
        assert batch.images.dtype == torch.float32
        assert batch.images.shape == (20, 3, 4, 4)
        expected = torch.from_numpy(np.asarray(data.images)).permute(0, 3, 1, 2) / 255
        assert torch.equal(batch.images, expected)
        assert batch.images.is_contiguous()

    @pytest.mark.parametrize("size", [1, 3, 19, 20, 21, 500])
    def test_the_last_partial_batch_is_kept(self, size: int) -> None:
        stream = streams.iid(toy(), batch=size)
        lengths = [len(batch) for batch in stream]
        assert sum(lengths) == 20
        assert lengths[:-1] == [size] * (len(lengths) - 1)
        assert len(stream) == len(lengths)
        assert stream.samples == 20

    def test_the_batches_of_the_published_protocol(self) -> None:
        big = DataSet("big", "", np.zeros((2007, 1, 1, 3), np.uint8), np.zeros(2007, np.int64), ("a",))
        lengths = [len(batch) for batch in streams.one_by_one([big, Domain("again", big)])]
        assert lengths == ([128] * 15 + [87]) * 2

    def test_a_label_is_found_by_index_and_belongs_to_the_image(self) -> None:
        domains = [Domain("one", toy(count=22)), Domain("two", toy(count=31, offset=100, seed=1))]
        for stream in (streams.mixed(domains, batch=7, seed=3), streams.correlated(domains, batch=7, mix=True)):
            seen = []
            for batch in stream:
                pixel = (batch.images[:, 0, 0, 0] * 255).round().long()
                assert torch.equal(stream.labels[batch.index], (pixel % 100) % 5)
                assert stream.labels.domain_of(batch.index).tolist() == (pixel >= 100).long().tolist()
                seen += batch.index.tolist()
            assert sorted(seen) == list(range(53))

    def test_labels_beyond_the_stream_are_refused(self) -> None:
        stream = streams.iid(toy())
        assert len(stream.labels) == 20
        with pytest.raises(Exception, match="between 0 and 19"):
            stream.labels[[20]]
        with pytest.raises(Exception, match="between 0 and 19"):
            stream.labels[[-1]]

    def test_no_label_can_be_reached_from_a_batch(self) -> None:
        data = toy()
        stream = streams.iid(data, batch=5)
        batch = next(iter(stream))
        secret = {id(data.labels), id(data), id(stream), id(stream.labels), *(id(d) for d in stream.domains)}
        reached, queue = set(), [getattr(batch, field.name) for field in dataclasses.fields(Batch)]
        while queue:
            thing = queue.pop()
            if id(thing) in reached or isinstance(thing, type):
                continue
            reached.add(id(thing))
            assert not isinstance(thing, DataSet | Stream | streams.LabelSource)
            queue += gc.get_referents(thing)
            queue += [] if getattr(thing, "base", None) is None else [thing.base]
        assert not reached & secret
        assert not any("label" in field.name for field in dataclasses.fields(Batch))

    def test_a_batch_can_be_changed_without_harm_to_the_data(self) -> None:
        data = toy()
        before = data.fingerprint
        for batch in streams.iid(data, batch=5):
            batch.images.zero_()
            batch.index.zero_()
        assert DataSet("toy", "test", data.images, data.labels, data.classes).fingerprint == before


class TestKinds:
    def test_iid_is_shuffled_by_its_seed(self) -> None:
        runs = [first_pixels(list(streams.iid(toy(), batch=6, seed=seed))) for seed in (0, 0, 1)]
        assert runs[0] == runs[1] != runs[2]
        assert runs[0] != sorted(runs[0]) == list(range(20))

    def test_iid_has_one_domain(self) -> None:
        with pytest.raises(OptionError, match="has one domain; use one_by_one, mixed or recurring"):
            streams.iid(shifted())

    @pytest.mark.parametrize("reset", [True, False])
    def test_one_by_one_marks_the_beginning_of_each_domain(self, reset: bool) -> None:
        stream = streams.one_by_one(shifted(severities=[5]), reset=reset, batch=8)
        batches = list(stream)
        assert [batch.domain for batch in batches] == ["fog-5"] * 3 + ["snow-5"] * 3
        assert [batch.reset for batch in batches] == ([True, False, False] * 2 if reset else [False] * 6)
        assert first_pixels(batches) == list(range(20)) * 2, "in the order of the set"
        assert [batch.number for batch in batches] == list(range(6))
        assert ("reset" in str(stream)) is reset

    def test_gradual_rises_and_falls(self) -> None:
        batches = list(streams.gradual(shifted(), batch=20, reset=True))
        assert [batch.domain for batch in batches] == [
            f"{name}-{severity}" for name in ("fog", "snow") for severity in (1, 2, 3, 4, 5, 4, 3, 2, 1)
        ]
        assert [place for place, batch in enumerate(batches) if batch.reset] == [0, 9]
        assert not any(batch.reset for batch in streams.gradual(shifted(), batch=20))

    def test_gradual_sorts_severities_and_takes_those_there_are(self) -> None:
        batches = list(streams.gradual(shifted(("fog",), (5, 1, 3)), batch=20))
        assert [batch.domain for batch in batches] == ["fog-1", "fog-3", "fog-5", "fog-3", "fog-1"]
        assert [batch.domain for batch in streams.gradual(shifted(("fog",), (4,)), batch=20)] == ["fog-4"]

    def test_gradual_needs_severities(self) -> None:
        with pytest.raises(OptionError, match="a corruption and a severity; toy has none"):
            streams.gradual(toy())

    def test_mixed_batches_hold_several_domains(self) -> None:
        stream = streams.mixed(shifted(severities=[5]), batch=10, seed=1)
        batches = list(stream)
        assert {batch.domain for batch in batches} == {"mixed"}
        assert all(len(set(stream.labels.domain_of(batch.index).tolist())) == 2 for batch in batches)
        assert len(batches) == 4

    def test_correlated_stays_inside_domains_unless_mixed(self) -> None:
        domains = shifted(severities=[5])
        apart = streams.correlated(domains, delta=0.01, batch=4)
        assert [batch.domain for batch in apart] == ["fog-5"] * 5 + ["snow-5"] * 5
        assert [place for place, batch in enumerate(apart) if batch.reset] == [0, 5]
        together = streams.correlated(domains, delta=0.01, mix=True, batch=4)
        labels = torch.cat([together.labels[batch.index] for batch in together])
        assert int((labels.diff() != 0).sum()) < 12, "40 images in few runs"

    def test_label_shift_drops_images_and_counts_them(self) -> None:
        stream = streams.label_shift(toy(count=100), ratio=10.0, batch=16)
        labels = torch.cat([stream.labels[batch.index] for batch in stream])
        assert torch.bincount(labels).tolist() == [20, 11, 6, 4, 2]
        assert stream.samples == 43
        assert len(stream) == 3 == len(list(stream))
        priors = streams.label_shift(toy(count=100), prior=[1, 1, 0, 0, 0])
        assert priors.samples == 40

    def test_recurring_comes_again_in_new_order(self) -> None:
        stream = streams.recurring(shifted(severities=[5]), rounds=3, batch=20)
        batches = list(stream)
        assert [batch.domain for batch in batches] == ["fog-5", "snow-5"] * 3
        orders = [tuple(batch.index.tolist()) for batch in batches]
        assert len(set(orders)) == 6
        assert {tuple(sorted(order)) for order in orders[::2]} == {tuple(range(20))}
        assert (len(stream), stream.samples) == (6, 120)
        assert "x 3 rounds" in str(stream)

    def test_recurring_rounds_can_have_their_own_order_of_domains(self) -> None:
        domains = shifted(("a", "b", "c", "d"), (5,))
        stream = streams.recurring(domains, rounds=6, shuffle_rounds=True, batch=20)
        rounds = np.array([batch.domain for batch in stream]).reshape(6, 4)
        assert {tuple(sorted(names)) for names in rounds} == {("a-5", "b-5", "c-5", "d-5")}
        assert len({tuple(names) for names in rounds}) > 2

    def test_kinds_combine(self) -> None:
        base = streams.recurring(shifted(severities=[5]), rounds=2, batch=4, seed=9)
        stream = dataclasses.replace(
            base, arrangement=Correlated(delta=0.01), clock=streams.Ticking(cost_per_image=1.0)
        )
        assert len(list(stream)) < len(stream) == 20


class TestDeterminism:
    @pytest.mark.parametrize("workers", [1, 2, 5])
    def test_the_number_of_workers_does_not_matter(self, workers: int) -> None:
        for clock in (streams.Waiting(), streams.Ticking(rate=10, cost_per_image=0.25)):
            stream = streams.recurring(shifted(severities=[5]), rounds=4, batch=3, clock=clock, seed=2)
            assert_same(list(stream.play()), list(stream.play(workers=workers)))

    def test_playing_twice_at_once_gives_the_same_twice(self) -> None:
        stream = streams.mixed(shifted(), batch=16, seed=4)
        first, second = iter(stream), iter(stream)
        next(first)
        both = [(next(first), next(second)) for _ in range(3)]
        assert both[0][0].number == both[0][1].number + 1
        assert torch.equal(both[0][0].index, both[1][1].index)

    def test_a_visit_does_not_hang_on_the_others(self) -> None:
        long = streams.recurring(shifted(severities=[5]), rounds=3, batch=20, seed=7)
        short = streams.recurring(shifted(severities=[5]), rounds=1, batch=20, seed=7)
        assert_same(list(long)[:2], list(short))

    def test_closing_early_stops_the_workers(self) -> None:
        with streams.recurring(toy(), rounds=1000, batch=2).play(workers=2) as playback:
            next(playback)
        assert list(playback) == []

    def test_an_error_in_a_worker_reaches_the_caller(self) -> None:
        class Broken(LazyImages):
            shape = (10, 4, 4, 3)

            def read(self, positions: Positions) -> PixelsRead:
                raise DataError("the disk is gone")

            def fingerprint(self) -> str:
                return ""

        stream = streams.iid(DataSet("broken", "", Broken(), np.zeros(10, np.int64), ("a",)), batch=4)
        for workers in (0, 2):
            with pytest.raises(DataError, match="the disk is gone"):
                list(stream.play(workers=workers))


class TestRecipe:
    def test_every_switch_is_in_the_recipe(self) -> None:
        def digest(**changes: Any) -> str:
            options: dict[str, Any] = {"batch": 8, "seed": 0, "shuffle": True, "rounds": 2, "domains": shifted()}
            return streams.recurring(**{**options, **changes}).recipe.digest

        others = [
            digest(batch=9),
            digest(seed=1),
            digest(shuffle=False),
            digest(rounds=3),
            digest(shuffle_rounds=True),
            digest(domains=shifted()[::-1]),
            digest(domains=[Domain("other", toy(seed=99)), *shifted()]),
            digest(clock=streams.Ticking()),
            digest(clock=streams.Ticking(rate=31)),
        ]
        assert len({digest(), *others}) == 10
        assert digest() == digest()

    def test_another_pixel_gives_another_recipe(self) -> None:
        data = toy()
        pixels = np.array(data.images)
        pixels[-1, 0, 0, 2] ^= 1
        other = dataclasses.replace(data, images=pixels)
        assert streams.iid(data).recipe != streams.iid(other).recipe

    def test_the_recipe_of_made_corruptions_computes_no_corruption(self) -> None:
        class Counting:
            recipe = Recipe.of(shift="counting")
            asked = 0

            def __call__(self, images: Any, indices: Any) -> Any:
                Counting.asked += 1
                return images

        stream = streams.iid(corrupted(toy(), Counting(), cache=False))
        assert "counting" in str(stream.recipe)
        assert Counting.asked == 0

    def test_it_prints_in_one_line(self) -> None:
        text = str(streams.correlated(shifted(severities=[3]), delta=0.05, batch=32, seed=5))
        assert text == ("correlated of 40 images: fog-3, snow-3; Correlated(delta=0.05), batch 32, seed 5")
        assert "7 more" in str(streams.mixed(shifted()))
        assert "30 images/s" in str(streams.iid(toy(), clock=streams.Ticking()))

    def test_a_stream_is_frozen(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            streams.iid(toy()).seed = 1  # type: ignore[misc]


class TestRefusals:
    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: streams.mixed([]), "at least one domain"),
            (lambda: streams.mixed([toy(), toy()]), "toy comes twice"),
            (lambda: streams.mixed([toy(), toy("b", side=5)]), "images of one size, not 4x4, 5x5"),
            (lambda: streams.mixed([toy("e", count=0)]), "e has no image"),
            (lambda: streams.iid(toy(), batch=0), "batch must be a whole number from 1 on, not 0"),
            (lambda: streams.iid(toy(), batch=1.5), "batch must be"),  # type: ignore[arg-type]
            (lambda: streams.iid(toy(), seed=-1), "seed must be a whole number from 0 on"),
            (lambda: streams.recurring(toy(), rounds=0), "rounds must be at least 1"),
            (lambda: streams.iid(toy()).play(workers=-1), "workers must be"),
            (
                lambda: Stream(domains=(Domain("a", toy()),), schedule=Schedule((Visit((1,)),))),
                "visits domain 1, there are 1",
            ),
            (lambda: Schedule(()), "at least one visit"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, make: Any, words: str) -> None:
        with pytest.raises(OptionError, match=words):
            make()

    def test_domains_must_agree_on_classes(self) -> None:
        other = DataSet("b", "", toy().images, toy().labels, tuple("edcba"))
        with pytest.raises(OptionError, match="same classes"):
            streams.mixed([toy(), other])

    def test_numpy_numbers_are_numbers(self) -> None:
        assert (
            streams.iid(toy(), batch=np.int64(4), seed=np.int32(2)).recipe == streams.iid(toy(), batch=4, seed=2).recipe
        )


class TestUnreadable:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        from PIL import Image

        for number in range(12):
            Image.fromarray(np.full((6, 6, 3), 20 * number, np.uint8)).save(tmp_path / f"{number:02d}.bmp")
        for number in (2, 5, 6, 7, 11):
            path = tmp_path / f"{number:02d}.bmp"
            path.write_bytes(path.read_bytes()[:-60])
        return tmp_path

    @pytest.mark.parametrize("workers", [0, 2])
    def test_they_are_left_out_and_reported(self, folder: Path, workers: int) -> None:
        from synaptune.data import read_images

        stream = streams.iid(read_images(folder), shuffle=False, batch=3)
        playback = stream.play(workers=workers)
        batches = list(playback)
        assert [batch.index.tolist() for batch in batches] == [[0, 1], [3, 4], [8], [9, 10]]
        assert [batch.unreadable.tolist() for batch in batches] == [[2], [5], [6, 7], [11]]
        assert stream.reports["" or stream.domains[0].name].skipped[0][:2] == ("truncated", 5)

    def test_a_batch_of_which_nothing_is_left_does_not_come_but_its_reset_does(self, folder: Path) -> None:
        from synaptune.data import read_images

        whole = read_images(folder)
        domains = [Domain("first", whole.select([0, 1])), Domain("second", whole.select([5, 6, 3, 7, 2]))]
        playback = streams.one_by_one(domains, batch=2).play()
        batches = list(playback)
        assert [(batch.index.tolist(), batch.reset) for batch in batches] == [([0, 1], True), ([4], True)]
        assert batches[1].unreadable.tolist() == [2, 3, 5]
        assert playback.unreadable_at_end.tolist() == [6]

    def test_what_a_clock_dropped_before_an_unreadable_batch_is_not_forgotten(self, folder: Path) -> None:
        from synaptune.data import read_images

        # Batches of one; every third is seen: 0, 3, 6, 9. Number 6 cannot be read.
        clock = streams.Ticking(rate=1.0, cost_per_image=3.0)
        playback = streams.iid(read_images(folder), shuffle=False, batch=1, clock=clock).play()
        batches = list(playback)
        assert [batch.number for batch in batches] == [0, 3, 9]
        assert [batch.missed.tolist() for batch in batches] == [[], [1, 2], [4, 5, 7, 8]]
        assert batches[2].unreadable.tolist() == [6]
        assert playback.missed_at_end.tolist() == [10, 11]


class TestMemory:
    def test_long_streams_need_the_memory_of_one_visit(self) -> None:
        data = DataSet("big", "", np.zeros((50_000, 2, 2, 3), np.uint8), np.zeros(50_000, np.int64), ("a",))

        def peak(rounds: int) -> int:
            stream = streams.recurring(data, rounds=rounds, batch=1000)
            tracemalloc.start()
            for _ in stream:
                pass
            highest = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return highest

        peak(1)
        assert peak(6) < 1.3 * peak(1)

    def test_a_very_long_stream_is_planned_bit_by_bit(self) -> None:
        stream = streams.recurring(shifted(severities=[5]), rounds=10**9)
        first, second = (batch for batch, _ in zip(stream, range(2), strict=False))
        assert (first.domain, second.domain) == ("fog-5", "snow-5")
        assert stream.samples == 40 * 10**9


class TestBuilders:
    def test_made_domains_hold_corrupted_images(self, tmp_path: Path) -> None:
        from synaptune import shifts

        few = sample(6)
        domains = streams.made(few, ["fog", "contrast"], [1, 5], seed=2, root=tmp_path)
        assert [(domain.corruption, domain.severity) for domain in domains] == [
            ("fog", 1),
            ("fog", 5),
            ("contrast", 1),
            ("contrast", 5),
        ]
        (batch,) = streams.iid(domains[1], shuffle=False)
        expected = shifts.corrupt(np.asarray(few.images), "fog", 5, seed=2)
        assert torch.equal((batch.images * 255).round().byte(), torch.from_numpy(expected).permute(0, 3, 1, 2))

    def test_published_domains_are_read_from_disk(self, tmp_path: Path) -> None:
        folder = tmp_path / "CIFAR-10-C"
        folder.mkdir()
        for name in ("fog", "snow"):
            np.save(folder / f"{name}.npy", np.zeros((10, 32, 32, 3), np.uint8))
        np.save(folder / "labels.npy", np.zeros(10, np.uint8))
        domains = streams.published("cifar10-c", ["fog", "snow"], root=tmp_path)
        assert [domain.name for domain in domains] == ["fog-5", "snow-5"]
        with pytest.raises(DataError, match="is not on disk"):
            streams.published("cifar10-c", ["frost"], root=tmp_path)

    @pytest.mark.data
    def test_the_published_protocol_on_the_real_test_set(self) -> None:
        try:
            real = load("cifar10")
        except DataError as error:
            pytest.skip(str(error))
        lengths = [len(batch) for batch in streams.iid(real, shuffle=False)]
        assert lengths == [128] * 78 + [16]


def test_consecutive_numbers_without_a_clock() -> None:
    numbers = [batch.number for batch in streams.mixed(shifted(), batch=16)]
    assert all(after - before == 1 for before, after in pairwise(numbers))

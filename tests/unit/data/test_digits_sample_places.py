"""The digit pipeline, the bundled sample, the places to look, and the catalogue's facts."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from synaptune.data import DataSet, as_digits, data_root, entries, load, sample, shared_root
from synaptune.data.locate import find, search_roots
from synaptune.errors import DataError, InputError, OptionError

TEN = tuple("0123456789")


def digits(side: int) -> DataSet:
    grey = np.random.default_rng(0).integers(0, 256, (10, side, side, 1), np.uint8)
    return DataSet("toy", "test", np.repeat(grey, 3, axis=-1), np.arange(10), TEN)


class TestDigits:
    def test_the_map_of_the_svhn_network_puts_zero_last(self) -> None:
        mapped = as_digits(digits(32))
        assert mapped.labels.tolist() == [9, 0, 1, 2, 3, 4, 5, 6, 7, 8]
        assert [mapped.classes[label] for label in mapped.labels] == list(TEN), "names move along"

    def test_digits_can_be_left_as_they_are(self) -> None:
        assert as_digits(digits(32), "digit").labels.tolist() == list(range(10))

    @pytest.mark.parametrize("side", [16, 28, 40])
    def test_images_are_scaled_as_torchvision_scales_pictures(self, side: int) -> None:
        dataset = digits(side)
        ready = as_digits(dataset)
        assert ready.size == (32, 32)
        expected = [
            np.asarray(Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR)) for image in dataset.images
        ]
        np.testing.assert_array_equal(ready.images[:], expected)
        assert (ready.images[:, :, :, 0] == ready.images[:, :, :, 2]).all(), "the channels stay equal"

    def test_images_of_the_right_size_are_not_touched(self) -> None:
        dataset = digits(32)
        assert as_digits(dataset).images is dataset.images

    def test_the_steps_are_in_the_recipe(self) -> None:
        text = str(as_digits(digits(28)).recipe)
        assert "(digit - 1) mod 10" in text
        assert "resize=32" in text

    def test_other_sets_are_refused(self) -> None:
        with pytest.raises(InputError, match="not a set of digits"):
            as_digits(sample(1))


class TestSample:
    def test_it_is_what_was_bundled(self) -> None:
        whole = sample()
        assert whole.images.shape == (2000, 32, 32, 3)
        assert (
            hashlib.sha256(np.ascontiguousarray(whole.images).tobytes()).hexdigest()
            == "4946cb5ae9a2c68e6ca2da22e50da3b523358fd85ffaccfe834632e039845928"
        )
        assert (
            hashlib.sha256(whole.labels.astype("<i8").tobytes()).hexdigest()
            == "bfa4456a208773a3ce0dfa3f105c41f30e5c3feda7de4adbc7da02ea6bb63989"
        )

    @pytest.mark.data
    def test_it_equals_the_beginning_of_the_real_test_set(self) -> None:
        try:
            real = load("cifar10").take(2000)
        except DataError as error:
            pytest.skip(str(error))
        np.testing.assert_array_equal(sample().images, real.images)
        np.testing.assert_array_equal(sample().labels, real.labels)
        assert sample().classes == real.classes

    def test_a_part_can_be_taken(self) -> None:
        assert sample(5).labels.tolist() == [3, 8, 8, 0, 6]

    @pytest.mark.parametrize("count", [0, 2001, -1])
    def test_more_than_there_is_cannot(self, count: int) -> None:
        with pytest.raises(OptionError, match="2,000 images"):
            sample(count)


class TestPlaces:
    def test_the_environment_names_the_root(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SYNAPTUNE_DATA", str(tmp_path / "data"))
        assert data_root() == tmp_path / "data"
        assert data_root(tmp_path / "given") == tmp_path / "given"
        monkeypatch.delenv("SYNAPTUNE_DATA")
        assert data_root() == Path("~/.cache/synaptune").expanduser()
        assert data_root("~/x") == Path("~/x").expanduser()

    def test_the_shared_folder_is_used_only_if_it_exists(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SYNAPTUNE_SHARED", str(tmp_path / "shared"))
        assert shared_root() is None
        assert len(search_roots()) == 1
        (tmp_path / "shared").mkdir()
        assert shared_root() == tmp_path / "shared"
        (tmp_path / "shared/data").mkdir()
        assert shared_root() == tmp_path / "shared/data"
        assert search_roots()[-1] == tmp_path / "shared/data"

    def test_an_explicit_root_is_looked_at_alone(self, tmp_path: Path) -> None:
        assert search_roots(tmp_path) == (tmp_path,)

    def test_one_root_with_everything_comes_before_a_mixture(self, tmp_path: Path) -> None:
        first, second = tmp_path / "1", tmp_path / "2"
        for path in (first / "a", second / "a", second / "b"):
            path.parent.mkdir(exist_ok=True)
            path.touch()
        assert find(("a", "b"), (first, second)) == (second / "a", second / "b")
        (second / "a").unlink()
        assert find(("a", "b"), (first, second)) == (first / "a", second / "b")
        assert find(("a", "c"), (first, second)) is None


class TestCatalogue:
    def test_it_has_the_sets_that_were_asked_for(self) -> None:
        names = {entry.name for entry in entries()}
        assert names >= {
            "cifar10",
            "cifar100",
            "cifar10-c",
            "cifar100-c",
            "imagenet",
            "imagenet-5k",
            "imagenet-c",
            "imagenet-c-5k",
            "imagenet-sample",
            "tiny-imagenet",
            "tiny-imagenet-c",
            "svhn",
            "mnist",
            "usps",
            "mnist-m",
        }

    @pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
    def test_an_entry_is_consistent(self, entry: object) -> None:
        from synaptune.data import Entry

        assert isinstance(entry, Entry)
        assert entry.remotes or entry.manual
        assert set(entry.counts) == set(entry.splits)
        assert entry.home.startswith(("http://", "https://"))
        for remote in entry.remotes:
            for address in (remote.url, *remote.mirrors):
                assert re.match(r"https?://[^/ ]+/\S+$", address)
            assert remote.md5 is None or re.fullmatch("[0-9a-f]{32}", remote.md5)
            assert all(Path(path).is_relative_to(remote.into) for path in remote.gives)
        for file in entry.files:
            assert file.md5 is None or re.fullmatch("[0-9a-f]{32}", file.md5)
            assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
        for places in entry.splits.values():
            for place in places:
                wanted = {name for path in place.paths for name in re.findall(r"{(\w+)}", path)}
                assert wanted <= ({"corruption", "severity"} if entry.corruptions else set())

    def test_what_get_brings_is_where_load_looks(self) -> None:
        for entry in entries():
            given = {path for remote in entry.remotes for path in remote.gives}
            if not given or entry.manual:
                continue
            for split, places in entry.splits.items():
                corruption = entry.corruptions[0] if entry.corruptions else None
                wanted = [place.filled(corruption, 1) for place in places]
                assert any(
                    all(any(Path(path).is_relative_to(found) for found in given) for path in paths) for paths in wanted
                ), f"{entry.name}/{split}"

    def test_the_arrays_of_the_shifted_cifar_sets_have_checksums_of_their_own(self) -> None:
        sums = [file.md5 for entry in entries() if entry.name in ("cifar10-c", "cifar100-c") for file in entry.files]
        assert len(sums) == len(set(sums)) == 2 * (19 + 1)

"""Corrupted variants: kept on disk under their whole recipe, safely."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synaptune import shifts
from synaptune.data import DataSet, Progress, Recipe, corrupted, entries, made, remove_made, sample
from synaptune.data.made import KeptImages
from synaptune.errors import DataError, OptionError


class Shift:
    """Adds a number and the index to every pixel, and counts how often it is asked."""

    def __init__(self, amount: int = 1):
        self.amount, self.images_seen = amount, 0

    @property
    def recipe(self) -> Recipe:
        return Recipe.of(shift=self.amount)

    def __call__(self, images: Any, indices: Any) -> Any:
        self.images_seen += len(images)
        return (images + self.amount + indices[:, None, None, None]).astype(np.uint8)


def clean(count: int = 10, seed: int = 0) -> DataSet:
    pixels = np.random.default_rng(seed).integers(0, 100, (count, 4, 4, 3), np.uint8)
    return DataSet("toy", "test", pixels, np.arange(count) % 3, ("a", "b", "c"))


def expected(dataset: DataSet, amount: int = 1) -> Any:
    return np.asarray(dataset.images[:]) + amount + np.arange(len(dataset), dtype=np.uint8)[:, None, None, None]


def kept(root: Path) -> list[Path]:
    return sorted(path for path in (root / "made").rglob("*") if path.is_file())


@pytest.mark.parametrize("cache", [True, False])
def test_pixels_are_shifted_and_labels_stay(tmp_path: Path, cache: bool) -> None:
    dataset = clean()
    shifted = corrupted(dataset, Shift(), cache=cache, root=tmp_path)
    np.testing.assert_array_equal(shifted.images[[7, 2]], expected(dataset)[[7, 2]])
    assert shifted.labels.tolist() == dataset.labels.tolist()
    assert shifted.classes == dataset.classes


def test_nothing_is_computed_before_pixels_are_read(tmp_path: Path) -> None:
    shift = Shift()
    shifted = corrupted(clean(), shift, root=tmp_path)
    assert shifted.recipe.digest
    assert (shift.images_seen, kept(tmp_path)) == (0, [])


def test_the_first_reading_keeps_all_and_later_ones_map_it(tmp_path: Path) -> None:
    shift = Shift()
    corrupted(clean(), shift, root=tmp_path).images[0]
    assert shift.images_seen == 10
    again = Shift()
    shifted = corrupted(clean(), again, root=tmp_path)
    np.testing.assert_array_equal(shifted.images[:], expected(clean()))
    assert again.images_seen == 0
    assert isinstance(shifted.images, KeptImages)
    assert np.load(shifted.images.path, mmap_mode="r").shape == (10, 4, 4, 3)


def test_every_part_of_the_recipe_has_a_file_of_its_own(tmp_path: Path) -> None:
    for dataset, amount in ((clean(), 1), (clean(), 2), (clean(seed=1), 1), (clean(9), 1)):
        np.testing.assert_array_equal(
            corrupted(dataset, Shift(amount), root=tmp_path).images[:], expected(dataset, amount)
        )
    assert len([path for path in kept(tmp_path) if path.suffix == ".npy"]) == 4


def test_the_way_of_keeping_does_not_enter_the_recipe(tmp_path: Path) -> None:
    dataset = clean()
    assert (
        corrupted(dataset, Shift(), cache=False).recipe.digest
        == corrupted(dataset, Shift(), root=tmp_path).recipe.digest
    )


@pytest.mark.parametrize("damage", ["truncate", "garbage", "no note", "other shape", "bad note"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: str) -> None:
    dataset = clean()
    images = corrupted(dataset, Shift(), root=tmp_path).images
    assert isinstance(images, KeptImages)
    images[:]
    path, note = images.path, images.path.with_suffix(".json")
    if damage == "truncate":
        path.write_bytes(path.read_bytes()[:-10])
    elif damage == "garbage":
        path.write_bytes(b"garbage")
    elif damage == "no note":
        note.unlink()
    elif damage == "bad note":
        note.write_text("{")
    else:
        np.save(path, np.zeros((3, 4, 4, 3), np.uint8))
    np.testing.assert_array_equal(corrupted(dataset, Shift(), root=tmp_path).images[:], expected(dataset))


def test_a_failure_in_the_middle_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Shift):
        def __call__(self, images: Any, indices: Any) -> Any:
            if indices[0] > 0:
                raise RuntimeError("broken in the middle")
            return super().__call__(images, indices)

    monkeypatch.setattr(made, "_CHUNK", 4)
    with pytest.raises(RuntimeError, match="broken in the middle"):
        corrupted(clean(), Broken(), root=tmp_path).images[0]
    assert kept(tmp_path) == []
    np.testing.assert_array_equal(corrupted(clean(), Shift(), root=tmp_path).images[:], expected(clean()))


def test_a_full_disk_is_a_clear_error_that_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 10

    monkeypatch.setattr(made.shutil, "disk_usage", lambda path: Usage)
    with pytest.raises(DataError, match=r"480 bytes are needed, 10 are left.*cache=False"):
        corrupted(clean(), Shift(), root=tmp_path).images[0]
    assert kept(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "made").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot keep computed images.*cache=False"):
        corrupted(clean(), Shift(), root=tmp_path).images[0]


def test_progress_is_told_up_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Progress] = []
    monkeypatch.setattr(made, "_CHUNK", 4)
    corrupted(clean(), Shift(), root=tmp_path, progress=heard.append).images[0]
    assert [progress.done for progress in heard] == [192, 384, 480]
    assert {(progress.stage, progress.total) for progress in heard} == {("make", 480)}


def test_unreadable_clean_images_stay_unreadable_in_the_kept_file(tmp_path: Path) -> None:
    from PIL import Image

    from synaptune.data import read_images
    from synaptune.data.images import read_pixels

    for number in range(3):
        Image.fromarray(np.full((8, 8, 3), 10 * number, np.uint8)).save(tmp_path / f"{number}.bmp")
    content = (tmp_path / "1.bmp").read_bytes()
    (tmp_path / "1.bmp").write_bytes(content[:-50])
    for _ in range(2):
        shifted = corrupted(read_images(tmp_path), Shift(), root=tmp_path / "root")
        pixels, readable = read_pixels(shifted.images, np.arange(3))
        assert readable.tolist() == [True, False, True]
        assert pixels[:, 0, 0, 0].tolist() == [1, 23]


_RACE = """
import sys, time, hashlib
import numpy as np
from pathlib import Path
from synaptune.data import DataSet, Recipe, corrupted

class Slow:
    recipe = Recipe.of(shift="slow")
    def __call__(self, images, indices):
        time.sleep(0.05)
        return (images + indices[:, None, None, None]).astype(np.uint8)

pixels = np.random.default_rng(0).integers(0, 100, (1000, 4, 4, 3), np.uint8)
dataset = DataSet("toy", "test", pixels, np.zeros(1000, np.int64), ("a",))
while not Path(sys.argv[1], "go").exists():
    time.sleep(0.005)
print(hashlib.sha256(corrupted(dataset, Slow(), root=sys.argv[1]).images[:].tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_processes_that_make_the_same_file_at_once_all_see_it_whole(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", _RACE, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    (tmp_path / "go").touch()
    digests = {process.communicate(timeout=300)[0].strip() for process in processes}
    assert len(digests) == 1
    assert len(digests.pop()) == 64
    assert [path.suffix for path in kept(tmp_path)] == [".json", ".npy"]


def test_what_is_kept_can_be_removed(tmp_path: Path) -> None:
    corrupted(clean(), Shift(), root=tmp_path).images[0]
    size = sum(path.stat().st_size for path in kept(tmp_path))
    assert remove_made(tmp_path) == size > 480
    assert kept(tmp_path) == []
    assert remove_made(tmp_path) == 0


def test_common_corruptions_are_known_by_name(tmp_path: Path) -> None:
    few = sample(6)
    foggy = corrupted(few, "fog", 5, seed=3, root=tmp_path)
    np.testing.assert_array_equal(foggy.images[:], shifts.corrupt(np.asarray(few.images), "fog", 5, seed=3))
    note = json.loads(next(path for path in kept(tmp_path) if path.suffix == ".json").read_text())
    assert note["unreadable"] == []
    digests = {
        corrupted(few, name, severity, seed=seed, cache=False).recipe.digest
        for name, severity, seed in (("fog", 5, 3), ("fog", 4, 3), ("fog", 5, 4), ("snow", 5, 3))
    }
    assert len(digests) == 4


def test_a_name_needs_a_severity() -> None:
    with pytest.raises(OptionError, match="needs a severity"):
        corrupted(clean(), "fog")


def test_every_shift_of_the_published_sets_can_also_be_made() -> None:
    shifted = {entry.name: entry.corruptions for entry in entries() if entry.corruptions}
    assert set(shifted) == {"cifar10-c", "cifar100-c", "imagenet-c", "imagenet-c-5k", "tiny-imagenet-c"}
    assert set(shifted.values()) == {shifts.names("all")}

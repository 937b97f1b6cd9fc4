"""Corrupted copies on disk: the published layouts, resuming, refusing, and sources with bad files in them."""

from __future__ import annotations

import errno
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from synaptune import shifts
from synaptune.corrupting import files, tree, write_corrupted
from synaptune.data import DataSet
from synaptune.data.decode import Fit
from synaptune.data.readers.imagenet import imagenet_ids
from synaptune.errors import DataError, InputError, OptionError, UnknownNameError

TWO = ("fog", "contrast")


def noise(count: int, height: int = 12, width: int = 12, *, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3)).astype(np.uint8)


@pytest.fixture
def array(tmp_path: Path) -> Path:
    folder = tmp_path / "array"
    folder.mkdir()
    np.save(folder / "test.npy", noise(10))
    np.save(folder / "labels.npy", np.arange(10) % 3)
    return folder / "test.npy"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes, two sizes, several formats, and files that are no use."""
    folder = tmp_path / "photos"
    for number, (place, size) in enumerate(
        [("cat/a.png", (20, 16)), ("cat/b.jpg", (20, 16)), ("dog/c.JPEG", (30, 30)), ("dog/deep/d.webp", (20, 16))]
    ):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noise(1, *size, seed=number)[0]).save(path)
    (folder / "dog" / "broken.jpg").write_bytes((folder / "dog" / "c.JPEG").read_bytes()[:300])
    (folder / "dog" / "empty.png").touch()
    (folder / "notes.txt").write_text("not an image")
    return folder


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def kind(path: Path) -> tuple[str | None, tuple[int, int]]:
    with Image.open(path) as image:
        return image.format, image.size


def test_an_array_becomes_the_layout_of_cifar_10_c(array: Path, tmp_path: Path) -> None:
    report = write_corrupted(array, tmp_path / "out", corruptions=TWO, seed=4)
    assert files_in(tmp_path / "out") == {"fog.npy", "contrast.npy", "labels.npy", "recipe.json"}
    clean = np.load(array)
    for name in TWO:
        written = np.load(tmp_path / "out" / f"{name}.npy")
        assert written.shape == (50, 12, 12, 3)
        assert written.dtype == np.uint8
        for severity in shifts.SEVERITIES:
            part = written[10 * (severity - 1) : 10 * severity]
            assert np.array_equal(part, shifts.corrupt(clean, name, severity, seed=4))
    labels = np.load(tmp_path / "out" / "labels.npy")
    assert labels.dtype == np.uint8
    assert labels.tolist() == [n % 3 for n in range(10)] * 5
    assert (report.written, report.present) == (100, 0)
    assert "100 corrupted images written" in str(report)
    assert report.as_dict()["reading"]["found"] == 10


def test_the_written_set_reads_as_cifar_10_c(tmp_path: Path) -> None:
    from synaptune import data

    clean = DataSet("cifar10", "test", noise(6, 32, 32), np.arange(6))
    write_corrupted(clean, tmp_path / "CIFAR-10-C", corruptions=["snow"])
    loaded = data.load("cifar10-c", corruption="snow", severity=4, root=tmp_path)
    assert np.array_equal(loaded.images[:], shifts.corrupt(noise(6, 32, 32), "snow", 4))
    assert loaded.labels.tolist() == list(range(6))


def test_a_written_set_of_some_severities_reads_as_those_and_no_others(tmp_path: Path) -> None:
    from synaptune import data

    clean = DataSet("cifar10", "test", noise(10, 32, 32), np.arange(10))
    write_corrupted(clean, tmp_path / "CIFAR-10-C", corruptions=["snow"], severities=[5, 2])
    for severity in (5, 2):
        loaded = data.load("cifar10-c", corruption="snow", severity=severity, root=tmp_path)
        assert np.array_equal(loaded.images[:], shifts.corrupt(noise(10, 32, 32), "snow", severity))
        assert loaded.labels.tolist() == list(range(10))
    with pytest.raises(DataError, match="made with severity 5, 2 only, not 1"):
        data.load("cifar10-c", corruption="snow", severity=1, root=tmp_path)


@pytest.mark.parametrize("recipe", ["{", '{"severities": [7]}', '{"severities": 5}', '{"severities": []}'])
def test_a_damaged_recipe_beside_arrays_is_an_error(recipe: str, tmp_path: Path) -> None:
    from synaptune import data

    write_corrupted(DataSet("cifar10", "test", noise(5), np.arange(5)), tmp_path / "CIFAR-10-C", corruptions=["snow"])
    (tmp_path / "CIFAR-10-C" / "recipe.json").write_text(recipe)
    with pytest.raises(DataError, match=r"recipe\.json"):
        data.load("cifar10-c", corruption="snow", severity=1, root=tmp_path)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_workers_does_not_show(
    workers: int, array: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_BLOCK", 2)
    monkeypatch.setattr("synaptune.corrupting.arrays._CHUNK_VALUES", 3 * 12 * 12 * 3)
    write_corrupted(array, tmp_path / "arrays", corruptions=["gaussian_noise"], workers=workers)
    expected = shifts.corrupt(np.load(array), "gaussian_noise", 5)
    assert np.array_equal(np.load(tmp_path / "arrays" / "gaussian_noise.npy")[40:], expected)
    write_corrupted(photos, tmp_path / "tree", corruptions=["gaussian_noise"], lossless=True, workers=workers)
    digest = hash_of(tmp_path / "tree")
    write_corrupted(photos, tmp_path / "again", corruptions=["gaussian_noise"], lossless=True)
    assert hash_of(tmp_path / "again") == digest


def hash_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in files_in(folder)}


def test_a_folder_becomes_the_layout_of_imagenet_c(photos: Path, tmp_path: Path) -> None:
    report = write_corrupted(photos, tmp_path / "out", corruptions=TWO, severities=[3, 5])
    images = {"cat/a.png", "cat/b.jpg", "dog/c.JPEG", "dog/deep/d.webp.png"}
    expected = {f"{name}/{severity}/{image}" for name in TWO for severity in (3, 5) for image in images}
    assert files_in(tmp_path / "out") == expected | {"recipe.json"}
    assert report.written == 16
    assert report.reading.found == 7
    assert report.reading.lost == 3
    assert "skipped" in str(report)
    assert kind(tmp_path / "out/fog/3/cat/b.jpg") == ("JPEG", (16, 20))
    assert kind(tmp_path / "out/fog/3/dog/deep/d.webp.png") == ("PNG", (16, 20))
    assert kind(tmp_path / "out/fog/3/dog/c.JPEG") == ("JPEG", (30, 30))


def test_an_image_in_a_tree_depends_on_its_path_and_not_on_its_neighbours(photos: Path, tmp_path: Path) -> None:
    write_corrupted(photos, tmp_path / "all", corruptions=["gaussian_noise"], severities=[5])
    for name in ("cat/a.png", "dog/c.JPEG"):
        (photos / name).unlink()
    write_corrupted(photos, tmp_path / "few", corruptions=["gaussian_noise"], severities=[5])
    for name in files_in(tmp_path / "few") - {"recipe.json"}:
        assert (tmp_path / "few" / name).read_bytes() == (tmp_path / "all" / name).read_bytes()


def test_png_files_hold_the_very_pixels(photos: Path, tmp_path: Path) -> None:
    write_corrupted(photos, tmp_path / "out", corruptions=["contrast"], severities=[5], lossless=True)
    assert "contrast/5/cat/b.jpg.png" in files_in(tmp_path / "out")
    for clean, written in (("cat/a.png", "cat/a.png"), ("dog/c.JPEG", "dog/c.JPEG.png")):
        expected = shifts.corrupt(np.asarray(Image.open(photos / clean))[None], "contrast", 5)[0]
        assert np.array_equal(np.asarray(Image.open(tmp_path / "out/contrast/5" / written)), expected)


@pytest.mark.parametrize(("name", "lossless"), [("cat/b.jpg.png", True), ("dog/deep/d.webp.png", False)])
def test_no_image_is_written_over_another(name: str, lossless: bool, photos: Path, tmp_path: Path) -> None:
    Image.fromarray(noise(1)[0]).save(photos / name)
    with pytest.raises(InputError, match=f"would both be written as {name}; rename one of them"):
        write_corrupted(photos, tmp_path / "out", corruptions=["fog"], lossless=lossless)
    assert not (tmp_path / "out").exists()


def test_photographs_can_be_cropped_first(photos: Path, tmp_path: Path) -> None:
    fit = Fit(14, 14, shorter=16)
    write_corrupted(photos, tmp_path / "tree", corruptions=["fog"], severities=[1], fit=fit)
    assert kind(tmp_path / "tree/fog/1/dog/c.JPEG") == ("JPEG", (14, 14))
    report = write_corrupted(photos, tmp_path / "arrays", corruptions=["fog"], fit=fit, layout="arrays")
    assert np.load(tmp_path / "arrays/fog.npy").shape == (20, 14, 14, 3)
    assert np.load(tmp_path / "arrays/labels.npy").tolist() == [0, 0, 2, 1] * 5  # deep, cat, dog by name: cat deep dog
    assert report.reading.lost == 3


def test_a_data_set_can_become_a_tree(tmp_path: Path) -> None:
    named = DataSet("toy", "test", noise(3), np.array([1, 0, 1]), ("cat", "dog"))
    write_corrupted(named, tmp_path / "named", corruptions=["fog"], severities=[2], layout="tree")
    expected = {"fog/2/dog/00000.png", "fog/2/cat/00001.png", "fog/2/dog/00002.png", "recipe.json"}
    assert files_in(tmp_path / "named") == expected
    written = np.asarray(Image.open(tmp_path / "named/fog/2/cat/00001.png"))
    assert np.array_equal(written, shifts.corrupt(noise(3), "fog", 2)[1])
    write_corrupted(noise(1), tmp_path / "bare", corruptions=["fog"], severities=[2], layout="tree")
    assert "fog/2/unlabelled/00000.png" in files_in(tmp_path / "bare")


def test_two_classes_of_one_name_are_not_thrown_together(tmp_path: Path) -> None:
    birds_and_machines = DataSet("toy", "test", noise(2), np.array([0, 1]), ("crane", "crane"))
    with pytest.raises(InputError, match="several classes of toy have the same name"):
        write_corrupted(birds_and_machines, tmp_path / "out", corruptions=["fog"], layout="tree")


@pytest.fixture
def validation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three images of ImageNet, two of them of the classes that are both called crane, and RobustBench's list."""
    places = [f"{imagenet_ids()[label]}/ILSVRC2012_val_0000000{label % 10}.JPEG" for label in (517, 0, 134)]
    for number, place in enumerate(places):
        path = tmp_path / "imagenet/val" / place
        path.parent.mkdir(parents=True)
        Image.fromarray(noise(1, 224, 224, seed=number)[0]).save(path)
    (tmp_path / "robustbench").mkdir()
    (tmp_path / "robustbench/imagenet_test_image_ids.txt").write_text("\n".join(places))
    monkeypatch.setenv("SYNAPTUNE_DATA", str(tmp_path))
    return places


@pytest.mark.parametrize(("name", "labels"), [("imagenet", [0, 134, 517]), ("imagenet-5k", [517, 0, 134])])
def test_imagenet_becomes_a_tree_that_reads_as_imagenet_c(
    name: str, labels: list[int], validation: list[str], tmp_path: Path
) -> None:
    from synaptune import data

    write_corrupted(name, tmp_path / "ImageNet-C", corruptions=["fog"], severities=[3], layout="tree")
    assert files_in(tmp_path / "ImageNet-C/fog/3") == set(validation)
    clean = data.load(name)
    assert clean.labels.tolist() == labels
    made = data.load(name.replace("imagenet", "imagenet-c"), corruption="fog", severity=3)
    assert made.labels.tolist() == labels
    difference = made.images[:].astype(int) - shifts.corrupt(clean.images[:], "fog", 3)
    assert np.abs(difference).mean() < 10  # saved as JPEG, as published


def test_a_set_without_a_test_split_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tar = tmp_path / "imagenet_sample/imagenet_sample_224.tar"
    tar.parent.mkdir()
    photo = tmp_path / "a.JPEG"
    Image.fromarray(noise(1, 224, 224)[0]).save(photo)
    with tarfile.open(tar, "w:") as file:
        file.add(photo, f"{imagenet_ids()[3]}/a.JPEG")
    monkeypatch.setenv("SYNAPTUNE_DATA", str(tmp_path))
    write_corrupted("imagenet-sample", tmp_path / "out", corruptions=["fog"], severities=[1], layout="tree")
    assert f"fog/1/{imagenet_ids()[3]}/a.JPEG" in files_in(tmp_path / "out")


def test_a_set_that_is_corrupted_already_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="imagenet-c-5k is corrupted already; name the clean set, imagenet-5k"):
        write_corrupted("imagenet-c-5k", tmp_path / "out")


def test_two_processes_do_not_write_into_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fog.npy"
    with files.whole_file(path) as mine:
        mine.write(b"whole ")
        with monkeypatch.context() as patch:
            patch.setattr(files.os, "getpid", lambda: -1)
            with files.whole_file(path) as other:
                other.write(b"whole file")
        assert path.read_bytes() == b"whole file"
        mine.write(b"file")
    assert path.read_bytes() == b"whole file"
    assert files_in(tmp_path) == {"fog.npy"}


def test_arrays_without_labels_get_none(tmp_path: Path) -> None:
    write_corrupted(noise(2), tmp_path / "bare", corruptions=["fog"])
    assert files_in(tmp_path / "bare") == {"fog.npy", "recipe.json"}
    write_corrupted(noise(2), tmp_path / "many", corruptions=["fog"], labels=np.array([1, 999]), severities=[1])
    assert np.load(tmp_path / "many/labels.npy").tolist() == [1, 999]


def test_a_second_run_makes_only_what_is_missing(array: Path, photos: Path, tmp_path: Path) -> None:
    write_corrupted(array, tmp_path / "arrays", corruptions=["fog"])
    before = (tmp_path / "arrays/fog.npy").stat().st_mtime_ns
    report = write_corrupted(array, tmp_path / "arrays", corruptions=TWO)
    assert (report.written, report.present) == (50, 50)
    assert (tmp_path / "arrays/fog.npy").stat().st_mtime_ns == before
    assert json.loads((tmp_path / "arrays/recipe.json").read_text())["corruptions"] == ["fog", "contrast"]

    write_corrupted(photos, tmp_path / "tree", corruptions=TWO, severities=[1])
    (tmp_path / "tree/fog/1/cat/b.jpg").unlink()
    report = write_corrupted(photos, tmp_path / "tree", corruptions=TWO, severities=[1, 2])
    assert (report.written, report.present) == (1 + 8, 7)
    assert json.loads((tmp_path / "tree/recipe.json").read_text())["severities"] == [1, 2]


@pytest.mark.parametrize("change", [{"seed": 1}, {"size": 32}, {"severities": [5]}])
def test_another_recipe_is_refused(change: dict[str, object], array: Path, tmp_path: Path) -> None:
    write_corrupted(array, tmp_path / "out", corruptions=["fog"])
    before = hash_of(tmp_path / "out")
    with pytest.raises(OptionError, match=rf"made by another recipe \({next(iter(change))} was"):
        write_corrupted(array, tmp_path / "out", corruptions=TWO, **change)  # type: ignore[arg-type]
    assert hash_of(tmp_path / "out") == before


def test_another_source_or_other_textures_are_refused(
    array: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_corrupted(array, tmp_path / "out", corruptions=["fog"])
    np.save(array, noise(10, seed=1))
    with pytest.raises(OptionError, match="content was"):
        write_corrupted(array, tmp_path / "out", corruptions=["fog"])
    monkeypatch.setattr(files, "frost_source", lambda: "one")
    write_corrupted(array, tmp_path / "frosted", corruptions=["fog"])
    write_corrupted(array, tmp_path / "frosted", corruptions=["frost"])
    monkeypatch.setattr(files, "frost_source", lambda: "other")
    write_corrupted(array, tmp_path / "frosted", corruptions=["contrast"])
    with pytest.raises(OptionError, match="frost was 'one' and is 'other'"):
        write_corrupted(array, tmp_path / "frosted", corruptions=["frost"])


def test_folders_that_were_not_made_here_are_left_alone(array: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(OptionError, match=r"no recipe\.json"):
        write_corrupted(array, mine)
    assert files_in(mine) == {"thesis.txt"}
    (mine / "thesis.txt").rename(mine / "recipe.json")
    with pytest.raises(DataError, match="cannot be read"):
        write_corrupted(array, mine)


def test_a_destination_in_the_source_is_refused(photos: Path) -> None:
    for destination in (photos, photos / "out", photos / "cat" / "out"):
        with pytest.raises(OptionError, match="would corrupt the corrupted"):
            write_corrupted(photos, destination)


class FullDiskError(OSError):
    pass


@pytest.mark.parametrize("layout", ["arrays", "tree"])
def test_a_full_disk_leaves_nothing_that_looks_whole(
    layout: str, array: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_corrupted(array, tmp_path / "out", corruptions=["contrast"], layout=layout)  # type: ignore[arg-type]
    before = hash_of(tmp_path / "out")
    real_open = Path.open

    def open_on_a_full_disk(path: Path, *args: object, **options: object) -> object:
        file = real_open(path, *args, **options)  # type: ignore[arg-type]
        if path.name.endswith(".partial") and "recipe" not in path.name and "labels" not in path.name:
            file.close()
            raise OSError(errno.ENOSPC, "No space left on device")
        return file

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", open_on_a_full_disk)
        with pytest.raises(DataError, match=r"No space left on device\); what was made before is whole"):
            write_corrupted(array, tmp_path / "out", corruptions=TWO, layout=layout)  # type: ignore[arg-type]
    after = hash_of(tmp_path / "out")
    assert {name for name in after if name not in before} <= set()
    report = write_corrupted(array, tmp_path / "out", corruptions=TWO, layout=layout)  # type: ignore[arg-type]
    assert (report.written, report.present) == (50, 50)


def test_an_interrupted_array_is_made_again(array: Path, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        assert total == 100
        if done > 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_corrupted(array, tmp_path / "out", corruptions=TWO, progress=interrupt)
    assert files_in(tmp_path / "out") == {"fog.npy", "labels.npy", "recipe.json"}
    report = write_corrupted(array, tmp_path / "out", corruptions=TWO)
    assert (report.written, report.present) == (50, 50)


def test_progress_ends_at_the_total(array: Path, photos: Path, tmp_path: Path) -> None:
    for number, source in enumerate((array, photos)):
        seen: list[tuple[int, int]] = []
        write_corrupted(
            source, tmp_path / str(number), corruptions=TWO, progress=lambda d, t, seen=seen: seen.append((d, t))
        )
        assert seen == sorted(seen)
        assert seen[-1][0] == seen[-1][1]


def test_files_that_break_later_are_skipped(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = (photos / "cat/b.jpg").read_bytes()
    real_plan = files.Plan.stamp

    def damage_then_stamp(plan: files.Plan, **source: object) -> dict[str, object]:
        (photos / "cat/b.jpg").write_bytes(whole[:200])
        return real_plan(plan, **source)

    monkeypatch.setattr(files.Plan, "stamp", damage_then_stamp)
    seen: list[tuple[int, int]] = []
    report = write_corrupted(
        photos, tmp_path / "out", corruptions=["fog"], progress=lambda done, total: seen.append((done, total))
    )
    assert report.written == 15
    assert report.reading.lost == 4
    assert seen[-1] == (20, 20)


def test_bad_sources_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"neither a file or folder nor a known data set \(.*cifar10"):
        write_corrupted("cifar01", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no image"):
        write_corrupted(tmp_path / "empty", tmp_path / "out")
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(DataError, match=r"not a complete \.npy"):
        write_corrupted(tmp_path / "bad.npy", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_bad_options_are_refused_before_anything_is_written(array: Path, tmp_path: Path) -> None:
    for options, error in (
        ({"corruptions": ["fgo"]}, UnknownNameError),
        ({"corruptions": []}, OptionError),
        ({"severities": [0]}, OptionError),
        ({"workers": 0}, OptionError),
    ):
        with pytest.raises(error):
            write_corrupted(array, tmp_path / "out", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_labels_are_refused_where_the_source_has_its_own(photos: Path, tmp_path: Path) -> None:
    named = DataSet("toy", "test", noise(3), np.array([1, 0, 1]), ("cat", "dog"))
    for source in (photos, named):
        with pytest.raises(OptionError, match=r"labels= \(--labels\) goes with a \.npy file or an array"):
            write_corrupted(source, tmp_path / "out", corruptions=["fog"], labels=np.array([0, 1, 0]))
    assert not (tmp_path / "out").exists()


def test_a_size_is_refused_where_images_have_one_already(array: Path, tmp_path: Path) -> None:
    named = DataSet("toy", "test", noise(3), np.array([1, 0, 1]), ("cat", "dog"))
    for source in (array, noise(3), named):
        with pytest.raises(OptionError, match=r"fit= \(--fit\) brings image files to one size"):
            write_corrupted(source, tmp_path / "out", corruptions=["fog"], fit=Fit(8, 8))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("labels", [np.array([0.0, 1.9]), np.array(["cat", "dog"]), np.array([True, False])], ids=str)
def test_labels_that_are_not_whole_numbers_are_refused(labels: NDArray[Any], array: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "wrong.npy", labels)
    for given in (labels, tmp_path / "wrong.npy"):
        with pytest.raises(InputError, match=r"array: labels must be whole numbers, one for each image, not .* \(2,\)"):
            write_corrupted(noise(2), tmp_path / "out", corruptions=["fog"], labels=given)
    np.save(array.with_name("labels.npy"), np.zeros(10))
    with pytest.raises(InputError, match=r"test: labels must be whole numbers.*not float64 \(10,\)"):
        write_corrupted(array, tmp_path / "out", corruptions=["fog"])
    assert not (tmp_path / "out").exists()


def test_arrays_that_hold_no_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no image; nothing was written"):
        write_corrupted(noise(0), tmp_path / "out", corruptions=["fog"])
    with pytest.raises(InputError, match=r"images must be uint8 \(n, height, width, 3\), not uint8 \(\)"):
        write_corrupted(np.array(3, np.uint8), tmp_path / "out", corruptions=["fog"])
    assert not (tmp_path / "out").exists()


def test_threads_keep_the_order_and_pass_errors_on() -> None:
    assert list(files.in_order(str, range(50), workers=4)) == [str(number) for number in range(50)]
    assert list(files.in_order(str, [], workers=4)) == []

    def fail_on_three(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    results = files.in_order(fail_on_three, range(10), workers=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)

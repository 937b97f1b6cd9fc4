"""Every published format, read from small files made in it."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import io
import pickle
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
from PIL import Image

from synaptune.data import DataSet, load, shared_root
from synaptune.data.catalogue import entry_named
from synaptune.data.entry import Place, Request
from synaptune.data.images import JoinedImages
from synaptune.data.readers.corrupted_arrays import load_array
from synaptune.data.readers.imagenet import imagenet_ids, imagenet_names
from synaptune.errors import DataError, InputError, OptionError, UnknownNameError

GENERATOR_SEED = 7


@pytest.fixture
def pixels() -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(GENERATOR_SEED).integers(0, 256, (10, 32, 32, 3), np.uint8)


@pytest.fixture
def labels() -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.random.default_rng(GENERATOR_SEED).integers(0, 10, 10)


def planes(pixels: Any) -> Any:
    return pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)


def assert_holds(dataset: DataSet, pixels: Any, labels: Any) -> None:
    np.testing.assert_array_equal(np.asarray(dataset.images[:]), pixels)
    np.testing.assert_array_equal(dataset.labels, labels)
    assert dataset.labels.dtype == np.int64


def write_binary(path: Path, pixels: Any, *label_columns: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    columns = [np.asarray(column, np.uint8)[:, None] for column in label_columns]
    path.write_bytes(np.concatenate([*columns, planes(pixels)], axis=1).tobytes())


def test_cifar10_binary_is_mapped_and_not_copied(tmp_path: Path, pixels: Any, labels: Any) -> None:
    write_binary(tmp_path / "cifar-10-batches-bin/test_batch.bin", pixels, labels)
    dataset = load("cifar10", root=tmp_path)
    assert_holds(dataset, pixels, labels)
    assert isinstance(dataset.images, np.memmap)
    assert dataset.classes[3] == "cat"


def test_cifar10_training_files_are_joined_in_order(tmp_path: Path, pixels: Any, labels: Any) -> None:
    for number in range(5):
        part = slice(2 * number, 2 * number + 2)
        write_binary(tmp_path / f"cifar-10-batches-bin/data_batch_{number + 1}.bin", pixels[part], labels[part])
    dataset = load("cifar10", "train", root=tmp_path)
    assert isinstance(dataset.images, JoinedImages)
    assert_holds(dataset, pixels, labels)


def test_cifar10_python_equals_binary(tmp_path: Path, pixels: Any, labels: Any) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    content = {b"data": planes(pixels).copy(), b"labels": labels.tolist(), b"filenames": [b"a.png"] * 10}
    (folder / "test_batch").write_bytes(pickle.dumps(content, protocol=2))
    dataset = load("cifar10", root=tmp_path)
    assert_holds(dataset, pixels, labels)
    write_binary(tmp_path / "cifar-10-batches-bin/test_batch.bin", pixels, labels)
    assert load("cifar10", root=tmp_path).fingerprint == dataset.fingerprint


def test_cifar100_takes_the_fine_labels_in_both_versions(tmp_path: Path, pixels: Any) -> None:
    coarse, fine = np.arange(10) % 20, np.arange(90, 100)
    write_binary(tmp_path / "cifar-100-binary/test.bin", pixels, coarse, fine)
    assert_holds(load("cifar100", root=tmp_path), pixels, fine)
    other = tmp_path / "other"
    (other / "cifar-100-python").mkdir(parents=True)
    content = {b"data": planes(pixels).copy(), b"coarse_labels": coarse.tolist(), b"fine_labels": fine.tolist()}
    (other / "cifar-100-python/test").write_bytes(pickle.dumps(content, protocol=2))
    dataset = load("cifar100", root=other)
    assert_holds(dataset, pixels, fine)
    assert len(dataset.classes) == len(set(dataset.classes)) == 100
    assert dataset.classes[99] == "worm"


@pytest.mark.parametrize("size", [0, 3072, 3073 * 2 - 1])
def test_a_half_written_binary_file_is_an_error(tmp_path: Path, size: int) -> None:
    path = tmp_path / "cifar-10-batches-bin/test_batch.bin"
    path.parent.mkdir()
    path.write_bytes(b"\1" * size)
    with pytest.raises(DataError, match=r"not complete.*synaptune data get cifar10"):
        load("cifar10", root=tmp_path)


def write_corrupted(root: Path, pixels: Any, labels: Any) -> None:
    folder = root / "CIFAR-10-C"
    folder.mkdir()
    np.save(folder / "fog.npy", np.concatenate([pixels // severity for severity in (1, 2, 3, 4, 5)]))
    np.save(folder / "labels.npy", np.tile(labels, 5).astype(np.uint8))


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_the_severities_of_cifar10_c_lie_one_after_the_other(
    tmp_path: Path, pixels: Any, labels: Any, severity: int
) -> None:
    write_corrupted(tmp_path, pixels, labels)
    dataset = load("cifar10-c", root=tmp_path, corruption="fog", severity=severity)
    assert_holds(dataset, pixels // severity, labels)
    assert isinstance(dataset.images, np.memmap)


def test_a_root_that_is_the_folder_itself_is_understood(tmp_path: Path, pixels: Any, labels: Any) -> None:
    write_corrupted(tmp_path, pixels, labels)
    assert len(load("cifar10-c", root=tmp_path / "CIFAR-10-C", corruption="fog", severity=1)) == 10


def test_labels_of_one_severity_only_are_accepted(tmp_path: Path, pixels: Any, labels: Any) -> None:
    write_corrupted(tmp_path, pixels, labels)
    np.save(tmp_path / "CIFAR-10-C/labels.npy", labels)
    assert_holds(load("cifar10-c", root=tmp_path, corruption="fog", severity=4), pixels // 4, labels)


def test_a_truncated_array_is_an_error(tmp_path: Path, pixels: Any, labels: Any) -> None:
    write_corrupted(tmp_path, pixels, labels)
    path = tmp_path / "CIFAR-10-C/fog.npy"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="not a complete"):
        load("cifar10-c", root=tmp_path, corruption="fog", severity=1)


def test_an_array_with_objects_is_never_unpickled(tmp_path: Path, pixels: Any, labels: Any) -> None:
    write_corrupted(tmp_path, pixels, labels)
    np.save(tmp_path / "CIFAR-10-C/fog.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not a complete"):
        load("cifar10-c", root=tmp_path, corruption="fog", severity=1)


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (((",  # ends in the middle of an expression
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (10,), }\n  stray\n indented",
        b"{'descr': 'nonsense', 'fortran_order': False, 'shape': (10,), }",
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (-3, 32), }",
        b"\x00\xff\xfe" * 10,
    ],
)
def test_a_damaged_header_of_an_array_is_an_error(tmp_path: Path, pixels: Any, labels: Any, header: bytes) -> None:
    write_corrupted(tmp_path, pixels, labels)
    path = tmp_path / "CIFAR-10-C/fog.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n" + bytes(100))
    with pytest.raises(DataError, match=r"fog\.npy is not a complete \.npy file of numbers.*get or make it again"):
        load("cifar10-c", root=tmp_path, corruption="fog", severity=1)


def test_something_else_under_the_name_of_an_array_is_not_recommended_for_unpickling(tmp_path: Path) -> None:
    path = tmp_path / "images.npy"
    for content in (b"", b"<html>", pickle.dumps({}), b"PK\x03\x04 an archive"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="does not begin like one") as caught:
            load_array(path)
        assert "pickle" not in str(caught.value)
    with pytest.raises(DataError, match=r"there is no file .*absent\.npy"):
        load_array(tmp_path / "absent.npy")
    with pytest.raises(DataError, match=r"not a complete \.npy file"):
        load_array(tmp_path)


def test_an_array_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "images.npy", np.zeros(3))

    def refuse(path: Path, *args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"images\.npy may not be read; correct its permissions"):
        load_array(tmp_path / "images.npy")


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (
            IndexError("list index out of range"),
            r"data\.bin: damaged \(list index out of range\); delete it and get it",
        ),
        (InputError("labels must lie between"), r"data\.bin: damaged \(labels must lie between\)"),
        (MemoryError(), r"data\.bin: not enough memory to read it; close other programs"),
        (PermissionError(13, "Permission denied"), r"is on disk but cannot be read.*check the permissions"),
        (DataError("as it is"), "^as it is$"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_whatever_a_reader_stumbles_over_names_the_file(tmp_path: Path, problem: Exception, words: str) -> None:
    def read(request: Request) -> DataSet:
        raise problem

    entry = dataclasses.replace(entry_named("cifar10"), splits={"test": (Place(("data.bin",), read),)})
    (tmp_path / "data.bin").touch()
    with pytest.raises(DataError, match=words):
        load(entry, root=tmp_path)


def test_a_label_that_no_class_has_is_damage(tmp_path: Path, pixels: Any, labels: Any) -> None:
    write_binary(tmp_path / "cifar-10-batches-bin/test_batch.bin", pixels, labels + 200)
    with pytest.raises(DataError, match=r"test_batch\.bin: damaged .*labels must lie between -1 \(unknown\) and 9"):
        load("cifar10", root=tmp_path)


@pytest.mark.parametrize(
    ("choice", "error", "words"),
    [
        ({}, OptionError, "needs corruption="),
        ({"corruption": "fogg", "severity": 1}, UnknownNameError, "did you mean fog"),
        ({"corruption": "fog", "severity": 6}, OptionError, "1, 2, 3, 4 or 5"),
        ({"corruption": "snow", "severity": 1}, DataError, r"CIFAR-10-C/snow\.npy.*synaptune data get cifar10-c"),
    ],
)
def test_a_wrong_choice_of_shift_is_explained(
    tmp_path: Path, pixels: Any, labels: Any, choice: Any, error: type[Exception], words: str
) -> None:
    write_corrupted(tmp_path, pixels, labels)
    with pytest.raises(error, match=words):
        load("cifar10-c", root=tmp_path, **choice)


def test_a_clean_set_takes_no_corruption(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="is a clean set"):
        load("cifar10", root=tmp_path, corruption="fog", severity=1)


def idx(array: Any) -> bytes:
    return struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_mnist_is_read_plain_and_zipped_with_three_equal_channels(tmp_path: Path, labels: Any, ending: str) -> None:
    grey = np.random.default_rng(0).integers(0, 256, (10, 28, 28), np.uint8)
    folder = tmp_path / "MNIST/raw"
    folder.mkdir(parents=True)
    wrap: Callable[[bytes], bytes] = gzip.compress if ending else bytes
    (folder / f"t10k-images-idx3-ubyte{ending}").write_bytes(wrap(idx(grey)))
    (folder / f"t10k-labels-idx1-ubyte{ending}").write_bytes(wrap(idx(labels.astype(np.uint8))))
    assert_holds(load("mnist", root=tmp_path), np.repeat(grey[..., None], 3, axis=-1), labels)


@pytest.mark.parametrize("damage", ["short", "long", "header", "gzip"])
def test_a_damaged_idx_file_is_an_error(tmp_path: Path, damage: str) -> None:
    content = idx(np.zeros((10, 28, 28), np.uint8))
    damaged = {
        "short": content[:-5],
        "long": content + b"x",
        "header": b"\1" + content[1:],
        "gzip": gzip.compress(content)[:-9],
    }[damage]
    ending = ".gz" if damage == "gzip" else ""
    folder = tmp_path / "MNIST/raw"
    folder.mkdir(parents=True)
    (folder / f"t10k-images-idx3-ubyte{ending}").write_bytes(damaged)
    (folder / f"t10k-labels-idx1-ubyte{ending}").write_bytes(idx(np.zeros(10, np.uint8)))
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte"):
        load("mnist", root=tmp_path)


def test_svhn_counts_ten_as_digit_zero(tmp_path: Path, pixels: Any) -> None:
    (tmp_path / "svhn").mkdir()
    raw = np.arange(1, 11, dtype=np.uint8)
    scipy.io.savemat(tmp_path / "svhn/test_32x32.mat", {"X": pixels.transpose(1, 2, 3, 0), "y": raw[:, None]})
    assert_holds(load("svhn", root=tmp_path), pixels, raw % 10)


def test_a_damaged_mat_file_is_an_error(tmp_path: Path, pixels: Any) -> None:
    (tmp_path / "svhn").mkdir()
    path = tmp_path / "svhn/test_32x32.mat"
    scipy.io.savemat(path, {"X": pixels.transpose(1, 2, 3, 0), "y": np.ones((10, 1), np.uint8)})
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(DataError, match="not a complete MATLAB file"):
        load("svhn", root=tmp_path)


def libsvm(values: Any, digits: Any) -> bytes:
    lines = [
        f"{digit + 1} " + " ".join(f"{place}:{value:g}" for place, value in enumerate(row, 1) if value != 0)
        for row, digit in zip(values, digits, strict=True)
    ]
    return "\n".join(lines).encode() + b"\n"


@pytest.mark.parametrize("with_zeros", [False, True], ids=["dense", "sparse"])
def test_usps_text_maps_labels_and_grey_values(tmp_path: Path, labels: Any, with_zeros: bool) -> None:
    values = np.random.default_rng(0).choice([-1.0, -0.5, 0.25, 1.0, 0.0][: 5 if with_zeros else 4], (10, 256))
    (tmp_path / "usps").mkdir()
    (tmp_path / "usps/usps.t.bz2").write_bytes(bz2.compress(libsvm(values, labels)))
    grey = np.rint((values + 1) / 2 * 255).astype(np.uint8).reshape(10, 16, 16, 1)
    assert_holds(load("usps", root=tmp_path), np.repeat(grey, 3, axis=-1), labels)


def test_usps_hdf5_gives_the_same(tmp_path: Path, labels: Any) -> None:
    grey = np.random.default_rng(0).integers(0, 256, (10, 256), np.uint8)
    (tmp_path / "usps").mkdir()
    with h5py.File(tmp_path / "usps/usps.h5", "w") as file:
        for split in ("train", "test"):
            file[f"{split}/data"], file[f"{split}/target"] = (grey / 255).astype(np.float32), labels
    assert_holds(load("usps", root=tmp_path), np.repeat(grey.reshape(10, 16, 16, 1), 3, axis=-1), labels)


@pytest.mark.parametrize(
    "content", [bz2.compress(b"1 1:0.5 400:1\n"), bz2.compress(b"1 1:0.5")[:-4], bz2.compress(b"<html>"), b"no bz2"]
)
def test_damaged_usps_text_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "usps").mkdir()
    (tmp_path / "usps/usps.t.bz2").write_bytes(content)
    with pytest.raises(DataError, match="not complete libsvm text"):
        load("usps", root=tmp_path)


def test_a_missing_extra_is_named_with_its_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "usps").mkdir()
    (tmp_path / "usps/usps.h5").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(DataError, match=r"needs h5py: pip install 'synaptune\[data\]'"):
        load("usps", root=tmp_path)


def png(image: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()


def test_mnist_m_reads_the_same_from_folder_and_tar(tmp_path: Path, pixels: Any, labels: Any) -> None:
    folder = tmp_path / "mnist_m"
    (folder / "mnist_m_test").mkdir(parents=True)
    order = np.random.default_rng(0).permutation(10)
    for number in range(10):
        (folder / f"mnist_m_test/{number:08d}.png").write_bytes(png(pixels[number]))
    listing = "".join(f"{number:08d}.png {labels[number]}\n" for number in order)
    (folder / "mnist_m_test_labels.txt").write_text(listing)
    from_folder = load("mnist-m", root=tmp_path)
    assert_holds(from_folder, pixels[order], labels[order])
    with tarfile.open(folder / "mnist_m_test.tar", "w") as tar:
        tar.add(folder / "mnist_m_test", "mnist_m/mnist_m_test")
        tar.add(folder / "mnist_m_test_labels.txt", "mnist_m/mnist_m_test_labels.txt")
    (folder / "mnist_m_test_labels.txt").unlink()
    from_tar = load("mnist-m", root=tmp_path)
    assert_holds(from_tar, pixels[order], labels[order])
    assert from_tar.fingerprint == from_folder.fingerprint


def test_listed_images_that_are_missing_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "mnist_m/mnist_m_test").mkdir(parents=True)
    (tmp_path / "mnist_m/mnist_m_test_labels.txt").write_text("00000000.png 7\n")
    with pytest.raises(DataError, match=r"1 of 1 listed images are not there.*00000000\.png"):
        load("mnist-m", root=tmp_path)


LISTS = [
    (b"<html>\n<body>not found</body>\n", "is not a list of NAME LABEL lines: '<html>'"),
    (b"00000000.png\n", "is not a list of NAME LABEL lines: '00000000.png'"),
    (b"00000000.png seven\n", "is not a list of NAME LABEL lines: '00000000.png seven'"),
    (b"00000000.png -7\n", "is not a list of NAME LABEL lines"),
    (b"00000000.png 7 7\n", "is not a list of NAME LABEL lines"),
    (b"\x89PNG\r\n\x1a\n", "is not plain text"),
    (b"\n \n", "is an empty list"),
]


@pytest.mark.parametrize(("content", "words"), LISTS)
def test_junk_in_place_of_a_list_of_labels_is_an_error(tmp_path: Path, content: bytes, words: str) -> None:
    folder = tmp_path / "mnist_m"
    (folder / "mnist_m_test").mkdir(parents=True)
    (folder / "mnist_m_test_labels.txt").write_bytes(content)
    with pytest.raises(DataError, match=rf"mnist_m_test_labels\.txt {words}.*get it again"):
        load("mnist-m", root=tmp_path)
    with tarfile.open(folder / "mnist_m_test.tar", "w") as tar:
        tar.add(folder / "mnist_m_test_labels.txt", "mnist_m/mnist_m_test_labels.txt")
    (folder / "mnist_m_test_labels.txt").unlink()
    with pytest.raises(DataError, match=rf"mnist_m_test\.tar/.*mnist_m_test_labels\.txt {words}.*get it again"):
        load("mnist-m", root=tmp_path)


def test_a_truncated_tar_is_an_error(tmp_path: Path, pixels: Any) -> None:
    (tmp_path / "mnist_m").mkdir()
    path = tmp_path / "mnist_m/mnist_m_test.tar"
    with tarfile.open(path, "w") as tar:
        content = png(pixels[0])
        member = tarfile.TarInfo("mnist_m_test/0.png")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    path.write_bytes(path.read_bytes()[:1500])
    with pytest.raises(DataError, match=r"mnist_m_test\.tar"):
        load("mnist-m", root=tmp_path)


def write_jpeg(path: Path, colour: int, size: tuple[int, int] = (224, 224)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (colour, colour, colour)).save(path, "JPEG", quality=95)


def brightness(dataset: DataSet) -> list[int]:
    return [int(image.mean().round()) for image in np.asarray(dataset.images[:])]


def test_labels_of_a_partial_imagenet_c_tree_come_from_the_full_list(tmp_path: Path) -> None:
    ids = imagenet_ids()
    for colour, label in ((10, 999), (20, 0), (30, 500)):
        write_jpeg(tmp_path / f"ImageNet-C/fog/3/{ids[label]}/a.JPEG", colour)
    dataset = load("imagenet-c", root=tmp_path, corruption="fog", severity=3)
    assert dataset.labels.tolist() == [0, 500, 999]
    assert brightness(dataset) == [20, 30, 10]
    assert dataset.split == "val", "the test labels of ImageNet are secret"


def test_an_imagenet_c_tree_with_its_archive_folders_is_found(tmp_path: Path) -> None:
    write_jpeg(tmp_path / f"ImageNet-C/weather/fog/1/{imagenet_ids()[4]}/a.JPEG", 50)
    assert load("imagenet-c", root=tmp_path, corruption="fog", severity=1).labels.tolist() == [4]


def test_imagenet_c_images_of_the_right_size_are_not_resampled(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (224, 224, 3), np.uint8)
    path = tmp_path / f"ImageNet-C/fog/1/{imagenet_ids()[0]}/a.JPEG"
    path.parent.mkdir(parents=True)
    Image.fromarray(noise).save(path, "JPEG", quality=95)
    dataset = load("imagenet-c", root=tmp_path, corruption="fog", severity=1)
    np.testing.assert_array_equal(dataset.images[0], np.asarray(Image.open(path)))


def test_imagenet_validation_is_scaled_and_cropped_as_usual(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (300, 500, 3), np.uint8)
    path = tmp_path / f"imagenet/val/{imagenet_ids()[7]}/ILSVRC2012_val_00000001.JPEG"
    path.parent.mkdir(parents=True)
    Image.fromarray(picture).save(path, "JPEG", quality=95)
    dataset = load("imagenet", root=tmp_path)
    image = Image.open(path).resize((int(256 * 500 / 300), 256), Image.Resampling.BILINEAR)
    left, top = round((image.width - 224) / 2), round((image.height - 224) / 2)
    np.testing.assert_array_equal(dataset.images[0], np.asarray(image.crop((left, top, left + 224, top + 224))))


def write_flat_validation(root: Path) -> list[int]:
    labels = [3, 999, 0]
    for number, colour in enumerate((10, 20, 30), 1):
        write_jpeg(root / f"imagenet/val/ILSVRC2012_val_{number:08d}.JPEG", colour)
    return labels


def test_flat_validation_images_take_labels_from_val_txt(tmp_path: Path) -> None:
    labels = write_flat_validation(tmp_path)
    lines = [f"val/ILSVRC2012_val_{number:08d}.JPEG {label}" for number, label in enumerate(labels, 1)]
    (tmp_path / "imagenet/val.txt").write_text("\n".join(lines))
    dataset = load("imagenet", root=tmp_path)
    assert dataset.labels.tolist() == labels
    assert brightness(dataset) == [10, 20, 30]


def test_flat_validation_images_take_labels_from_the_kaggle_list(tmp_path: Path) -> None:
    labels = write_flat_validation(tmp_path)
    rows = [
        f"ILSVRC2012_val_{number:08d},{imagenet_ids()[label]} 1 2 3 4 {imagenet_ids()[label]} 5 6 7 8"
        for number, label in enumerate(labels, 1)
    ]
    (tmp_path / "imagenet/LOC_val_solution.csv").write_text("\n".join(["ImageId,PredictionString", *reversed(rows)]))
    assert load("imagenet", root=tmp_path).labels.tolist() == labels


@pytest.mark.parametrize(("content", "words"), LISTS)
def test_junk_in_val_txt_is_an_error(tmp_path: Path, content: bytes, words: str) -> None:
    write_flat_validation(tmp_path)
    (tmp_path / "imagenet/val.txt").write_bytes(content)
    with pytest.raises(DataError, match=rf"val\.txt {words}"):
        load("imagenet", root=tmp_path)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("Image,Label\nILSVRC2012_val_00000001,n01440764 1 2 3 4\n", 2),
        ("ImageId,PredictionString\nILSVRC2012_val_00000001\n", 2),
        ("ImageId,PredictionString\nILSVRC2012_val_00000001,n01440764 1 2 3 4\nILSVRC2012_val_00000002, \n", 3),
        ("ImageId,PredictionString\nILSVRC2012_val_00000001,n00000000 1 2 3 4\n", 2),
    ],
    ids=["other columns", "column missing", "cell empty", "class unknown"],
)
def test_a_kaggle_list_without_its_columns_is_an_error(tmp_path: Path, content: str, line: int) -> None:
    write_flat_validation(tmp_path)
    (tmp_path / "imagenet/LOC_val_solution.csv").write_text(content)
    words = rf"LOC_val_solution\.csv has no ImageId and PredictionString in line {line}; get it again"
    with pytest.raises(DataError, match=words):
        load("imagenet", root=tmp_path)


def write_kit(root: Path, labels: list[int]) -> Path:
    kit = root / "imagenet/ILSVRC2012_devkit_t12/data"
    kit.mkdir(parents=True)
    numbers = np.random.default_rng(0).permutation(1000) + 1
    synsets = np.array(
        [(int(numbers[label]), identity) for label, identity in enumerate(imagenet_ids())] + [(1001, "n00000001")],
        dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O")],
    )
    scipy.io.savemat(kit / "meta.mat", {"synsets": synsets})
    (kit / "ILSVRC2012_validation_ground_truth.txt").write_text("\n".join(str(numbers[label]) for label in labels))
    return kit


def test_flat_validation_images_take_labels_from_the_developers_kit(tmp_path: Path) -> None:
    labels = write_flat_validation(tmp_path)
    write_kit(tmp_path, labels)
    assert load("imagenet", root=tmp_path).labels.tolist() == labels


@pytest.mark.parametrize("damage", ["truncated", "empty", "text", "without synsets", "other synsets"])
def test_a_damaged_meta_mat_is_an_error(tmp_path: Path, damage: str) -> None:
    path = write_kit(tmp_path, write_flat_validation(tmp_path)) / "meta.mat"
    if damage == "without synsets":
        scipy.io.savemat(path, {"x": np.zeros(3)})
    elif damage == "other synsets":
        scipy.io.savemat(path, {"synsets": np.zeros(3)})
    else:
        path.write_bytes({"truncated": path.read_bytes()[:5000], "empty": b"", "text": b"<html>" * 100}[damage])
    with pytest.raises(DataError, match=r"meta\.mat is not the developers' kit's .*; unpack the kit again"):
        load("imagenet", root=tmp_path)


@pytest.mark.parametrize("content", ["", "490\nseven\n", "1\n1002\n", "0\n", "1.5\n"])
def test_numbers_that_the_kit_does_not_know_are_an_error(tmp_path: Path, content: str) -> None:
    kit = write_kit(tmp_path, write_flat_validation(tmp_path))
    (kit / "ILSVRC2012_validation_ground_truth.txt").write_text(content)
    with pytest.raises(DataError, match=r"ground_truth\.txt is not a list of class numbers of meta\.mat"):
        load("imagenet", root=tmp_path)


def test_flat_validation_images_without_a_list_are_an_error(tmp_path: Path) -> None:
    write_flat_validation(tmp_path)
    with pytest.raises(DataError, match=r"no list of labels.*val\.txt, LOC_val_solution\.csv"):
        load("imagenet", root=tmp_path)


@pytest.mark.parametrize("flat", [False, True])
def test_the_robustbench_subset_comes_in_the_order_of_its_list(tmp_path: Path, flat: bool) -> None:
    ids = imagenet_ids()
    wanted = [f"{ids[9]}/ILSVRC2012_val_00000003.JPEG", f"{ids[2]}/ILSVRC2012_val_00000001.JPEG"]
    for colour, name in ((10, wanted[0]), (20, wanted[1]), (30, f"{ids[5]}/ILSVRC2012_val_00000002.JPEG")):
        write_jpeg(tmp_path / "imagenet/val" / (name.partition("/")[2] if flat else name), colour)
    (tmp_path / "robustbench").mkdir()
    (tmp_path / "robustbench/imagenet_test_image_ids.txt").write_text("\n".join(wanted) + "\n")
    dataset = load("imagenet-5k", root=tmp_path)
    assert dataset.labels.tolist() == [9, 2]
    assert brightness(dataset) == [10, 20]


def test_the_robustbench_subset_of_imagenet_c_names_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "robustbench").mkdir()
    (tmp_path / "robustbench/imagenet_test_image_ids.txt").write_text(f"{imagenet_ids()[0]}/a.JPEG\n")
    (tmp_path / f"ImageNet-C/fog/5/{imagenet_ids()[0]}").mkdir(parents=True)
    with pytest.raises(DataError, match="1 of 1 listed images are not in"):
        load("imagenet-c-5k", root=tmp_path, corruption="fog", severity=5)
    (tmp_path / "robustbench/imagenet_test_image_ids.txt").write_text("<html>")
    with pytest.raises(DataError, match="not a list"):
        load("imagenet-c-5k", root=tmp_path, corruption="fog", severity=5)


def test_tiny_imagenet_agrees_between_train_val_and_its_shifts(tmp_path: Path) -> None:
    ids = ("n01443537", "n02124075")
    for colour, identity in ((10, ids[0]), (20, ids[1])):
        write_jpeg(tmp_path / f"tiny-imagenet-200/train/{identity}/images/{identity}_0.JPEG", colour, (64, 64))
        write_jpeg(tmp_path / f"tiny-imagenet-200/val/images/val_{colour}.JPEG", colour, (64, 64))
        write_jpeg(tmp_path / f"Tiny-ImageNet-C/fog/2/{identity}/a.JPEG", colour, (64, 64))
    (tmp_path / "tiny-imagenet-200/val/val_annotations.txt").write_text(
        f"val_20.JPEG\t{ids[1]}\t0\t0\t9\t9\nval_10.JPEG\t{ids[0]}\t0\t0\t9\t9\n"
    )
    val = load("tiny-imagenet", root=tmp_path)
    assert (val.labels.tolist(), brightness(val)) == ([1, 0], [20, 10])
    for dataset in (
        load("tiny-imagenet", "train", root=tmp_path),
        load("tiny-imagenet-c", root=tmp_path, corruption="fog", severity=2),
    ):
        assert (dataset.labels.tolist(), brightness(dataset)) == ([0, 1], [10, 20])
        assert dataset.classes == ids


@pytest.mark.parametrize(
    "content", ["", "<html>\n", "val_10.JPEG\tn01443537\t0\nval_20.JPEG\n", "val_10.JPEG n01443537"]
)
def test_annotations_without_their_label_column_are_an_error(tmp_path: Path, content: str) -> None:
    write_jpeg(tmp_path / "tiny-imagenet-200/val/images/val_10.JPEG", 10, (64, 64))
    (tmp_path / "tiny-imagenet-200/val/val_annotations.txt").write_text(content)
    with pytest.raises(DataError, match=r"val_annotations\.txt is not a list of FILE<tab>WNID lines; get it again"):
        load("tiny-imagenet", root=tmp_path)


def test_a_path_is_read_as_class_folders(tmp_path: Path) -> None:
    write_jpeg(tmp_path / "b/1.jpg", 10, (8, 8))
    write_jpeg(tmp_path / "a/1.jpg", 20, (8, 8))
    dataset = load(str(tmp_path))
    assert dataset.classes == ("a", "b")
    assert (dataset.labels.tolist(), brightness(dataset)) == ([0, 1], [20, 10])


def test_an_unknown_split_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Known: test, train"):
        load("cifar10", "val", root=tmp_path)


def test_imagenet_has_a_thousand_sorted_ids() -> None:
    ids = imagenet_ids()
    assert len(ids) == len(set(ids)) == len(imagenet_names()) == 1000
    assert list(ids) == sorted(ids)
    assert imagenet_names()[207] == "golden retriever"


def test_importing_the_package_does_not_import_the_extras() -> None:
    code = (
        "import sys, synaptune.data, synaptune.streams;"
        "print(*{'scipy', 'h5py', 'torchvision', 'timm', 'matplotlib', 'pickle5'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "split", "count", "first"),
    [
        ("cifar10", "test", 10_000, [3, 8, 8, 0, 6]),
        ("cifar10", "train", 50_000, [6, 9, 9, 4, 1]),
        ("mnist", "test", 10_000, [7, 2, 1, 0, 4]),
        ("mnist", "train", 60_000, [5, 0, 4, 1, 9]),
        ("usps", "test", 2_007, [9, 6, 3, 6, 6]),
        ("mnist-m", "test", 9_001, [7, 2, 1, 0, 4]),
        ("imagenet-sample", "train", 1_000, [0, 1, 2, 3, 4]),
    ],
)
def test_the_real_set_has_its_size_and_first_labels(name: str, split: str, count: int, first: list[int]) -> None:
    try:
        dataset = load(name, split)
    except DataError as error:
        pytest.skip(str(error))
    assert len(dataset) == count
    assert dataset.labels[:5].tolist() == first
    pixels = dataset.images[[0, count - 1]]
    assert pixels.shape == (2, *dataset.size, 3)
    assert pixels.std() > 10


@pytest.mark.data
def test_the_digits_of_usps_occur_as_often_as_documented() -> None:
    if shared_root() is None:
        pytest.skip("the shared data folder is not there")
    documented = [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    assert np.bincount(load("usps").labels).tolist() == documented

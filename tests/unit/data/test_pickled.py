"""The reader of CIFAR's Python version builds plain data and nothing else."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synaptune.data.pickled import read_plain
from synaptune.errors import DataError


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, flag: Path):
        self.flag = flag

    def __reduce__(self) -> Any:
        return (Path.write_text, (self.flag, "owned"))


def same(first: Any, second: Any) -> bool:
    if isinstance(second, np.ndarray):
        return isinstance(first, np.ndarray) and first.dtype == second.dtype and np.array_equal(first, second)
    if isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], value) for key, value in second.items())
    if isinstance(second, list | tuple):
        return type(first) is type(second) and len(first) == len(second) and all(map(same, first, second))
    return type(first) is type(second) and first == second


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_plain_data_comes_back_as_it_was(protocol: int) -> None:
    data = {
        b"data": np.arange(24, dtype=np.uint8).reshape(2, 12),
        b"columns": np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
        b"floats": np.array([0.5, -1.0], np.float32),
        b"labels": [6, 9, 300, 70_000, -1],
        b"batch_label": b"testing batch 1 of 1",
        "text": "naïve",
        "nested": {"tuple": (1, (2,), ()), "none": None, "true": True, "false": False, "float": 1.5},
        "again": [b"x" * 300, "y" * 300],
    }
    assert same(read_plain(pickle.dumps(data, protocol=protocol)), data)


def test_a_file_as_python_2_wrote_it_is_read() -> None:
    # {'data': array([[1, 2], [3, 4]], uint8), 'labels': [7, 8]} by cPickle of Python 2, protocol 2.
    content = (
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04"
        b"K\x00\x85U\x01b\x87Rq\x05(K\x01K\x02K\x02\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x04\x01\x02\x03\x04tb"
        b"U\x06labelsq\x08]q\x09(K\x07K\x08eu."
    )
    expected = {b"data": np.array([[1, 2], [3, 4]], np.uint8), b"labels": [7, 8]}
    assert same(read_plain(content), expected)
    assert same(pickle.loads(content, encoding="bytes"), expected), "the literal is a real pickle"


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_a_malicious_pickle_is_refused_and_does_nothing(tmp_path: Path, protocol: int) -> None:
    flag = tmp_path / "flag"
    content = pickle.dumps({b"data": Evil(flag)}, protocol=protocol)
    with pytest.raises(DataError):
        read_plain(content)
    assert not flag.exists()
    pickle.loads(content)
    assert flag.exists(), "the pickle is malicious indeed"


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'touch flag'\ntR.",
        b"\x80\x02cbuiltins\neval\nU\x031+1\x85R.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02ls\x85R.",
        b"\x80\x02cnumpy\nndarray\n)\x81.",
        b"\x80\x02cnumpy\ndtype\nU\x01OK\x00K\x01\x87R.",
        b"\x80\x02}cnumpy\ndtype\nb.",
        b"(i__main__\nEvil\n.",
    ],
    ids=["global", "eval", "stack global", "newobj", "bare dtype", "build on dict", "inst"],
)
def test_everything_but_arrays_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(DataError):
        read_plain(content)


def test_the_refusal_names_what_the_file_wanted_to_call() -> None:
    with pytest.raises(DataError, match=r"wants to call 'os\.system'"):
        read_plain(b"\x80\x02cos\nsystem\n.")


@pytest.mark.parametrize("inside", ["cnumpy\nndarray\n", "cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"])
def test_a_name_or_half_an_array_does_not_come_out_inside_a_list(inside: str) -> None:
    with pytest.raises(DataError, match="not plain data"):
        read_plain(b"\x80\x02](" + inside.encode("latin-1") + b"e.")


def test_a_list_that_holds_itself_ends() -> None:
    (inner,) = read_plain(b"\x80\x02]q\x00h\x00a.")
    assert inner[0] is inner


def test_an_array_of_objects_is_refused() -> None:
    content = pickle.dumps(np.array([{"a": 1}, None], dtype=object), protocol=2)
    with pytest.raises(DataError, match="only arrays of numbers"):
        read_plain(content)


@pytest.mark.parametrize("cut", [1, 10, 40, -1])
def test_a_truncated_file_is_a_clear_error(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "test_batch"
    path.write_bytes(pickle.dumps({b"data": np.zeros((3, 4), np.uint8)}, protocol=2)[:cut])
    with pytest.raises(DataError, match=r"test_batch.* is damaged|test_batch.*not read"):
        read_plain(path)


def test_random_bytes_never_raise_anything_else() -> None:
    generator = np.random.default_rng(0)
    whole = pickle.dumps({b"data": np.zeros((3, 4), np.uint8), b"labels": list(range(30))}, protocol=2)
    for _ in range(400):
        content = bytearray(whole)
        for position in generator.integers(0, len(content), 3):
            content[position] = generator.integers(256)
        try:
            read_plain(bytes(content))
        except DataError:
            continue

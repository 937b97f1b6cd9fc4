"""Files that others wrote: what is read, what is recognised as something else, and that nothing in them runs."""

from __future__ import annotations

import argparse
import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from synaptune.errors import WeightsError
from synaptune.models.checkpoint_file import read_checkpoint


def tensors() -> dict[str, torch.Tensor]:
    return {"weight": torch.arange(6.0).view(2, 3), "bias": torch.ones(2)}


def test_safetensors_come_with_their_metadata(tmp_path: Path) -> None:
    save_file(tensors(), tmp_path / "a.safetensors", {"card": "text"})
    read = read_checkpoint(tmp_path / "a.safetensors")
    assert torch.equal(read.content["weight"], tensors()["weight"])
    assert read.metadata == {"card": "text"}


def test_safetensors_are_recognised_whatever_the_suffix(tmp_path: Path) -> None:
    save_file(tensors(), tmp_path / "a.bin")
    assert set(read_checkpoint(tmp_path / "a.bin").content) == {"weight", "bias"}


@pytest.mark.parametrize("new_format", [True, False])
def test_both_torch_formats_are_read(tmp_path: Path, new_format: bool) -> None:
    torch.save({"state_dict": tensors()}, tmp_path / "a.th", _use_new_zipfile_serialization=new_format)
    read = read_checkpoint(str(tmp_path / "a.th"))
    assert torch.equal(read.content["state_dict"]["bias"], torch.ones(2))


def test_numpy_scalars_and_command_lines_beside_the_tensors_are_passed_over(tmp_path: Path) -> None:
    content = {
        "net": tensors(),
        "err_cls": np.float64(0.082),
        "history": np.zeros(3),
        "args": argparse.Namespace(depth=26, shared="layer2"),
        "path": tmp_path,
        "epoch": 75,
    }
    torch.save(content, tmp_path / "ckpt.pth")
    read = read_checkpoint(tmp_path / "ckpt.pth").content
    assert torch.equal(read["net"]["weight"], tensors()["weight"])
    assert read["epoch"] == 75
    assert not isinstance(read["err_cls"], np.generic)
    assert not isinstance(read["args"], argparse.Namespace)


def test_reading_leaves_torchs_list_of_safe_types_as_it_was(tmp_path: Path) -> None:
    torch.save({"a": tensors(), "b": np.float64(1)}, tmp_path / "a.pth")
    before = torch.serialization.get_safe_globals()
    read_checkpoint(tmp_path / "a.pth")
    assert torch.serialization.get_safe_globals() == before


class Hostile:
    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("new_format", [True, False])
def test_code_in_a_checkpoint_is_refused_and_never_runs(tmp_path: Path, new_format: bool) -> None:
    mark = tmp_path / "ran"
    content = {"state_dict": tensors(), "extra": Hostile(mark)}
    torch.save(content, tmp_path / "a.pth", _use_new_zipfile_serialization=new_format)
    with pytest.raises(WeightsError, match="would run code"):
        read_checkpoint(tmp_path / "a.pth")
    assert not mark.exists()


def test_a_pickled_module_is_refused_with_the_way_to_convert_it(tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 2), tmp_path / "model.pt")
    with pytest.raises(WeightsError, match=r"whole pickled model.*save_file"):
        read_checkpoint(tmp_path / "model.pt")


def test_the_conversion_that_the_message_gives_works(tmp_path: Path) -> None:
    import re
    import subprocess
    import sys

    model = nn.Linear(2, 2)
    torch.save(model, tmp_path / "model.pt")
    with pytest.raises(WeightsError) as caught:
        read_checkpoint(tmp_path / "model.pt")
    code = re.search(r'python -c "(.*)" FILE FILE\.safetensors', str(caught.value))
    assert code is not None
    out = tmp_path / "model.safetensors"
    subprocess.run([sys.executable, "-c", code[1], str(tmp_path / "model.pt"), str(out)], check=True)
    assert torch.equal(read_checkpoint(out).content["weight"], model.weight)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"\n<!DOCTYPE html><html><head><title>Google Drive - Quota exceeded", "HTML page"),
        (b"<html><body>404", "HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00", "Git LFS pointer"),
        (b"\x1f\x8b\x08\x00" + bytes(600), "compressed archive"),
        (b"", "is empty"),
        (b"just some words, long enough to be a file", "neither a safetensors file nor a torch checkpoint"),
    ],
)
def test_other_things_are_called_what_they_are(tmp_path: Path, head: bytes, said: str) -> None:
    (tmp_path / "w.pt").write_bytes(head)
    with pytest.raises(WeightsError, match=said):
        read_checkpoint(tmp_path / "w.pt")


def test_a_tar_archive_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "inside.pt").write_bytes(b"x")
    with tarfile.open(tmp_path / "w.pt", "w") as archive:
        archive.add(tmp_path / "inside.pt", "inside.pt")
    with pytest.raises(WeightsError, match="tar archive; unpack it"):
        read_checkpoint(tmp_path / "w.pt")


@pytest.mark.parametrize("keep", [0.3, 0.9])
@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors"])
def test_a_file_that_is_cut_off_is_said_to_be(tmp_path: Path, kind: str, keep: float) -> None:
    path = tmp_path / ("w.safetensors" if kind == "safetensors" else "w.pt")
    large = {"weight": torch.zeros(200, 100)}
    if kind == "safetensors":
        save_file(large, path)
    else:
        torch.save(large, path, _use_new_zipfile_serialization=kind == "zip")
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(WeightsError, match="cut off"):
        read_checkpoint(path)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="does not exist"):
        read_checkpoint(tmp_path / "nothing.pt")
    with pytest.raises(WeightsError, match="is a folder"):
        read_checkpoint(tmp_path)


def test_a_plain_pickle_is_not_unpickled(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    (tmp_path / "w.pkl").write_bytes(pickle.dumps(Hostile(mark)))
    with pytest.raises(WeightsError):
        read_checkpoint(tmp_path / "w.pkl")
    assert not mark.exists()


def test_a_list_of_tensors_is_refused(tmp_path: Path) -> None:
    torch.save([torch.zeros(2)], tmp_path / "w.pt")
    with pytest.raises(WeightsError, match="holds a list"):
        read_checkpoint(tmp_path / "w.pt")

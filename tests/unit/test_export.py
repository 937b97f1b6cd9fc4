"""What is frozen can be shipped: every method, every format, another batch size; and a wrong file is never left."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

import synaptune as st
from synaptune.errors import InputError, OptionError
from synaptune.export import ENDINGS, Exported, ExportError, Format, export
from tests.conformance.cases import HOME, METHODS
from tests.support.models import batches, build

FORMATS: list[Format] = list(ENDINGS.values())
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*is deprecated")


def frozen(method: str, kind: str | None = None) -> nn.Module:
    adapter = st.adapt(build(kind or HOME[method]), method)
    for batch in batches(2):
        adapter(batch)
    return adapter.freeze()


def run_file(file: Exported, images: Tensor) -> Tensor:
    """Run an exported file as a user would, without synaptune."""
    if file.format == "onnx":
        onnxruntime = pytest.importorskip("onnxruntime")
        session = onnxruntime.InferenceSession(file.path)
        return torch.from_numpy(session.run(["logits"], {"images": images.numpy()})[0])
    if file.format == "torch-export":
        result: Tensor = torch.export.load(file.path).module()(images)
        return result
    scripted: Tensor = torch.jit.load(str(file.path))(images)
    return scripted


@pytest.mark.skipif(os.name != "posix", reason="needs modes")
def test_what_is_shipped_can_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    with st.adapt(build("bn"), "norm") as adapter:
        adapter(batches(1)[0])
        adapter.save(tmp_path / "state.safetensors")
        export(adapter.freeze(), batches(1)[0], tmp_path / "model.safetensors")
    for name in ("state", "model"):
        assert (tmp_path / f"{name}.safetensors").stat().st_mode == plain.stat().st_mode


def check(method: str, form: Format, folder: Path) -> None:
    plain = frozen(method)
    ending = next(ending for ending, name in ENDINGS.items() if name == form)
    file = export(plain, batches(1)[0], folder / f"model{ending}", format=form)
    for size in (1, 5):
        images = batches(1, size, seed=9)[0]
        torch.testing.assert_close(run_file(file, images), plain(images), rtol=0, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_method_freezes_into_torchscript_and_torch_export(method: str, tmp_path: Path) -> None:
    check(method, "torchscript", tmp_path)
    check(method, "torch-export", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_method_freezes_into_onnx(method: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    check(method, "onnx", tmp_path)


@pytest.mark.parametrize("form", FORMATS)
def test_a_transformer_is_exported_with_a_dynamic_batch(form: Format, tmp_path: Path) -> None:
    if form == "onnx":
        pytest.importorskip("onnxscript")
    file = export(frozen("nhl", "vit"), batches(1)[0], tmp_path / "model", format=form)
    assert file.difference is not None
    assert file.difference <= 1e-4
    assert file.batch_sizes == (8, 9)
    assert file.bytes == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_safetensors_go_into_the_same_architecture_with_their_metadata(tmp_path: Path) -> None:
    plain = frozen("nhl")
    path = tmp_path / "weights.safetensors"
    export(plain, batches(1)[0], path, format="safetensors", metadata={"method": "nhl"})
    from safetensors.torch import load_file

    fresh = build("bn", seed=3)
    fresh.load_state_dict(load_file(path))
    images = batches(1, 5, seed=9)[0]
    assert torch.equal(fresh(images), plain(images))
    with safe_open(path, framework="np") as file:
        assert file.metadata() == {"synaptune": st.__version__, "method": "nhl"}


def test_metadata_travels_in_torch_export(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    export(build("bn"), batches(1)[0], path, format="torch-export", metadata={"camera": "north"})
    extra = {"about.json": ""}
    torch.export.load(path, extra_files=extra)
    assert json.loads(extra["about.json"])["camera"] == "north"


def test_a_single_image_is_enough_for_a_dynamic_batch(tmp_path: Path) -> None:
    file = export(build("bn"), batches(1, 1)[0], tmp_path / "model.pt2", format="torch-export")
    assert file.batch_sizes == (1, 3)


class _FixedBatch(nn.Module):
    """Works for the batch size that it was made for."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(192, 5)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.out(images.reshape(8, 192))
        return logits


@pytest.mark.parametrize("form", ["torch-export", "torchscript"])
def test_a_model_with_a_fixed_batch_says_so_and_can_be_exported_as_it_is(form: Format, tmp_path: Path) -> None:
    model, path = _FixedBatch().eval(), tmp_path / "model"
    with pytest.raises((ExportError, RuntimeError), match=r"batch|invalid"):
        export(model, batches(1)[0], path, format=form)
    assert list(tmp_path.iterdir()) == []
    assert export(model, batches(1)[0], path, format=form, dynamic_batch=False).batch_sizes == (8,)


class _Moody(nn.Module):
    """Decides by values, which a trace cannot see."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(192, 5)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.out(images.flatten(1))
        return logits if len(images) % 2 == 0 else -logits


def test_a_file_with_other_outputs_is_refused_and_not_left(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="other outputs"):
        export(_Moody().eval(), batches(1)[0], tmp_path / "model.ts", format="torchscript")
    assert list(tmp_path.iterdir()) == []


def test_a_refused_export_leaves_the_former_file(tmp_path: Path) -> None:
    path = tmp_path / "model.ts"
    path.write_bytes(b"the one before")
    with pytest.raises(ExportError):
        export(_Moody().eval(), batches(1)[0], path, format="torchscript")
    assert path.read_bytes() == b"the one before"


class _Unexportable(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return torch.from_numpy(np.asarray(images.flatten(1).tolist(), np.float32)) if images.sum() > 0 else images


def test_what_a_format_cannot_hold_is_explained_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="_Unexportable cannot be written as torch-export") as caught:
        export(_Unexportable().eval(), batches(1)[0], tmp_path / "model.pt2", format="torch-export")
    assert "\n" not in str(caught.value)


def test_what_is_no_plain_eval_module_is_refused(tmp_path: Path) -> None:
    images, path = batches(1)[0], tmp_path / "model.ts"
    model = build("bn")
    with st.adapt(model, "norm") as adapter:
        for busy in (adapter, model):
            with pytest.raises(ExportError, match="freeze"):
                export(busy, images, path, format="torchscript")
    with pytest.raises(ExportError, match="training mode"):
        export(build("bn").train(), images, path, format="torchscript")
    with pytest.raises(OptionError, match="onnx"):
        export(model, images, path, format="pickle")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="sample"):
        export(model, images[:0], path, format="torchscript")
    with pytest.raises(ExportError, match="no folder"):
        export(model, images, tmp_path / "gone" / "model.ts", format="torchscript")


def test_exporting_leaves_the_module_as_it_was(tmp_path: Path) -> None:
    plain = frozen("tent")
    before = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export(plain, batches(1)[0], tmp_path / "model.ts", format="torchscript")
    assert all(torch.equal(tensor, before[name]) for name, tensor in plain.state_dict().items())

"""Ship a model: ONNX, torch.export, TorchScript or safetensors, each read back and compared before it is called done.

What is exported is a plain module, such as `adapter.freeze()` returns. The file is written beside its place and moved
there only when its outputs, for the sample and for another batch size, equal those of the module.
"""

from __future__ import annotations

import copy
import importlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from synaptune._version import __version__
from synaptune.core.adapter import Adapter
from synaptune.core.hooks import is_adapted
from synaptune.errors import InputError, OptionError, SynaptuneError

__all__ = ["ENDINGS", "ExportError", "Exported", "Format", "export"]

Format = Literal["onnx", "torch-export", "torchscript", "safetensors"]

ENDINGS: Mapping[str, Format] = {
    ".onnx": "onnx",
    ".pt2": "torch-export",
    ".ts": "torchscript",
    ".safetensors": "safetensors",
}
"""Formats by the endings of files."""

_TOLERANCE = 1e-4
_TOLERANCE_HALF = 2e-2


class ExportError(SynaptuneError, RuntimeError):
    """A model that a format cannot hold, or an export whose outputs differ from the model's."""


@dataclass(frozen=True)
class Exported:
    """A file that was written and checked.

    Attributes:
        path: the file.
        format: what it is.
        bytes: its size, files beside it included.
        difference: largest difference from the module's outputs; None where nothing here can run the format.
        batch_sizes: what the check was run with.
    """

    path: Path
    format: Format
    bytes: int
    difference: float | None
    batch_sizes: tuple[int, ...]


def export(
    module: nn.Module,
    sample: Tensor,
    path: str | Path,
    *,
    format: Format = "onnx",  # noqa: A002 - the word that every export function of the field uses
    dynamic_batch: bool = True,
    metadata: Mapping[str, str] | None = None,
) -> Exported:
    """Write a plain module to a file, and make sure that the file gives the same outputs.

    Args:
        module: in eval mode and without an adapter: `adapter.freeze()`, or a model as it is.
        sample: a batch of images as the module gets them; its first axis is the batch.
        path: where to. ONNX models beyond 2 GB put their weights into a second file beside it.
        format: `onnx`, `torch-export`, `torchscript`, or `safetensors` (weights only, for the same architecture).
        dynamic_batch: let the batch size vary; False fixes it to that of the sample.
        metadata: texts to store in the file (onnx and safetensors).

    Raises:
        ExportError: the format cannot hold the module, or the file's outputs differ by more than 1e-4.

    >>> import tempfile
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2)).eval()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export(net, torch.rand(4, 3, 2, 2), f"{folder}/net.safetensors", format="safetensors").difference
    0.0
    """
    path = Path(path)
    _refuse(module, sample, path, format)
    write, load = _FORMATS[format]
    sample = sample.detach()
    # One image would be taken for a constant by torch.export, so the graph is made from two.
    traced = sample if len(sample) > 1 or not dynamic_batch else sample.repeat(2, *[1] * (sample.dim() - 1))
    batches = [sample, torch.cat([traced, sample[:1]])] if dynamic_batch else [sample]
    about = {"synaptune": __version__, **(metadata or {})}
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        # The file has its final name from the start, because ONNX writes it into the file.
        job = _Job(module, traced, Path(folder) / path.name, dynamic_batch, about)
        with _quiet(), _plain_attention(), torch.no_grad():
            try:
                write(job)
            except SynaptuneError:
                raise
            except Exception as error:
                raise ExportError(_explain(module, format, error, dynamic_batch=dynamic_batch)) from error
            run = load(job)
            difference = None if run is None else max(_difference(module, run, batch, format) for batch in batches)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        for file in Path(folder).iterdir():
            shutil.move(file, path.parent / file.name)
    return Exported(path, format, size, difference, tuple(map(len, batches)) if run is not None else ())


def _refuse(module: nn.Module, sample: Tensor, path: Path, form: str) -> None:
    if form not in get_args(Format):
        raise OptionError(f"format must be one of {', '.join(get_args(Format))}, not {form!r}")
    if isinstance(module, Adapter) or (isinstance(module, nn.Module) and is_adapted(module)):
        raise ExportError("a model that is being adapted cannot be exported; export what adapter.freeze() returns")
    if not isinstance(module, nn.Module):
        raise ExportError(f"expected a torch.nn.Module, not {type(module).__name__}")
    busy = [name for name, part in module.named_modules() if part.training]
    if busy:
        raise ExportError(f"{len(busy)} parts of the module are in training mode ({busy[0] or 'itself'}); call .eval()")
    if not isinstance(sample, Tensor) or sample.dim() < 2 or len(sample) == 0:
        raise InputError("the sample must be a batch of at least one image, as the model gets it")
    if not path.parent.is_dir():
        raise ExportError(f"there is no folder {path.parent} to write {path.name} into")


def _difference(module: nn.Module, run: Callable[[Tensor], Tensor], batch: Tensor, form: Format) -> float:
    """The largest difference of two outputs, refused where it is too large."""
    expected, half = module(batch).detach().cpu(), batch.dtype.itemsize < 4
    try:
        found = run(batch).detach().cpu()
    except Exception as error:
        raise ExportError(
            f"the {form} file fails on a batch of {len(batch)} ({_first_line(error)}): the model seems to fix the "
            "batch size; export with dynamic_batch=False"
        ) from error
    difference = float((found.double() - expected.double()).abs().max())
    allowed = (_TOLERANCE_HALF if half else _TOLERANCE) * max(1.0, float(expected.double().abs().max()))
    if not difference <= allowed:
        raise ExportError(
            f"the {form} file gives other outputs than the model on a batch of {len(batch)}: they differ by "
            f"{difference:.2g}, allowed are {allowed:.2g}. Nothing was written; try another format"
        )
    return difference


def _explain(module: nn.Module, form: str, error: Exception, *, dynamic_batch: bool) -> str:
    hint = "; a fixed batch size may help: dynamic_batch=False" if dynamic_batch and form != "safetensors" else ""
    return f"{type(module).__name__} cannot be written as {form}: {type(error).__name__}: {_first_line(error)}{hint}"


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of exporters about their own inside; what concerns users is checked by outputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _plain_attention() -> Iterator[None]:
    """Without the fused kernel that transformer layers take at inference: before torch 2.8 no format can hold it."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


@dataclass(frozen=True)
class _Job:
    """One module, on its way into one file."""

    module: nn.Module
    sample: Tensor
    path: Path
    dynamic_batch: bool
    about: Mapping[str, str]

    def graph(self) -> torch.export.ExportedProgram:
        shapes = ({0: torch.export.Dim("batch")},) if self.dynamic_batch else None
        return torch.export.export(self.module, (self.sample,), dynamic_shapes=shapes)


def _write_torch_export(job: _Job) -> None:
    torch.export.save(job.graph(), job.path, extra_files={"about.json": json.dumps(job.about)})


def _load_torch_export(job: _Job) -> Callable[[Tensor], Tensor]:
    return torch.export.load(job.path).module()


def _write_onnx(job: _Job) -> None:
    try:
        import onnxscript  # noqa: F401 - torch's exporter needs it, and says so in many lines
    except ImportError as error:
        raise ExportError("ONNX needs onnx and onnxscript: pip install 'synaptune[export]'") from error
    program = torch.onnx.export(
        job.graph(), dynamo=True, input_names=["images"], output_names=["logits"], verbose=False
    )
    assert program is not None
    program.model.metadata_props.update(job.about)
    program.save(job.path)


def _load_onnx(job: _Job) -> Callable[[Tensor], Tensor] | None:
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        return None
    session = runtime.InferenceSession(job.path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda images: torch.from_numpy(session.run(None, {name: images.cpu().numpy()})[0])


def _write_torchscript(job: _Job) -> None:
    traced: Any = torch.jit.trace(job.module, job.sample, check_trace=False)
    traced.save(str(job.path), _extra_files={"about.json": json.dumps(job.about)})


def _load_torchscript(job: _Job) -> Callable[[Tensor], Tensor]:
    loaded: Callable[[Tensor], Tensor] = torch.jit.load(str(job.path))
    return loaded


def _write_safetensors(job: _Job) -> None:
    from safetensors.torch import save

    # Copies, because tied tensors share memory, which the format refuses.
    tensors = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in job.module.state_dict().items()}
    # Not save_file: what that writes only its owner can read.
    job.path.write_bytes(save(tensors, metadata=dict(job.about)))


def _load_safetensors(job: _Job) -> Callable[[Tensor], Tensor]:
    from safetensors.torch import load_file

    twin = copy.deepcopy(job.module)
    for tensor in twin.state_dict().values():
        tensor.zero_()  # so that a tensor missing from the file cannot go unnoticed
    twin.load_state_dict(load_file(job.path), strict=True)
    return twin


_FORMATS: dict[Format, tuple[Callable[[_Job], None], Callable[[_Job], Callable[[Tensor], Tensor] | None]]] = {
    "onnx": (_write_onnx, _load_onnx),
    "torch-export": (_write_torch_export, _load_torch_export),
    "torchscript": (_write_torchscript, _load_torchscript),
    "safetensors": (_write_safetensors, _load_safetensors),
}

"""`doctor`: put a model, and a sample if there is one, through all examinations. The model itself is left alone."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from synaptune.core.admission import LogitsCheck
from synaptune.core.hooks import is_adapted
from synaptune.core.layers import is_batch_norm, output_width
from synaptune.core.registry import find
from synaptune.core.structure import Anatomy, Layout, find_anatomy
from synaptune.diagnosis.cost import measure_costs, measure_plain
from synaptune.diagnosis.expectation import Expectation, expected_input, sample_problems
from synaptune.diagnosis.findings import SpatialSizes, about_model, about_sample
from synaptune.diagnosis.fits import ask, ask_all
from synaptune.diagnosis.recommend import recommend
from synaptune.diagnosis.record import Diagnosis, Finding, NormKind, Part, Sample, StageSize
from synaptune.errors import IncompatibleModelError, InputError, SynaptuneError

__all__ = ["doctor"]


def doctor(
    model: nn.Module,
    sample: Tensor | None = None,
    *,
    layout: Layout | None = None,
    expects: Expectation | None = None,
) -> Diagnosis:
    """Tell what will adapt in a model, what cannot and why, which input it expects, and what to do.

    Nothing of the model is changed, not even for a moment: what has to be run is run on a copy.

    Args:
        model: any classifier.
        sample: a batch as the model will get it; with one, the input is checked and costs are measured.
        layout: names of parts, where finding them by structure goes wrong.
        expects: which input the model expects, if the caller knows better than the model.

    >>> net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    >>> diagnosis = doctor(net)
    >>> diagnosis.first_conv.name, diagnosis.fit("tent").fits, diagnosis.fit("ttt").fits
    ('0', True, False)
    """
    _refuse(model, sample)
    anatomy = find_anatomy(model, layout)
    fits = ask_all(model, anatomy)
    advice = recommend(
        anatomy,
        batch=None if sample is None else len(sample),
        accepts=lambda method, options: _accepts(model, anatomy, method, options),
    )
    found = Diagnosis(
        model=type(model).__name__,
        parameters=sum(p.numel() for p in model.parameters()),
        bytes=sum(t.numel() * t.element_size() for t in (*model.parameters(), *model.buffers())),
        dtypes=tuple(sorted({str(p.dtype).removeprefix("torch.") for p in model.parameters()})),
        devices=tuple(sorted({str(p.device) for p in model.parameters()})),
        first_conv=Part(anatomy.first_conv, _spell(model, anatomy.first_conv), anatomy.how.get("first_conv", "")),
        stages=tuple(StageSize(stage, _size_of(model, stage)) for stage in anatomy.stages),
        stages_how=anatomy.how.get("stages", ""),
        norms=_norm_kinds(model, anatomy),
        classifier=Part(anatomy.classifier, _spell(model, anatomy.classifier), anatomy.how.get("classifier", "")),
        classes=output_width(model.get_submodule(anatomy.classifier)) if anatomy.classifier else None,
        dropouts=len(anatomy.dropouts),
        expects=expects or expected_input(model),
        fits=fits,
        recommended=advice if any(fit.fits for fit in fits) else (),
        findings=tuple(about_model(model, anatomy)),
    )
    return found if sample is None else _with_sample(found, model, sample, anatomy, layout)


def _refuse(model: nn.Module, sample: Tensor | None) -> None:
    if not isinstance(model, nn.Module):
        raise IncompatibleModelError(f"the model must be a torch.nn.Module, not {type(model).__name__}")
    if is_adapted(model):
        raise SynaptuneError("this model is being adapted; examine it before, or after detach()")
    if sample is None:
        return
    if not isinstance(sample, Tensor):
        raise InputError(f"the sample must be a torch.Tensor of images, not {type(sample).__name__}")
    if not sample.is_floating_point():
        raise InputError(f"the sample must be floating point, not {sample.dtype}; try images.float() / 255")
    if sample.dim() < 2 or len(sample) == 0:
        raise InputError(f"the sample must be a batch of at least one image; its shape is {tuple(sample.shape)}")


def _accepts(model: nn.Module, anatomy: Anatomy, method: str, options: Mapping[str, Any]) -> bool:
    info = find(method)
    return ask(dataclasses.replace(info, options=info.options.replace(**options)), model, anatomy).fits


def _with_sample(
    found: Diagnosis, model: nn.Module, sample: Tensor, anatomy: Anatomy, layout: Layout | None
) -> Diagnosis:
    channels = None
    if anatomy.first_conv is not None:
        channels = getattr(model.get_submodule(anatomy.first_conv), "in_channels", None)
    problems = [Finding(*problem) for problem in sample_problems(sample, found.expects, channels=channels)]
    about = Sample(
        tuple(sample.shape),
        str(sample.dtype).removeprefix("torch."),
        float(sample.min()) if sample.numel() else float("nan"),
        float(sample.max()) if sample.numel() else float("nan"),
    )
    try:
        twin = copy.deepcopy(model).eval()
    except Exception as error:  # noqa: BLE001 - a user's model may refuse to be copied in any way
        refused = Finding("no-copy", f"the model cannot be copied ({error}): nothing was run, and freeze() will fail")
        return dataclasses.replace(found, sample=about, findings=(refused, *problems, *found.findings))
    try:
        with torch.no_grad(), SpatialSizes(twin, anatomy.batch_norms) as sizes:
            logits = twin(sample)
            LogitsCheck()(model, (sample,), logits)
            problems += about_sample(logits, batch=len(sample), places=sizes.places)
        about = dataclasses.replace(about, seconds=measure_plain(twin, sample))
    except Exception as error:  # noqa: BLE001 - whatever a user's forward raises is the finding
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        failed = Finding("forward", f"the model fails on the sample: {reason}")
        return dataclasses.replace(found, sample=about, findings=(failed, *problems, *found.findings))
    costs, refusals = measure_costs(twin, sample, found.recommended, layout=layout)
    problems += [Finding("method-failed", f"{name} fails on the sample: {why}") for name, why in refusals.items()]
    return dataclasses.replace(
        found,
        sample=about,
        costs=costs,
        recommended=tuple(advice for advice in found.recommended if advice.method not in refusals),
        findings=(*problems, *found.findings),
    )


def _size_of(model: nn.Module, names: tuple[str, ...]) -> int:
    unique = {id(p): p.numel() for name in names for p in model.get_submodule(name).parameters()}
    return sum(unique.values())


def _norm_kinds(model: nn.Module, anatomy: Anatomy) -> tuple[NormKind, ...]:
    layers: dict[str, list[nn.Module]] = {}
    for name in anatomy.norms:
        layer = model.get_submodule(name)
        layers.setdefault(type(layer).__name__, []).append(layer)
    return tuple(
        NormKind(
            kind,
            len(group),
            sum(1 for layer in group if next(layer.parameters(recurse=False), None) is not None),
            sum(1 for layer in group if is_batch_norm(layer) and layer.running_mean is not None),
        )
        for kind, group in sorted(layers.items())
    )


def _spell(model: nn.Module, name: str | None) -> str:
    """Say what a layer is: `Conv2d 3 -> 64, 7x7, stride 2`."""
    if name is None:
        return "not found"
    layer = model.get_submodule(name)
    taken = getattr(layer, "in_channels", getattr(layer, "in_features", None))
    text = f"{type(layer).__name__} {taken} -> {output_width(layer)}" if taken else type(layer).__name__
    kernel, stride = getattr(layer, "kernel_size", None), getattr(layer, "stride", None)
    if isinstance(kernel, tuple):
        text += f", {'x'.join(map(str, kernel))}"
    if isinstance(stride, tuple) and max(stride) > 1:
        text += f", stride {stride[0] if len(set(stride)) == 1 else stride}"
    return text

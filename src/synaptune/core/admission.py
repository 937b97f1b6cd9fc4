"""Who may come in: models that can be adapted and batches that can be predicted, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from synaptune.core.guard import Guard
from synaptune.core.hooks import OutputHook, is_adapted
from synaptune.core.structure import Anatomy, Layout
from synaptune.errors import IncompatibleModelError, InputError, OptionError, SynaptuneError

__all__ = ["LogitsCheck", "mismatch", "refuse_batch", "refuse_model", "refuse_settings"]

# By name, because importing torch.distributed for a comparison costs more than the comparison is worth.
_SPLIT_OVER_PROCESSES = frozenset({"DistributedDataParallel", "FullyShardedDataParallel"})


def refuse_model(model: nn.Module) -> None:
    """Raise unless `model` is one that an adapter can hold; the message says what to pass instead."""
    if not isinstance(model, nn.Module):
        raise SynaptuneError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    if is_adapted(model):
        raise SynaptuneError(
            "this model, or a part of it, is being adapted already; call detach() on its adapter first "
            "(a copy of an adapted model is adapted too: take adapter.freeze() instead)"
        )
    _refuse_compiled(model)
    _refuse_split(model)
    # Parameters without a shape answer no question but this one; the structure finder refuses them.
    tensors = [t for t in (*model.parameters(), *model.buffers()) if not nn.parameter.is_lazy(t)]
    if any(tensor.is_inference() for tensor in tensors):
        raise SynaptuneError("the model was built under torch.inference_mode; build it outside")
    if any(tensor.is_meta for tensor in tensors):
        raise IncompatibleModelError(
            f"{type(model).__name__} has parameters on the meta device, which hold no values; load its weights first "
            "(model.to_empty(device=...), then load_state_dict)"
        )


def _refuse_compiled(model: nn.Module) -> None:
    for name, module in model.named_modules():
        whole = "_orig_mod" in module._modules
        if whole or getattr(module, "_compiled_call_impl", None) is not None:
            what = f"part {name!r} of the model" if name else "the model"
            instead = "the model that was given to torch.compile" if whole else "a model without .compile()"
            raise IncompatibleModelError(
                f"{what} is compiled, and compiled code runs past the hooks and modes that adapting needs; pass "
                f"{instead}, and compile what adapter.freeze() returns"
            )


def _refuse_split(model: nn.Module) -> None:
    for module in model.modules():
        kind = type(module).__name__
        replicas = isinstance(module, nn.DataParallel) and len(module.device_ids) > 1
        if replicas or kind in _SPLIT_OVER_PROCESSES:
            raise IncompatibleModelError(
                f"{kind} runs copies of the model, each of which would see and adapt to a part of the batch; adapt "
                "the model inside (model.module) on one device"
            )


def refuse_settings(guards: Sequence[Guard], layout: Layout | None, on_bad_input: str) -> None:
    """Raise `OptionError` for settings of an adapter that mean nothing."""
    for guard in guards:
        if not isinstance(guard, Guard):
            found = f"the class {guard.__name__} itself" if isinstance(guard, type) else type(guard).__name__
            raise OptionError(f"guards must be objects of class synaptune.core.guard.Guard, but one is {found}")
    if layout is not None and not isinstance(layout, Layout):
        raise OptionError(f"layout must be a synaptune.Layout(...), not {type(layout).__name__}")
    if on_bad_input not in ("raise", "skip"):
        raise OptionError(f"on_bad_input must be 'raise' or 'skip', not {on_bad_input!r}")


def refuse_batch(images: Tensor) -> None:
    """Raise `InputError` for what cannot be a batch of images, whatever the model."""
    if not isinstance(images, Tensor):
        raise InputError(f"images must be a torch.Tensor, not {type(images).__name__}; try torch.as_tensor(images)")
    if not images.is_floating_point():
        raise InputError(f"images must be floating point, not {images.dtype}; try images.float() / 255")
    if images.layout is not torch.strided:
        raise InputError(f"images must be a dense tensor, not {images.layout}; try images.to_dense()")
    if images.is_meta:
        raise InputError("images are on the meta device, which holds no values; load them to the model's device")
    if images.dim() < 2 or images.shape[0] == 0:
        raise InputError(f"a batch needs at least one image: its shape is {tuple(images.shape)}")


def mismatch(model: nn.Module, anatomy: Anatomy, images: Tensor) -> str | None:
    """Say in what a batch differs from what the first layer takes, and the fix; None where it seems to fit.

    Asked after a forward pass has failed, so that no preprocessing inside the model is second-guessed.
    """
    weight = next((p for p in model.parameters() if p.is_floating_point()), None)
    if weight is not None and weight.device != images.device:
        return f"images are on {images.device}, the model is on {weight.device}: images.to({str(weight.device)!r})"
    half_anyway = torch.is_autocast_enabled(images.device.type)
    if weight is not None and weight.dtype != images.dtype and not half_anyway:
        return f"images are {images.dtype}, the model's weights {weight.dtype}: images.to({weight.dtype})"
    if anatomy.first_conv is None:
        return None
    layer = model.get_submodule(anatomy.first_conv)
    channels, axes = getattr(layer, "in_channels", None), len(getattr(layer, "kernel_size", ())) + 2
    shape = tuple(images.shape)
    if not isinstance(channels, int) or axes == 2:
        return None
    if len(shape) == axes - 1:
        return f"shape {shape} is one image, not a batch: images.unsqueeze(0)"
    if len(shape) != axes:
        return f"shape {shape} has {len(shape)} axes; the first convolution {anatomy.first_conv!r} takes {axes}"
    if shape[1] == channels:
        return None
    wanted = f"the first convolution {anatomy.first_conv!r} takes {channels} channels, not {shape[1]} (shape {shape})"
    if shape[-1] == channels:
        return f"{wanted}; channels seem to come last: images.movedim(-1, 1)"
    if shape[1] == 1:
        return f"{wanted}; grey images can be repeated: images.expand(-1, {channels}, -1, -1)"
    return wanted


class LogitsCheck(OutputHook):
    """Refuses, before a method learns from it, an output that is not one row of logits per image."""

    def __call__(self, module: nn.Module, args: tuple[object, ...], output: object) -> None:
        name = type(module).__name__
        if not isinstance(output, Tensor):
            keys = f" with {', '.join(map(str, output))}" if isinstance(output, dict) else ""
            raise IncompatibleModelError(
                f"{name} must return logits, one row per image; it returned {type(output).__name__}{keys}. "
                "Wrap it in a module that returns the logits alone"
            )
        rows = args[0].shape[0] if args and isinstance(args[0], Tensor) else None
        if output.dim() != 2 or (rows is not None and output.shape[0] != rows):
            raise IncompatibleModelError(
                f"{name} must return logits of shape (images, classes); for {rows} images it returned shape "
                f"{tuple(output.shape)}. Wrap it in a module that returns that, by .flatten(1) for example"
            )
        if output.shape[1] < 2:
            raise IncompatibleModelError(
                f"{name} returns one number per image, and the softmax of one number says nothing. Wrap a binary "
                "classifier so that it returns two: torch.cat([torch.zeros_like(z), z], dim=1)"
            )

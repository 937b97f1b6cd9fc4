"""Putting tensors into a model, all or nothing; and writing the weights that training made.

A checkpoint fits if every name and every shape is right. Everything that is wrong is said at once, together with
the zoo's model that the tensors would fit, since the usual cause is a name mixed up. Two things are let pass,
because published files differ in them and no number depends on them: BatchNorm's `num_batches_tracked`, which old
checkpoints lack, and saved normalisation constants (`mu`, `sigma`), which must equal the model's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from synaptune.errors import WeightsError
from synaptune.models.card import Card
from synaptune.models.normalise import Normalise

__all__ = ["as_stored", "fit_tensors", "mismatches", "write_weights"]

_SAVED_CONSTANTS = {"mu": "mean", "mean": "mean", "sigma": "std", "std": "std"}


def mismatches(expected: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> list[str]:
    """Say all that keeps `tensors` from taking the place of `expected`; empty if nothing does."""
    needed = {name for name in expected if not name.endswith("num_batches_tracked")}
    missing = sorted(needed - set(tensors))
    unexpected = sorted(set(tensors) - set(expected))
    shapes = [
        f"{name} is {tuple(tensors[name].shape)} instead of {tuple(expected[name].shape)}"
        for name in expected
        if name in tensors and tensors[name].shape != expected[name].shape
    ]
    problems = []
    if missing:
        problems.append(f"{len(missing)} missing ({_some(missing)})")
    if unexpected:
        problems.append(f"{len(unexpected)} unexpected ({_some(unexpected)})")
    if shapes:
        problems.append(f"{len(shapes)} of another shape ({_some(shapes)})")
    return problems


def fit_tensors(
    model: nn.Module,
    tensors: Mapping[str, Tensor],
    *,
    source: str,
    name: str,
    suggest: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Copy `tensors` into `model`, or raise and leave the model as it is.

    Args:
        model: the model, in any precision; half-precision tensors are widened.
        tensors: by the model's own names.
        source: the file, for messages.
        name: what the model was asked for as, for messages.
        suggest: names of models that the tensors would fit; called only when they do not fit this one.

    Raises:
        WeightsError: names or shapes differ, a value is not finite, or saved normalisation differs from the model's.
    """
    expected = model.state_dict()
    constants = {key: value for key, value in tensors.items() if key in _SAVED_CONSTANTS and key not in expected}
    tensors = {key: value for key, value in tensors.items() if key not in constants}
    problems = mismatches(expected, tensors)
    if problems:
        fitting = sorted(suggest())
        hint = f"; the file fits {' or '.join(fitting)}" if fitting else _guess(expected, tensors)
        raise WeightsError(f"{source} does not fit {name}: {'; '.join(problems)}{hint}")
    broken = [key for key, value in tensors.items() if value.is_floating_point() and not value.isfinite().all()]
    if broken:
        raise WeightsError(f"{source} has values that are not finite, in {_some(broken)}; download it again")
    _compare_constants(model, constants, source=source, name=name)
    with torch.no_grad():
        for key, value in tensors.items():
            expected[key].copy_(value)


def _guess(expected: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> str:
    """A hint for the commonest mismatch: all is right but the number of classes."""
    shared = set(expected) & set(tensors)
    wrong = [key for key in shared if expected[key].shape != tensors[key].shape]
    rows = {tensors[key].shape[0] for key in wrong if tensors[key].dim() > 0}
    if wrong and len(wrong) <= 2 and len(rows) == 1 and len(shared) == len(tensors):
        return f"; it has {rows.pop()} classes: give num_classes"
    return "; it fits no model of the zoo either"


def _compare_constants(model: nn.Module, constants: Mapping[str, Tensor], *, source: str, name: str) -> None:
    own = next((module for module in model.modules() if isinstance(module, Normalise)), None)
    for key, value in constants.items():
        mine = None if own is None else getattr(own, _SAVED_CONSTANTS[key])
        if mine is None or value.numel() != mine.numel() or not torch.allclose(value.float().view_as(mine), mine):
            raise WeightsError(
                f"{source} was saved with the normalisation {key}={value.flatten().tolist()}, and {name} has "
                f"{'none' if mine is None else mine.flatten().tolist()}; it belongs to another model"
            )


def as_stored(tensor: Tensor, *, half: bool) -> Tensor:
    """The tensor as `write_weights` stores it: weights of two and more dimensions in half precision if `half`.

    Norms and biases, a hundredth of the size, stay exact: running variances may leave the range of half precision.
    """
    narrow = half and tensor.dim() > 1 and tensor.is_floating_point()
    return (tensor.detach().half() if narrow else tensor.detach()).contiguous().cpu()


def write_weights(path: Path, tensors: Mapping[str, Tensor], *, card: Card, half: bool = False) -> None:
    """Write a safetensors file with its card in the metadata, and the card beside it as JSON and as a page.

    Args:
        path: ends in `.safetensors`.
        tensors: by the model's names.
        card: what the file is.
        half: see `as_stored`.
    """
    stored = {name: as_stored(tensor, half=half) for name, tensor in tensors.items()}
    overflown = [name for name, tensor in stored.items() if not tensor.isfinite().all()]
    if overflown:
        raise WeightsError(f"{path}: {_some(overflown)} cannot be stored: values that are not finite")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    # Not save_file: what that writes only its owner can read.
    partial.write_bytes(save(stored, {"format": "pt", "card": card.to_json()}))
    partial.replace(path)
    path.with_suffix(".json").write_text(card.to_json(indent=2) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(card.to_markdown(), encoding="utf-8")


def _some(names: Iterable[str], limit: int = 4) -> str:
    listed = list(names)
    return ", ".join(listed[:limit]) + (f", and {len(listed) - limit} more" if len(listed) > limit else "")

"""From the layouts in which checkpoints are published to the parameter names of our modules.

| publisher | file holds | our module |
| --- | --- | --- |
| RobustBench `Standard` | `state_dict` or bare, `module.` prefix | `WideResNet(28, 10)` |
| RobustBench `Hendrycks2020AugMix_WRN` | the same; `mu`, `sigma` in some versions | `WideResNet(40, 2)` |
| AugMix itself | the same with `conv_shortcut` | `WideResNet(40, 2)` |
| TTT, DUA ResNet-26 | bare, or `net` and `head` (a sequence 0, 1, 5), beside `err_cls`, `optimizer`; or `ext` and `head` | `PreactResNet`, `RotationModel` |
| akamaster ResNets | `state_dict`, `module.` prefix | `ResNetCifar` |
| pytorch-playground | bare | `DigitNet` |
| EfficientNet-Lite0 of the package index | bare, `_blocks.7._depthwise_conv` | timm's, `blocks.3.1.conv_dw` |
| torchvision, timm | bare, or `state_dict`, `model` | their own |
| synaptune | safetensors; `net.`, `head.` for models with a rotation head | all |

Nothing here loads or checks; `weights` does.
"""  # noqa: E501 (a table)

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from synaptune.errors import WeightsError
from synaptune.models.checkpoint_file import Checkpoint, is_tensors
from synaptune.models.normalise import Normalised
from synaptune.models.rotation import RotationModel
from synaptune.models.wide_resnet import WideResNet

__all__ = ["tensors_for"]

# In this order: what wraps the weights themselves, then what a training script calls its model.
_WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model", "net", "weights")
_PREFIXES = ("module.", "model.", "_orig_mod.")
# The published rotation head is a sequence: third stage, norm, ReLU, pool, flatten, linear.
_HEAD_PARTS = {"0": "layer3", "1": "bn", "5": "fc"}
_EFFICIENT_ENDS = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}
_EXPANDING_BLOCK = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}
_PLAIN_BLOCK = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
_EXTRACTOR_PARTS = {"0": "conv1", "1": "layer1", "2": "layer2"}


def tensors_for(model: nn.Module, checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The checkpoint's tensors under the names that `model` uses, as far as the formats above tell.

    A classifier asked for from a checkpoint that also has a rotation head gets the classifier's part of it.
    """
    if isinstance(model, Normalised):
        return {f"model.{name}": tensor for name, tensor in tensors_for(model.model, checkpoint).items()}
    expected = set(model.state_dict())
    parts = _parts(checkpoint, expected)
    if isinstance(model, RotationModel):
        return _with_head(parts, checkpoint)
    tensors = parts["net"]
    if _is_ours_with_head(tensors) and not _is_ours_with_head(expected):
        tensors = _under(tensors, "net.")
    if isinstance(model, WideResNet):
        return {re.sub(r"\bconv_shortcut\b", "convShortcut", name): tensor for name, tensor in tensors.items()}
    if "_conv_stem.weight" in tensors and "conv_stem.weight" in model.state_dict():
        return _efficient_names(tensors, model)
    return tensors


def _parts(checkpoint: Checkpoint, expected: set[str]) -> dict[str, dict[str, Tensor]]:
    """The dictionaries of tensors in the file: `net`, and `head` and `ext` where there are such."""
    content: Mapping[str, Any] = checkpoint.content
    found: dict[str, dict[str, Tensor]] = {}
    for name in ("head", "ext"):
        if is_tensors(content.get(name)):
            found[name] = _without_prefixes(content[name], expected)
    if "ext" in found and "net" not in content:
        found["net"] = _renumbered(found["ext"], _EXTRACTOR_PARTS)
        return found
    for _ in range(3):  # no published file nests deeper
        if is_tensors(content):
            found["net"] = _without_prefixes(content, expected)
            return found
        wrapper = next((name for name in _WRAPPERS if isinstance(content.get(name), Mapping)), None)
        if wrapper is None:
            break
        content = content[wrapper]
    raise WeightsError(
        f"{checkpoint.path} holds no named tensors that could be a model's weights; it has the entries "
        f"{_listed(map(str, content))}, and one of {', '.join(_WRAPPERS)} was expected"
    )


def _without_prefixes(tensors: Mapping[str, Tensor], expected: set[str]) -> dict[str, Tensor]:
    """Take off what DataParallel, compile and wrappers put before every name, several times if need be.

    A model whose own names begin like that keeps them.
    """
    names = list(tensors)
    while True:
        prefix = next((p for p in _PREFIXES if all(name.startswith(p) for name in names)), None)
        if prefix is None or expected.issuperset(names):
            return dict(zip(names, tensors.values(), strict=True))
        names = [name.removeprefix(prefix) for name in names]


def _with_head(parts: Mapping[str, dict[str, Tensor]], checkpoint: Checkpoint) -> dict[str, Tensor]:
    if _is_ours_with_head(parts["net"]) and any(name.startswith("head.") for name in parts["net"]):
        return parts["net"]
    if "head" not in parts:
        raise WeightsError(
            f"{checkpoint.path} has no rotation head (no entry 'head' beside 'net'); load it as the plain network, "
            "and use a method that needs no head"
        )
    head = parts["head"]
    if any(name.split(".")[0] in _HEAD_PARTS for name in head):
        head = _renumbered(head, _HEAD_PARTS)
    classifier = {f"net.{name}": tensor for name, tensor in parts["net"].items()}
    return classifier | {f"head.{name}": tensor for name, tensor in head.items()}


def _is_ours_with_head(names: Iterable[str]) -> bool:
    return all(name.startswith(("net.", "head.")) for name in names)


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _renumbered(tensors: Mapping[str, Tensor], parts: Mapping[str, str]) -> dict[str, Tensor]:
    renamed = {}
    for name, tensor in tensors.items():
        number, dot, rest = name.partition(".")
        renamed[parts.get(number, number) + dot + rest] = tensor
    return renamed


def _efficient_names(tensors: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """EfficientNet's names, with blocks counted through, under timm's, with blocks counted per stage."""
    places = dict.fromkeys(".".join(name.split(".")[:3]) for name in model.state_dict() if name.startswith("blocks."))
    expanding = {name.split(".")[1] for name in tensors if "._expand_conv." in name}
    renamed = {}
    for name, tensor in tensors.items():
        if not name.startswith("_blocks."):
            part, _, rest = name.partition(".")
            renamed[f"{_EFFICIENT_ENDS.get(part, part)}.{rest}"] = tensor
            continue
        _, number, part, rest = name.split(".", 3)
        parts = _EXPANDING_BLOCK if number in expanding else _PLAIN_BLOCK
        place = list(places)[int(number)] if int(number) < len(places) else f"blocks.{number}"
        renamed[f"{place}.{parts.get(part, part)}.{rest}"] = tensor
    return renamed


def _listed(names: Iterable[str], limit: int = 6) -> str:
    listed = list(names)
    more = f" and {len(listed) - limit} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more if listed else "(none)"

"""What kind of layer a module is, told by its class and attributes, never by its name in the model.

A *mixing* layer combines channels, pixels or features with learnt weights (a convolution, a linear layer, or a
user's own layer that holds a weight matrix); a *normalisation* layer rescales; a *reducing* layer lowers the
resolution. The structure finder needs no other distinction. Attributes are read, never values, so that all of it
works on the meta device too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

__all__ = [
    "IMAGE_CHANNELS",
    "input_width",
    "is_batch_norm",
    "is_convolution",
    "is_dropout",
    "is_linear",
    "is_mixing",
    "is_normalisation",
    "is_patch_embedding",
    "output_width",
    "recolours_image",
    "reduces_resolution",
]

IMAGE_CHANNELS = (1, 3)

_NORMALISATIONS = (_BatchNorm, _InstanceNorm, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)

# Classes outside torch.nn that drop units or whole branches. They derive from nn.Module directly, so only the
# class tells, and importing torchvision or timm to compare with theirs would make `import synaptune` heavy.
_DROPPING_CLASSES = frozenset({"DropBlock2d", "DropPath", "PatchDropout", "StochasticDepth"})


def is_convolution(module: nn.Module) -> TypeGuard[_ConvNd]:
    """Whether `module` is a convolution of any dimension; transposed convolutions are not meant."""
    return isinstance(module, _ConvNd) and not module.transposed


def is_patch_embedding(module: nn.Module) -> bool:
    """Whether `module` is a convolution that cuts its input into patches that do not overlap."""
    return is_convolution(module) and max(module.kernel_size) > 1 and module.kernel_size == module.stride


def recolours_image(module: nn.Module) -> bool:
    """Whether `module` maps the colours of each pixel to colours, as an input normalisation may be written."""
    if not is_convolution(module) or max(module.kernel_size) > 1:
        return False
    return module.in_channels in IMAGE_CHANNELS and module.out_channels in IMAGE_CHANNELS


def is_batch_norm(module: nn.Module) -> TypeGuard[_BatchNorm]:
    """Whether `module` can normalise by the statistics of the batch (BatchNorm of any dimension, SyncBatchNorm)."""
    return isinstance(module, _BatchNorm)


def is_normalisation(module: nn.Module) -> bool:
    """Whether `module` is a normalisation layer, of torch or of anyone's own make."""
    return isinstance(module, _NORMALISATIONS) or _looks_like_normalisation(module)


def _looks_like_normalisation(module: nn.Module) -> bool:
    """Own classes are known by what they hold: an epsilon, and no tensor but vectors."""
    if isinstance(module, nn.Linear | _ConvNd) or _has_children(module):
        return False
    if not any(isinstance(getattr(module, name, None), float) for name in ("eps", "epsilon", "variance_epsilon")):
        return False
    tensors = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
    return bool(tensors) and all(len(_axes(tensor.shape)) <= 1 for tensor in tensors)


def is_dropout(module: nn.Module) -> bool:
    """Whether `module` drops units, channels, patches or whole branches while training."""
    return isinstance(module, _DropoutNd) or any(c.__name__ in _DROPPING_CLASSES for c in type(module).__mro__)


def is_mixing(module: nn.Module) -> bool:
    """Whether `module` combines its inputs with learnt weights: a convolution, a linear layer, or one's own."""
    return isinstance(module, _ConvNd | nn.Linear) or _own_weight(module) is not None


def is_linear(module: nn.Module) -> bool:
    """Whether `module` is a linear layer, or one of the user's own that holds a matrix (a cosine classifier, say)."""
    own = _own_weight(module)
    return isinstance(module, nn.Linear) or (own is not None and len(own) == 2)


def _own_weight(module: nn.Module) -> tuple[int, ...] | None:
    """Shape of the weights, without placeholder dimensions, of a layer that no class of torch.nn describes."""
    if isinstance(module, _ConvNd | nn.Linear | nn.Embedding) or _has_children(module) or is_normalisation(module):
        return None
    shapes = [_axes(parameter.shape) for parameter in module.parameters(recurse=False)]
    return next((shape for shape in shapes if len(shape) >= 2), None)


def reduces_resolution(module: nn.Module) -> bool:
    """Whether `module` itself has a stride above one: a strided convolution or a pooling layer."""
    if isinstance(module, _ConvNd):
        return not module.transposed and max(module.stride) > 1
    # A block may remember the stride of the convolution inside it, which is then counted there.
    stride = None if _has_children(module) else getattr(module, "stride", None)
    strides = stride if isinstance(stride, tuple | list) else (stride,)
    return any(isinstance(step, int) and step > 1 for step in strides)


def output_width(module: nn.Module) -> int | None:
    """Channels or features that a mixing or normalisation layer puts out; None where it does not say."""
    named = _first_int(module, "out_channels", "out_features", "num_features", "num_channels")
    if named is not None:
        return named
    shape = getattr(module, "normalized_shape", None) or _own_weight(module)
    if isinstance(shape, tuple | list):
        return int(shape[-1] if is_normalisation(module) else shape[0])
    vectors = [parameter.numel() for parameter in module.parameters(recurse=False)]
    return vectors[0] if vectors and is_normalisation(module) else None


def input_width(module: nn.Module) -> int | None:
    """Channels or features that a mixing, attention or normalisation layer takes; None where it does not say."""
    if is_normalisation(module):
        return output_width(module)
    named = _first_int(module, "in_channels", "in_features", "embed_dim")
    own = _own_weight(module)
    return own[1] if named is None and own is not None else named


def _first_int(module: nn.Module, *attributes: str) -> int | None:
    values = (getattr(module, attribute, None) for attribute in attributes)
    return next((value for value in values if isinstance(value, int)), None)


def _has_children(module: nn.Module) -> bool:
    return next(module.children(), None) is not None


def _axes(shape: Iterable[int]) -> tuple[int, ...]:
    """Dimensions that are more than a placeholder: (1, 64, 1, 1) is a vector."""
    return tuple(size for size in shape if size > 1)

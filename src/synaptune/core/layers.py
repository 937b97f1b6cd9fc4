"""What kind of layer a module is, told by its class and attributes, never by its name in the model.

A *mixing* layer combines channels or pixels with learnt weights (convolution, linear, or a user's own layer that
holds a weight matrix); a *normalisation* layer rescales; a *reducing* layer lowers the resolution. The structure
finder needs no other distinction. Everything here reads attributes only, so it also works on the meta device.
"""

from __future__ import annotations

from typing import TypeGuard

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

__all__ = [
    "is_batch_norm",
    "is_convolution",
    "is_dropout",
    "is_mixing",
    "is_normalisation",
    "is_patch_embedding",
    "output_width",
    "reduces_resolution",
]

_NORMALISATIONS: tuple[type[nn.Module], ...] = (
    _BatchNorm,
    _InstanceNorm,
    nn.GroupNorm,
    nn.LayerNorm,
    nn.RMSNorm,
)

# Classes outside torch.nn that drop activations or whole branches; they derive from nn.Module directly, so only
# the class name tells, and importing torchvision or timm for an isinstance check would make `import` heavy.
_DROPPING_CLASSES = frozenset({"DropPath", "DropBlock2d", "PatchDropout", "StochasticDepth"})


def is_convolution(module: nn.Module) -> TypeGuard[_ConvNd]:
    """Whether `module` is a convolution of any dimension; transposed convolutions are not meant."""
    return isinstance(module, _ConvNd) and not module.transposed


def is_patch_embedding(module: nn.Module) -> bool:
    """Whether `module` is a convolution that cuts its input into patches that do not overlap."""
    return is_convolution(module) and max(module.kernel_size) > 1 and module.kernel_size == module.stride


def is_batch_norm(module: nn.Module) -> TypeGuard[_BatchNorm]:
    """Whether `module` can normalise by the statistics of the batch (BatchNorm, SyncBatchNorm, subclasses)."""
    return isinstance(module, _BatchNorm)


def is_normalisation(module: nn.Module) -> bool:
    """Whether `module` is a normalisation layer, of torch or of anyone's own make.

    Own classes are recognised by what they hold: an epsilon, and nothing to learn but vectors.
    """
    return isinstance(module, _NORMALISATIONS) or _looks_like_normalisation(module)


def _looks_like_normalisation(module: nn.Module) -> bool:
    if isinstance(module, nn.Linear | _ConvNd) or any(True for _ in module.children()):
        return False
    if not any(
        isinstance(getattr(module, name, None), float) for name in ("eps", "epsilon", "variance_epsilon")
    ):
        return False
    tensors = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
    return bool(tensors) and all(sum(size > 1 for size in tensor.shape) <= 1 for tensor in tensors)


def is_dropout(module: nn.Module) -> bool:
    """Whether `module` drops units, channels, patches or whole branches while training."""
    return isinstance(module, _DropoutNd) or any(
        c.__name__ in _DROPPING_CLASSES for c in type(module).__mro__
    )


def is_mixing(module: nn.Module) -> bool:
    """Whether `module` combines its inputs with learnt weights: a convolution, a linear layer, or one's own."""
    if isinstance(module, _ConvNd | nn.Linear):
        return True
    if any(True for _ in module.children()) or is_normalisation(module):
        return False
    return any(sum(size > 1 for size in p.shape) >= 2 for p in module.parameters(recurse=False))


def reduces_resolution(module: nn.Module) -> bool:
    """Whether `module` itself has a stride above one: a strided convolution or a pooling layer."""
    stride = getattr(module, "stride", None)
    if any(True for _ in module.children()) and not is_convolution(module):
        return False  # a block that remembers the stride of the convolution inside it
    if isinstance(stride, int):
        return stride > 1
    return isinstance(stride, tuple | list) and any(isinstance(s, int) and s > 1 for s in stride)


def output_width(module: nn.Module) -> int | None:
    """Channels or features that a mixing or normalisation layer puts out; None where it does not say."""
    for attribute in ("out_channels", "out_features", "num_features", "num_channels"):
        width = getattr(module, attribute, None)
        if isinstance(width, int):
            return width
    shape = getattr(module, "normalized_shape", None)
    if isinstance(shape, tuple | list) and shape:
        return int(shape[-1])
    vectors = [p.numel() for p in module.parameters(recurse=False)]
    return vectors[0] if vectors and is_normalisation(module) else None

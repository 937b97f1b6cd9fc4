"""A corruption as a transform, for pipelines of `torchvision.transforms.v2`, or without torchvision as a callable.

In a pipeline nobody says which image of the set this is, so by default the random stream hangs on the pixels
themselves: the index is a hash of the image. That keeps the promise of `corrupt`: the result does not depend on
order, batch or worker, and an epoch later the same image looks the same.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from synaptune.errors import InputError
from synaptune.shifts.corruption import check_request, corrupt
from synaptune.shifts.presets import Size
from synaptune.shifts.recipe import CorruptionRecipe

__all__ = ["Corrupt", "content_indices"]


class Corrupt(nn.Module):
    """Corrupt images: PIL images, and uint8 tensors of shape (3, h, w) or (batch, 3, h, w), `tv_tensors` included.

    Comes after resizing and cropping, and before scaling to floats. Of samples such as `(image, label)` or
    `{"image": ..., "label": ...}`, images are corrupted and everything else is passed on. As in torchvision, a bare
    tensor counts as an image only if the sample has no PIL image and no `tv_tensors.Image`, and then the first one.

    Args:
        name: one of `names("all")`.
        severity: 1 (mild) to 5.
        seed: chooses the random streams.
        size: the published parameters to take as they are; by default the nearest ones, scaled.

    >>> photo = Image.new("RGB", (32, 32), (100, 50, 0))
    >>> Corrupt("brightness", 1)(photo).getpixel((0, 0))
    (112, 56, 0)
    >>> batch = torch.full((2, 3, 32, 32), 100, dtype=torch.uint8)
    >>> corrupted, labels = Corrupt("contrast", 5)(batch, torch.tensor([3, 4]))
    >>> corrupted.shape, labels.tolist()
    (torch.Size([2, 3, 32, 32]), [3, 4])
    """

    def __init__(self, name: str, severity: int, *, seed: int = 0, size: Size | None = None):
        super().__init__()
        check_request(name, severity, seed=seed, size=size)
        self.name, self.severity, self.seed, self.size = name, severity, seed, size

    @property
    def recipe(self) -> CorruptionRecipe:
        """What determines the result besides the image."""
        return CorruptionRecipe.of(self.name, self.severity, seed=self.seed, size=self.size)

    def forward(self, *sample: Any, indices: Sequence[int] | None = None) -> Any:
        """Corrupt the images of a sample.

        Args:
            sample: an image, or any nesting of tuples, lists and dictionaries that holds images.
            indices: which images of the set these are, for the streams that `corrupt` gives them; only for a sample
                that is one image or one batch.
        """
        if indices is not None and (len(sample) != 1 or not isinstance(sample[0], Image.Image | Tensor)):
            raise InputError("indices go with a single image or one batch of them, not with a nested sample")
        whole = sample[0] if len(sample) == 1 else sample
        leaves = list(_leaves(whole))
        marked = [leaf for leaf in leaves if isinstance(leaf, Image.Image) or _is_tv_image(leaf)]
        chosen = marked or [leaf for leaf in leaves if _is_plain_image(leaf)][:1]
        if not chosen:
            raise InputError(
                "the sample holds no image: Corrupt takes PIL images and uint8 tensors of shape (3, h, w) or "
                f"(batch, 3, h, w), and was given {', '.join(map(_described, leaves)) or 'nothing'}"
            )
        return self._replaced(whole, {id(leaf) for leaf in chosen}, indices)

    def extra_repr(self) -> str:
        return str(self.recipe)

    def _replaced(self, node: Any, chosen: set[int], indices: Sequence[int] | None) -> Any:
        """Rebuild the sample around the corrupted images."""
        if id(node) in chosen:
            return self._corrupted(node, indices)
        if isinstance(node, Mapping):
            return {key: self._replaced(value, chosen, indices) for key, value in node.items()}
        if isinstance(node, tuple | list):
            parts = [self._replaced(value, chosen, indices) for value in node]
            is_named = isinstance(node, tuple) and hasattr(node, "_fields")
            return type(node)(*parts) if is_named else type(node)(parts)
        return node

    def _corrupted(self, image: Image.Image | Tensor, indices: Sequence[int] | None) -> Image.Image | Tensor:
        if isinstance(image, Image.Image):
            if image.mode == "F" or image.mode.startswith("I"):
                raise InputError(
                    f"Corrupt takes pictures of 8 bits, not of Pillow's mode {image.mode!r}, which would be cut off, "
                    "not scaled; scale it first, or read the file with synaptune.data.read_images"
                )
            pixels = np.asarray(image.convert("RGB"))[None]
            return Image.fromarray(self._applied(pixels, indices)[0])
        plain = image.as_subclass(Tensor)
        batch = plain if plain.ndim == 4 else plain[None]
        pixels = batch.detach().cpu().permute(0, 2, 3, 1).numpy()
        corrupted = torch.from_numpy(self._applied(pixels, indices)).permute(0, 3, 1, 2).contiguous()
        result = corrupted.reshape(plain.shape).to(plain.device)
        return result if type(image) is Tensor else _wrapped_like(result, image)

    def _applied(self, pixels: NDArray[np.uint8], indices: Sequence[int] | None) -> NDArray[np.uint8]:
        where = content_indices(pixels) if indices is None else indices
        return corrupt(pixels, self.name, self.severity, seed=self.seed, indices=where, size=self.size)


def content_indices(images: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return one index per image, a hash of its pixels: (batch, h, w, c) to (batch,)."""
    hashes = [hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=8).digest() for image in images]
    return np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64)


def _leaves(node: Any) -> Iterator[Any]:
    if isinstance(node, Mapping):
        for value in node.values():
            yield from _leaves(value)
    elif isinstance(node, tuple | list):
        for value in node:
            yield from _leaves(value)
    else:
        yield node


def _is_tv_image(leaf: Any) -> bool:
    # Whoever has such a tensor has imported torchvision; we need not.
    tv_tensors = sys.modules.get("torchvision.tv_tensors")
    return tv_tensors is not None and isinstance(leaf, tv_tensors.Image)


def _is_plain_image(leaf: Any) -> bool:
    return type(leaf) is Tensor and leaf.ndim in (3, 4) and leaf.shape[-3] == 3 and leaf.dtype == torch.uint8


def _wrapped_like(result: Tensor, image: Tensor) -> Tensor:
    from torchvision import tv_tensors

    wrapped: Tensor = tv_tensors.wrap(result, like=image)
    return wrapped


def _described(leaf: Any) -> str:
    if isinstance(leaf, Tensor):
        return f"a {str(leaf.dtype).removeprefix('torch.')} tensor {tuple(leaf.shape)}"
    return type(leaf).__name__

"""DUA: adapt normalisation statistics on a few single images, with a decaying momentum (Mirza et al., CVPR 2022).

For image k = 1, 2, ..., 80 of the stream, 64 augmented copies of it (crop, flip, quarter turn) go through the network
once, and every batch normalisation layer moves its running statistics by

    m_k = m_0 d^k + m_min          (0.1 * 0.94^k + 0.005)

No gradient is taken. After 80 images the model is fixed. The authors evaluate the whole test set after every image
and report the lowest error, which lets labels choose when to stop; here adaptation stops after its fixed number of
images, and only the benchmark computes that minimum, under the name oracle. For larger images the crop padding grows
with the size (one eighth), where the released code keeps its 32-pixel crop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from synaptune.algorithms.norm import batch_norms_of
from synaptune.core.method import AdaptOptions, Method, Needs, Step, Touches
from synaptune.core.normalisation import batch_norm, statistics_buffers
from synaptune.core.registry import register
from synaptune.core.structure import Anatomy
from synaptune.functional.augmentation import crop_and_flip, quarter_turns
from synaptune.options import option

__all__ = ["Dua", "momentum_at"]


@dataclass(frozen=True, kw_only=True)
class Dua(AdaptOptions):
    """Options of DUA; the defaults are the authors'."""

    images: int = option(80, "how many single images to adapt on, then stop", at_least=0)
    momentum: float = option(0.1, "momentum to start from", at_least=0, at_most=1)
    decay: float = option(0.94, "factor on the momentum per image", above=0, at_most=1)
    floor: float = option(0.005, "what the momentum decays to", at_least=0, at_most=1)
    copies: int = option(64, "augmented copies of each image", at_least=2)
    seed: int = option(0, "seed of the augmentations")
    predict: Literal["before", "after"] = option("after", "predict a batch before or after adapting on its images")


def momentum_at(k: int, *, momentum: float, decay: float, floor: float) -> float:
    """Momentum of the k-th image, counted from 1.

    >>> round(momentum_at(1, momentum=0.1, decay=0.94, floor=0.005), 4)
    0.099
    """
    return momentum * decay**k + floor


@register(
    "dua",
    options=Dua,
    needs=Needs(batch_norm=True),
    summary="Running statistics moved by 80 single images with decaying momentum.",
    paper="arXiv:2112.00463",
    code="jmiemirza/DUA",
)
class DuaMethod(Method[Dua]):
    """Statistics from single images."""

    def touches(self, model: nn.Module, anatomy: Anatomy) -> Touches:
        return statistics_buffers(model, batch_norms_of(model, anatomy, "dua"))

    def prepare(self, model: nn.Module, anatomy: Anatomy) -> None:
        self._layers = anatomy.batch_norms
        self._seen = 0
        self._generator = torch.Generator().manual_seed(self.options.seed)

    def step(self, model: nn.Module, images: Tensor) -> Step:
        with torch.no_grad():
            logits = model(images)
            for image in images[: max(0, self.options.images - self._seen)]:
                self._adapt_on(model, image)
        return Step(logits=logits)

    def _adapt_on(self, model: nn.Module, image: Tensor) -> None:
        self._seen += 1
        momentum = momentum_at(
            self._seen, momentum=self.options.momentum, decay=self.options.decay, floor=self.options.floor
        )
        layers = [batch_norm(model, name) for name in self._layers]
        for layer in layers:
            layer.training, layer.momentum = True, min(momentum, 1.0)
        try:
            model(self._copies_of(image))
        finally:
            for layer in layers:
                layer.training = False

    def _copies_of(self, image: Tensor) -> Tensor:
        copies = crop_and_flip(
            image.expand(self.options.copies, *image.shape),
            padding=image.shape[-1] // 8,
            generator=self._generator,
        )
        square = image.shape[-1] == image.shape[-2]
        # A quarter turn of an oblong image has another shape; half turns are all that fits.
        draws = torch.randint(0, 4 if square else 2, (self.options.copies,), generator=self._generator, device="cpu")
        return quarter_turns(copies, draws if square else 2 * draws)

    def state(self) -> dict[str, Tensor]:
        return {"seen": torch.tensor(self._seen, device="cpu"), "generator": self._generator.get_state()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._seen = int(state["seen"])
        self._generator.set_state(state["generator"].cpu())

"""TTT: test-time training on the rotation task (Sun et al., ICML 2020).

For every test image, 32 augmented copies, each turned by a random number of quarter turns, train the shared early
layers and the rotation head to tell the turn; then the main branch predicts the image.

    L = cross-entropy(head(shared(rotate(x, r))), r),   SGD, lr 1e-3, no momentum

`online` keeps what was learnt from image to image (1 step each); `slow` starts every image from the source (10
steps). It is not fully test-time adaptation: the model must have been trained with the head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synaptune.core.descent import Descent
from synaptune.core.method import AdaptOptions, Method, Needs, Step, Touches
from synaptune.core.normalisation import batch_norm, statistics_buffers
from synaptune.core.registry import preset, register
from synaptune.core.snapshot import named_tensors
from synaptune.core.structure import Anatomy
from synaptune.errors import IncompatibleModelError, InputError
from synaptune.functional.augmentation import crop_and_flip, quarter_turns
from synaptune.options import option

__all__ = ["Ttt"]


@dataclass(frozen=True, kw_only=True)
class Ttt(AdaptOptions):
    """Options of TTT; the defaults are the authors' online variant."""

    variant: Literal["online", "slow"] = option("online", "carry on from image to image, or start each from the source")
    lr: float = option(1e-3, "step size of SGD", at_least=0)
    iterations: int = option(1, "steps per image (the authors take 10 in the slow variant)", at_least=1)
    copies: int = option(32, "augmented copies of each image", at_least=2)
    threshold: float = option(
        1.0, "adapt only on images whose confidence in 'not turned' is below", at_least=0, at_most=1
    )
    fix_bn: bool = option(False, "keep the statistics of batch normalisation fixed")
    seed: int = option(0, "seed of the augmentations")
    predict: Literal["before", "after"] = option("after", "predict an image before or after training on it")


@register(
    "ttt",
    options=Ttt,
    needs=Needs(rotation_head=True),
    summary="Self-supervised training on rotations of every test image.",
    paper="arXiv:1909.13231",
    code="yueatsprograms/ttt_cifar_release",
)
class TttMethod(Method[Ttt]):
    """Rotation training, image by image."""

    def touches(self, model: nn.Module, anatomy: Anatomy) -> Touches:
        branch = tuple(f"{name}." for name in self._rotation_branch(model))
        parameters = {name for name, _ in model.named_parameters() if name.startswith(branch)}
        self._norms = tuple(name for name in anatomy.batch_norms if f"{name}.".startswith(branch))
        touches = Touches(parameters=frozenset(parameters))
        return touches if self.options.fix_bn else touches | statistics_buffers(model, self._norms)

    def _rotation_branch(self, model: nn.Module) -> tuple[str, ...]:
        shared, head = getattr(model, "shared_names", None), getattr(model, "head_name", None)
        if shared is None or head is None or not callable(getattr(model, "rotation_logits", None)):
            raise IncompatibleModelError(
                f"ttt needs a model that was trained with a rotation head; {type(model).__name__} has none "
                "(it must offer rotation_logits(images), shared_names and head_name, as "
                "synaptune.models.RotationModel does). Use method='nhl', which needs no such training"
            )
        unknown = sorted({*shared, head} - {name for name, _ in model.named_modules()})
        if unknown:
            raise IncompatibleModelError(
                f"shared_names and head_name of {type(model).__name__} must name modules of it, and "
                f"{', '.join(unknown)} is none"
            )
        return (*shared, head)

    def prepare(self, model: nn.Module, anatomy: Anatomy) -> None:
        names = self.touches(model, anatomy).parameters
        self._descent = Descent(
            {name: parameter for name, parameter in model.named_parameters() if name in names},
            optimizer="sgd",
            lr=self.options.lr,
        )
        self._generator = torch.Generator().manual_seed(self.options.seed)
        buffers = () if self.options.fix_bn else sorted(statistics_buffers(model, self._norms).buffers)
        live = named_tensors(model, [*self._descent.parameters, *buffers])
        self._source = {name: tensor.detach().clone() for name, tensor in live.items()}

    def step(self, model: nn.Module, images: Tensor) -> Step:
        if images.dim() != 4 or images.shape[-1] != images.shape[-2]:
            raise InputError(f"ttt turns images by 90 degrees and needs square ones, not {tuple(images.shape)}")
        before, after, events = [], [], []
        trained = self._descent.backwards
        for image in images.unbind():
            if self.options.variant == "slow":
                self._restore(model)
            if self.options.predict == "before":
                before.append(self.predict_one(model, image))
            events += self._train_on(model, image)
            if self.options.predict == "after":
                after.append(self.predict_one(model, image))
        logits = torch.cat(before or after)
        return Step(
            logits=logits,
            after=torch.cat(after) if after else None,
            extra_forwards=self._descent.backwards - trained,
            events=sorted(set(events)),
        )

    @torch.no_grad()
    def predict_one(self, model: nn.Module, image: Tensor) -> Tensor:
        """Main branch on one unchanged image, (1, classes)."""
        return self.predict(model, image[None])

    def _train_on(self, model: nn.Module, image: Tensor) -> list[str]:
        if self.options.threshold < 1.0 and self._confidence(model, image) >= self.options.threshold:
            return []
        events: list[str] = []
        for _ in range(self.options.iterations):
            turns = torch.randint(0, 4, (self.options.copies,), generator=self._generator, device="cpu")
            copies = crop_and_flip(
                image.expand(self.options.copies, *image.shape),
                padding=image.shape[-1] // 8,
                generator=self._generator,
            )
            loss = F.cross_entropy(self._rotation(model, quarter_turns(copies, turns)), turns.to(image.device))
            events += self._descent.descend(loss, images=self.options.copies)
        return events

    @torch.no_grad()
    def _confidence(self, model: nn.Module, image: Tensor) -> float:
        return float(model.rotation_logits(image[None]).float().softmax(1)[0, 0])  # type: ignore[operator]

    def _rotation(self, model: nn.Module, images: Tensor) -> Tensor:
        """Rotation logits with the branch's batch normalisation in train mode, unless `fix_bn`."""
        layers = [] if self.options.fix_bn else [batch_norm(model, name) for name in self._norms]
        for layer in layers:
            layer.training = True
        try:
            logits: Tensor = model.rotation_logits(images)  # type: ignore[operator]
            return logits
        finally:
            for layer in layers:
                layer.training = False

    @torch.no_grad()
    def _restore(self, model: nn.Module) -> None:
        for name, tensor in named_tensors(model, self._source).items():
            tensor.copy_(self._source[name])

    def state(self) -> dict[str, Tensor]:
        return {"generator": self._generator.get_state()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._generator.set_state(state["generator"].cpu())

    @property
    def backwards(self) -> int:
        return self._descent.backwards


preset(
    "ttt-slow",
    base="ttt",
    variant="slow",
    iterations=10,
    summary="TTT with ten steps per image, from the source each time.",
)

"""One training run, step by step: SGD on arrays of images, resumable at any step with an identical result.

    loss = CE(class) + w * CE(rotation of a share of the batch)  [+ v * JSD(clean, mixed, mixed)  with AugMix]

Order, augmentation, rotations and dropout of step k depend on the seed and k alone, never on a generator that
lives through the run. A checkpoint therefore needs only tensors and the step number, and a run that was killed
ends with the same bits as one that was not (same machine, build and number of threads).

We differ from the TTT release in two points, both options: the rotation loss may use a share of each batch with
one random rotation each, instead of all four rotations of all images, and the result may be an average of the
weights over the last steps, with the normalisation statistics measured afterwards (`evaluation.recalibrate`).
"""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synaptune.errors import IncompatibleModelError, InputError, OptionError
from synaptune.models.augment import random_crop, random_mirror, random_resized_crop, random_rotation, rotate, to_float
from synaptune.models.augmix import augmix, jensen_shannon
from synaptune.models.evaluation import device_of, recalibrate
from synaptune.models.image_set import ImageSet
from synaptune.models.rotation import RotationModel
from synaptune.models.training_recipe import TrainingRecipe, learning_rate
from synaptune.models.training_state import TrainingState, seed_of

__all__ = ["Trainer"]


class Trainer:
    """One training run, step by step; `training_loop.train` is the loop around it.

    Args:
        model: takes float images in [0, 1]; a `RotationModel` where the recipe has a rotation share. It is
            trained in place.
        data: the training set.
        recipe: everything else that decides the result.
        size: height and width of what the augmentation `resized_crop` gives; by default those of the images.
    """

    def __init__(
        self, model: nn.Module, data: ImageSet, *, recipe: TrainingRecipe, size: tuple[int, int] | None = None
    ):
        if recipe.rotation_share and not isinstance(model, RotationModel):
            raise IncompatibleModelError(
                f"rotation_share={recipe.rotation_share} needs a model with a rotation head, and "
                f"{type(model).__name__} has none; wrap it in RotationModel or set rotation_share=0"
            )
        if not recipe.rotation_share and isinstance(model, RotationModel):
            raise IncompatibleModelError(
                "rotation_share=0 would leave the rotation head as it was drawn at random; give it a share, such as "
                "rotation_share=0.25, or train the network without the head"
            )
        self.size = (size or data.size) if recipe.augmentation == "resized_crop" else data.size
        if recipe.rotation_share and self.size[0] != self.size[1]:
            raise InputError(f"{data.name}: the rotation head needs square images")
        self.model, self.data, self.recipe = model, data, recipe
        self.device, self.num_classes = device_of(model), data.num_classes
        self._data = data.to(self.device)
        self.batch_size = min(recipe.batch_size, len(data))
        self.steps_per_epoch = len(data) // self.batch_size
        self.total_steps = self.steps_per_epoch * recipe.epochs
        if recipe.channels_last:
            model.to(memory_format=torch.channels_last)
        self.state = TrainingState(model, recipe)

    def step(self) -> dict[str, float]:
        """Train on the next batch; returns its losses."""
        step, recipe = self.state.step, self.recipe
        self.state.set_learning_rate(learning_rate(step, self.total_steps, recipe=recipe))
        self.state.devices = list(dict.fromkeys([*self.state.devices, _name_of(self.device)]))
        generator = torch.Generator().manual_seed(seed_of(recipe.seed, "augmentation", step))
        images, labels = self._data.batch(self._batch_indices(step))
        images = self._augment(images, generator)
        self.model.train()
        # Dropout draws from torch's global generator: seed it for this step only, and put it back.
        with torch.random.fork_rng(devices=[] if self.device.type == "cpu" else [self.device]):
            torch.manual_seed(seed_of(recipe.seed, "dropout", step))
            losses = self._losses(images, labels, generator)
        weights = {"class": 1.0, "rotation": recipe.rotation_weight, "consistency": recipe.jsd_weight}
        total = torch.stack([weights[name] * loss for name, loss in losses.items()]).sum()
        if not total.isfinite():
            raise OptionError(f"the loss is no longer finite at step {step}; train with a smaller lr than {recipe.lr}")
        self.state.descend(total)
        return {name: float(loss.detach()) for name, loss in losses.items()}

    def finish(self) -> nn.Module:
        """Put the averaged weights into the model, measure its statistics, and switch it to eval mode."""
        self.state.use_average()
        if self.recipe.recalibration_images:
            generator = torch.Generator().manual_seed(seed_of(self.recipe.seed, "recalibration", 0))
            chosen = torch.randperm(len(self.data), generator=generator)[: self.recipe.recalibration_images]
            parts = chosen.split(self.batch_size)

            def shown(part: Tensor) -> Tensor:
                return self._augment(self._data.batch(part)[0], generator)

            recalibrate(
                self.model,
                (torch.cat(self._views(shown(part), generator)) for part in parts),
                rotated=(
                    to_float(self._rotated(shown(part), generator)[0]) for part in parts if self.recipe.rotation_share
                ),
            )
        return self.model.eval()

    def _batch_indices(self, step: int) -> Tensor:
        epoch, position = divmod(step, self.steps_per_epoch)
        generator = torch.Generator().manual_seed(seed_of(self.recipe.seed, "order", epoch))
        order = torch.randperm(len(self.data), generator=generator)
        return order[position * self.batch_size : (position + 1) * self.batch_size]

    def _augment(self, images: Tensor, generator: torch.Generator) -> Tensor:
        kind = self.recipe.augmentation
        if kind == "resized_crop":
            images = random_resized_crop(images, generator, size=self.size)
        elif kind != "none":
            images = random_crop(images, generator, padding=self.recipe.crop_padding)
        return images if kind in ("none", "crop") else random_mirror(images, generator)

    def _losses(self, images: Tensor, labels: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        views = self._views(images, generator)
        with self._arithmetic():
            # One pass for all views, so that they share their batch statistics.
            output = self.model(torch.cat(views))
        if output.shape[1] < self.num_classes:
            raise InputError(
                f"{self.data.name} has labels up to {self.num_classes - 1}, the model {output.shape[1]} classes"
            )
        logits = output.float().chunk(len(views))
        smoothing = self.recipe.label_smoothing
        losses = {"class": F.cross_entropy(logits[0], labels, label_smoothing=smoothing)}
        if len(views) > 1:
            losses["consistency"] = jensen_shannon(logits)
        if self.recipe.rotation_share and isinstance(self.model, RotationModel):
            turned, quarters = self._rotated(images, generator)
            # A pass of its own, so that the classifier's batch statistics come from upright images only.
            with self._arithmetic():
                turns = self.model.rotation_logits(to_float(turned))
            losses["rotation"] = F.cross_entropy(turns.float(), quarters.to(self.device))
        return losses

    def _views(self, images: Tensor, generator: torch.Generator) -> list[Tensor]:
        """What the classifier is trained on: the images, their mixtures, or both for the consistency loss."""
        recipe = self.recipe
        if recipe.augmentation != "augmix":
            return [to_float(images)]
        mix = partial(augmix, images, generator, severity=recipe.augmix_severity, width=recipe.augmix_width)
        return [to_float(images), mix(), mix()] if recipe.jsd_weight else [mix()]

    def _rotated(self, images: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        count = math.ceil(self.recipe.rotation_share * len(images))
        chosen = images[torch.randperm(len(images), generator=generator)[:count].to(images.device)]
        if self.recipe.rotation == "random":
            return random_rotation(chosen, generator)
        quarters = torch.arange(4).repeat_interleave(count)
        return rotate(chosen.repeat(4, 1, 1, 1), quarters), quarters

    def _arithmetic(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16")


def _name_of(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type

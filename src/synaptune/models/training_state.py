"""The state of a training run: weights, their average, momentum, step. Everything that a checkpoint holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from synaptune.errors import StateFileError
from synaptune.models.evaluation import device_of
from synaptune.models.training_recipe import TrainingRecipe

__all__ = ["TrainingState", "seed_of"]


def seed_of(seed: int, purpose: str, number: int) -> int:
    """A seed for one purpose at one step or epoch, unrelated to that of any other.

    >>> seed_of(0, "order", 1) == seed_of(0, "order", 1) != seed_of(0, "order", 2)
    True
    """
    digest = hashlib.blake2b(f"{seed}/{purpose}/{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # torch takes 63 bits


class TrainingState:
    """SGD with Nesterov momentum, a running average of the weights, and the file they live in between runs."""

    def __init__(self, model: nn.Module, recipe: TrainingRecipe):
        self.model, self.recipe = model, recipe
        self.step = 0
        self.seconds = 0.0
        self.devices: list[str] = []
        self.history: list[dict[str, float | None]] = []
        self.optimizer = torch.optim.SGD(
            model.parameters(),
            lr=recipe.lr,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
            nesterov=recipe.momentum > 0,
        )
        self.average: dict[str, Tensor] = {}
        if recipe.ema_decay:
            self.average = {name: value.detach().clone() for name, value in model.state_dict().items()}

    def set_learning_rate(self, lr: float) -> None:
        """Use this rate from the next step on."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr

    def descend(self, loss: Tensor) -> None:
        """One optimiser step, counted and averaged."""
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        # Early on the average follows quickly, so that it is not weighed down by the random start.
        decay = min(self.recipe.ema_decay, (1 + self.step) / (10 + self.step))
        if self.average:
            self._follow(1 - decay)

    def _follow(self, share: float) -> None:
        """Move the average towards the weights; counters are copied."""
        current = self.model.state_dict()
        moving = [name for name, average in self.average.items() if average.is_floating_point()]
        with torch.no_grad():
            torch._foreach_lerp_([self.average[name] for name in moving], [current[name] for name in moving], share)
            for name in self.average.keys() - set(moving):
                self.average[name].copy_(current[name])

    def use_average(self) -> None:
        """Replace the model's weights by their average, for good."""
        if self.average:
            self.model.load_state_dict(self.average)

    @contextmanager
    def average_in_place(self) -> Iterator[None]:
        """Within this context the model has the averaged weights."""
        current = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        self.use_average()
        try:
            yield
        finally:
            self.model.load_state_dict(current)

    def save(self, path: Path, *, data_digest: str, network: str = "") -> None:
        """Write the checkpoint; a crash while writing leaves the previous one in place."""
        tensors = {f"model/{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"average/{name}": value for name, value in self.average.items()}
        for name, parameter in self.model.named_parameters():
            if "momentum_buffer" in self.optimizer.state.get(parameter, {}):
                tensors[f"momentum/{name}"] = self.optimizer.state[parameter]["momentum_buffer"]
        metadata = {
            "format": "synaptune training checkpoint 1",
            "step": str(self.step),
            "seconds": repr(self.seconds),
            "devices": json.dumps(self.devices),
            "recipe": self.recipe.to_json(),
            "data": data_digest,
            "network": network,
            "history": json.dumps(self.history),
        }
        partial = path.with_suffix(".partial")
        # Not save_file: what that writes only its owner can read.
        partial.write_bytes(save({name: value.detach().contiguous() for name, value in tensors.items()}, metadata))
        partial.replace(path)

    def load(self, path: Path, *, data_digest: str, network: str = "") -> None:
        """Go on from a checkpoint of the same recipe, network and data."""
        try:
            with safe_open(path, framework="pt", device=str(device_of(self.model))) as file:
                metadata = file.metadata() or {}
                self._check(path, metadata, data_digest, network)
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        except SafetensorError as error:
            raise StateFileError(f"{path} is damaged ({error}); delete it to start again") from error
        weights, momentum = _part(tensors, "model/"), _part(tensors, "momentum/")
        if _shapes(weights) != _shapes(self.model.state_dict()):
            raise StateFileError(f"{path} was written by a run with another model; choose another directory")
        self.model.load_state_dict(weights)
        self.average = _part(tensors, "average/")
        for name, parameter in self.model.named_parameters():
            if name in momentum:
                # As a copy, because strides are not stored and the optimiser's arithmetic should see the model's.
                buffer = torch.empty_like(parameter).copy_(momentum[name])
                self.optimizer.state[parameter]["momentum_buffer"] = buffer
        self.step = int(metadata["step"])
        self.seconds = float(metadata["seconds"])
        self.devices = json.loads(metadata.get("devices", "[]"))
        self.history = json.loads(metadata["history"])

    def _check(self, path: Path, metadata: dict[str, str], data_digest: str, network: str) -> None:
        if "recipe" not in metadata or "step" not in metadata:
            raise StateFileError(f"{path} is not a training checkpoint; choose another directory for this run")
        if (other := metadata.get("network", network)) != network:
            raise StateFileError(
                f"{path} was written by a run that trains {other or 'a network without a name'}, not "
                f"{network or 'one without'}; choose another directory"
            )
        if differences := _differences(TrainingRecipe.from_json(metadata["recipe"]), self.recipe):
            raise StateFileError(
                f"{path} was written by a run with another recipe: {differences}; "
                "give the same options to go on, or choose another directory"
            )
        if metadata.get("data") != data_digest:
            raise StateFileError(f"{path} was written by a run on other training data; choose another directory")


def _differences(former: TrainingRecipe, now: TrainingRecipe) -> str:
    """Options that have another value now.

    >>> _differences(TrainingRecipe(lr=0.2, epochs=3), TrainingRecipe(epochs=5))
    'epochs was 3 and is 5, lr was 0.2 and is 0.1'
    """
    values = now.as_dict()
    pairs = ((name, value, values[name]) for name, value in former.as_dict().items())
    return ", ".join(f"{name} was {old} and is {new}" for name, old, new in pairs if old != new)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _shapes(tensors: dict[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in tensors.items()}

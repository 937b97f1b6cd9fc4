"""Training: learns, repeats bit for bit, and goes on after any interruption as if there had been none."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synaptune.errors import IncompatibleModelError, InputError, OptionError, StateFileError
from synaptune.models import DigitNet, PreactResNet, RotationModel
from synaptune.models.augment import to_float
from synaptune.models.evaluation import classification_error, recalibrate, rotation_error
from synaptune.models.image_set import ImageSet, drawn_evenly
from synaptune.models.training import Trainer
from synaptune.models.training_loop import Progress, train
from synaptune.models.training_recipe import TrainingRecipe, learning_rate
from synaptune.models.training_state import TrainingState


def stripes(count: int = 48, size: int = 16, *, seed: int = 0) -> ImageSet:
    """Two classes told apart by their colour, with noise; brighter at the top, so that rotations can be told."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    images = rng.integers(0, 60, (count, size, size, 3))
    images[..., 0] += 120 * labels[:, None, None]
    images[..., 2] += 120 * (1 - labels[:, None, None])
    images += np.linspace(60, 0, size, dtype=int)[None, :, None, None]
    return ImageSet.from_arrays(images.clip(0, 255).astype(np.uint8), labels, name="stripes")


def tiny_rotation() -> RotationModel:
    torch.manual_seed(0)
    return RotationModel(PreactResNet(8, num_classes=2))


def tiny_plain() -> PreactResNet:
    torch.manual_seed(0)
    return PreactResNet(8, num_classes=2)


class TinyDropout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(4 * 14 * 14, 2)
        )

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.layers(images)
        return logits


def tiny_dropout() -> TinyDropout:
    torch.manual_seed(0)
    return TinyDropout()


CASES: dict[str, tuple[Callable[[], nn.Module], TrainingRecipe]] = {
    "rotation, average, bf16": (
        tiny_rotation,
        TrainingRecipe(
            epochs=2, batch_size=12, ema_decay=0.9, rotation_share=0.5, precision="bfloat16", label_smoothing=0.1
        ),
    ),
    "all four rotations": (
        tiny_rotation,
        TrainingRecipe(epochs=2, batch_size=12, rotation_share=0.3, rotation="expand", channels_last=False),
    ),
    "dropout, steps, no momentum": (
        tiny_dropout,
        TrainingRecipe(epochs=2, batch_size=12, schedule="step", milestones=(1,), momentum=0, augmentation="none"),
    ),
    "augmix with consistency": (
        tiny_plain,
        TrainingRecipe(epochs=2, batch_size=12, augmentation="augmix", jsd_weight=12.0, ema_decay=0.5),
    ),
}


class Shelf:
    """Images that are read from somewhere; those at `broken` cannot be."""

    def __init__(self, images: np.ndarray, *, broken: tuple[int, ...] = ()) -> None:
        self._images, self._broken = images, broken
        self.read_at_once = 0

    @property
    def shape(self) -> tuple[int, int, int, int]:
        count, height, width, channels = self._images.shape
        return count, height, width, channels

    def read(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.read_at_once = max(self.read_at_once, len(positions))
        readable = ~np.isin(positions, self._broken)
        return self._images[positions[readable]], readable

    def fingerprint(self) -> str:
        return "these"


def bits(model: nn.Module) -> dict[str, bytes]:
    return {name: value.contiguous().numpy().tobytes() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("case", CASES)
def test_interrupted_run_ends_with_the_same_bits(case: str, tmp_path: Path) -> None:
    build, recipe = CASES[case]
    data = stripes()
    whole = build()
    done = train(whole, data, recipe=recipe)
    assert done is not None
    for stop in (3, 5):  # in the middle of an epoch, and again just after its end
        unfinished = build()
        torch.manual_seed(stop)  # whatever else the process draws must not matter
        assert train(unfinished, data, recipe=recipe, directory=tmp_path, stop_after=stop) is None
    resumed = build()
    torch.manual_seed(99)
    end = train(resumed, data, recipe=recipe, directory=tmp_path, checkpoint_every=1)
    assert end is not None
    assert end.steps == done.steps == 8
    assert bits(resumed) == bits(whole)


def test_images_that_are_read_by_batch_give_the_same_bits(tmp_path: Path) -> None:
    build, recipe = CASES["rotation, average, bf16"]
    data, test = stripes(), stripes(10)
    whole, lazy = build(), build()
    recipe = recipe.replace(recalibration_images=30)
    first = train(whole, data, recipe=recipe, test=test)
    shelf = Shelf(data.images.numpy())
    from_shelf = ImageSet.from_source(shelf, data.labels.numpy(), name="shelf")
    testing = ImageSet.from_source(Shelf(test.images.numpy()), test.labels.numpy(), name="shelf")
    assert train(lazy, from_shelf, recipe=recipe, test=testing, directory=tmp_path, stop_after=3) is None
    lazy = build()
    second = train(lazy, from_shelf, recipe=recipe, test=testing, directory=tmp_path)
    assert first is not None
    assert second is not None
    assert bits(lazy) == bits(whole)
    assert second.test_error == first.test_error
    assert second.rotation_test_error == pytest.approx(first.rotation_test_error)
    assert shelf.read_at_once == 12


def test_images_that_cannot_be_read_are_left_out_with_their_labels() -> None:
    data = stripes()
    lacking = ImageSet.from_source(Shelf(data.images.numpy(), broken=(1, 3)), data.labels.numpy(), name="shelf")
    images, labels = lacking.batch(torch.tensor([3, 0, 1, 2]))
    assert torch.equal(images, data.images[[0, 2]])
    assert torch.equal(labels, data.labels[[0, 2]])
    with pytest.raises(InputError, match="none of 2 images of a batch can be read"):
        lacking.batch(torch.tensor([3, 1]))


def test_parts_of_larger_images_train_a_network_of_another_size() -> None:
    recipe = TrainingRecipe(epochs=1, batch_size=12, augmentation="resized_crop", channels_last=False)
    seen: set[tuple[int, ...]] = set()
    models = [tiny_plain(), tiny_plain()]
    for model in models:
        model.register_forward_pre_hook(lambda _, given: seen.add(tuple(given[0].shape)))
        train(model, stripes(size=20), recipe=recipe, size=(16, 16))
    assert seen == {(12, 3, 16, 16)}
    assert bits(models[0]) == bits(models[1])


def test_crash_in_the_middle_of_a_step_costs_only_what_came_after_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, recipe = CASES["rotation, average, bf16"]
    whole = build()
    train(whole, stripes(), recipe=recipe)
    step = Trainer.step

    def crash(self: Trainer) -> dict[str, float]:
        if self.state.step == 5:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(Trainer, "step", crash)
    with pytest.raises(KeyboardInterrupt):
        train(build(), stripes(), recipe=recipe, directory=tmp_path, checkpoint_every=2)
    monkeypatch.undo()
    resumed = build()
    train(resumed, stripes(), recipe=recipe, directory=tmp_path)
    assert bits(resumed) == bits(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]


def test_same_seed_same_bits_another_seed_others() -> None:
    build, recipe = CASES["rotation, average, bf16"]
    models = [build(), build(), build()]
    for model, seed in zip(models, (0, 0, 1), strict=True):
        train(model, stripes(), recipe=recipe.replace(seed=seed))
    assert bits(models[0]) == bits(models[1]) != bits(models[2])


def test_training_leaves_the_global_random_state_alone() -> None:
    build, recipe = CASES["dropout, steps, no momentum"]
    model = build()
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    train(model, stripes(), recipe=recipe)
    assert torch.equal(torch.rand(1), expected)


def test_training_learns_classes_and_rotations() -> None:
    model = tiny_rotation()
    recipe = TrainingRecipe(epochs=12, batch_size=16, lr=0.05, rotation_share=1.0, ema_decay=0.8)
    done = train(model, stripes(96), recipe=recipe, test=stripes(40, seed=9))
    assert done is not None
    assert done.test_error is not None
    assert done.test_error <= 0.05
    assert done.rotation_test_error is not None
    assert done.rotation_test_error <= 0.4  # chance: 0.75
    assert not model.training


def test_progress_is_reported_at_the_asked_interval() -> None:
    seen: list[Progress] = []
    recipe = TrainingRecipe(epochs=2, batch_size=12)
    done = train(tiny_plain(), stripes(), recipe=recipe, test=stripes(10), evaluate_every=3, on_progress=seen.append)
    assert [progress.step for progress in seen if progress.test_error is not None] == [3, 6, 8]
    assert done is not None
    assert len(done.history) == 3


def test_progress_is_reported_between_measurements() -> None:
    seen: list[Progress] = []
    recipe = TrainingRecipe(epochs=2, batch_size=12)
    done = train(tiny_plain(), stripes(), recipe=recipe, test=stripes(10), report_seconds=0, on_progress=seen.append)
    assert [progress.step for progress in seen] == list(range(1, 9))
    assert [progress.step for progress in seen if progress.test_error is not None] == [4, 8]
    assert done is not None
    assert [record["step"] for record in done.history] == [4, 8]


def test_a_wish_to_stop_ends_the_run_after_the_step_with_a_checkpoint(tmp_path: Path) -> None:
    build, recipe = CASES["rotation, average, bf16"]
    whole = build()
    train(whole, stripes(), recipe=recipe)
    seen: list[Progress] = []
    answers = iter([False, False, False, True])
    stopped = train(
        build(),
        stripes(),
        recipe=recipe,
        directory=tmp_path,
        should_stop=lambda: next(answers),
        on_progress=seen.append,
    )
    assert stopped is None
    assert seen[-1].step == 3
    resumed = build()
    done = train(resumed, stripes(), recipe=recipe, directory=tmp_path, should_stop=lambda: False)
    assert done is not None
    assert bits(resumed) == bits(whole)


def test_a_checkpoint_is_written_by_time_as_well_as_by_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build, recipe = CASES["rotation, average, bf16"]
    saved: list[int] = []
    save = TrainingState.save

    def recorded(self: TrainingState, path: Path, **about: str) -> None:
        saved.append(self.step)
        save(self, path, **about)

    monkeypatch.setattr(TrainingState, "save", recorded)
    model, plain = build(), build()
    train(model, stripes(), recipe=recipe, directory=tmp_path, checkpoint_seconds=0)
    assert saved == list(range(1, 9))
    train(plain, stripes(), recipe=recipe)
    assert bits(model) == bits(plain)


def test_measuring_does_not_change_the_result() -> None:
    recipe = CASES["rotation, average, bf16"][1]
    watched, alone = tiny_rotation(), tiny_rotation()
    train(watched, stripes(), recipe=recipe, test=stripes(10), evaluate_every=1)
    train(alone, stripes(), recipe=recipe)
    assert bits(watched) == bits(alone)


def test_first_step_equals_a_plain_sgd_step() -> None:
    recipe = TrainingRecipe(
        epochs=1, batch_size=48, lr=0.1, schedule="step", augmentation="none", weight_decay=0.01, channels_last=False
    )
    data, model, mirror = stripes(), tiny_plain(), tiny_plain()
    trainer = Trainer(model, data, recipe=recipe)
    loss = trainer.step()["class"]
    mirror.train()
    order = trainer._batch_indices(0)
    expected = F.cross_entropy(mirror(data.images[order].permute(0, 3, 1, 2).float() / 255), data.labels[order])
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    for (name, mine), theirs in zip(model.named_parameters(), mirror.parameters(), strict=True):
        assert theirs.grad is not None
        gradient = theirs.grad + 0.01 * theirs
        # Nesterov's first step: the momentum buffer is the gradient itself.
        torch.testing.assert_close(mine, theirs - 0.1 * (gradient + 0.9 * gradient), msg=name)


def test_every_image_is_used_once_per_epoch() -> None:
    trainer = Trainer(tiny_plain(), stripes(48), recipe=TrainingRecipe(epochs=2, batch_size=12))
    epochs = [[trainer._batch_indices(step) for step in range(4 * e, 4 * e + 4)] for e in range(2)]
    assert [sorted(torch.cat(epoch).tolist()) for epoch in epochs] == [list(range(48))] * 2
    assert not torch.equal(torch.cat(epochs[0]), torch.cat(epochs[1]))


def test_the_average_is_the_running_mean_of_the_weights() -> None:
    recipe = TrainingRecipe(epochs=1, batch_size=12, ema_decay=0.25, recalibration_images=0)
    trainer = Trainer(tiny_plain(), stripes(), recipe=recipe)
    expected = trainer.model.state_dict()["fc.weight"].clone()
    for step in range(1, 5):
        trainer.step()
        decay = min(0.25, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * trainer.model.state_dict()["fc.weight"]
    torch.testing.assert_close(trainer.finish().state_dict()["fc.weight"], expected)


def test_a_rotation_share_needs_a_head() -> None:
    with pytest.raises(IncompatibleModelError, match="wrap it in RotationModel"):
        Trainer(tiny_plain(), stripes(), recipe=TrainingRecipe(rotation_share=0.5))


def test_a_head_needs_a_rotation_share() -> None:
    with pytest.raises(IncompatibleModelError, match="rotation_share=0 would leave the rotation head"):
        Trainer(tiny_rotation(), stripes(), recipe=TrainingRecipe())


def test_more_labels_than_outputs_are_refused() -> None:
    data = stripes()
    many = ImageSet(data.images, data.labels + 5, "many")
    with pytest.raises(InputError, match="many has labels up to 6, the model 2 classes"):
        Trainer(tiny_plain(), many, recipe=TrainingRecipe(batch_size=12)).step()


def test_a_run_that_diverges_stops_before_it_spoils_the_weights() -> None:
    model = tiny_plain()
    with torch.no_grad():
        model.fc.weight.fill_(float("inf"))
    trainer = Trainer(model, stripes(), recipe=TrainingRecipe(batch_size=12))
    with pytest.raises(OptionError, match="no longer finite at step 0"):
        trainer.step()
    assert model.conv1.weight.isfinite().all()


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    recipe = TrainingRecipe(epochs=1, batch_size=12)
    train(tiny_plain(), stripes(), recipe=recipe, directory=tmp_path, stop_after=2)
    with pytest.raises(StateFileError, match=r"another recipe: lr was 0\.1 and is 0\.3; give"):
        train(tiny_plain(), stripes(), recipe=recipe.replace(lr=0.3), directory=tmp_path)
    with pytest.raises(StateFileError, match="other training data"):
        train(tiny_plain(), stripes(seed=1), recipe=recipe, directory=tmp_path)


@pytest.mark.parametrize("damage", ["cut", "foreign"])
def test_a_damaged_checkpoint_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    recipe = TrainingRecipe(epochs=1, batch_size=12)
    train(tiny_plain(), stripes(), recipe=recipe, directory=tmp_path, stop_after=2)
    file = tmp_path / "checkpoint.safetensors"
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:1000])
    else:
        from safetensors.torch import save_file

        save_file({"a": torch.zeros(1)}, file)
    with pytest.raises(StateFileError, match=r"checkpoint\.safetensors"):
        train(tiny_plain(), stripes(), recipe=recipe, directory=tmp_path)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    recipe = TrainingRecipe(epochs=1, batch_size=12)
    train(tiny_plain(), stripes(size=32), recipe=recipe, directory=tmp_path, stop_after=2)
    with pytest.raises(StateFileError, match="another model"):
        train(DigitNet(4, num_classes=2), stripes(size=32), recipe=recipe, directory=tmp_path)


def test_a_checkpoint_of_another_network_of_the_same_shapes_is_refused(tmp_path: Path) -> None:
    recipe = TrainingRecipe(epochs=1, batch_size=12)
    train(tiny_plain(), stripes(), recipe=recipe, directory=tmp_path, network="one", stop_after=2)
    with pytest.raises(StateFileError, match="by a run that trains one, not other; choose another directory"):
        train(tiny_plain(), stripes(), recipe=recipe, directory=tmp_path, network="other")
    assert train(tiny_plain(), stripes(), recipe=recipe, directory=tmp_path, network="one") is not None


def test_recalibrated_statistics_are_those_of_the_images() -> None:
    data = stripes(40)
    model = tiny_plain()
    images = to_float(data.images)
    recalibrate(model, [images])
    seen = model.conv1((images - 0.5) / 0.5)
    first = model.layer1[0].bn1
    torch.testing.assert_close(first.running_mean, seen.mean((0, 2, 3)), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(first.running_var, seen.var((0, 2, 3)), rtol=1e-4, atol=1e-5)
    assert first.momentum == 0.1
    assert not first.training or model.training


def test_shared_layers_keep_upright_statistics_when_the_head_is_recalibrated() -> None:
    data = stripes(40)
    with_head, plain = tiny_rotation(), tiny_plain()
    plain.load_state_dict(with_head.net.state_dict())
    batches = to_float(data.images).split(10)
    recalibrate(with_head, batches, rotated=[batches[0].rot90(1, (2, 3))])
    recalibrate(plain, batches)
    assert bits(with_head.net) == bits(plain)
    assert with_head.head.bn.running_mean.abs().sum() > 0


def test_the_heads_statistics_come_from_turned_images() -> None:
    images = to_float(stripes(40).images)
    turned = images.rot90(1, (2, 3))
    model = tiny_rotation()
    recalibrate(model, [images], rotated=[turned])
    shared = model.eval().net.shared_features(turned)
    first = model.head.layer3[0].bn1
    torch.testing.assert_close(first.running_mean, shared.mean((0, 2, 3)), rtol=1e-4, atol=1e-5)


def test_the_final_statistics_are_those_of_images_as_training_showed_them() -> None:
    # White images: without the black borders of shifted crops their variance would be zero.
    white = np.full((24, 8, 8, 3), 255, np.uint8)
    data = ImageSet.from_arrays(white, np.arange(24) % 2, name="white")
    variances = []
    for augmentation in ("none", "crop"):
        model = tiny_plain()
        train(model, data, recipe=TrainingRecipe(epochs=1, batch_size=12, lr=1e-9, augmentation=augmentation))
        variances.append(model.layer1[0].bn1.running_var.mean().item())
    assert variances[1] > 3 * variances[0] > 0


def test_evaluation_restores_modes_and_counts_errors() -> None:
    data = stripes(20)
    model = tiny_rotation()
    model.net.layer1.eval()
    modes = [module.training for module in model.modules()]
    error = classification_error(model, data.images, data.labels, batch_size=7)
    assert error * 20 == pytest.approx(round(error * 20))
    assert classification_error(model, data.images, 1 - data.labels) == pytest.approx(1 - error)
    assert 0 <= rotation_error(model, data.images) <= 1
    assert [module.training for module in model.modules()] == modes


def test_one_cycle_rises_and_falls_without_a_jump() -> None:
    recipe = TrainingRecipe(lr=0.4, warm_up=0.25)
    rates = [learning_rate(step, 401, recipe=recipe) for step in range(401)]
    assert max(rates) == rates[100] == pytest.approx(0.4)
    assert rates[0] == pytest.approx(0.4 / 25)
    assert rates[-1] == pytest.approx(0.4 / 1000)
    assert max(abs(a - b) for a, b in itertools.pairwise(rates)) < 0.005


def test_step_schedule_drops_at_its_milestones() -> None:
    recipe = TrainingRecipe(epochs=75, lr=0.1, schedule="step", milestones=(50, 65))
    rates = [learning_rate(epoch * 10, 750, recipe=recipe) for epoch in (0, 49, 50, 64, 65, 74)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"lr": float("nan")},
        {"ema_decay": 1.0},
        {"jsd_weight": 1.0},
        {"schedule": "cosine"},
        {"rotation_share": 1.5},
        {"milestones": (5, 2)},
    ],
)
def test_impossible_recipes_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        TrainingRecipe(**wrong)  # type: ignore[arg-type]


def test_recipe_survives_its_json() -> None:
    recipe = TrainingRecipe(schedule="step", milestones=(3, 5), lr=0.3)
    assert TrainingRecipe.from_json(recipe.to_json()) == recipe
    with pytest.raises(OptionError, match="unknown options colour"):
        TrainingRecipe.from_json('{"colour": 1}')


@pytest.mark.parametrize(
    ("images", "labels", "said"),
    [
        (np.zeros((2, 3, 8, 8), np.uint8), np.zeros(2, int), r"uint8 \(n, height, width, 3\)"),
        (np.zeros((2, 8, 8, 3), np.float32), np.zeros(2, int), "got float32"),
        (np.zeros((2, 8, 8, 3), np.uint8), np.zeros(3, int), "one integer per image"),
        (np.zeros((2, 8, 8, 3), np.uint8), np.zeros(2), "one integer per image"),
        (np.zeros((2, 8, 8, 3), np.uint8), np.array([0, -1]), "start at 0"),
        (np.zeros((0, 8, 8, 3), np.uint8), np.zeros(0, int), "no image"),
    ],
)
def test_unusable_arrays_are_refused(images: np.ndarray, labels: np.ndarray, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ImageSet.from_arrays(images, labels, name="x")


def test_read_only_arrays_are_taken_without_a_warning() -> None:
    images = np.zeros((2, 8, 8, 3), np.uint8)
    images.flags.writeable = False
    assert len(ImageSet.from_arrays(images, np.array([0, 1]), name="x")) == 2


def test_images_are_drawn_evenly_and_by_the_seed() -> None:
    labels = np.repeat(np.arange(3), (50, 20, 4))
    drawn = [drawn_evenly(labels, 20, seed=seed) for seed in (0, 0, 1)]
    assert np.bincount(labels[drawn[0]]).tolist() == [8, 8, 4]
    assert drawn[0].tolist() == drawn[1].tolist() == sorted(set(drawn[0].tolist())) != drawn[2].tolist()
    assert drawn_evenly(labels, 100, seed=0).tolist() == list(range(74))

"""Each method equals a plain float64 loop, step by step over ten batches: predictions and weights."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import synaptune as st
from synaptune.algorithms.dua import momentum_at
from synaptune.functional.augmentation import crop_and_flip, quarter_turns
from tests.reference import plain
from tests.support.models import batches, build

STEPS = 10
AFFINE = [
    f"{layer}.{leaf}" for layer in ("stem_norm", "one.1", "two.1", "three.1", "four.1") for leaf in ("weight", "bias")
]
STAGES = {
    n: [f"{name}.0.weight", f"{name}.1.weight", f"{name}.1.bias"]
    for n, name in enumerate(("one", "two", "three", "four"), 1)
}


def weights_of(model: torch.nn.Module) -> plain.Weights:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def stream() -> list[Tensor]:
    return batches(STEPS, size=6, dtype=torch.float64)


def follow(adapter: st.Adapter, reference: Callable[[plain.Weights, Tensor], Tensor], *, atol: float = 1e-10) -> None:
    """Run adapter and reference side by side and compare logits and all weights after every batch."""
    w = weights_of(adapter.model)
    start = {name: tensor.clone() for name, tensor in w.items()}
    for images in stream():
        expected = reference(w, images)
        torch.testing.assert_close(adapter(images), expected, rtol=0, atol=atol)
        for name, tensor in adapter.model.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                torch.testing.assert_close(tensor, w[name], rtol=0, atol=atol, msg=lambda m, name=name: f"{name}: {m}")
    adapter.detach()
    assert all(torch.equal(tensor, start[name]) for name, tensor in adapter.model.state_dict().items())


def adapter(method: str, **options: object) -> st.Adapter:
    # In train mode, so that a method which forgot to switch dropout off would be found out.
    return st.adapt(build("bn", dtype=torch.float64).train(), method, **options)


def test_source_equals_plain_forward() -> None:
    follow(adapter("source"), lambda w, images: plain.forward(w, images, plain.of_source))


def test_norm_equals_plain_batch_statistics() -> None:
    follow(adapter("norm"), lambda w, images: plain.forward(w, images, plain.of_batch))


@pytest.mark.parametrize("prior", [0.0, 1.0, 16.0, 256.0])
def test_partial_norm_equals_the_prior_weighted_mix(prior: float) -> None:
    source = weights_of(build("bn", dtype=torch.float64))

    def reference(w: plain.Weights, images: Tensor) -> Tensor:
        share = prior / (prior + len(images))

        def mixed(name: str, x: Tensor, w: plain.Weights) -> tuple[Tensor, Tensor]:
            mean, var = plain.moments(x)
            w[f"{name}.running_mean"] = share * source[f"{name}.running_mean"] + (1 - share) * mean
            w[f"{name}.running_var"] = share * source[f"{name}.running_var"] + (1 - share) * var
            return w[f"{name}.running_mean"], w[f"{name}.running_var"]

        return plain.forward(w, images, mixed)

    follow(adapter("norm", statistics="partial", prior=prior), reference)


def test_running_norm_equals_the_moving_average() -> None:
    def reference(w: plain.Weights, images: Tensor) -> Tensor:
        def moving(name: str, x: Tensor, w: plain.Weights) -> tuple[Tensor, Tensor]:
            mean, var = plain.moments(x)
            w[f"{name}.running_mean"] = 0.9 * w[f"{name}.running_mean"] + 0.1 * mean
            w[f"{name}.running_var"] = 0.9 * w[f"{name}.running_var"] + 0.1 * var
            return w[f"{name}.running_mean"], w[f"{name}.running_var"]

        return plain.forward(w, images, moving)

    follow(adapter("norm-running"), reference)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("steps", [1, 3])
def test_tent_equals_entropy_descent_on_the_affines(optimizer: str, steps: int) -> None:
    lr = 1e-2
    descent = plain.Adam(lr) if optimizer == "adam" else plain.Sgd(lr, 0.9)

    def reference(w: plain.Weights, images: Tensor) -> Tensor:
        logits = plain.forward(w, images, plain.of_batch)
        for _ in range(steps):
            loss = lambda v: plain.entropy(plain.forward(v, images, plain.of_batch)).mean()  # noqa: E731
            descent.step(w, plain.gradient(w, AFFINE, loss))
        return logits

    follow(adapter("tent", optimizer=optimizer, lr=lr, steps=steps), reference)


@pytest.mark.parametrize("method", ["tent", "nhl", "modulator-12"])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_with_zero_rates_every_learner_is_norm_bit_for_bit(method: str, mode: str) -> None:
    options = {"lr": 0.0} if method != "nhl" else {"lr": 0.0, "eta": 0.0}
    models = [getattr(build("bn"), mode)() for _ in range(2)]
    learner, norm = st.adapt(models[0], method, **options), st.adapt(models[1], "norm")
    for images in batches(STEPS):
        assert torch.equal(learner(images), norm(images))


def test_dua_equals_its_momentum_schedule() -> None:
    copies, total = 4, 25
    generator = torch.Generator().manual_seed(3)
    seen = 0

    def reference(w: plain.Weights, images: Tensor) -> Tensor:
        nonlocal seen
        for image in images:
            if seen == total:
                break
            seen += 1
            momentum = 0.1 * 0.94**seen + 0.005
            batch = crop_and_flip(image.expand(copies, *image.shape), padding=1, generator=generator)
            batch = quarter_turns(batch, torch.randint(0, 4, (copies,), generator=generator))

            def moving(name: str, x: Tensor, w: plain.Weights, momentum: float = momentum) -> tuple[Tensor, Tensor]:
                mean, var = plain.moments(x)
                count = x.numel() // x.shape[1]
                # Running buffers take the unbiased variance; the batch itself is normalised by the biased one.
                w[f"{name}.running_mean"] = (1 - momentum) * w[f"{name}.running_mean"] + momentum * mean
                unbiased = var * count / (count - 1)
                w[f"{name}.running_var"] = (1 - momentum) * w[f"{name}.running_var"] + momentum * unbiased
                return mean, var

            plain.forward(w, batch, moving)
        return plain.forward(w, images, plain.of_source)

    dua = adapter("dua", copies=copies, images=total, seed=3)
    follow(dua, reference)
    assert seen == total


def test_dua_momenta_are_the_published_ones() -> None:
    momenta = [momentum_at(k, momentum=0.1, decay=0.94, floor=0.005) for k in (1, 2, 80)]
    assert momenta == pytest.approx([0.099, 0.09336, 0.0057], abs=1e-4)


@pytest.mark.parametrize(
    ("method", "stages", "hebb", "options"),
    [
        ("hebb-conv1", (), True, {"eta": 5e-3, "tau": 0.2}),
        ("nhl-1", (1,), True, {"eta": 1e-3, "tau": 1.0}),
        ("nhl-12", (1, 2), True, {"eta": 1e-3, "tau": 1.0}),
        ("nhl-1234", (1, 2, 3, 4), True, {"eta": 5e-3, "tau": 1.0}),
        ("modulator-12", (1, 2), False, {}),
    ],
)
def test_nhl_equals_its_whole_step(method: str, stages: tuple[int, ...], hebb: bool, options: dict[str, float]) -> None:
    names = [name for stage in stages for name in STAGES[stage]]
    source = weights_of(build("bn", dtype=torch.float64))["stem.weight"]
    radius = torch.stack([torch.sqrt((row**2).sum()) for row in source])
    descent = plain.Adam(1e-3)

    def reference(w: plain.Weights, images: Tensor) -> Tensor:
        if hebb:
            w["stem.weight"] = plain.hebbian_step(
                w["stem.weight"], images, radius, **options, project=options["eta"] > 1e-3
            )
        logits = plain.forward(w, images, plain.of_batch)
        if names:
            loss = lambda v: plain.entropy(plain.forward(v, images, plain.of_batch)).mean()  # noqa: E731
            descent.step(w, plain.gradient(w, names, loss))
        return logits

    follow(adapter(method, **options), reference)


def test_tuned_nhl_descends_the_soft_likelihood_ratio_with_sgd() -> None:
    names = STAGES[1] + STAGES[2]
    source = weights_of(build("bn", dtype=torch.float64))["stem.weight"]
    radius = torch.stack([torch.sqrt((row**2).sum()) for row in source])
    descent = plain.Sgd(1e-2, 0.9)

    def reference(w: plain.Weights, images: Tensor) -> Tensor:
        w["stem.weight"] = plain.hebbian_step(w["stem.weight"], images, radius, eta=1e-3, tau=1.0, project=False)
        logits = plain.forward(w, images, plain.of_batch)
        loss = lambda v: plain.soft_likelihood_ratio(plain.forward(v, images, plain.of_batch)).mean()  # noqa: E731
        descent.step(w, plain.gradient(w, names, loss))
        return logits

    follow(adapter("nhl-tuned"), reference)


def names_of(stages: tuple[int, ...], params: str = "all") -> list[str]:
    found = [name for stage in stages for name in STAGES[stage]]
    return [name for name in found if params == "all" or (params == "conv") == (".0." in name)]


@pytest.mark.parametrize(
    "options",
    [
        {"hebb_steps": 2},
        {"nm_steps": 3},
        {"diversity": 0.7},
        {"params": "conv"},
        {"params": "affine"},
        {"stages": (1, 3)},
        {"include_stem_norm": True},
        {"optimizer": "sgd", "lr": 1e-2, "momentum": 0.5},
        {"norm_stats": "source"},
        {"norm_stats": "running", "stats_momentum": 0.3},
        {"norm_stats": "running", "nm_steps": 2},
        {"loss": "slr", "diversity": 1.0},
        {"predict": "after"},
        {"conv1": "bp"},
        {"conv1": "bp", "norm_stats": "running", "hebb_steps": 3},
        {"project": "on"},
    ],
    ids=str,
)
def test_each_option_of_nhl_means_what_it_says(options: dict[str, object]) -> None:
    o = st.NHL(**options)
    names = names_of(o.stages, o.params)
    names += ["stem_norm.weight", "stem_norm.bias"] if o.include_stem_norm else []
    names += ["stem.weight"] if o.conv1 == "bp" else []
    source = weights_of(build("bn", dtype=torch.float64))["stem.weight"]
    radius = torch.stack([torch.sqrt((row**2).sum()) for row in source])
    descent = plain.Adam(o.lr) if o.optimizer == "adam" else plain.Sgd(o.lr, o.momentum)
    statistics = plain.of_batch if o.norm_stats == "batch" else plain.of_source

    def moving(name: str, x: Tensor, w: plain.Weights) -> tuple[Tensor, Tensor]:
        mean, var = plain.moments(x)
        w[f"{name}.running_mean"] = (1 - o.stats_momentum) * w[f"{name}.running_mean"] + o.stats_momentum * mean
        w[f"{name}.running_var"] = (1 - o.stats_momentum) * w[f"{name}.running_var"] + o.stats_momentum * var
        return w[f"{name}.running_mean"], w[f"{name}.running_var"]

    def reference(w: plain.Weights, images: Tensor) -> Tensor:
        def loss(v: plain.Weights) -> Tensor:
            logits = plain.forward(v, images, statistics)
            each = plain.entropy(logits) if o.loss == "entropy" else plain.soft_likelihood_ratio(logits)
            return each.mean() + o.diversity * plain.negative_entropy_of_mean(logits)

        if o.conv1 == "hebb":
            for _ in range(o.hebb_steps):
                w["stem.weight"] = plain.hebbian_step(
                    w["stem.weight"], images, radius, eta=o.eta, tau=o.tau, project=o.project == "on"
                )
        # Running statistics move in the pass that predicts, and are constants for every gradient.
        logits = plain.forward(w, images, moving if o.norm_stats == "running" else statistics)
        for _ in range(o.nm_steps):
            descent.step(w, plain.gradient(w, names, loss))
        return logits if o.predict == "before" else plain.forward(w, images, statistics)

    follow(adapter("nhl", **options), reference)


def test_bp_conv1_descends_entropy_on_the_first_convolution_with_source_statistics() -> None:
    descent = plain.Adam(1e-3)

    def reference(w: plain.Weights, images: Tensor) -> Tensor:
        logits = plain.forward(w, images, plain.of_source)
        loss = lambda v: plain.entropy(plain.forward(v, images, plain.of_source)).mean()  # noqa: E731
        descent.step(w, plain.gradient(w, ["stem.weight"], loss))
        return logits

    follow(adapter("bp-conv1"), reference)


ROTATION = [f"net.{name}" for name in ("stem.weight", "stem_norm.weight", "stem_norm.bias", *STAGES[1], *STAGES[2])]
ROTATION += [f"head.{name}" for name in ("0.weight", "0.bias", "1.weight", "1.bias", "5.weight", "5.bias")]


@pytest.mark.parametrize(
    ("method", "options", "iterations", "slow", "moves_statistics"),
    [
        ("ttt", {}, 1, False, True),
        ("ttt", {"fix_bn": True, "iterations": 2}, 2, False, False),
        ("ttt-slow", {"iterations": 3}, 3, True, True),
    ],
)
def test_ttt_equals_rotation_training_image_by_image(
    method: str, options: dict[str, object], iterations: int, slow: bool, moves_statistics: bool
) -> None:
    copies, lr = 4, 1e-2
    generator = torch.Generator().manual_seed(3)
    model = build("rotation", dtype=torch.float64).train()
    source = weights_of(model)

    def train_on(w: plain.Weights, image: Tensor) -> None:
        turns = torch.randint(0, 4, (copies,), generator=generator)
        batch = crop_and_flip(image.expand(copies, *image.shape), padding=1, generator=generator)
        batch = quarter_turns(batch, turns)
        seen: dict[str, tuple[Tensor, Tensor]] = {}

        def of_branch(name: str, x: Tensor, w: plain.Weights) -> tuple[Tensor, Tensor]:
            mean, var = plain.moments(x)
            count = x.numel() // x.shape[1]
            seen[name] = (mean.detach(), var.detach() * count / (count - 1))
            return mean, var

        statistics = of_branch if moves_statistics else plain.of_source
        loss = lambda v: plain.cross_entropy(plain.rotation_forward(v, batch, statistics), turns)  # noqa: E731
        for name, g in plain.gradient(w, ROTATION, loss).items():
            w[name] = w[name] - lr * g
        for name, (mean, var) in seen.items():
            w[f"{name}.running_mean"] = 0.9 * w[f"{name}.running_mean"] + 0.1 * mean
            w[f"{name}.running_var"] = 0.9 * w[f"{name}.running_var"] + 0.1 * var

    def reference(w: plain.Weights, images: Tensor) -> Tensor:
        logits = []
        for image in images:
            if slow:
                w.update({name: tensor.clone() for name, tensor in source.items()})
            for _ in range(iterations):
                train_on(w, image)
            logits.append(plain.forward(w, image[None], plain.of_source, prefix="net."))
        return torch.cat(logits)

    follow(st.adapt(model, method, copies=copies, lr=lr, seed=3, **options), reference)


def test_ttt_leaves_alone_what_its_head_is_sure_of() -> None:
    model = build("rotation")
    images = batches(1, size=16)[0]
    with torch.no_grad():
        sure = model.rotation_logits(images).softmax(dim=1)[:, 0]
    threshold = float(sure.median())
    adapter = st.adapt(model, "ttt", threshold=threshold, lr=0.0, fix_bn=True, copies=4)
    adapter(images)
    doubted = int((sure < threshold).sum())
    assert 0 < doubted < len(images)
    assert adapter.history[-1].backwards == 4 * doubted, "images that are not selected must cost no backward pass"


def test_an_empty_selection_changes_nothing_and_stays_finite() -> None:
    model = build("rotation")
    images = batches(1)[0]
    with torch.no_grad():
        expected = torch.cat([model(image[None]) for image in images])
    adapter = st.adapt(model, "ttt", threshold=0.0)
    assert torch.equal(adapter(images), expected)
    record = adapter.history[-1]
    assert (record.weight_distance, record.backwards) == (0.0, 0)


def test_dua_turns_oblong_images_by_halves_and_pads_by_an_eighth(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    paddings: list[int] = []

    def recording(images: Tensor, *, padding: int, generator: torch.Generator) -> Tensor:
        paddings.append(padding)
        return crop_and_flip(images, padding=padding, generator=generator)

    monkeypatch.setattr("synaptune.algorithms.dua.crop_and_flip", recording)
    model = build("bn")
    model.register_forward_pre_hook(lambda module, args: seen.append(tuple(args[0].shape)))
    st.adapt(model, "dua", copies=3)(torch.rand(1, 3, 16, 32, generator=torch.Generator().manual_seed(0)))
    assert set(seen) == {(1, 3, 16, 32), (3, 3, 16, 32)}
    assert paddings == [4]

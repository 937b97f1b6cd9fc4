"""NHL: neuro-modulated Hebbian learning (Tang et al., CVPR 2023).

Two learners meet in one network. For every batch of test images:

1. **Soft Hebbian learning**, feed-forward and without labels. While the batch passes the first convolution, its K
   filters compete for every patch x, and move towards the patches they win:

        u_k  = (w_k / R_k) . x
        y    = softmax(u / tau)
        dw_k = eta * y_k * (R_k x - u_k w_k)

    The rule draws each filter to the sphere of radius R_k, its norm in the source model.

2. **Neuro-modulation**, feedback from the top. The early stages behind that convolution (all their parameters) take
   one step down the entropy of the network's output; the classifier, and everything else, is frozen.

        L = mean_b H(softmax f(x_b))

The paper leaves much open; each choice is an option here, with the default that a measurement or a derivation
supports. The rows of its ablation are named configurations, and so is the control that it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from synaptune.core.descent import Descent
from synaptune.core.hooks import Learner, attach, learning
from synaptune.core.method import AdaptOptions, Method, Needs, Step, Touches
from synaptune.core.normalisation import (
    RunningMix,
    affine_parameters,
    batch_norm,
    statistics_buffers,
    use_batch_statistics,
)
from synaptune.core.precise import Precise
from synaptune.core.registry import preset, register
from synaptune.core.structure import Anatomy
from synaptune.errors import IncompatibleModelError
from synaptune.functional.entropy import diversity, soft_likelihood_ratio, softmax_entropy
from synaptune.options import option
from synaptune.plasticity import Synapses, nhl_update, project, radius_of, require_plastic, synapses_of

__all__ = ["NHL"]


@dataclass(frozen=True, kw_only=True)
class NHL(AdaptOptions):
    """Options of NHL. First the Hebbian layer, then the neuro-modulator, then what both share."""

    conv1: Literal["hebb", "bp", "none"] = option(
        "hebb",
        "how the first convolution learns: by the Hebbian rule, by entropy descent (the ablation), or not",
    )
    eta: float = option(1e-3, "Hebbian rate; under reduce='max' the largest weight change per batch", at_least=0)
    tau: float = option(1.0, "temperature of the competition; smaller is harder", above=0)
    reading: Literal["A", "B", "C", "D", "E"] = option(
        "C", "what R means in the printed rule; only C agrees with the radius that the paper claims"
    )
    radius: Literal["filter", "layer", "unit", "current"] = option(
        "filter", "R: each filter's source norm, their mean, one, or the norm now"
    )
    temperature_on: Literal["auto", "normalised", "raw"] = option(
        "auto", "what tau divides: (w / R) . x, or w . x; auto: the u of the reading (normalised for C)"
    )
    sign: Literal["plain", "anti", "hard", "krotov"] = option(
        "plain", "losers learn too, learn away (anti), rest (hard), or the second learns away (krotov)"
    )
    delta: float = option(0.4, "strength of the push away under sign='krotov'", at_least=0)
    rank: int = option(2, "whom it pushes away: 2 for the runner-up", at_least=2)
    reduce: Literal["max", "mean", "ysum", "sum"] = option("max", "how the update is scaled over the layer")
    centre: Literal["none", "channel", "patch"] = option("none", "mean taken off the patches before learning")
    border: Literal["all", "valid"] = option("all", "learn at every place, or skip those that see padding")
    project: Literal["auto", "on", "off"] = option(
        "auto", "put every filter back on its sphere after the update; auto: on for eta above 1e-3"
    )
    hebb_steps: int = option(1, "Hebbian updates per batch", at_least=1)

    stages: tuple[int, ...] = option((1, 2), "stages of the neuro-modulator, counted from 1; empty: none")
    params: Literal["all", "conv", "affine"] = option("all", "which of the stages' parameters it tunes")
    include_stem_norm: bool = option(False, "tune the normalisation between first convolution and stage 1 too")
    loss: Literal["entropy", "slr"] = option(
        "entropy",
        "objective: entropy (the paper), or the soft likelihood ratio, which does not vanish as p nears 1",
    )
    diversity: float = option(0.0, "weight of the term that spreads predictions over classes", at_least=0)
    optimizer: Literal["adam", "sgd"] = option("adam", "optimiser of the neuro-modulator")
    lr: float = option(1e-3, "its step size; 1e-2 was best with sgd", at_least=0)
    momentum: float = option(0.9, "momentum of sgd", at_least=0, at_most=1)
    nm_steps: int = option(1, "its steps per batch", at_least=1)

    norm_stats: Literal["batch", "source", "running"] = option(
        "batch", "statistics in batch normalisation; source statistics let the neuro-modulator collapse"
    )
    stats_momentum: float = option(0.1, "weight of a new batch in running statistics", above=0, at_most=1)

    def contradictions(self) -> list[str]:
        problems = []
        if any(stage < 1 for stage in self.stages) or len(set(self.stages)) != len(self.stages):
            problems.append(f"stages are counted from 1, each once, not {self.stages!r}")
        if self.include_stem_norm and not self.stages:
            problems.append("include_stem_norm belongs to the neuro-modulator and needs stages")
        return problems

    @property
    def projects(self) -> bool:
        """Whether filters are put back on their spheres."""
        return self.project == "on" or (self.project == "auto" and self.eta > 1e-3)


@register(
    "nhl",
    options=NHL,
    needs=Needs(first_conv=True, stages=True),
    summary="Hebbian first convolution, early stages tuned by output entropy.",
    paper="arXiv:2303.00914",
)
class NHLMethod(Method[NHL]):
    """One batch: the Hebbian layer learns as the batch passes it, then the neuro-modulator steps."""

    def step(self, model: nn.Module, images: Tensor) -> Step:
        logits = self._feed_forward(model, images)
        objective = self._objective(logits)  # (batch,)
        step = Step(logits=logits.detach(), objective=objective.detach())
        if self._hebbian is not None:
            step.events += self._hebbian.events
        if self._modulator is not None:
            step.events += self._feed_back(self._modulator, model, images, logits)
        return step

    def _feed_forward(self, model: nn.Module, images: Tensor) -> Tensor:
        """The pass that predicts, in which the Hebbian layer (and running statistics) learn."""
        learners: list[Learner] = [*self._running]
        if self._hebbian is not None:
            self._hebbian.forget_the_last_batch()
            learners.append(self._hebbian)
        with learning(learners), torch.set_grad_enabled(self._modulator is not None):
            logits: Tensor = model(images)
        if self._hebbian is not None and not self._hebbian.saw_the_batch:
            raise IncompatibleModelError(
                f"the forward of {type(model).__name__} does not run the layer that was taken for its first "
                "convolution; name the right one: layout=Layout(first_conv='...')"
            )
        return logits

    def _feed_back(self, modulator: Descent, model: nn.Module, images: Tensor, logits: Tensor) -> list[str]:
        """Tune the neuro-modulator by the objective at the output."""
        events: list[str] = []
        for nth in range(self.options.nm_steps):
            if nth > 0:
                logits = model(images)
            loss = self._objective(logits).mean()
            if self.options.diversity > 0:
                loss = loss + self.options.diversity * diversity(logits)
            events += modulator.descend(loss, images=len(images))
        return events

    def _objective(self, logits: Tensor) -> Tensor:
        return softmax_entropy(logits) if self.options.loss == "entropy" else soft_likelihood_ratio(logits)

    # --- What adapts, and how the model is made ready for it

    def touches(self, model: nn.Module, anatomy: Anatomy) -> Touches:
        names = set(self._modulated(model, anatomy))
        if self.options.conv1 == "hebb":
            require_plastic(model.get_submodule(anatomy.require_first_conv()))
            names.add(f"{anatomy.require_first_conv()}.weight")
        touches = Touches(parameters=frozenset(names))
        if self.options.norm_stats == "running":
            touches |= statistics_buffers(model, anatomy.batch_norms)
        return touches

    def prepare(self, model: nn.Module, anatomy: Anatomy) -> None:
        self._running: list[RunningMix] = []
        if self.options.norm_stats == "batch":
            use_batch_statistics(model, anatomy.batch_norms)
        elif self.options.norm_stats == "running":
            for name in anatomy.batch_norms:
                self._running.append(RunningMix(self.options.stats_momentum))
                attach(batch_norm(model, name), self._running[-1])

        self._hebbian: HebbianLayer | None = None
        if self.options.conv1 == "hebb":
            layer = model.get_submodule(anatomy.require_first_conv())
            self._hebbian = HebbianLayer(layer.get_parameter("weight"), self.options)
            attach(layer, self._hebbian)

        tuned = self._modulated(model, anatomy)
        self._modulator: Descent | None = None
        if tuned:
            self._modulator = Descent(
                tuned, optimizer=self.options.optimizer, lr=self.options.lr, momentum=self.options.momentum
            )

    def _modulated(self, model: nn.Module, anatomy: Anatomy) -> dict[str, nn.Parameter]:
        """Parameters that follow the gradient: the neuro-modulator's, and conv1's in the BP ablation."""
        tuned: dict[str, nn.Parameter] = {}
        if self.options.stages:
            tuned |= anatomy.stage_parameters(model, self.options.stages, kind=self.options.params)
        if self.options.include_stem_norm:
            stem = affine_parameters(model, [] if anatomy.stem_norm is None else [anatomy.stem_norm])
            if not stem:
                raise IncompatibleModelError(
                    f"{type(model).__name__} has no normalisation with scale and shift between its first convolution "
                    "and stage 1; leave include_stem_norm off"
                )
            tuned |= stem
        if self.options.conv1 == "bp":
            first = anatomy.require_first_conv()
            # Every parameter that makes up the weights, also where they are computed (weight normalisation).
            inside = model.get_submodule(first).named_parameters()
            tuned |= {f"{first}.{name}": parameter for name, parameter in inside if "bias" not in name.split(".")}
        return tuned

    def state(self) -> dict[str, Tensor]:
        state = {} if self._hebbian is None else self._hebbian.state()
        return state if self._modulator is None else state | self._modulator.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        rest = dict(state) if self._hebbian is None else self._hebbian.load_state(state)
        if self._modulator is not None:
            self._modulator.load_state(rest)

    @property
    def backwards(self) -> int:
        return 0 if self._modulator is None else self._modulator.backwards


class HebbianLayer(Learner):
    """Sits in front of the first convolution and lets it learn from that layer's own input.

    The forward pass that predicts is the forward pass that learns, whatever preprocessing the model does first.
    """

    def __init__(self, weight: nn.Parameter, options: NHL):
        self.options = options
        self.forget_the_last_batch()
        self._weight = Precise(weight)
        # "current" means the norm at the time of each update, so nothing is remembered.
        self._radius = None if options.radius == "current" else radius_of(weight.detach(), options.radius)

    def forget_the_last_batch(self) -> None:
        """A new batch is about to pass; some models send it through the layer more than once."""
        self.events: list[str] = []
        self.saw_the_batch = False

    @torch.no_grad()
    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not self.awake:
            return
        self.saw_the_batch = True
        synapses, x = synapses_of(module, args[0].detach())
        weight = self._weight.refresh()
        for _ in range(self.options.hebb_steps):
            radius = radius_of(weight, "current") if self._radius is None else self._radius.to(weight.device)
            update = self._update(weight, x, synapses, radius)
            if not bool(torch.isfinite(update).all()):
                self.events.append("Hebbian update is not finite: no update")
                break
            weight.add_(update)
            if self.options.projects:
                weight.copy_(project(weight, radius))
        self._weight.commit()

    def _update(self, weight: Tensor, x: Tensor, synapses: Synapses, radius: Tensor) -> Tensor:
        o = self.options
        return nhl_update(
            weight,
            x,
            synapses=synapses,
            eta=o.eta,
            tau=o.tau,
            radius=radius,
            reading=o.reading,
            temperature_on=None if o.temperature_on == "auto" else o.temperature_on,
            sign=o.sign,
            delta=o.delta,
            rank=o.rank,
            reduce=o.reduce,
            centre=o.centre,
            border=o.border,
        )

    def state(self) -> dict[str, Tensor]:
        """What a file of the weight itself would lose: the exact value of a weight in half precision."""
        return {_EXACT: self._weight.value} if self._weight.apart else {}

    def load_state(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Take what `state` gave; return the rest."""
        if _EXACT in state:
            self._weight.value.data = state[_EXACT].detach().clone().to(self._weight.stored.device)
        return {name: tensor for name, tensor in state.items() if name != _EXACT}


_EXACT = "hebbian/exact"


# --- The rows of the paper's ablation, and the control that it lacks ------------------------------------------------

_FIRST_CONV = Needs(first_conv=True)
preset(
    "bp-conv1",
    base="nhl",
    conv1="bp",
    stages=(),
    norm_stats="source",
    needs=_FIRST_CONV,
    summary="Ablation: entropy descent on the first convolution alone, source statistics.",
)
preset(
    "hebb-conv1",
    base="nhl",
    stages=(),
    eta=5e-3,
    tau=0.2,
    needs=_FIRST_CONV,
    summary="Ablation: the Hebbian first convolution alone.",
)
for _stages in ((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)):
    preset(
        f"nhl-{''.join(map(str, _stages))}",
        base="nhl",
        stages=_stages,
        summary=f"Ablation: NHL, neuro-modulator: stage{'s'[: len(_stages) - 1]} {', '.join(map(str, _stages))}.",
    )
preset(
    "modulator-12",
    base="nhl",
    conv1="none",
    needs=Needs(stages=True),
    summary="Control: the neuro-modulator on stages 1 and 2, no Hebbian learning.",
)
preset(
    "nhl-tuned",
    base="nhl",
    loss="slr",
    optimizer="sgd",
    lr=1e-2,
    summary="NHL with the soft likelihood ratio and SGD: the best form measured.",
)

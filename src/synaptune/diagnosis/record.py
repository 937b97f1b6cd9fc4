"""The answer of `doctor`, as plain frozen values: printed as one screen, or handed over as a dictionary."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from synaptune.diagnosis.expectation import Expectation

__all__ = ["Cost", "Diagnosis", "Finding", "Fit", "NormKind", "Part", "Recommendation", "Sample", "StageSize"]


@dataclass(frozen=True)
class Part:
    """A part of the model: its name (None if there is none), what it is, how it was found."""

    name: str | None
    text: str
    how: str


@dataclass(frozen=True)
class StageSize:
    """A stage: its modules and how many parameters they hold."""

    modules: tuple[str, ...]
    parameters: int


@dataclass(frozen=True)
class NormKind:
    """Normalisation layers of one class: how many, with scale or shift, with running statistics."""

    kind: str
    layers: int
    affine: int
    statistics: int


@dataclass(frozen=True)
class Fit:
    """What one method says about the model.

    Attributes:
        method: its name.
        base: the method that it is a configuration of, or None.
        fits: whether it accepts the model.
        reason: why not; empty if it does.
        tensors: how many tensors it would change.
        parameters: how many trained values are in them.
        buffers: how many tensors of running statistics are among them.
        share: `parameters` over all parameters of the model, 0 to 1.
    """

    method: str
    base: str | None
    fits: bool
    reason: str = ""
    tensors: int = 0
    parameters: int = 0
    buffers: int = 0
    share: float = 0.0


@dataclass(frozen=True)
class Cost:
    """What one step of a method takes on the sample.

    Attributes:
        method: its name.
        seconds: fastest of the repeats, prediction included.
        ratio: `seconds` over those of plain inference, measured in turns with it.
        extra_bytes: the most tensor memory held at once, beyond that of plain inference.
    """

    method: str
    seconds: float
    ratio: float
    extra_bytes: int


@dataclass(frozen=True)
class Recommendation:
    """A method with settings, the best first."""

    method: str
    options: Mapping[str, Any]
    why: str

    @property
    def call(self) -> str:
        """The line of code that follows the advice."""
        settings = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f'st.adapt(model, "{self.method}"{settings})'


@dataclass(frozen=True)
class Finding:
    """Something to know before adapting: a topic to look for in code, and a sentence for people."""

    topic: str
    text: str


@dataclass(frozen=True)
class Sample:
    """The batch that was handed over, and plain inference on it (seconds are None if it could not run)."""

    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float
    seconds: float | None = None


@dataclass(frozen=True)
class Diagnosis:
    """What a model is made of, which methods fit it, what they cost, what to beware of, and what to do.

    Printed, it is one screen: at most 40 lines of 100 columns. `as_dict` holds everything.
    """

    model: str
    parameters: int
    bytes: int
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    first_conv: Part
    stages: tuple[StageSize, ...]
    stages_how: str
    norms: tuple[NormKind, ...]
    classifier: Part
    classes: int | None
    dropouts: int
    expects: Expectation
    fits: tuple[Fit, ...]
    recommended: tuple[Recommendation, ...]
    findings: tuple[Finding, ...] = ()
    sample: Sample | None = None
    costs: tuple[Cost, ...] = field(default=())

    def fit(self, method: str) -> Fit:
        """What `method` says about the model."""
        return next(fit for fit in self.fits if fit.method == method)

    @property
    def topics(self) -> frozenset[str]:
        """The topics of all findings."""
        return frozenset(finding.topic for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        plain: dict[str, Any] = _plain(dataclasses.asdict(self))
        for entry, advice in zip(plain["recommended"], self.recommended, strict=True):
            entry["call"] = advice.call
        return plain

    def __str__(self) -> str:
        from synaptune.diagnosis.screen import render

        return render(self)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return value

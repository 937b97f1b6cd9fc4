"""A method of the user's own in a file, as short as one can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from synaptune.core import registry

__all__ = ["SHIFT", "forget_new_methods", "method_file"]

SHIFT = '''
"""Shift: subtract the mean logit of the stream from every prediction, by moving the classifier's bias."""

from dataclasses import dataclass

import torch

from synaptune.core.method import AdaptOptions, Method, Step, Touches
from synaptune.core.registry import register
from synaptune.options import option


@dataclass(frozen=True, kw_only=True)
class Shift(AdaptOptions):
    """Options of Shift."""

    rate: float = option(0.1, "share of the mean logit taken off per batch", at_least=0, at_most=1)


@register("shift", options=Shift, summary="Moves the classifier's bias against the mean logit.")
class ShiftMethod(Method[Shift]):
    """Bias only."""

    def touches(self, model, anatomy):
        return Touches(parameters=frozenset({f"{anatomy.require_classifier()}.bias"}))

    def step(self, model, images):
        with torch.no_grad():
            logits = model(images)
            bias = next(p for n, p in model.named_parameters() if n.endswith("out.bias"))
            bias -= self.options.rate * logits.mean(dim=0)
        return Step(logits=logits)
'''


def method_file(path: Path, name: str, *, more: str = "") -> str:
    """Write the method under a name that nothing else in this process has; returns `FILE.py:NAME`."""
    path.write_text(SHIFT.replace('register("shift"', f'register("{name}"') + more)
    return f"{path}:{name}"


def forget_new_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what files register from now on be forgotten at the end of the test."""
    registry.infos()
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    monkeypatch.setattr(registry, "_FILES", {})

"""Any network that is built from a plan has the stages of that plan, whatever it is called and wrapped in."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from synaptune.core.structure import find_anatomy

NAMES = ("conv1", "fc", "layer4", "x", "head", "stem", "blocks", "aux", "norm", "bn1", "features", "backbone")


@dataclass(frozen=True)
class Plan:
    blocks: tuple[int, ...]  # per stage
    convolutions: int  # per block
    stem_norm: bool
    grouped: bool  # one module per stage, or all blocks side by side
    widening: bool
    separate_head: bool  # head in a module of its own, with a hidden layer
    wrappers: int
    names: tuple[str, ...]


PLANS = st.builds(
    Plan,
    blocks=st.lists(st.integers(1, 4), min_size=2, max_size=5).map(tuple),
    convolutions=st.integers(2, 3),
    stem_norm=st.booleans(),
    grouped=st.booleans(),
    widening=st.booleans(),
    separate_head=st.booleans(),
    wrappers=st.integers(0, 2),
    names=st.permutations(NAMES).map(tuple),
)


class PlannedBlock(nn.Module):
    def __init__(self, width_in: int, width: int, stride: int, convolutions: int):
        super().__init__()
        self.shortcut = nn.Conv2d(width_in, width, 1, stride=stride) if stride > 1 else nn.Identity()
        for i in range(convolutions):
            self.add_module(f"n{i}", nn.BatchNorm2d(width_in))
            self.add_module(f"c{i}", nn.Conv2d(width_in, width, 3, stride=stride, padding=1))
            width_in, stride = width, 1


def _stage(plan: Plan, number: int, width_in: int, width: int) -> list[nn.Module]:
    strides = [2 if number > 0 and i == 0 else 1 for i in range(plan.blocks[number])]
    widths = [width_in] + [width] * len(strides)
    return [PlannedBlock(widths[i], width, stride, plan.convolutions) for i, stride in enumerate(strides)]


def _build(plan: Plan) -> tuple[nn.Module, tuple[tuple[str, ...], ...], dict[str, str | None]]:
    names = list(plan.names)
    children: OrderedDict[str, nn.Module] = OrderedDict()

    def add(module: nn.Module) -> str:
        children[names.pop()] = module
        return next(reversed(children))

    prefix = "0." * plan.wrappers
    first = prefix + add(nn.Conv2d(3, 4, 3))
    stem_norm = prefix + add(nn.BatchNorm2d(4)) if plan.stem_norm else None
    width, stages, flat = 4, [], []
    for number in range(len(plan.blocks)):
        blocks = _stage(plan, number, width, width * (2 if plan.widening and number > 0 else 1))
        width *= 2 if plan.widening and number > 0 else 1
        if plan.grouped:
            stages.append((prefix + add(nn.Sequential(*blocks)),))
        else:
            flat.append(blocks)
    if flat:
        body = prefix + add(nn.Sequential(*(block for blocks in flat for block in blocks)))
        starts = [sum(plan.blocks[:i]) for i in range(len(plan.blocks))]
        stages = [tuple(f"{body}.{a + i}" for i in range(n)) for a, n in zip(starts, plan.blocks, strict=True)]
    hidden = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 11))
    head = prefix + add(hidden if plan.separate_head else nn.Linear(width, 11))
    model: nn.Module = nn.Sequential(children)
    for _ in range(plan.wrappers):
        model = nn.Sequential(model, nn.Identity())
    parts = {"first_conv": first, "stem_norm": stem_norm, "classifier": f"{head}.2" if plan.separate_head else head}
    return model, tuple(stages), parts


@settings(max_examples=80, deadline=None, derandomize=True)
@given(plan=PLANS)
def test_stages_are_those_of_the_plan(plan: Plan) -> None:
    model, stages, parts = _build(plan)
    found = find_anatomy(model)
    assert found.stages == stages
    assert {part: getattr(found, part) for part in parts} == parts

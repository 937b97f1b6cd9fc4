"""Radii, and the way back to the sphere."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from synaptune.errors import InputError, OptionError
from synaptune.plasticity import RadiusKind, project, radius_of


def filters(dtype: torch.dtype = torch.float32) -> Tensor:
    weight = torch.randn(5, 3, 2, 2, generator=torch.Generator().manual_seed(0))
    weight[3] = 0
    return weight.to(dtype)


@pytest.mark.parametrize("kind", ["filter", "current"])
def test_filter_radius_is_the_norm_of_each_filter(kind: RadiusKind) -> None:
    torch.testing.assert_close(radius_of(filters(), kind), filters().flatten(1).norm(dim=1))


def test_layer_radius_is_the_mean_norm_for_all() -> None:
    expected = filters().flatten(1).norm(dim=1).mean().expand(5)
    torch.testing.assert_close(radius_of(filters(), "layer"), expected)


def test_unit_radius_is_one() -> None:
    assert radius_of(filters(), "unit").tolist() == [1.0] * 5


@pytest.mark.parametrize(("dtype", "expected"), [(torch.float16, torch.float32), (torch.float64, torch.float64)])
def test_radius_is_at_least_float32(dtype: torch.dtype, expected: torch.dtype) -> None:
    assert radius_of(filters(dtype)).dtype == expected


def test_radius_does_not_follow_later_changes_of_the_weight() -> None:
    weight = torch.nn.Parameter(filters())
    radius = radius_of(weight)
    before = radius.clone()
    weight.data.mul_(2)
    assert radius.equal(before)
    assert not radius.requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_projection_reaches_the_radius_keeps_the_direction_and_the_dtype(dtype: torch.dtype) -> None:
    weight, radius = filters(dtype), torch.tensor([0.5, 1.0, 2.0, 3.0, 0.0])
    projected = project(weight, radius)
    assert projected.dtype == dtype
    tolerance = {"rtol": torch.finfo(dtype).eps * 4, "atol": 1e-6}
    reached = radius_of(projected.double())
    expected = torch.tensor([0.5, 1.0, 2.0, 0.0, 0.0]).double()  # a filter of zeros has no direction
    torch.testing.assert_close(reached, expected, **tolerance)
    cosine = torch.cosine_similarity(projected[:3].double().flatten(1), weight[:3].double().flatten(1))
    torch.testing.assert_close(cosine, torch.ones(3).double(), **tolerance)


@pytest.mark.parametrize("size", [1e-45, 1e-30, 1e30, 3e38])
def test_projection_survives_norms_whose_squares_leave_the_number_range(size: float) -> None:
    weight = torch.full((2, 3), size)
    torch.testing.assert_close(project(weight, torch.ones(2)), torch.full((2, 3), 3**-0.5))
    assert radius_of(torch.full((1, 4), 1e200, dtype=torch.float64)).item() == pytest.approx(2e200)


def test_radii_of_the_wrong_number_are_refused() -> None:
    with pytest.raises(InputError, match="5 filters needs as many radii"):
        project(filters(), torch.ones(4))


def test_unknown_kind_of_radius_is_refused() -> None:
    with pytest.raises(OptionError, match="must be one of filter, layer, unit, current, got 'sphere'"):
        radius_of(filters(), "sphere")  # type: ignore[arg-type]

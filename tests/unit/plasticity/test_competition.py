"""Gates: who learns at a place, and which way."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from synaptune.plasticity.competition import Sign, compete

RESPONSES = [[0.5, 2.0, -1.0, 1.0]]


def gates(sign: Sign, *, sharpness: float = 1.0, delta: float = 0.4, rank: int = 2) -> Tensor:
    return compete(torch.tensor(RESPONSES, dtype=torch.float64), sign=sign, sharpness=sharpness, delta=delta, rank=rank)


def test_plain_gates_are_the_softmax() -> None:
    expected = torch.softmax(3 * torch.tensor(RESPONSES, dtype=torch.float64), 1)
    torch.testing.assert_close(gates("plain", sharpness=3.0), expected)


def test_anti_negates_every_share_but_the_winners() -> None:
    plain = gates("plain")
    torch.testing.assert_close(gates("anti"), plain * torch.tensor([[-1.0, 1.0, -1.0, -1.0]]).double())


def test_hard_gates_know_the_winner_alone() -> None:
    assert gates("hard").tolist() == [[0, 1, 0, 0]]


@pytest.mark.parametrize(("rank", "loser"), [(2, 3), (3, 0), (4, 2), (5, None)])
def test_krotov_pushes_away_the_unit_of_the_given_rank(rank: int, loser: int | None) -> None:
    expected = [0.0, 1.0, 0.0, 0.0]
    if loser is not None:
        expected[loser] = -0.3
    assert gates("krotov", rank=rank, delta=0.3).tolist() == [expected]


@pytest.mark.parametrize("sign", ["anti", "hard", "krotov"])
def test_first_of_equal_units_ranks_higher(sign: Sign) -> None:
    y = compete(torch.zeros(1, 3), sign=sign, delta=0.5)
    assert y.argmax(1).item() == 0
    if sign == "krotov":
        assert y.tolist() == [[1.0, -0.5, 0.0]]


def test_units_compete_at_each_place_by_itself() -> None:
    responses = torch.randn(2, 5, 3, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(compete(responses.clone(), sign="plain"), responses.softmax(1))


@pytest.mark.parametrize("sharpness", [1e-30, 1.0, 1e30])
def test_softmax_stays_finite_for_any_temperature_and_size(sharpness: float) -> None:
    responses = torch.tensor([[3e38, -3e38, 0.0], [1e-38, 0.0, -1e-38]])
    y = compete(responses, sign="plain", sharpness=sharpness)
    assert y.isfinite().all()
    torch.testing.assert_close(y.sum(1), torch.ones(2))


def test_responses_are_overwritten_so_that_no_second_tensor_of_their_size_exists() -> None:
    responses = torch.zeros(1, 4)
    assert compete(responses, sign="plain").data_ptr() == responses.data_ptr()

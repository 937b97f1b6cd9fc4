from __future__ import annotations

import numpy as np
import pytest
import torch

from synaptune.errors import InputError
from synaptune.metrics import Tally


def test_error_weighs_images_not_batches() -> None:
    tally = Tally()
    tally.add(torch.eye(4), torch.arange(4))
    tally.add(torch.eye(4)[:1], torch.tensor([3]))
    assert tally.images == 5
    assert tally.error == pytest.approx(20.0)
    assert tally.error_per_batch == [0.0, 100.0]


def test_classes_are_counted_as_predicted_and_as_labelled() -> None:
    tally = Tally()
    assert (tally.predicted_per_class, tally.labels_per_class) == ([], [])
    logits = torch.eye(3)
    logits[1, 0] = torch.nan
    tally.add(logits, torch.tensor([0, 0, 2]))
    tally.add(torch.eye(3)[2:], torch.tensor([0]))
    assert tally.predicted_per_class == [1, 0, 2]
    assert tally.labels_per_class == [3, 0, 1]


def test_error_equals_a_plain_count_on_random_logits() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(50, 7, generator=generator)
    labels = torch.randint(0, 7, (50,), generator=generator)
    tally = Tally()
    for part, truth in zip(logits.split(16), labels.split(16), strict=True):
        tally.add(part, truth)
    wrong = sum(int(row.tolist().index(max(row.tolist())) != truth) for row, truth in zip(logits, labels, strict=True))
    assert tally.error == pytest.approx(100 * wrong / 50)
    assert len(tally.error_per_batch) == 4


def test_a_row_with_nan_is_wrong_and_unsure_even_where_class_zero_is_the_label() -> None:
    tally = Tally()
    tally.add(torch.tensor([[float("nan"), 1.0], [9.0, 0.0]]), torch.tensor([0, 0]))
    assert tally.error == 50.0
    assert tally.calibration_error() == pytest.approx(0.0, abs=0.1)


def test_infinite_logits_are_a_prediction() -> None:
    tally = Tally()
    tally.add(torch.tensor([[0.0, float("inf")]]), torch.tensor([1]))
    assert tally.error == 0.0


def test_calibration_error_is_taken_over_all_batches_together() -> None:
    # One batch is always right and the other always wrong, at the same confidence of one half: well calibrated.
    tally = Tally()
    tally.add(torch.tensor([[0.0, 1e-6]] * 3), torch.tensor([1, 1, 1]))
    tally.add(torch.tensor([[0.0, 1e-6]] * 3), torch.tensor([0, 0, 0]))
    assert tally.calibration_error() == pytest.approx(0.0, abs=1e-3)


def test_an_empty_tally_has_no_error() -> None:
    with pytest.raises(InputError, match="no image"):
        _ = Tally().error


def test_labels_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match="do not belong together"):
        Tally().add(torch.zeros(3, 2), torch.zeros(2, dtype=torch.int64))


def test_per_batch_values_are_plain_floats() -> None:
    tally = Tally()
    tally.add(torch.eye(3), torch.arange(3))
    assert all(type(value) is float for value in tally.error_per_batch)
    assert not isinstance(tally.error, np.floating)

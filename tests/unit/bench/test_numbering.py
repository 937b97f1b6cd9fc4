"""A label means the output that it says, or the bench refuses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from synaptune.bench.numbering import numbering_for
from synaptune.data import DataSet, sample
from synaptune.data.readers.imagenet import imagenet_ids, imagenet_names
from synaptune.errors import OptionError
from synaptune.models import Card, zoo

CARD = zoo.card("resnet26-cifar10")
NAMES = CARD.class_names


def dataset(*classes: str, highest: int | None = None) -> DataSet:
    labels = np.arange((len(classes) if highest is None else highest + 1), dtype=np.int64)
    return DataSet("photos", "test", np.zeros((len(labels), 8, 8, 3), np.uint8), labels, classes)


def imagenet_card(*names: str) -> Card:
    return dataclasses.replace(CARD, num_classes=1000, class_names=names)


def test_names_decide_in_any_order_and_for_a_part_of_the_classes() -> None:
    assert numbering_for(sample(20), CARD).tolist() == list(range(10))
    assert numbering_for(dataset("truck", "airplane", "dog"), CARD).tolist() == [9, 0, 5]


def test_classes_that_the_model_does_not_know_are_refused_by_name() -> None:
    with pytest.raises(OptionError, match=r"only the data have lorry, only the model has airplane, .* and 3 more"):
        numbering_for(dataset("bird", "cat", "dog", "lorry"), CARD)
    with pytest.raises(OptionError, match="the classes of photos are not those of"):
        numbering_for(dataset(*"0123456789"), CARD)


def test_a_class_that_sorts_elsewhere_under_another_name_is_refused() -> None:
    renamed = sorted("car" if name == "automobile" else name for name in NAMES)
    with pytest.raises(OptionError, match="only the data have car, only the model has automobile"):
        numbering_for(dataset(*renamed), CARD)


def test_a_class_spelt_otherwise_in_its_place_is_the_same_class() -> None:
    spelt = ["car" if name == "automobile" else name for name in NAMES]
    assert numbering_for(dataset(*spelt), CARD).tolist() == list(range(10))


def test_labels_without_names_are_outputs_and_cannot_exceed_them() -> None:
    assert numbering_for(dataset(highest=9), CARD).tolist() == list(range(10))
    unnamed = dataclasses.replace(CARD, class_names=())
    assert numbering_for(dataset(*NAMES), unnamed).tolist() == list(range(10))
    digits = zoo.card("digits-mnist")
    assert numbering_for(dataset(highest=9), digits).tolist() == list(digits.label_map)
    with pytest.raises(OptionError, match="labels up to 10"):
        numbering_for(dataset(highest=10), digits)


def test_digits_are_their_names() -> None:
    assert numbering_for(dataset(*"0123456789"), zoo.card("digits-mnist")).tolist() == [9, 0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_imagenet_has_two_cranes_and_libraries_that_spell_them_apart() -> None:
    names = imagenet_names()
    apart = list(names)
    apart[134], apart[639] = "crane bird", "maillot tank suit"
    for theirs in (names, apart):
        assert numbering_for(dataset(*names), imagenet_card(*theirs)).tolist() == list(range(1000))


def test_folders_named_by_wordnet_ids_are_classes_of_imagenet() -> None:
    ids = imagenet_ids()
    for card in (imagenet_card(), imagenet_card(*imagenet_names())):
        assert numbering_for(dataset(ids[7], ids[3]), card).tolist() == [7, 3]

"""Which output of a model a label of a data set means. A wrong answer is an error rate that looks like any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from synaptune.errors import InputError, OptionError

if TYPE_CHECKING:
    from synaptune.data import DataSet
    from synaptune.models import Card

__all__ = ["numbering_for"]

_MOST_NAMED = 4


def numbering_for(dataset: DataSet, card: Card) -> Tensor:
    """Return the output index of each label of a data set, (labels,).

    Names decide where both sides have them: those of the classes, or the WordNet ids of ImageNet's. Where one side has
    none, the card's map counts, and without one labels are taken as the outputs are numbered.

    Raises:
        OptionError: names disagree, or there are more labels than the model knows.
    """
    if not dataset.is_labelled:
        raise InputError(f"{dataset.name} has images without a label, and errors need all; choose another set or split")
    ours, theirs = dataset.classes, card.class_names
    by_name = _by_name(ours, theirs) or _by_wordnet_id(ours, card.num_classes)
    if by_name is not None:
        numbering = by_name
    elif card.label_map:
        numbering = list(card.label_map)
    elif not ours or not theirs or _in_the_same_order(ours, theirs):
        numbering = list(range(int(dataset.labels.max()) + 1))
    else:
        raise OptionError(_disagreement(dataset.name, ours, card.name, theirs))
    if int(dataset.labels.max()) >= len(numbering):
        raise OptionError(
            f"{dataset.name} has labels up to {int(dataset.labels.max())}, and {card.name} knows {len(numbering)}; "
            "they do not belong together"
        )
    return torch.from_numpy(np.array(numbering, np.int64))


def _by_name(ours: Sequence[str], theirs: Sequence[str]) -> list[int] | None:
    """By equal names, if each stands once on either side and the model knows ours; a part of its classes is enough."""
    place = {name: index for index, name in enumerate(theirs)}
    unambiguous = len(place) == len(theirs) and len(set(ours)) == len(ours)
    if not ours or not unambiguous or not set(ours) <= place.keys():
        return None
    return [place[name] for name in ours]


def _by_wordnet_id(ours: Sequence[str], outputs: int) -> list[int] | None:
    """Folders of ImageNet are named by ids, and every model numbers its classes by the rank of these."""
    from synaptune.data.readers.imagenet import imagenet_ids

    ids = imagenet_ids()
    if not ours or outputs != len(ids) or not set(ours) <= set(ids):
        return None
    return [ids.index(name) for name in ours]


def _in_the_same_order(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether both are one list in which some names are spelt otherwise.

    >>> _in_the_same_order(["airplane", "car", "bird"], ["airplane", "automobile", "bird"])
    True
    >>> _in_the_same_order(["airplane", "bird", "car"], ["airplane", "automobile", "bird"])
    False
    """
    if len(ours) != len(theirs):
        return False
    # ImageNet has two cranes and two maillots: such names tell nothing about the order.
    once, known = ({name for name, count in Counter(names).items() if count == 1} for names in (ours, theirs))
    shared = once & known
    pairs = [(mine, yours) for mine, yours in zip(ours, theirs, strict=True) if {mine, yours} & shared]
    return len(pairs) > len(ours) / 2 and all(mine == yours for mine, yours in pairs)


def _disagreement(data: str, ours: Sequence[str], model: str, theirs: Sequence[str]) -> str:
    unknown, unused = (_shortened([n for n in a if n not in b]) for a, b in ((ours, theirs), (theirs, ours)))
    return (
        f"the classes of {data} are not those of {model}"
        + (f"; only the data have {unknown}" if unknown else "")
        + (f", only the model has {unused}" if unused else "")
        + ". Name the folders, or the classes of the DataSet, as the model does; a DataSet without class names is "
        "taken as the model numbers its outputs"
    )


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more

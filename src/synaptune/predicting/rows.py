"""Rows of a prediction table: flat, the same columns in every format, so that tools need no instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from synaptune.errors import OptionError
from synaptune.functional.entropy import softmax_entropy
from synaptune.predicting.labels import Labels

__all__ = ["Cell", "Row", "RowMaker"]

Cell: TypeAlias = "str | int | float | None"
Row: TypeAlias = "dict[str, Cell]"

_DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class RowMaker:
    """Turns logits into rows.

    Attributes:
        class_names: by class number; empty where not known, then there are no columns of names.
        top_k: how many classes to list, the likeliest first.
        labels: true classes, for the columns `label` and `correct`.
        with_source: whether the source model's class gets a column.

    >>> maker = RowMaker(class_names=("cat", "dog"))
    >>> maker.rows(["a.png"], torch.tensor([[0.0, 2.0]]), batch=1)
    [{'image': 'a.png', 'class': 1, 'name': 'dog', 'probability': 0.880797, 'entropy': 0.365334, 'batch': 1}]
    """

    class_names: tuple[str, ...] = ()
    top_k: int = 1
    labels: Labels | None = None
    with_source: bool = False

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise OptionError(f"top-k must be at least 1, not {self.top_k}")

    @property
    def columns(self) -> dict[str, type]:
        """Names and types of the columns, in order."""
        columns: dict[str, type] = {"image": str}
        for rank in range(1, self.top_k + 1):
            end = "" if rank == 1 else f"_{rank}"
            columns[f"class{end}"] = int
            if self.class_names:
                columns[f"name{end}"] = str
            columns[f"probability{end}"] = float
        columns["entropy"] = float
        if self.with_source:
            columns["source_class"] = int
        if self.labels is not None:
            columns |= {"label": int, "correct": int}
        return columns | {"batch": int}

    def rows(self, names: Sequence[str], logits: Tensor, *, batch: int, source: Tensor | None = None) -> list[Row]:
        """Make the rows of one batch.

        Args:
            names: of the images.
            logits: what the adapter returned, (batch, classes).
            batch: its number.
            source: the classes that the source model gives, (batch,).
        """
        logits = logits.float().cpu()
        probabilities, classes = logits.softmax(1).topk(min(self.top_k, logits.shape[1]))
        entropies = softmax_entropy(logits)
        made = []
        for place, name in enumerate(names):
            row: Row = dict.fromkeys(self.columns)
            row["image"] = name
            ranked = zip(classes[place].tolist(), probabilities[place].tolist(), strict=True)
            for rank, (number, probability) in enumerate(ranked, 1):
                end = "" if rank == 1 else f"_{rank}"
                row[f"class{end}"] = number
                row[f"probability{end}"] = _rounded(probability)
                if self.class_names:
                    row[f"name{end}"] = self._name(number)
            row["entropy"] = _rounded(float(entropies[place]))
            if self.with_source and source is not None:
                row["source_class"] = int(source[place])
            if self.labels is not None:
                label = self.labels.of(name)
                row["label"], row["correct"] = label, None if label is None else int(label == row["class"])
            row["batch"] = batch
            made.append(row)
        return made

    def _name(self, number: int) -> str | None:
        return self.class_names[number] if number < len(self.class_names) else None


def _rounded(value: float) -> float | None:
    return round(value, _DIGITS) if torch.isfinite(torch.tensor(value)) else None

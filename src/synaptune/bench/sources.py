"""What a cell names, loaded: the model with its card, the stream of shifted images, the numbering of the labels."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from synaptune.bench.cell import CLEAN, MIXED, Cell
from synaptune.bench.numbering import numbering_for
from synaptune.errors import DataError, OptionError
from synaptune.shifts import CORRUPTIONS
from synaptune.user_file import run_file

if TYPE_CHECKING:
    from synaptune.data import DataSet, Recipe
    from synaptune.models import Card, LoadedModel
    from synaptune.streams import Domain, Stream

__all__ = ["Subject", "clean_data", "load_model_of", "load_subject", "stream_of"]

SAMPLE = "sample"
"""The data set that is bundled with the package."""

_DIGITS = tuple("0123456789")


@dataclass(frozen=True)
class Subject:
    """What is measured on what.

    Attributes:
        loaded: the model in eval mode, which takes images in [0, 1], and its card.
        stream: the images; its labels are numbered as the data set's.
        numbering: the model's output index of each label of the data set, (labels,).
        recipe: how the images came about.
        frost: textures of frost made here, or None.
    """

    loaded: LoadedModel
    stream: Stream
    numbering: Tensor
    recipe: Recipe
    frost: str | None = None

    @property
    def skipped(self) -> list[str]:
        """Files of the data that could not be read: how many, why, and the first of each kind."""
        reports = dict.fromkeys(domain.data.report.skipped for domain in self.stream.domains)
        return [
            f"files of the data left out: {count}, {reason} ({', '.join(examples)})"
            for skipped in reports
            for reason, count, examples in skipped
        ]


def load_subject(cell: Cell) -> Subject:
    """Load everything that a cell names."""
    from synaptune.data import Recipe

    loaded = load_model_of(cell.model, cell.weights)
    domains = _domains(cell, loaded.card)
    recipes = [domain.data.recipe for domain in domains]
    return Subject(
        loaded=loaded,
        stream=stream_of(domains, cell),
        numbering=numbering_for(domains[0].data, loaded.card),
        recipe=recipes[0] if len(recipes) == 1 else Recipe.of(mixed=[recipe.fields for recipe in recipes]),
        frost=_frost_source() if _makes_frost(cell) else None,
    )


def load_model_of(model: str, weights: str) -> LoadedModel:
    """Load a model by its specification, with its normalisation inside."""
    from synaptune.models import LoadedModel, Normalised, load_model

    loaded = load_model(model, weights or None)
    if loaded.card.normalisation != "outside":
        return loaded
    card = dataclasses.replace(loaded.card, normalisation="inside")
    return LoadedModel(Normalised(loaded.model, card.mean, card.std).eval(), card)


def clean_data(data: str, corruption: str, severity: int) -> DataSet:
    """Load the images of a cell; published shifts are loaded as they are, others stay clean."""
    from synaptune.data import load, sample

    if data == SAMPLE:
        return sample()
    path, _, function = data.rpartition(":")
    if path.endswith(".py"):
        return _from_file(Path(path).expanduser(), function)
    if is_published_shift(data):
        if corruption == CLEAN:
            raise OptionError(f"{data} holds shifted images only; its clean ones are {data.removesuffix('-c')}")
        # All of a pooled stream are loaded later; the first stands for them here.
        name = CORRUPTIONS[0] if corruption == MIXED else corruption
        return load(data, corruption=name, severity=severity)
    return load(data, _split_of(data))


def is_published_shift(data: str) -> bool:
    """Whether a data set of the catalogue consists of shifted images."""
    from synaptune.data import entries

    return any(entry.name == data and entry.corruptions for entry in entries())


def stream_of(domains: tuple[Domain, ...], cell: Cell) -> Stream:
    """Put the images in the order of the protocol; several domains are pooled."""
    from synaptune.streams import Arrangement, Correlated, InOrder, Schedule, Shuffled, Stream, Visit

    arrangements: dict[str, Arrangement] = {
        "dataset": InOrder(),
        "shuffled": Shuffled(),
        "correlated": Correlated(delta=cell.protocol.delta),
    }
    return Stream(
        domains=domains,
        schedule=Schedule((Visit(tuple(range(len(domains))), reset=cell.protocol.reset != "never"),)),
        arrangement=arrangements[cell.protocol.order],
        batch=cell.protocol.batch,
        seed=cell.seed,
        kind="bench",
    )


def _domains(cell: Cell, card: Card) -> tuple[Domain, ...]:
    from synaptune.data import corrupted
    from synaptune.streams import Domain, made, published

    published_shift = is_published_shift(cell.data)
    if cell.corruption == MIXED:
        if published_shift:
            domains = published(cell.data, severities=cell.severity)
            return tuple(
                dataclasses.replace(domain, data=_limited(domain.data, cell.protocol.images)) for domain in domains
            )
        clean = _prepared(clean_data(cell.data, CLEAN, 0), cell, card)
        return made(clean, severities=cell.severity, seed=cell.protocol.corruption_seed)
    dataset = _prepared(clean_data(cell.data, cell.corruption, cell.severity), cell, card)
    if cell.corruption != CLEAN and not published_shift:
        dataset = corrupted(dataset, cell.corruption, cell.severity, seed=cell.protocol.corruption_seed)
    return (Domain(cell.corruption, dataset),)


def _prepared(dataset: DataSet, cell: Cell, card: Card) -> DataSet:
    """Limit the number of images, and bring digits to the size that digit networks take."""
    limited = _limited(dataset, cell.protocol.images)
    if limited.classes == _DIGITS and limited.size != card.input_size and card.input_size[0] == card.input_size[1]:
        from synaptune.data import as_digits

        return as_digits(limited, "digit", size=card.input_size[0])
    return limited


def _limited(dataset: DataSet, images: int | None) -> DataSet:
    if images is None:
        return dataset
    if images > len(dataset):
        raise OptionError(f"images={images} asks for more than {dataset.name} has ({len(dataset)})")
    return dataset.take(images)


def _split_of(data: str) -> str:
    """Return the split to measure on: test (or val, which `load` knows), else the only one there is."""
    from synaptune.data import entries

    for entry in entries():
        if entry.name == data and not {"test", "val"} & set(entry.splits):
            return next(iter(entry.splits))
    return "test"


def _makes_frost(cell: Cell) -> bool:
    return cell.corruption in ("frost", MIXED) and not is_published_shift(cell.data)


def _frost_source() -> str:
    from synaptune.shifts import frost_source

    return frost_source()


def _from_file(path: Path, function: str) -> DataSet:
    """Call a function of the user's file for a data set; the file is executed, as the user asked."""
    from synaptune.data import DataSet

    if not path.is_file():
        raise DataError(f"there is no file {path}")
    module = run_file(path, f"{path}:{function}")
    make = getattr(module, function, None)
    made = make() if callable(make) else None
    if not isinstance(made, DataSet):
        raise OptionError(f"{path}:{function} must be a function without arguments that returns a synaptune DataSet")
    return made

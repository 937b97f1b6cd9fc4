"""A domain: one data set under one condition, by name; and builders for the usual families of domains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from synaptune.data import BENCHMARK_CORRUPTIONS, DataSet, Recipe, corrupted, load
from synaptune.errors import OptionError

__all__ = ["Domain", "Domains", "as_domains", "made", "published"]


@dataclass(frozen=True)
class Domain:
    """Images under one condition; nothing of them is read before a stream gets there.

    Attributes:
        name: unique in a stream; what results are listed under.
        data: images and labels.
        corruption: which shift it is, where it is one.
        severity: how strong.
    """

    name: str
    data: DataSet
    corruption: str | None = None
    severity: int | None = None

    @property
    def recipe(self) -> Recipe:
        """Name and content; reads all pixels of a clean or published set, once."""
        return Recipe.of(domain=self.name, data=self.data.recipe)


Domains: TypeAlias = DataSet | Domain | Sequence[DataSet | Domain]


def as_domains(given: Domains) -> tuple[Domain, ...]:
    """Name every data set, and refuse sets that cannot be in one stream.

    Raises:
        OptionError: there is none, two have the same name, or image sizes or classes differ.
    """
    items = (given,) if isinstance(given, DataSet | Domain) else tuple(given)
    domains = tuple(item if isinstance(item, Domain) else Domain(item.name, item) for item in items)
    problems = []
    if not domains:
        raise OptionError("a stream needs at least one domain")
    names = [domain.name for domain in domains]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        problems.append(
            f"domains must have different names, {', '.join(twice)} comes twice: name them with Domain(...)"
        )
    sizes = {domain.data.size for domain in domains}
    if len(sizes) > 1:
        problems.append(f"domains must have images of one size, not {', '.join(f'{h}x{w}' for h, w in sorted(sizes))}")
    if len({domain.data.classes for domain in domains if domain.data.classes}) > 1:
        problems.append("domains must have the same classes in the same order")
    empty = [domain.name for domain in domains if not len(domain.data)]
    if empty:
        problems.append(f"{', '.join(empty)} has no image")
    if problems:
        raise OptionError("; ".join(problems))
    return domains


def made(
    data: DataSet,
    corruptions: Iterable[str] = BENCHMARK_CORRUPTIONS,
    severities: int | Iterable[int] = 5,
    *,
    seed: int = 0,
    cache: bool = True,
    root: str | Path | None = None,
) -> tuple[Domain, ...]:
    """Make one domain per corruption and severity from clean images; each is computed when a stream reaches it.

    >>> from synaptune.data import sample
    >>> [domain.name for domain in made(sample(10), ["fog", "snow"], (1, 5), cache=False)]
    ['fog-1', 'fog-5', 'snow-1', 'snow-5']
    """
    return tuple(
        Domain(
            f"{name}-{severity}",
            corrupted(data, name, severity, seed=seed, cache=cache, root=root),
            corruption=name,
            severity=severity,
        )
        for name in corruptions
        for severity in ((severities,) if isinstance(severities, int) else tuple(severities))
    )


def published(
    name: str,
    corruptions: Iterable[str] = BENCHMARK_CORRUPTIONS,
    severities: int | Iterable[int] = 5,
    *,
    split: str = "test",
    root: str | Path | None = None,
) -> tuple[Domain, ...]:
    """Take one domain per corruption and severity of a published set, such as "cifar10-c".

    Raises:
        DataError: one of them is not on disk.
    """
    return tuple(
        Domain(
            f"{corruption}-{severity}",
            load(name, split, root=root, corruption=corruption, severity=severity),
            corruption=corruption,
            severity=severity,
        )
        for corruption in corruptions
        for severity in ((severities,) if isinstance(severities, int) else tuple(severities))
    )

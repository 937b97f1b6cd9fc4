"""Tables of the data sets and of the networks that are known by name."""

from __future__ import annotations

from markup import cell, code, table
from synaptune.data import Entry, entries
from synaptune.models import Card, zoo


def data_sets() -> str:
    """List the catalogue: what there is, under which terms, and how it is obtained."""
    rows = [(code(entry.name), cell(entry.title), cell(entry.licence), _obtained(entry)) for entry in entries()]
    return table(("name", "what it is", "licence", "download"), rows)


def _obtained(entry: Entry) -> str:
    home = f"[by hand]({entry.home})" if entry.manual else f"[{_megabytes(entry.download_size)}]({entry.home})"
    return home if entry.home else "by hand"


def _megabytes(size: int | None) -> str:
    if size is None:
        return "size not known"
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"


def zoo_models() -> str:
    """List the zoo: what each network is, its error as published or measured, and where its weights come from."""
    rows = [
        (code(name), cell(card.architecture), cell(card.trained_on), _error(name, card), _origin(name, card))
        for name in zoo.names()
        for card in (zoo.card(name),)
    ]
    return table(("name", "network", "trained on", "test error", "weights"), rows)


def _error(name: str, card: Card) -> str:
    error = zoo.load(name)[1].error if zoo.entry(name).bundled else card.error  # ours was measured after training
    return "" if error is None else f"{error:.2f} %"


def _origin(name: str, card: Card) -> str:
    licence = f" ({cell(card.licence)})" if card.licence else ""
    if zoo.entry(name).bundled:
        return f"bundled{licence}"
    made = f"{cell(card.origin)}; {code(f'synaptune train {name}')} makes them"
    home = f"[{cell(card.origin)}]({card.url})" if card.url else made
    return f"{home}{licence}"

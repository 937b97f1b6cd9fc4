"""Labels that do not cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Box", "Label", "place_labels", "spread"]

_LETTER = 7.4
_HEIGHT = 15.0


@dataclass(frozen=True)
class Box:
    """An area on paper."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """Area that two boxes share."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, width) * max(0.0, height)

    def outside(self, other: Box) -> float:
        """Area of this box that lies outside of another one."""
        return (self.right - self.left) * (self.bottom - self.top) - self.overlap(other)


@dataclass(frozen=True)
class Label:
    """Where a label's text begins, ends or has its middle."""

    x: float
    y: float
    anchor: str


def spread(places: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Move places apart to at least `gap`, as little as needed, and keep them inside where there is room.

    >>> spread([10.0, 11.0, 50.0], gap=10, low=0, high=100)
    [5.5, 15.5, 50.0]
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    # Neighbours that are too close form a block around the mean of where they want to be.
    blocks: list[tuple[list[int], float]] = []
    for position in order:
        members, middle = [position], places[position]
        while blocks and middle - gap * (len(members) - 1) / 2 - _last(blocks[-1], gap) < gap:
            before, _ = blocks.pop()
            members = before + members
            middle = sum(places[member] for member in members) / len(members)
            half = gap * (len(members) - 1) / 2
            middle = max(low + half, min(high - half, middle))
        blocks.append((members, middle))
    moved = list(places)
    for members, middle in blocks:
        for rank, member in enumerate(members):
            moved[member] = middle + gap * (rank - (len(members) - 1) / 2)
    return moved


def _last(block: tuple[list[int], float], gap: float) -> float:
    members, middle = block
    return middle + gap * (len(members) - 1) / 2


def place_labels(texts: Sequence[str], points: Sequence[tuple[float, float]], area: Box) -> list[Label]:
    """Put each label beside its point, on the side where it covers least.

    >>> [label.anchor for label in place_labels(["a", "b"], [(10, 50), (90, 50)], Box(0, 0, 100, 100))]
    ['start', 'end']
    """
    taken = [Box(x - 7, y - 7, x + 7, y + 7) for x, y in points]
    labels = []
    for text, (x, y) in zip(texts, points, strict=True):
        width = _LETTER * len(text)
        choices = [
            (Label(x + 11, y + 4, "start"), Box(x + 11, y - 8, x + 11 + width, y + 7)),
            (Label(x - 11, y + 4, "end"), Box(x - 11 - width, y - 8, x - 11, y + 7)),
            (Label(x, y - 12, "middle"), Box(x - width / 2, y - 12 - _HEIGHT, x + width / 2, y - 9)),
            (Label(x, y + 22, "middle"), Box(x - width / 2, y + 9, x + width / 2, y + 9 + _HEIGHT)),
        ]
        # The point of the label itself does not count: choices leave room around it.
        cost = [sum(box.overlap(other) for other in taken) + 3 * box.outside(area) for _, box in choices]
        label, box = choices[cost.index(min(cost))]
        taken.append(box)
        labels.append(label)
    return labels

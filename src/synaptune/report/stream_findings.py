"""What a stream log says: series to draw, shares of classes, and sentences. Without labels there is no error here."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from synaptune.report.classes import ClassShares, choose_classes, share_distance
from synaptune.report.finding import Finding
from synaptune.report.stream_log import Batch, Stream
from synaptune.report.timeline import Panel, PanelGroup, moving_mean, smooth
from synaptune.report.wording import count, listing, number, percent

__all__ = ["stream_findings", "stream_headline", "stream_panels", "stream_shares"]

_COLLAPSED = 60.0
_MOVED = 20.0
_FEWEST_BATCHES = 6


def stream_headline(stream: Stream) -> str:
    """Say in one sentence what the stream was."""
    if not stream.batches:
        return f"{stream.title}: the log holds no batch yet."
    seconds = [batch.seconds for batch in stream.batches if batch.seconds is not None]
    rate = f", {number(stream.images / sum(seconds))} images per second" if seconds and sum(seconds) else ""
    return f"{stream.title}: {count(stream.images, 'image')} in {count(len(stream.batches), 'batch', 'batches')}{rate}."


def stream_panels(stream: Stream) -> tuple[PanelGroup, ...]:
    """Draw entropy, drift, weight distance and time over batches, as far as they are logged."""
    wanted: tuple[tuple[str, str, Callable[[Batch], float | None], bool], ...] = (
        ("Entropy of predictions", "entropy, nats", lambda batch: batch.entropy, True),
        ("Drift of the first features", "drift, source deviations", lambda batch: batch.drift, True),
        ("Distance of the weights", "relative distance", lambda batch: batch.weight_distance, False),
        ("Time per batch", "ms", lambda batch: None if batch.seconds is None else 1000 * batch.seconds, True),
    )
    groups = []
    for title, label, value_of, smoothed in wanted:
        values = [math.nan if (value := value_of(batch)) is None else value for batch in stream.batches]
        if sum(map(math.isfinite, values)) < 2:
            continue
        window = max(1, len(values) // 20) if smoothed else 1
        series = smooth(stream.method, values, moving_mean(values, window))
        caption = "Moving mean over one twentieth of the stream." if smoothed else ""
        groups.append(PanelGroup(title, caption, (Panel("the stream", (series,), "batch", label),)))
    return tuple(groups)


def stream_shares(stream: Stream) -> ClassShares | None:
    """Compare the predicted classes of the last third of a stream with those of the first."""
    if len(stream.batches) < _FEWEST_BATCHES or not stream.classes:
        return None
    first, last = _thirds(stream)
    return choose_classes(("first third", first), {"last third": last}, stream.class_names)


def stream_findings(stream: Stream) -> Iterator[Finding]:
    """Say what changed along the stream, and what was unusual."""
    if len(stream.batches) >= _FEWEST_BATCHES:
        yield from _changes(stream)
        if stream.classes > 1:
            yield from _class_findings(stream)
    if stream.resets:
        yield Finding("note", f"The model went back to its source {count(len(stream.resets), 'time')}.")
    events = Counter(re.sub(r"\d+", "#", event) for _, event in stream.events)
    if events:
        said = [f"“{text}”{f' ({times} times)' if times > 1 else ''}" for text, times in events.most_common(3)]
        batches = len({place for place, _ in stream.events})
        yield Finding("note", f"{count(batches, 'batch', 'batches')} had something unusual: {listing(said)}.")
    if stream.torn:
        yield Finding("missing", f"{count(stream.torn, 'line')} of the log could not be read and is left out.")


def _changes(stream: Stream) -> Iterator[Finding]:
    entropy = _between_thirds([batch.entropy for batch in stream.batches])
    if entropy is not None:
        first, last = entropy
        how = "rose" if last > first else "fell"
        yield Finding(
            "time",
            f"Entropy of the predictions {how} from {number(first)} to {number(last)} nats between the first and the "
            "last third of the stream.",
        )
    drift = _between_thirds([batch.drift for batch in stream.batches])
    if drift is not None:
        yield Finding(
            "time",
            f"The first features lay {number(drift[0])} source deviations from the source in the first third, "
            f"{number(drift[1])} in the last.",
        )
    distance = stream.batches[-1].weight_distance
    if distance is not None:
        yield Finding("time", f"At the end the adapted weights were {100 * distance:.2g} % away from the source.")


def _class_findings(stream: Stream) -> Iterator[Finding]:
    first, last = _thirds(stream)
    if not sum(first) or not sum(last):
        return
    moved = share_distance(first, last)
    largest = max(range(len(last)), key=lambda place: last[place])
    share = 100 * last[largest] / sum(last)
    names = stream.class_names
    name = names[largest] if largest < len(names) else f"class {largest}"
    if share >= _COLLAPSED:
        yield Finding(
            "loss",
            f"{percent(share)} % of the predictions in the last third are {name}. Unless the stream is really like "
            "that, the model has collapsed: reset it, and adapt more slowly or with a guard.",
        )
    elif moved >= _MOVED:
        yield Finding(
            "time",
            f"Predicted classes moved by {percent(moved)} % between the first and the last third: either the stream "
            "changed, or the model did.",
        )


def _thirds(stream: Stream) -> tuple[list[int], list[int]]:
    third = len(stream.batches) // 3
    first, last = stream.predicted(0, third), stream.predicted(len(stream.batches) - third)
    return [first[place] for place in range(stream.classes)], [last[place] for place in range(stream.classes)]


def _between_thirds(values: Sequence[float | None]) -> tuple[float, float] | None:
    third = len(values) // 3
    first = [value for value in values[:third] if value is not None]
    last = [value for value in values[-third:] if value is not None]
    return (statistics.fmean(first), statistics.fmean(last)) if first and last else None

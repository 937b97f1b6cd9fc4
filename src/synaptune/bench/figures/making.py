"""One call per figure: find its file, apply overrides, measure or adapt, draw, save PNG, SVG and the numbers."""

from __future__ import annotations

import dataclasses
import json
import shlex
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synaptune.bench.figures.batches import draw_batches, stage_curves
from synaptune.bench.figures.density import draw_density, wasserstein
from synaptune.bench.figures.features import distance_to_clean, draw_features
from synaptune.bench.figures.overview import OverviewOptions, draw_overview, overview_of, thumbnails
from synaptune.bench.figures.style import looks, save
from synaptune.bench.figures.views import FigureOptions, View, make_views
from synaptune.bench.journal import read_rows
from synaptune.bench.overrides import parse_overrides, spell_overrides
from synaptune.bench.progress import OnProgress
from synaptune.bench.scalars import read_yaml
from synaptune.bench.tables import home, run_table
from synaptune.errors import OptionError, UnknownNameError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Drawing", "figure_names", "run_figure"]

_NAMES = ("features", "batches", "density", "overview")


@dataclass(frozen=True)
class Drawing:
    """A figure on disk.

    Attributes:
        name: which figure.
        paths: PNG, SVG, and the numbers as JSON.
        numbers: what the figure says in numbers.
        command: what draws it again.
    """

    name: str
    paths: tuple[Path, ...]
    numbers: Mapping[str, Any]
    command: str


def figure_names() -> tuple[str, ...]:
    """Names of the figures."""
    return _NAMES


def run_figure(
    name: str,
    *,
    overrides: Iterable[str] | Mapping[str, Any] = (),
    out: str | Path = Path("results") / "figures",
    workers: int | None = None,
    on_progress: OnProgress | None = None,
    on_step: Callable[[str], None] | None = None,
) -> Drawing:
    """Make a figure of the paper, or the picture of a run.

    Args:
        name: one of `figure_names()`.
        overrides: `key=value` words or a mapping: for `batches` as for tables, for `overview` fields of
            `OverviewOptions`, for the others of `FigureOptions`.
        out: folder of the files; `batches` keeps its rows there too, and resumes.
        workers: worker processes of `batches`.
        on_progress: told after every row of `batches`.
        on_step: told what is being done for the other figures.
    """
    if name not in _NAMES:
        raise UnknownNameError("figure", name, _NAMES)
    changes = dict(overrides) if isinstance(overrides, Mapping) else parse_overrides(overrides)
    folder = Path(out)
    if name == "batches":
        figure, numbers = _batches(changes, folder, workers, on_progress)
    elif name == "overview":
        figure, numbers = _overview(changes)
    else:
        figure, numbers = _of_features(name, changes, folder, on_step)
    command = shlex.join(["synaptune", "figure", name, *spell_overrides(changes), "--out", folder.as_posix()])
    with looks():
        png, svg = save(figure, folder, name)
    noted = folder / f"{name}.json"
    noted.write_text(json.dumps({"command": command, **numbers}, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return Drawing(name, (png, svg, noted), numbers, command)


def _batches(
    changes: Mapping[str, Any], folder: Path, workers: int | None, on_progress: OnProgress | None
) -> tuple[Figure, dict[str, Any]]:
    run = run_table(
        home() / "figures" / "batches.yaml",
        overrides=changes,
        out=folder / "batches.jsonl",
        workers=workers,
        on_progress=on_progress,
    )
    absent = run.sheet.absent
    if absent and not any(row.status == "ok" for row in run.rows):
        raise OptionError("nothing could be measured for this figure: " + "; ".join(absent))
    curves = stage_curves(run.rows)
    (first, *_) = (row for row in run.rows if row.error_per_stage)
    shift = f"{first.corruption}, severity {first.severity}" if first.severity else first.corruption
    title = f"{first.model.removeprefix('zoo:')}, {first.data}, {shift}"
    numbers = {"title": title, "curves": {method: [list(point) for point in curve] for method, curve in curves.items()}}
    return draw_batches(curves, title=title, batch=first.batch), numbers


def _overview(changes: Mapping[str, Any]) -> tuple[Figure, dict[str, Any]]:
    options = OverviewOptions().replace(**(read_yaml(home() / "figures" / "overview.yaml") | changes))
    rows = read_rows(options.rows)
    errors = overview_of(rows, options)
    corruptions = list(next(iter(errors.values())))
    pictures = thumbnails(corruptions, severity=options.severity, image=options.image)
    images = next(row.images for row in rows if row.status == "ok" and row.model == options.model)
    title = options.title or (
        f"{options.model.removeprefix('zoo:')} on {images:,} test images under {len(corruptions)} corruptions, "
        f"severity {options.severity}, adapting without labels as it predicts"
    )
    means = {method: statistics.fmean(found.values()) for method, found in errors.items()}
    numbers = {"options": dataclasses.asdict(options), "title": title, "errors": errors, "means": means}
    return draw_overview(errors, pictures, title=title), numbers


def _of_features(
    name: str, changes: Mapping[str, Any], folder: Path, on_step: Callable[[str], None] | None
) -> tuple[Figure, dict[str, Any]]:
    values = read_yaml(home() / "figures" / f"{name}.yaml")
    methods = changes.get("methods")
    changes = {**changes, "methods": [methods]} if isinstance(methods, str) else changes
    options = FigureOptions().replace(**(values | changes))
    if name == "features" and options.place != "first_conv":
        raise OptionError("the figure of feature maps is taken after the first convolution: place=first_conv")
    folder.mkdir(parents=True, exist_ok=True)  # a place that cannot be written to is better known before the work
    views = make_views(options, on_step=on_step)
    title = options.title or (
        f"{options.model.removeprefix('zoo:')}, {options.data}, {options.corruption}, severity {options.severity}"
    )
    if name == "features":
        figure = draw_features(views, title=title, channels=options.channels)
        distances = [distance_to_clean(view, views[0]) for view in views]
    else:
        figure = draw_density(views, title=title, channels=options.channels)
        distances = [wasserstein(view.values, views[0].values) for view in views]
    return figure, {"options": dataclasses.asdict(options), "views": _told(views, distances)}


def _told(views: list[View], distances: list[float]) -> list[dict[str, Any]]:
    return [
        {"view": view.name, "error": round(view.error, 4), "distance": round(distance, 4)}
        for view, distance in zip(views, distances, strict=True)
    ]

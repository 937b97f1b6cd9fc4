from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from synaptune.bench.figures import (
    FigureOptions,
    OverviewOptions,
    View,
    draw_batches,
    draw_density,
    draw_features,
    draw_overview,
    figure_names,
    make_views,
    overview_of,
    run_figure,
    stage_curves,
)
from synaptune.bench.figures.batches import _spread
from synaptune.bench.figures.density import density, wasserstein
from synaptune.bench.figures.features import distance_to_clean, liveliest_channels
from synaptune.bench.figures.style import colour_of, marker_of
from synaptune.bench.row import Row
from synaptune.bench.supervised import SupervisedOracle
from synaptune.core.registry import infos
from synaptune.errors import InputError, OptionError, UnknownNameError
from tests.support.state import differences, portrait
from tests.unit.bench import tiny
from tests.unit.bench.cells import row

SMALL: dict[str, Any] = {"model": tiny.MODEL, "data": tiny.DATA, "images": 40, "batch": 16, "channels": 3}


@pytest.fixture(scope="module")
def views() -> list[View]:
    return make_views(FigureOptions(**SMALL, methods=("source", "tent", "nhl"), oracle_lr=0.05))


def test_views_are_the_clean_one_the_methods_and_the_oracle(views: list[View]) -> None:
    assert [view.name for view in views] == ["clean", "source", "tent", "nhl", "oracle"]
    assert all(view.values.shape == (6, 40 * 64) for view in views)
    assert all(view.maps is not None and view.maps.shape == (6, 8, 8) for view in views)
    assert distance_to_clean(views[0], views[0]) == 0.0
    assert distance_to_clean(views[1], views[0]) > 0.0


def test_a_view_is_what_a_plain_forward_gives(views: list[View]) -> None:
    images = torch.from_numpy(tiny.make_data().images[:40]).permute(0, 3, 1, 2).float() / 255
    model = tiny.make_model()
    with torch.no_grad():
        expected = model.get_submodule("stem")(images)  # (40, 6, 8, 8)
    np.testing.assert_allclose(views[0].values, expected.transpose(0, 1).flatten(1).numpy(), atol=1e-6)
    assert views[0].maps is not None
    np.testing.assert_allclose(views[0].maps, expected[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(views[0].image, images[0].permute(1, 2, 0).numpy())


def test_only_methods_that_touch_the_first_convolution_change_what_it_shows(views: list[View]) -> None:
    _, source, tent, nhl, oracle = views
    assert np.array_equal(source.values, tent.values)
    assert not np.array_equal(source.values, nhl.values)
    assert not np.array_equal(source.values, oracle.values)


def test_features_in_front_of_the_classifier_have_no_maps() -> None:
    found = make_views(FigureOptions(**SMALL, methods=("source",), place="classifier"))
    assert all(view.values.shape == (12, 40) and view.maps is None for view in found)
    with pytest.raises(InputError, match="feature maps"):
        draw_features(found, title="x", channels=2)


def test_the_oracle_learns_from_labels_on_a_copy_and_is_no_method() -> None:
    model = tiny.make_model()
    before = portrait(model)
    oracle = SupervisedOracle(model, lr=0.02)
    data = tiny.make_data()
    images = torch.from_numpy(data.images).permute(0, 3, 1, 2).float() / 255
    labels = torch.tensor((data.labels + 1) % 5)
    losses = [oracle.learn(images, labels) for _ in range(30)]
    assert losses[-1] < 0.6 * losses[0]
    right = (oracle.predict(images).argmax(1) == labels).float().mean()
    assert right > 0.5
    assert differences(before, portrait(model)) == []
    assert "oracle" not in {info.name for info in infos()}


def test_an_image_beyond_the_stream_is_refused() -> None:
    with pytest.raises(InputError, match="not among the first 40"):
        make_views(FigureOptions(**SMALL, image=40))


@pytest.mark.parametrize("corruption", ["clean", "mixed"])
def test_what_is_no_single_shift_is_refused(corruption: str) -> None:
    with pytest.raises(InputError, match=f"'{corruption}' is none"):
        make_views(FigureOptions(**SMALL, corruption=corruption))


def test_one_method_needs_no_list(tmp_path: Path) -> None:
    drawn = run_figure("density", overrides=SMALL | {"methods": "nhl", "place": "classifier"}, out=tmp_path)
    assert [view["view"] for view in drawn.numbers["views"]] == ["clean", "nhl", "oracle"]


def test_channels_shown_are_those_that_vary_most_in_their_own_order() -> None:
    values = np.array([[0, 0, 0], [0, 5, 0], [0, 1, 0], [0, 9, 0]], np.float32)
    clean = View("clean", values, None, np.zeros((2, 2, 3), np.float32), 0.0)
    assert liveliest_channels(clean, 2) == [1, 3]


def test_wasserstein_distance_is_a_shift_in_standard_deviations_and_skips_dead_channels() -> None:
    back = np.stack([np.linspace(0, 1, 999), np.zeros(999)]).astype(np.float32)
    assert wasserstein(back + 3 * back[0].std(), back) == pytest.approx(3.0, rel=1e-3)
    assert wasserstein(back, back) == 0.0
    silent = np.concatenate([back[:1], back[:1], 1e-3 * back[:1]])
    assert wasserstein(silent + 0.5, silent) == pytest.approx(0.5 / back[0].std(), rel=1e-3), "one channel decides all"


def test_density_is_that_of_a_known_distribution_and_leaves_out_what_lies_outside() -> None:
    values = np.random.default_rng(0).normal(size=20_000).astype(np.float32)
    xs = np.linspace(-4, 4, 200)
    expected = np.exp(-(xs**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(density(values, xs), expected, atol=0.02)
    half = density(values, np.linspace(-4, 0, 200))
    assert half.sum() * (4 / 199) == pytest.approx(0.5, abs=0.03)


def test_feature_maps_and_ridges_are_drawn(views: list[View]) -> None:
    maps = draw_features(views, title="Maps", channels=3)
    assert len(maps.axes) == 5 * 4
    assert "error" in maps.axes[0].get_ylabel()
    ridges = draw_density(views, title="Ridges", channels=3)
    assert len(ridges.axes) == 4
    assert [axes.get_title(loc="left").partition(":")[0] for axes in ridges.axes] == ["source", "tent", "nhl", "oracle"]
    with pytest.raises(InputError, match="clean images first"):
        draw_density(views[1:], title="x", channels=2)


def test_curves_come_from_the_stages_of_rows() -> None:
    rows = [
        row("tent", measured={"error_per_stage": [[0, 50.0], [2, 40.0]]}),
        row("norm", measured={"error_per_stage": [[0, 60.0], [2, 60.0]]}),
        row("source", measured={"status": "failed"}),
    ]
    curves = stage_curves(rows)
    assert curves == {"tent": [(0, 50.0), (2, 40.0)], "norm": [(0, 60.0), (2, 60.0)]}
    axes = draw_batches(curves, title="Stages", batch=16).axes[0]
    assert [list(line.get_ydata()) for line in axes.lines] == [[50.0, 40.0], [60.0, 60.0]]
    assert [text.get_text() for text in axes.texts] == ["tent 40.0", "norm 60.0"]
    with pytest.raises(InputError, match="stands twice"):
        stage_curves([rows[0], rows[0]])
    with pytest.raises(InputError, match="oracle_every"):
        stage_curves([row("source")])


def test_labels_at_line_ends_are_moved_apart_in_their_order() -> None:
    placed = _spread([10.0, 10.1, 30.0])
    assert placed[0] == 10.0
    assert placed[1] > 10.5
    assert placed[2] == 30.0


def test_a_figure_is_saved_with_its_numbers_and_the_same_bytes_every_time(tmp_path: Path) -> None:
    changes = SMALL | {"methods": ["source", "nhl"]}
    said: list[str] = []
    first = run_figure("features", overrides=changes, out=tmp_path / "a", on_step=said.append)
    second = run_figure("features", overrides=changes, out=tmp_path / "b")
    assert [path.name for path in first.paths] == ["features.png", "features.svg", "features.json"]
    for one, other in zip(first.paths[:2], second.paths[:2], strict=True):
        assert one.read_bytes() == other.read_bytes()
    content = json.loads(first.paths[2].read_text())
    assert [view["view"] for view in content["views"]] == ["clean", "source", "nhl", "oracle"]
    assert content["command"].startswith("synaptune figure features model=")
    assert len(said) == 4


def test_paths_of_drawings_are_no_finer_than_hundredths(tmp_path: Path) -> None:
    drawn = run_figure("density", overrides=SMALL | {"methods": "nhl", "place": "classifier"}, out=tmp_path)
    paths = re.findall(r' d="([^"]+)"', drawn.paths[1].read_text())
    assert max(len(digits) for path in paths for digits in re.findall(r"\.(\d+)", path)) == 2


def test_every_usual_method_has_a_colour_and_a_marker_of_its_own() -> None:
    usual = ("source", "norm", "tent", "dua", "ttt", "modulator-12", "nhl", "oracle")
    assert len({colour_of(name, 0) for name in usual}) == len({marker_of(name, 0) for name in usual}) == len(usual)


def test_the_figure_of_stages_runs_and_resumes(tmp_path: Path) -> None:
    overrides = [f"models={tiny.MODEL}", f"data={tiny.DATA}", "methods=[norm,tent]", "batch=16", "oracle_every=1"]
    drawing = run_figure("batches", overrides=overrides, out=tmp_path, workers=0)
    curves = drawing.numbers["curves"]
    assert [batches for batches, _ in curves["tent"]] == [0, 1, 2, 3, 4]
    assert curves["norm"][0][1] == curves["norm"][-1][1]
    before = (tmp_path / "batches.jsonl").read_bytes()
    again = run_figure("batches", overrides=overrides, out=tmp_path, workers=0)
    assert (tmp_path / "batches.jsonl").read_bytes() == before
    assert again.numbers == drawing.numbers


def overview_rows(**means: float) -> list[Row]:
    return [
        row(method, corruption=name, severity=5, measured={"error_online": error + place})
        for method, error in means.items()
        for place, name in enumerate(("fog", "snow"))
    ]


OVERVIEW = OverviewOptions(model=tiny.MODEL, methods=("source", "nhl"))


def test_an_overview_shows_every_corruption_in_the_usual_order_and_averages_seeds() -> None:
    rows = overview_rows(source=40.0, nhl=20.0, tent=30.0)
    again = row("source", corruption="fog", severity=5, seed=1, measured={"error_online": 50.0})
    found = overview_of([*rows, again], OVERVIEW)
    assert found == {"source": {"snow": 41.0, "fog": 45.0}, "nhl": {"snow": 21.0, "fog": 20.0}}
    axes = draw_overview(found, [np.zeros((4, 4, 3), np.uint8)] * 2, title="Run").axes[1]
    marks = [line for line in axes.lines if len(line.get_xdata()) == 2 and line.get_linestyle() == "None"]
    assert [list(line.get_ydata()) for line in marks] == [[41.0, 45.0], [21.0, 20.0]]
    joins = [list(line.get_ydata()) for line in axes.lines if line not in marks]
    assert joins == [[41.0, 21.0], [45.0, 20.0]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "source, mean 43.0 %",
        "nhl, mean 20.5 %",
    ]


def test_an_overview_of_rows_that_lack_something_or_differ_is_refused() -> None:
    rows = overview_rows(source=40.0, nhl=20.0)
    with pytest.raises(InputError, match=r"no rows of nhl on .* under fog; measure them first"):
        overview_of([one for one in rows if (one.method, one.corruption) != ("nhl", "fog")], OVERVIEW)
    with pytest.raises(InputError, match="no rows of source"):
        overview_of([], OVERVIEW)
    other = row("nhl", corruption="snow", severity=5, seed=1, protocol={"batch": 8})
    with pytest.raises(InputError, match="differ in batch"):
        overview_of([*rows, other], OVERVIEW)


def test_an_overview_is_drawn_from_a_file_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(one.to_json() + "\n" for one in overview_rows(source=40.0, nhl=20.0)))
    changes = {"rows": str(path), "model": tiny.MODEL, "methods": ["source", "nhl"], "image": 3}
    drawing = run_figure("overview", overrides=changes, out=tmp_path / "out")
    assert drawing.numbers["means"] == {"source": 40.5, "nhl": 20.5}
    assert [path.stat().st_size > 0 for path in drawing.paths] == [True] * 3
    with pytest.raises(InputError, match="not among the 2000 bundled"):
        run_figure("overview", overrides=changes | {"image": 2000}, out=tmp_path / "out")


def test_unknown_figures_and_options_are_refused(tmp_path: Path) -> None:
    assert figure_names() == ("features", "batches", "density", "overview")
    with pytest.raises(UnknownNameError, match="did you mean density"):
        run_figure("densities", out=tmp_path)
    with pytest.raises(OptionError, match="has no option 'chanels'"):
        run_figure("density", overrides=["chanels=3"], out=tmp_path)
    with pytest.raises(OptionError, match="place=first_conv"):
        run_figure("features", overrides=["place=classifier"], out=tmp_path)


def test_drawing_leaves_matplotlib_s_settings_and_its_list_of_figures_alone(views: list[View]) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw_features(views, title="x", channels=2)
    assert dict(matplotlib.rcParams) == before
    import sys

    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []

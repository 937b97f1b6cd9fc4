"""The paper's figures, drawn from runs and models: `features`, `batches`, `density`; and a run in one: `overview`."""

from synaptune.bench.figures.batches import draw_batches as draw_batches
from synaptune.bench.figures.batches import stage_curves as stage_curves
from synaptune.bench.figures.density import draw_density as draw_density
from synaptune.bench.figures.features import draw_features as draw_features
from synaptune.bench.figures.making import Drawing as Drawing
from synaptune.bench.figures.making import figure_names as figure_names
from synaptune.bench.figures.making import run_figure as run_figure
from synaptune.bench.figures.overview import OverviewOptions as OverviewOptions
from synaptune.bench.figures.overview import draw_overview as draw_overview
from synaptune.bench.figures.overview import overview_of as overview_of
from synaptune.bench.figures.views import FigureOptions as FigureOptions
from synaptune.bench.figures.views import View as View
from synaptune.bench.figures.views import make_views as make_views

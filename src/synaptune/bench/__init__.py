"""Measured work: cells, runs that resume, comparisons, the paper's tables and figures.

```python
from synaptune import bench

run = bench.run_table("cifar10c", overrides=["models=resnet20", "images=2000"], out="results/cifar10c.jsonl")
page = bench.render(run)                                   # ours, the paper's, the difference, what is missing
bench.compare({"run": run.rows}, baseline="norm")          # paired differences with bootstrap intervals
```

Workers are processes; a script that calls this needs `if __name__ == "__main__":` around its own work.
"""

from synaptune.bench.cell import Cell as Cell
from synaptune.bench.compare import Comparison as Comparison
from synaptune.bench.compare import Contrast as Contrast
from synaptune.bench.compare import compare as compare
from synaptune.bench.journal import read_rows as read_rows
from synaptune.bench.paper import printed_table as printed_table
from synaptune.bench.progress import OnProgress as OnProgress
from synaptune.bench.progress import Progress as Progress
from synaptune.bench.protocol import Protocol as Protocol
from synaptune.bench.rendering import Form as Form
from synaptune.bench.rendering import render_comparison as render_comparison
from synaptune.bench.rendering import render_sheet as render_sheet
from synaptune.bench.row import Row as Row
from synaptune.bench.runner import run_cells as run_cells
from synaptune.bench.sheet import Sheet as Sheet
from synaptune.bench.sheet import make_sheet as make_sheet
from synaptune.bench.table import Table as Table
from synaptune.bench.tables import Run as Run
from synaptune.bench.tables import load_run as load_run
from synaptune.bench.tables import load_table as load_table
from synaptune.bench.tables import render as render
from synaptune.bench.tables import run_table as run_table
from synaptune.bench.tables import table_names as table_names

from __future__ import annotations

import statistics

import pytest

from synaptune.bench.paper import printed_table, printed_tables
from synaptune.errors import UnknownNameError
from synaptune.shifts import names

ALL_LINES = [(name, line) for name in printed_tables() for line in printed_table(name).lines.values()]


def test_all_tables_of_the_paper_are_there() -> None:
    assert printed_tables() == ("cifar10c", "cifar100c", "imagenetc", "digits", "ablation", "reference")
    sizes = {name: len(printed_table(name).lines) for name in printed_tables()}
    assert sizes == {"cifar10c": 16, "cifar100c": 5, "imagenetc": 6, "digits": 3, "ablation": 7, "reference": 6}


@pytest.mark.parametrize(("name", "line"), ALL_LINES, ids=[f"{n}-{x.model}-{x.method}" for n, x in ALL_LINES])
def test_a_printed_mean_is_that_of_its_cells_or_is_noted(name: str, line: object) -> None:
    from synaptune.bench.paper import PrintedLine

    assert isinstance(line, PrintedLine)
    mean = statistics.fmean(line.cells.values())
    # Half of the last printed digit of the mean, and as much from rounded cells of the reference.
    tolerance = 0.05 + 1e-9 if name != "reference" else 0.025
    assert (abs(mean - line.mean) <= tolerance) == (not line.arithmetic), f"{mean:.3f} against {line.mean}"


def test_the_contrast_cell_of_tent_explains_its_mean() -> None:
    cells = printed_table("imagenetc").lines["resnet18", "tent"].cells
    repaired = statistics.fmean((cells | {"contrast": 87.9}).values())
    assert cells["contrast"] == 97.9
    assert round(repaired, 2) == 62.69


def test_columns_are_those_of_the_benchmark_in_its_order() -> None:
    for name in ("cifar10c", "cifar100c", "imagenetc", "reference"):
        assert printed_table(name).columns == names("benchmark")


def test_numbers_that_labels_chose_are_marked() -> None:
    oracle = {(name, line.model) for name, line in ALL_LINES if line.oracle}
    assert oracle == {(name, line.model) for name, line in ALL_LINES if line.method == "dua"}


def test_best_rows_of_the_paper_are_nhl() -> None:
    for name in ("cifar10c", "cifar100c", "imagenetc", "digits"):
        lines = printed_table(name).lines
        for model in {model for model, _ in lines}:
            best = min((line for line in lines.values() if line.model == model), key=lambda line: line.mean)
            assert best.method == "nhl"


def test_an_unknown_table_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean cifar10c"):
        printed_table("cifar-10c")

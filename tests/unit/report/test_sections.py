from __future__ import annotations

from typing import Any

import pytest

from synaptune.report import build_report
from synaptune.report.rows import SWITCHES, parse_row
from synaptune.report.sections import RowGroup, group_rows
from tests.unit.report.made_rows import CORRUPTIONS, failed, row, table


def groups(*rows: dict[str, Any]) -> list[RowGroup]:
    return group_rows([parse_row(found) for found in rows])


OTHER: dict[str, Any] = {
    "model": "zoo:other",
    "weights": "other.th",
    "fingerprint": "0" * 16,
    "data": "other10",
    "severity": 3,
    "images": 9_000,
    "batch": 50,
    "order": "shuffled",
    "reset": "never",
    "horizon": 5,
    "oracle_every": 5,
    "full_batch": 500,
    "corruption_seed": 1,
    "threads": 2,
    "channels_last": True,
    "device": "cuda",
    "versions": {"torch": "10"},
}


@pytest.mark.parametrize("switch", sorted(set(SWITCHES) - {"delta"}))
def test_rows_that_differ_in_a_switch_are_never_averaged(switch: str) -> None:
    report = build_report([row("norm", error=10.0), row("norm", error=30.0, seed=1, **{switch: OTHER[switch]})])
    assert len(report.sections) == 2
    means = [section.errors.lines[0].places[-2].text for section in report.sections if section.errors]
    assert means == ["10.0", "30.0"]
    assert any(finding.kind == "protocol" and "nothing is averaged" in finding.text for finding in report.remarks)


def test_the_strength_of_correlation_is_a_switch_where_the_order_is_correlated() -> None:
    correlated = {"order": "correlated"}
    assert len(groups(row("norm", delta=0.1, **correlated), row("tent", delta=1.0, **correlated))) == 2
    assert len(groups(row("norm", delta=0.1), row("tent"))) == 1


@pytest.mark.parametrize(
    ("order", "delta", "said"), [("correlated", 0.1, ["0.1"]), ("dataset", None, []), ("shuffled", None, [])]
)
def test_the_strength_of_correlation_is_told_only_where_the_order_is_correlated(
    order: str, delta: float | None, said: list[str]
) -> None:
    (section,) = build_report([row("norm", order=order, delta=delta)]).sections
    settings = dict(section.stamp.groups)["Settings"]
    assert [value for name, value in settings if name == "delta of the correlated order"] == said
    assert "order of images" in dict(settings)


def test_the_bundled_images_are_called_so() -> None:
    (section,) = build_report([row("norm", data="sample")]).sections
    assert section.title == "zoo:made, the bundled images, severity 5"
    assert ("data", "the bundled images") in dict(section.stamp.groups)["Settings"]


def test_seeds_are_repeats_and_averaged() -> None:
    (group,) = groups(row("norm", error=10.0), row("norm", error=12.0, seed=1))
    report = build_report([row("norm", error=10.0), row("norm", error=12.0, seed=1)])
    assert len(group.cells[group.methods[0], group.shifts[0]]) == 2
    assert report.sections[0].errors is not None
    assert report.sections[0].errors.lines[0].places[0].text == "11.0"


def test_the_same_method_with_other_options_is_a_line_of_its_own() -> None:
    (group,) = groups(row("nhl", options={"eta": 1e-3, "tau": 1.0}), row("nhl", options={"eta": 5e-3, "tau": 1.0}))
    assert group.methods == ("nhl (eta=0.001)", "nhl (eta=0.005)")


def test_before_and_after_the_update_are_lines_of_their_own() -> None:
    (group,) = groups(row("nhl", options={"predict": "before"}), row("nhl", options={"predict": "after"}))
    assert group.methods == ("nhl (predict=before)", "nhl (predict=after)")


def test_a_method_named_like_the_label_of_another_is_not_merged_with_it() -> None:
    (group,) = groups(row("nhl", options={"eta": 1}), row("nhl", options={"eta": 2}), row("nhl (eta=1)", error=50.0))
    assert len(group.methods) == 3


def test_the_seed_of_a_method_is_no_option_of_its_own() -> None:
    (group,) = groups(row("dua", options={"seed": 0}), row("dua", seed=1, options={"seed": 1}))
    assert group.methods == ("dua",)


def test_columns_stand_in_the_order_of_the_papers_and_the_source_on_top() -> None:
    (group,) = groups(*(row(method, name) for method in ("norm", "source") for name in reversed(CORRUPTIONS)))
    assert [shift.key[0] for shift in group.shifts] == list(CORRUPTIONS)
    assert group.methods == ("source", "norm")


def test_without_a_reset_columns_stand_in_the_order_in_which_they_were_run() -> None:
    (group,) = groups(*(row("norm", name, reset="never") for name in reversed(CORRUPTIONS)))
    assert [shift.key[0] for shift in group.shifts] == list(reversed(CORRUPTIONS))


def test_clean_images_stand_beside_every_severity_and_outside_of_the_mean() -> None:
    report = build_report([row("norm", error=30.0), row("norm", severity=3, error=20.0), row("norm", "clean", 8.0)])
    assert len(report.sections) == 2
    for section, mean in zip(report.sections, ("30.0", "20.0"), strict=True):
        assert section.errors is not None
        assert [place.text for place in section.errors.lines[0].places[:3]] == ["8.0", mean, mean]


def test_data_sets_of_clean_images_are_columns() -> None:
    sets = [("mnist", 10_000, 30.0), ("usps", 2_007, 40.0), ("mnist_m", 9_001, 50.0)]
    report = build_report([row("norm", "clean", error, data=data, images=images) for data, images, error in sets])
    (section,) = report.sections
    assert section.errors is not None
    assert [column.name for column in section.errors.columns[:3]] == ["mnist", "usps", "mnist_m"]
    assert "40.0 % error on average over 3 data sets" in section.headline


def test_data_sets_of_which_parts_were_used_are_not_one_table() -> None:
    rows = [row("norm", "clean", 30.0, data="mnist", images=100), row("tent", "clean", 30.0, data="mnist")]
    assert len(groups(*rows, row("norm", "clean", data="usps"))) == 3


def test_other_images_under_the_same_name_are_a_column_of_their_own() -> None:
    report = build_report([row("source", recipe_digest="one"), row("norm", recipe_digest="two")])
    (section,) = report.sections
    assert section.errors is not None
    assert [column.name for column in section.errors.columns[:2]] == ["fog", "fog (other images 2)"]
    assert section.change is None
    assert any("other images" in finding.text for finding in report.remarks)


def test_a_failed_row_goes_to_the_section_that_it_agrees_with() -> None:
    (group,) = groups(*table(source=[50.0, 40.0]), failed("norm", CORRUPTIONS[1], weights="folder/made.th"))
    assert [found.status for found in group.cells["norm", group.shifts[1]]] == ["failed"]


def test_a_failed_row_of_another_protocol_stays_apart() -> None:
    assert len(groups(row("source"), failed("norm", batch=7))) == 2


def test_a_retry_replaces_the_failure() -> None:
    (group,) = groups(failed("norm", cell="c"), row("norm", error=20.0, cell="c"))
    assert [found.status for found in group.rows] == ["ok"]
    assert group.repeats == 0


def test_of_a_repeated_cell_the_last_counts_and_it_is_said() -> None:
    report = build_report([row("norm", error=10.0), row("norm", error=30.0)])
    assert report.summary.headline == "norm: 30.0 % error on fog."
    assert [finding.text for finding in report.remarks] == ["1 row repeats an earlier cell; the last one counts."]

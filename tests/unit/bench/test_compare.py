from __future__ import annotations

import json
from typing import Any

import pytest

from synaptune.bench.compare import compare
from synaptune.bench.rendering import render_comparison
from synaptune.bench.row import ERRORS, Row
from synaptune.errors import InputError, OptionError, UnknownNameError
from tests.unit.bench.cells import row

CORRUPTIONS = ("fog", "snow", "frost", "contrast")


def rows(method: str, errors: list[float], *, measured: dict[str, Any] | None = None, **others: Any) -> list[Row]:
    return [
        row(method, corruption=name, severity=5, measured={"error_online": error} | (measured or {}), **others)
        for name, error in zip(CORRUPTIONS, errors, strict=True)
    ]


SOURCE, TENT = rows("source", [50.0, 40.0, 30.0, 20.0]), rows("tent", [40.0, 31.0, 22.0, 21.0])


def test_methods_of_a_run_are_paired_shift_by_shift() -> None:
    found = compare({"run": SOURCE + TENT})
    assert (found.baseline, found.mixed, found.unpaired) == ("source", (), 0)
    (contrast,) = found.contrasts
    assert (contrast.left, contrast.right, contrast.pairs) == ("tent", "source", 4)
    assert (contrast.left_mean, contrast.right_mean) == (28.5, 35.0)
    assert contrast.difference.mean == pytest.approx(-6.5)
    assert contrast.difference.low is not None
    assert contrast.difference.high is not None
    assert contrast.difference.low < -6.5 < contrast.difference.high < 0
    assert (contrast.better, contrast.worse) == (3, 1)
    assert contrast.difference.groups == 4


def test_pairing_makes_a_constant_gain_certain() -> None:
    shifted = rows("tent", [49.0, 39.0, 29.0, 19.0])
    (contrast,) = compare({"run": SOURCE + shifted}).contrasts
    assert (contrast.difference.low, contrast.difference.high) == (pytest.approx(-1.0), pytest.approx(-1.0))


def test_runs_are_compared_method_by_method() -> None:
    other = rows("source", [50.0, 40.0, 30.0, 20.0]) + rows("tent", [39.0, 30.0, 21.0, 20.0])
    found = compare({"old": SOURCE + TENT, "new": other})
    assert found.baseline == "old"
    assert {contrast.method: contrast.difference.mean for contrast in found.contrasts} == {"source": 0.0, "tent": -1.0}


def test_the_baseline_may_be_chosen() -> None:
    (contrast,) = compare({"run": SOURCE + TENT}, baseline="tent").contrasts
    assert (contrast.left, contrast.difference.mean) == ("source", 6.5)
    with pytest.raises(UnknownNameError, match="did you mean tent"):
        compare({"run": SOURCE + TENT}, baseline="tnet")


@pytest.mark.parametrize(
    ("switch", "change"),
    [
        ("batch", {"protocol": {"batch": 32}}),
        ("order", {"protocol": {"order": "shuffled"}}),
        ("reset", {"protocol": {"reset": "never"}}),
        ("threads", {"protocol": {"threads": 2}}),
        ("corruption_seed", {"protocol": {"corruption_seed": 1}}),
        ("images", {"measured": {"images": 20}}),
        ("recipe", {"measured": {"recipe_digest": "b" * 64}}),
        ("fingerprint", {"measured": {"fingerprint": "0" * 64}}),
        ("versions", {"measured": {"versions": {"torch": "2.8"}}}),
    ],
)
def test_rows_that_differ_in_a_switch_are_refused_unless_it_is_named(switch: str, change: dict[str, Any]) -> None:
    mixed = {"run": SOURCE + rows("tent", [1.0, 2.0, 3.0, 4.0], **change)}
    with pytest.raises(OptionError, match=f"different protocols.*{switch}: .* in tent, .* in source.*mix={switch}"):
        compare(mixed)
    for mix in ([switch], "all"):
        assert compare(mixed, mix=mix).mixed == (switch,)
    others = {"batch", "order"} - {switch}
    with pytest.raises(OptionError, match=switch):
        compare(mixed, mix=sorted(others))


@pytest.mark.parametrize(
    ("switch", "change", "counts_for"),
    [
        ("oracle_every", {"oracle_every": 2}, {"error_oracle"}),
        ("full_batch", {"full_batch": 8}, {"error_full", "error_oracle"}),
    ],
)
def test_switches_of_whole_set_errors_count_for_these_alone(
    switch: str, change: dict[str, Any], counts_for: set[str]
) -> None:
    errors = dict.fromkeys(ERRORS, 10.0)
    left = [row("norm", corruption=name, severity=5, protocol=change, measured=errors) for name in CORRUPTIONS]
    right = [row("source", corruption=name, severity=5, measured=errors) for name in CORRUPTIONS]
    for metric in ERRORS:
        if metric in counts_for:
            with pytest.raises(OptionError, match=f"{switch}: .* in norm.*--mix {switch}"):
                compare({"run": [*right, *left]}, metric=metric)
            assert compare({"run": [*right, *left]}, metric=metric, mix=[switch]).mixed == (switch,)
        else:
            assert compare({"run": [*right, *left]}, metric=metric).mixed == ()


def test_a_full_batch_that_is_the_usual_one_is_no_difference() -> None:
    errors = {"error_full": 10.0}
    left = row("norm", corruption="fog", severity=5, protocol={"full_batch": 16}, measured=errors)
    right = row("source", corruption="fog", severity=5, measured=errors)
    assert compare({"run": [right, left]}, metric="error_full").mixed == ()


def test_an_unknown_metric_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean error_full"):
        compare({"run": SOURCE + TENT}, metric="error_ful")  # type: ignore[arg-type]


def test_an_unknown_switch_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean batch"):
        compare({"run": SOURCE + TENT}, mix=["bath"])


def test_other_errors_are_compared_only_among_themselves() -> None:
    with pytest.raises(InputError, match="no row has error_full"):
        compare({"run": SOURCE + TENT}, metric="error_full")
    full = [row("norm", corruption="fog", severity=5, measured={"error_online": None, "error_full": 3.0})]
    with pytest.raises(InputError, match="by method: source alone has error_online"):
        compare({"run": [SOURCE[0], *full]})


def test_what_can_be_paired_the_other_way_is_said() -> None:
    slow, fast = (rows("tent", [1.0, 2.0, 3.0, 4.0], options={"lr": lr}) for lr in (1e-4, 1e-2))
    with pytest.raises(InputError, match=r"by run: the sides \(slow, fast\) share no measured cell; --across method"):
        compare({"slow": slow, "fast": fast})
    assert len(compare({"slow": slow, "fast": fast}, across="method").contrasts) == 1
    with pytest.raises(InputError, match=r"by method: the sides \(.*\) share no .*; pairs agree in model, data"):
        compare({"run": [SOURCE[0], TENT[1]]})
    with pytest.raises(InputError, match=r"severity, and method$"):
        compare({"old": SOURCE[:1], "new": TENT[1:2]})


def test_rows_without_a_counterpart_are_counted() -> None:
    found = compare({"run": SOURCE + TENT[:2]})
    assert (found.contrasts[0].pairs, found.unpaired) == (2, 2)


def test_failed_rows_take_no_part() -> None:
    failed = row("tent", corruption="fog", severity=5, measured={"status": "failed", "error_online": None})
    found = compare({"run": [*SOURCE, failed, *TENT[1:]]})
    assert (found.contrasts[0].pairs, found.unpaired) == (3, 1)


def test_a_row_that_no_seed_changes_is_paired_with_every_seed() -> None:
    drawn = [
        row("dua", corruption="fog", severity=5, seed=seed, measured={"error_online": error})
        for seed, error in ((0, 44.0), (1, 46.0), (2, 48.0))
    ]
    (contrast,) = compare({"run": [SOURCE[0], *drawn]}).contrasts
    assert (contrast.pairs, contrast.right_mean, contrast.difference.mean) == (3, 50.0, pytest.approx(-4.0))
    assert contrast.difference.groups == 1


def shuffled(method: str, errors: dict[int, float], corruption: str = "fog") -> list[Row]:
    return [
        row(
            method,
            corruption=corruption,
            severity=5,
            seed=seed,
            protocol={"order": "shuffled"},
            measured={"error_online": error},
        )
        for seed, error in errors.items()
    ]


def test_both_sides_are_averaged_as_their_difference_is() -> None:
    source = shuffled("source", dict.fromkeys(range(5), 60.0)) + shuffled("source", {0: 0.0}, "snow")
    tent = shuffled("tent", dict.fromkeys(range(5), 20.0)) + shuffled("tent", {0: 10.0}, "snow")
    (contrast,) = compare({"run": source + tent}).contrasts
    assert (contrast.left_mean, contrast.right_mean) == (15.0, 30.0)
    assert contrast.difference.mean == contrast.left_mean - contrast.right_mean
    assert (contrast.difference.groups, contrast.difference.fewest, contrast.difference.most) == (2, 1, 5)


def test_a_line_says_what_its_interval_rests_on() -> None:
    found = compare({"run": SOURCE + TENT}, level=0.9)
    assert found.level == 0.9
    text = render_comparison(found, "text")
    assert "90 % interval" in text
    assert "4 x 1" in text
    uneven = shuffled("source", {0: 1.0, 1: 2.0}) + shuffled("source", {0: 3.0}, "snow")
    others = shuffled("tent", {0: 1.0, 1: 3.0}) + shuffled("tent", {0: 5.0}, "snow")
    assert "2 x 1-2" in render_comparison(compare({"run": uneven + others}), "text")


def test_one_pair_leaves_nothing_to_draw_from() -> None:
    found = compare({"run": [SOURCE[0], TENT[0]]})
    (contrast,) = found.contrasts
    assert (contrast.difference.mean, contrast.difference.low, contrast.difference.high) == (-10.0, None, None)
    for form in ("markdown", "text"):
        text = render_comparison(found, form)
        assert "[" not in text
        assert "1 x 1" in text
    assert json.loads(render_comparison(found, "json"))["contrasts"][0]["difference"]["low"] is None


def test_seeds_are_paired_with_themselves() -> None:
    found = compare(
        {"run": shuffled("source", {0: 10.0, 1: 20.0, 2: 30.0}) + shuffled("tent", {1: 19.0, 2: 29.0, 3: 5.0})}
    )
    (contrast,) = found.contrasts
    assert (contrast.pairs, contrast.difference.mean, found.unpaired) == (2, pytest.approx(-1.0), 2)


def test_the_same_method_under_two_protocols_in_one_run_is_not_chosen_between() -> None:
    twice = SOURCE + TENT + rows("tent", [1.0, 2.0, 3.0, 4.0], protocol={"batch": 4})
    with pytest.raises(OptionError, match=r"tent stands twice .* differ in batch"):
        compare({"run": twice})


def test_a_cell_that_two_runs_hold_stands_once() -> None:
    first, second = {"one": SOURCE + TENT}, {"two": SOURCE + rows("norm", [9.0, 9.0, 9.0, 9.0])}
    found = compare(first | second, across="method")
    assert [(contrast.left, contrast.pairs) for contrast in found.contrasts] == [("tent", 4), ("norm", 4)]


def test_a_cell_that_was_measured_twice_under_other_switches_is_not_chosen_between_unless_they_are_named() -> None:
    newer = rows("source", [49.0, 39.0, 29.0, 19.0], measured={"versions": {"torch": "2.10"}})
    runs = {"one": SOURCE + TENT, "two": newer}
    with pytest.raises(OptionError, match=r"source stands twice .* in versions\); .*take the first .*--mix versions"):
        compare(runs, across="method")
    assert compare(runs, across="method", mix=["versions"]).contrasts[0].right_mean == 35.0


def test_rows_are_chosen_by_what_they_are() -> None:
    oracle = rows("tent", [1.0, 2.0, 3.0, 4.0], protocol={"batch": 4, "horizon": 3})
    twice = {"run": SOURCE + oracle + TENT}
    with pytest.raises(OptionError, match=r"tent stands twice .* choose one of them \(--where batch=4\)"):
        compare(twice, mix="all")
    assert compare(twice, where={"horizon": None}).contrasts[0].left_mean == 28.5
    assert compare(twice, where={"horizon": None, "corruption": ["fog", "snow"]}).contrasts[0].pairs == 2
    (reached,) = compare(twice, where={"batch": [4, 16], "label": ["source", "tent"], "horizon": [None]}).contrasts
    assert reached.pairs == 4


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"mehod": "tent"}, "no key to choose rows by 'mehod'; did you mean method"),
        ({"corruption": "fogg"}, "no row with corruption 'fogg'; did you mean fog"),
        ({"severity": [5, 4]}, "no row with severity '4'"),
    ],
    ids=["key", "name", "number"],
)
def test_conditions_that_no_row_meets_are_refused(where: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        compare({"run": SOURCE + TENT}, where=where)


def test_the_newest_row_of_a_cell_counts() -> None:
    newer = rows("tent", [30.0, 30.0, 30.0, 30.0])
    assert compare({"run": SOURCE + TENT + newer}).contrasts[0].left_mean == 30.0


def test_models_and_data_are_never_pooled() -> None:
    other = [
        row(method, corruption="fog", severity=5, model="zoo:other", measured={"error_online": error})
        for method, error in (("source", 10.0), ("tent", 30.0))
    ]
    found = compare({"run": SOURCE + TENT + other})
    assert {contrast.model.rpartition(":")[2]: contrast.difference.mean for contrast in found.contrasts} == {
        "make_model": -6.5,
        "other": 20.0,
    }


def test_a_comparison_is_rendered_with_its_interval_and_its_warnings() -> None:
    mixed = rows("tent", [40.0, 31.0, 22.0, 21.0], protocol={"batch": 32})
    found = compare({"run": SOURCE + mixed[:3]}, mix=["batch"])
    for form in ("markdown", "text"):
        text = render_comparison(found, form)
        assert "-9.00" in text
        assert "3/0/3" in text
        assert "MIXED PROTOCOLS: the pairs differ in batch" in text
        assert "Rows without a counterpart, left out: 1." in text
    content = json.loads(render_comparison(found, "json"))
    assert content["contrasts"][0]["difference"]["groups"] == 3


def test_rows_that_come_behind_other_shifts_of_a_stream_are_refused() -> None:
    stream = {"corruption": "fog", "severity": 5, "protocol": {"reset": "never"}}
    runs = {"a": [row("norm", **stream)], "b": [row("norm", **stream, earlier=(("snow", 5),))]}
    with pytest.raises(OptionError, match=r"reset: never, behind snow 5 in b, never in a"):
        compare(runs)
    assert compare(runs, mix=["reset"]).mixed == ("reset",)

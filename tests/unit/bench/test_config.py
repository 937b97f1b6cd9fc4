from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from synaptune.bench.config import table_from
from synaptune.bench.overrides import apply_overrides, parse_overrides, spell_overrides
from synaptune.bench.scalars import read_text, read_yaml
from synaptune.bench.table import Table
from synaptune.errors import OptionError, UnknownNameError

PLAIN: dict[str, Any] = {
    "title": "A table",
    "models": [{"model": "zoo:resnet20-cifar10", "paper": "resnet20"}],
    "methods": ["source", {"method": "tent", "options": {"lr": 0.01}}],
    "data": "cifar10",
    "corruptions": ["fog", "snow"],
}


def table(**changes: Any) -> Table:
    return table_from(PLAIN | changes, name="plain", where="plain.yaml")


def test_numbers_and_words_are_what_people_mean() -> None:
    text = "{a: 1e-3, b: 2.5E-4, c: on, d: no, e: 010, f: true, g: null, h: ~, i: 1:30, j: -3, k: .5, l: '1', m: none}"
    assert read_text(text, where="here") == {
        "a": 1e-3,
        "b": 2.5e-4,
        "c": "on",
        "d": "no",
        "e": 10,
        "f": True,
        "g": None,
        "h": None,
        "i": "1:30",
        "j": -3,
        "k": 0.5,
        "l": "1",
        "m": "none",
    }


def test_nothing_in_a_file_is_executed() -> None:
    with pytest.raises(OptionError, match="not valid YAML"):
        read_text("!!python/object/apply:os.getcwd []", where="here")


def test_a_key_that_stands_twice_is_an_error_with_its_line() -> None:
    with pytest.raises(OptionError, match=r"key 'batch' stands twice.*line 2"):
        read_text("batch: 1\nbatch: 2\n", where="here")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"none\.yaml cannot be read"):
        read_yaml(tmp_path / "none.yaml")


def test_a_table_expands_to_all_combinations_methods_side_by_side() -> None:
    cells = table(severities=[1, 5]).cells()
    assert [(cell.corruption, cell.severity, cell.method) for cell in cells] == [
        (corruption, severity, method)
        for corruption in ("fog", "snow")
        for severity in (1, 5)
        for method in ("source", "tent")
    ]
    assert cells[1].options.as_dict()["lr"] == 0.01


def test_clean_images_have_no_severity() -> None:
    cells = table(corruptions=["clean", "fog"], severities=[2, 3]).cells()
    assert sorted({(cell.corruption, cell.severity) for cell in cells}) == [("clean", 0), ("fog", 2), ("fog", 3)]


def test_seeds_multiply_only_cells_that_draw() -> None:
    cells = table(methods=["source", "dua"], corruptions="fog", seeds=[0, 1, 2]).cells()
    assert [(cell.method, cell.seed) for cell in cells] == [("source", 0), ("dua", 0), ("dua", 1), ("dua", 2)]
    shuffled = table(methods=["source"], corruptions="fog", seeds=[0, 1, 2], protocol={"order": "shuffled"}).cells()
    assert [cell.seed for cell in shuffled] == [0, 1, 2]


def test_a_grid_is_the_product_of_its_levels_but_for_what_is_left_out() -> None:
    grid = {"conv1": ["none", "hebb"], "stages": [[], [1]], "params": ["all", "affine"]}
    lines = table(methods=[{"method": "nhl", "grid": grid, "without": [{"stages": [], "params": "affine"}]}]).methods
    assert len(lines) == 2 * (1 + 2)
    assert len({line.title for line in lines}) == 6
    assert lines[0].factors == {"conv1": "none", "stages": [], "params": "all"}


def test_a_line_may_change_the_protocol_and_the_rest_stays() -> None:
    lines = table(
        protocol={"batch": 64, "threads": 2},
        methods=["source", {"method": "dua", "metric": "error_oracle", "protocol": {"batch": 1, "oracle_every": 4}}],
    ).methods
    assert (lines[0].protocol.batch, lines[0].protocol.threads) == (64, 2)
    assert (lines[1].protocol.batch, lines[1].protocol.threads, lines[1].protocol.oracle_every) == (1, 2, 4)


def test_lines_that_show_two_errors_of_one_cell_measure_it_once() -> None:
    both = [{"method": "ttt", "metric": metric} for metric in ("error_after", "error_full")]
    assert len(table(methods=both).cells()) == 2


def test_a_model_may_have_data_of_its_own_and_a_twin_with_a_rotation_head() -> None:
    models = [
        {"model": "zoo:resnet26-cifar10", "rotation": "zoo:resnet26-cifar10-rotation"},
        {"model": "zoo:digits-mnist", "data": ["usps"]},
    ]
    cells = table(models=models, methods=["source", "ttt"], corruptions="clean").cells()
    assert [(cell.model, cell.method, cell.data) for cell in cells] == [
        ("zoo:resnet26-cifar10", "source", "cifar10"),
        ("zoo:resnet26-cifar10-rotation", "ttt", "cifar10"),
        ("zoo:digits-mnist", "source", "usps"),
        ("zoo:digits-mnist", "ttt", "usps"),
    ]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(OptionError) as caught:
        table(
            title="x",
            colums="corruption",
            columns="rows",
            models=[{"wieghts": 3}],
            methods=["tnet", {"method": "tent", "options": {"lr": -1}}, {"method": "norm", "metric": "error"}],
            corruptions=["fogg"],
            severities=[6],
            seeds=[-1],
            paper="cifar10",
            protocol={"batch": 0, "bach": 2},
        )
    message = str(caught.value)
    for part in (
        "plain.yaml: ",
        "unknown key 'colums'; did you mean columns",
        "columns must be one of",
        "models[1] needs a model",
        "methods[1]: there is no method 'tnet'; did you mean tent",
        "methods[2]: Tent: lr must be at least 0",
        "methods[3]: metric must be one of",
        "there is no corruption 'fogg'; did you mean fog",
        "severities are whole numbers from 1 to 5, not 6",
        "seeds are whole numbers from 0 on, not -1",
        "there is no table in the paper 'cifar10'; did you mean cifar10c",
        "batch must be at least 1",
        "'bach'; did you mean batch",
    ):
        assert part in message


MODEL = "zoo:resnet20-cifar10"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"notes": None}, "notes must be a value or a list of values, not None"),
        ({"notes": ["one", 2]}, "notes must be text, not 2"),
        ({"title": 3}, "title must be text, not 3; put it in quotes"),
        ({"paper": 3}, "paper must be text, not 3"),
        ({"data": [1]}, "data must be text, not 1"),
        ({"methods": [{"method": "tent", "options": [1]}]}, r"methods\[1\].options must be a mapping of names"),
        ({"methods": [{"method": "tent", "options": {1: 2}}]}, r"methods\[1\].options must be a mapping of names"),
        ({"methods": [{"method": "tent", "label": 3}]}, r"methods\[1\].label must be text, not 3"),
        ({"methods": [{"method": "tent", "factors": {}}]}, r"unknown key of methods\[1\] 'factors'"),
        (
            {"methods": [{"method": "nhl", "grid": {"stages": [[1], [2]]}, "without": {"stages": [1]}}]},
            r"methods\[1\]: without must be a list of mappings",
        ),
        (
            {"methods": [{"method": "nhl", "grid": {"stages": [[1], [2]]}, "without": ["stages"]}]},
            r"methods\[1\]: without must be a list of mappings",
        ),
        (
            {"methods": [{"method": "nhl", "grid": {"stages": [[1], [2]]}, "without": [{"stage": [1]}]}]},
            r"methods\[1\]: without names 'stage', which is not in the grid",
        ),
        ({"models": [{"model": MODEL, "label": 5}]}, r"models\[1\].label must be text, not 5"),
        ({"models": [{"model": MODEL, "weights": 5}]}, r"models\[1\].weights must be text, not 5"),
        ({"models": [{"model": MODEL, "data": [None]}]}, r"models\[1\].data must be text, not None"),
        ({"models": [{"model": MODEL, "shape_only": "no"}]}, r"models\[1\].shape_only must be true or false, not 'no'"),
        ({"models": [{"model": MODEL, "reference": "no"}]}, r"models\[1\].reference must be true or false, not 'no'"),
        ({"protocol": {1: 2}}, "protocol must be a mapping of names to values"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=rf"plain\.yaml: {message}"):
        table(**changes)


@pytest.mark.parametrize(
    ("method", "protocol", "message"),
    [
        ({"metric": "error_full"}, {"full": False}, r"methods\[1\] \(tent\): metric error_full needs full: true"),
        ({"metric": "error_after"}, {"after": False}, r"metric error_after needs after: true"),
        ({"metric": "error_oracle"}, {}, r"metric error_oracle needs oracle_every"),
        ({}, {"horizon": 3}, r"horizon measures on the whole set only, so there is no error_online"),
        ({"metric": "error_after"}, {"horizon": 3}, r"horizon .* there is no error_after"),
    ],
    ids=["full", "after", "oracle", "horizon-online", "horizon-after"],
)
def test_a_line_whose_error_no_switch_measures_is_refused(
    method: dict[str, Any], protocol: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        table(methods=[{"method": "tent"} | method], protocol=protocol)


def test_a_method_that_predicts_after_its_update_needs_no_switch_for_it() -> None:
    methods = [{"method": "ttt", "metric": "error_after"}]
    assert table(methods=methods, protocol={"after": False}).methods[0].metric == "error_after"


def test_one_note_needs_no_list() -> None:
    assert table(notes="one note").notes == ("one note",)
    assert table(notes=[]).notes == ()


def test_overrides_of_what_is_no_mapping_are_refused_when_it_is_checked() -> None:
    with pytest.raises(OptionError, match=r"options must be a mapping .*\[1\].*"):
        overridden("tent.lr=1e-3", methods=[{"method": "tent", "options": [1]}])
    with pytest.raises(OptionError, match=r"protocol must be a mapping .*\[1\]"):
        overridden("batch=3", protocol=[1])


def test_what_is_missing_is_said() -> None:
    with pytest.raises(OptionError, match="models must be a value or a list of values, not None"):
        table_from({"methods": ["source"], "data": "cifar10"}, name="x", where="x.yaml")
    with pytest.raises(OptionError, match="a table is a mapping"):
        table_from(["source"], name="x", where="x.yaml")


def overridden(*words: str, **changes: Any) -> Table:
    return table_from(apply_overrides(PLAIN | changes, parse_overrides(words)), name="plain", where="plain.yaml")


def test_overrides_reach_switches_keys_options_and_weights() -> None:
    changed = overridden(
        "batch=200",
        "protocol.threads=2",
        "seeds=[1]",
        "tent.lr=3e-4",
        "resnet20-cifar10.weights=w.pt",
        "severities=[3]",
    )
    cell = changed.cells()[1]
    assert (cell.protocol.batch, cell.protocol.threads, cell.severity) == (200, 2, 3)
    assert cell.options.as_dict()["lr"] == 3e-4
    assert cell.weights == "w.pt"
    assert changed.seeds == (1,)


def test_methods_and_models_given_by_name_keep_what_the_file_says_about_them() -> None:
    changed = overridden("methods=[tent, nhl]", "models=resnet20")
    assert [(line.method, dict(line.options)) for line in changed.methods] == [("tent", {"lr": 0.01}), ("nhl", {})]
    assert changed.models[0].paper == "resnet20"
    by_label = overridden("methods=['my tent']", methods=["source", {"method": "tent", "label": "my tent"}])
    assert [line.label for line in by_label.methods] == ["my tent"]


def test_an_override_for_one_line_is_its_option_or_else_its_switch() -> None:
    changed = overridden("dua.images=40", "dua.batch=1", methods=["dua", "norm"])
    dua, norm = changed.methods
    assert dua.options == {"images": 40}
    assert (dua.protocol.batch, norm.protocol.batch) == (1, 128)
    assert dua.protocol.images is None


def test_a_switch_that_a_line_sets_itself_stays() -> None:
    methods = ["norm", {"method": "dua", "protocol": {"batch": 1}}]
    assert [line.protocol.batch for line in overridden("batch=32", methods=methods).methods] == [32, 1]


def test_an_override_of_a_factor_leaves_this_level_of_the_grid() -> None:
    grid = {"norm_stats": ["source", "batch"], "stages": [[], [1]]}
    changed = overridden("nhl.norm_stats=batch", "nhl.stages=[1, 2]", methods=[{"method": "nhl", "grid": grid}])
    assert [line.factors for line in changed.methods] == [{"norm_stats": "batch", "stages": [1, 2]}]
    with pytest.raises(OptionError, match=r"methods\[1\]: stages is both an option and in the grid"):
        table(methods=[{"method": "nhl", "grid": {"stages": [[1]]}, "options": {"stages": [2]}}])


def test_weights_are_for_a_model_by_its_name_or_label_and_not_for_its_twin() -> None:
    models = [
        {"model": "zoo:resnet26-cifar10-dua", "paper": "resnet26"},
        {
            "model": "zoo:resnet26-cifar10",
            "paper": "resnet26",
            "label": "own",
            "rotation": "zoo:resnet26-cifar10-rotation",
        },
    ]
    with pytest.raises(OptionError, match=r"no method or model 'resnet26'; did you mean resnet26-cifar10"):
        overridden("resnet26.weights=w.pt", models=models)
    for name in ("resnet26-cifar10", "own"):
        cells = overridden(f"{name}.weights=w.pt", models=models, methods=["tent", "ttt"], corruptions="fog").cells()
        assert {(cell.model, cell.weights) for cell in cells} == {
            ("zoo:resnet26-cifar10-dua", ""),
            ("zoo:resnet26-cifar10", "w.pt"),
            ("zoo:resnet26-cifar10-rotation", ""),
        }


def test_a_line_that_two_names_choose_stands_once() -> None:
    methods = ["dua", {"method": "dua", "label": "dua in twos", "protocol": {"batch": 2}}]
    changed = overridden("methods=[dua, dua in twos]", methods=methods)
    assert [line.title for line in changed.methods] == ["dua", "dua in twos"]


def test_overrides_that_mean_nothing_are_refused() -> None:
    with pytest.raises(OptionError, match="not of the form key=value"):
        parse_overrides(["batch"])
    with pytest.raises(OptionError, match="no method or model 'nhl'"):
        overridden("nhl.eta=1")
    with pytest.raises(UnknownNameError, match="'bacth'; did you mean batch"):
        overridden("bacth=3")
    with pytest.raises(OptionError, match="has no option 'etta'"):
        overridden("tent.etta=1")
    with pytest.raises(OptionError, match="the value of seeds is not valid YAML"):
        parse_overrides(["seeds=[1"])


def test_a_title_with_a_colon_is_asked_for_in_quotes() -> None:
    with pytest.raises(OptionError, match=r"title must be text, .*; put it in quotes"):
        overridden("title=Table: nothing")
    assert overridden('title="Table: nothing"').title == "Table: nothing"


def test_overrides_are_spelled_so_that_they_are_read_as_the_same() -> None:
    values = {
        "batch": 200,
        "images": None,
        "after": False,
        "order": "shuffled",
        "methods": ["tent", "nhl"],
        "seeds": [0, 1],
        "models": [{"model": "nets.py:make", "weights": "a b.pt"}],
        "data": "C:/odd: name, with [signs]",
        "label": "1e-3",
        "title": "",
        "norm.lr": 1e-07,
    }
    words = spell_overrides(values)
    assert parse_overrides(words) == values
    assert words[:5] == ["batch=200", "images=null", "after=false", "order=shuffled", "methods=[tent,nhl]"]
    assert parse_overrides(spell_overrides({"stages": (1, 2)})) == {"stages": [1, 2]}


def test_applying_overrides_leaves_the_file_s_values_alone() -> None:
    before = repr(PLAIN)
    overridden("tent.lr=3e-4", "batch=2", "methods=[tent]")
    assert repr(PLAIN) == before

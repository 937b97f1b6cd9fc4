from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from synaptune.bench.cell import Cell, in_turn, method_label
from synaptune.bench.protocol import Protocol
from synaptune.errors import OptionError, UnknownNameError
from tests.unit.bench import own_methods
from tests.unit.bench.cells import cell


def plain(**changes: Any) -> Cell:
    values: dict[str, Any] = {"model": "zoo:a", "method": "tent", "data": "b", "corruption": "fog", "severity": 5}
    return Cell.of(**(values | changes))


def test_key_is_the_same_in_every_process() -> None:
    first = plain()
    second = dataclasses.replace(plain(), weights="")
    assert first.key == second.key
    assert len(first.key) == 16


@pytest.mark.parametrize(
    "change",
    [
        {"model": "zoo:c"},
        {"weights": "w.safetensors"},
        {"method": "norm"},
        {"options": {"lr": 0.5}},
        {"data": "c"},
        {"corruption": "snow"},
        {"severity": 4},
        {"seed": 1},
        {"protocol": Protocol(batch=64)},
        {"protocol": Protocol(threads=2)},
        {"protocol": Protocol(images=10)},
    ],
    ids=str,
)
def test_key_changes_with_everything_that_determines_the_numbers(change: dict[str, Any]) -> None:
    assert plain(**change).key != plain().key


def test_what_was_adapted_on_before_counts_only_where_nothing_is_reset() -> None:
    shifts = [("fog", 5), ("snow", 5), ("snow", 3)]

    def stream(reset: str, *chosen: tuple[str, int]) -> list[Cell]:
        return in_turn(
            plain(corruption=name, severity=severity, protocol=Protocol(reset=reset)) for name, severity in chosen
        )

    usual = stream("corruption", *shifts)
    assert [cell.earlier for cell in usual] == [()] * 3
    assert usual == [plain(corruption=name, severity=severity) for name, severity in shifts]
    first, second, third = stream("never", *shifts)
    assert (first.earlier, second.earlier, third.earlier) == ((), (("fog", 5),), (("fog", 5), ("snow", 5)))
    assert "earlier" not in first.identity
    assert stream("never", *shifts, shifts[0]) == [first, second, third], "a shift comes once"
    assert in_turn([first, second, third]) == [first, second, third]
    (alone,) = in_turn([second])
    assert alone.key == stream("never", ("snow", 5))[0].key != second.key


def test_a_preset_with_the_same_options_is_another_cell() -> None:
    assert plain(method="nhl-12").options == plain(method="nhl").options
    assert plain(method="nhl-12").key != plain(method="nhl").key


def test_a_method_that_draws_draws_from_the_seed_of_the_cell() -> None:
    assert plain(method="dua", seed=3).options.as_dict()["seed"] == 3
    assert plain(method="dua", seed=3).is_seeded
    fixed = plain(method="dua", seed=3, options={"seed": 9})
    assert fixed.options.as_dict()["seed"] == 9
    assert not fixed.is_seeded


def test_seed_counts_only_where_it_changes_something() -> None:
    assert not plain().is_seeded
    assert plain(protocol=Protocol(order="shuffled")).is_seeded


def test_a_method_of_other_people_is_taken_to_draw_unless_its_seed_is_fixed() -> None:
    with own_methods.registered(own_methods.Own) as name:
        assert plain(method=name, seed=3).is_seeded
    with own_methods.registered(own_methods.Own, options=own_methods.SeededOptions) as name:
        assert plain(method=name, seed=3).is_seeded
        assert not plain(method=name, seed=3, options={"seed": 9}).is_seeded


def test_label_names_what_differs_from_the_defaults_of_the_method() -> None:
    assert plain().label == "tent"
    assert plain(options={"lr": 0.01, "steps": 2}).label == "tent(lr=0.01, steps=2)"
    assert plain(method="nhl", options={"stages": ()}).label == "nhl(stages=none)"
    assert plain(method="dua", seed=2).label == "dua"
    assert method_label("method-of-a-plug-in", {"x": 1}) == "method-of-a-plug-in"


def test_unknown_methods_and_options_are_refused_at_once() -> None:
    with pytest.raises(UnknownNameError, match="did you mean tent"):
        plain(method="tnet")
    with pytest.raises(OptionError, match="has no option 'rl'"):
        plain(options={"rl": 1.0})


def test_protocol_refuses_what_contradicts_itself() -> None:
    with pytest.raises(OptionError, match="whole set only"):
        Protocol(horizon=3, full=False)
    with pytest.raises(OptionError, match="contradicts reset"):
        Protocol(horizon=3, reset="never")


def test_a_pool_that_would_be_played_one_corruption_after_the_other_is_refused() -> None:
    with pytest.raises(OptionError, match=r"order=dataset.*order=shuffled"):
        plain(corruption="mixed")
    assert plain(corruption="mixed", protocol=Protocol(order="shuffled")).is_seeded
    assert plain(corruption="mixed", protocol=Protocol(order="correlated")).is_seeded


def test_cells_print_as_a_sentence() -> None:
    assert "tent on" in str(cell())
    assert "fog/5" in str(plain())

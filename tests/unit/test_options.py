"""Option sets validate themselves, all problems at once, and describe themselves."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

import synaptune as st
from synaptune.errors import OptionError


@pytest.mark.parametrize("info", st.methods(), ids=lambda info: info.name)
def test_every_option_says_what_it_means_and_survives_json(info: Any) -> None:
    for name, spelled, _, text in type(info.options).describe():
        assert text, name
        assert spelled, name
    again = type(info.options)(**json.loads(json.dumps(info.options.as_dict())))
    assert again == info.options


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(OptionError) as caught:
        st.NHL(eta=-1.0, tau=0, reading="F", stages=("1",), nm_steps=True)
    message = str(caught.value)
    assert "eta must be at least 0, not -1.0" in message
    assert "tau must be above 0, not 0.0" in message
    assert "reading must be one of 'A', 'B', 'C', 'D', 'E', not 'F'" in message
    assert "stages must be tuple of int" in message
    assert "nm_steps must be int, not True" in message


@pytest.mark.parametrize("value", [float("nan"), "0.1", None, True])
def test_a_rate_must_be_a_number(value: Any) -> None:
    with pytest.raises(OptionError, match="lr"):
        st.Tent(lr=value)


def test_contradictions_between_options_are_named() -> None:
    with pytest.raises(OptionError, match="stages are counted from 1, each once"):
        st.NHL(stages=(0, 1))
    with pytest.raises(OptionError, match="needs stages"):
        st.NHL(stages=(), include_stem_norm=True)


def test_options_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        st.Tent().lr = 1.0  # type: ignore[misc]


def test_projection_follows_the_rate_unless_told() -> None:
    assert [st.NHL(eta=eta).projects for eta in (1e-3, 2e-3)] == [False, True]
    assert [st.NHL(eta=1e-2, project=choice).projects for choice in ("on", "off")] == [True, False]


def test_every_value_of_every_choice_runs() -> None:
    """A documented option value that fails at run time is a defect of peers that we do not repeat."""
    from typing import Literal, get_args, get_origin, get_type_hints

    from tests.conformance.cases import HOME
    from tests.support.models import batches, build

    count = 0
    for info in st.methods():
        if info.base is not None:
            continue
        for name, hint in get_type_hints(type(info.options)).items():
            if get_origin(hint) is Literal:
                for value in get_args(hint):
                    with st.adapt(build(HOME[info.name]), info.name, **{name: value}) as adapter:
                        first, second = batches(2, size=4)
                        adapter(first)
                        assert adapter(second).isfinite().all(), (info.name, name, value)
                    count += 1
    assert count > 50

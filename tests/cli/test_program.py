"""The program itself: how it is started, what it says about itself, how unknown words end."""

from __future__ import annotations

import sys
from pathlib import Path

from synaptune._version import __version__
from synaptune.cli.application import COMMANDS
from tests.cli.conftest import Synaptune


def test_module_and_console_script_are_one_program(synaptune: Synaptune, command: list[str]) -> None:
    assert synaptune("--version").stdout == f"synaptune {__version__}\n"
    command[:] = [str(Path(sys.executable).with_name("synaptune"))]
    assert synaptune("--version").stdout == f"synaptune {__version__}\n"


def test_help_lists_every_command_without_colours(synaptune: Synaptune) -> None:
    done = synaptune("--help")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    for name in COMMANDS:
        assert name in done.stdout


def test_an_unknown_command_is_a_usage_error(synaptune: Synaptune) -> None:
    done = synaptune("bnech")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "bnech" in done.stderr

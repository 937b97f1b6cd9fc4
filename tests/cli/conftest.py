"""The command line as users meet it: a process of its own, in an empty folder, with a pipe on each side."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs the tests in the background has Ctrl-C ignored, and programs inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

USER_FILE = Path(__file__).with_name("user_net.py")
NET = f"{USER_FILE}:make_net"
IMAGES = f"{USER_FILE}:make_images"

_PLAIN = {
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TERM": "dumb",
    "COLUMNS": "100",
}
# What the person who runs the tests has set up must not decide how they end.
_UNSET = ("SYNAPTUNE_DATA", "NO_COLOR", "FORCE_COLOR", "PYTHONPATH", "PYTHONWARNINGS")


# A shell calls both 130. Python turns to the second by itself where Ctrl-C meets it inside `exec`, as of a dataclass.
INTERRUPTED = (130, -signal.SIGINT)


class Synaptune(Protocol):
    """Run `synaptune WORD...` and wait for its end."""

    def __call__(
        self, *words: object, stdin: str | None = None, env: dict[str, str] | None = None, **others: Any
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables of a fresh user: an own, empty home, so that nothing on this machine is found."""
    home, nothing = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("nothing")
    kept = {name: value for name, value in os.environ.items() if name not in _UNSET}
    own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "SYNAPTUNE_SHARED": str(nothing)}
    return kept | _PLAIN | own


@pytest.fixture
def command() -> list[str]:
    """How `synaptune` is started; words are to be added."""
    return [sys.executable, "-m", "synaptune"]


@pytest.fixture
def synaptune(tmp_path: Path, command: list[str], environment: dict[str, str]) -> Synaptune:
    """Run the command line in `tmp_path`; give exit status, stdout and stderr."""
    return _runner(tmp_path, command, environment)


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Path:
    """A finished run: three methods on clean and shifted images. Not to be written to."""
    folder = tmp_path_factory.mktemp("measured")
    run = _runner(folder, [sys.executable, "-m", "synaptune"], environment)
    methods = [word for name in ("source", "norm", "tent") for word in ("--method", name)]
    done = run(
        *("bench", "--model", NET, *methods, "--data", IMAGES, "--corruptions", "clean,fog,contrast"),
        *("batch=16", "--workers", 0, "--out", "rows.jsonl"),
    )
    assert done.returncode == 0, done.stderr
    return folder / "rows.jsonl"


def _runner(folder: Path, command: list[str], environment: dict[str, str]) -> Synaptune:
    def run(
        *words: object, stdin: str | None = None, env: dict[str, str] | None = None, **others: Any
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *map(str, words)],
            cwd=others.pop("cwd", folder),
            env=environment | (env or {}),
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            timeout=others.pop("timeout", 300),
            check=False,
            **others,
        )

    return run

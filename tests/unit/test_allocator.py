"""Freed memory is kept where that was asked for, and given back where that was."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from synaptune.metrics import PeakMemory

ON_GLIBC = platform.system() == "Linux" and platform.libc_ver()[0] == "glibc"
pytestmark = pytest.mark.skipif(not ON_GLIBC, reason="malloc of glibc, on Linux")

PAGES = 128 * 2**20 // os.sysconf("SC_PAGE_SIZE") if ON_GLIBC else 0

# Five blocks of 128 MiB, one after the other, once the heap has settled: how often must the kernel clear a page?
FAULTS = """
import resource, sys, torch
from synaptune.allocator import give_back_freed_memory, keep_freed_memory
{setting}
for _ in range(8):
    torch.ones(2**25)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    torch.ones(2**25)
    {each}
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(setting: str = "", each: str = "", **environment: str) -> int:
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS.format(setting=setting, each=each)],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_kept_memory_is_not_cleared_again() -> None:
    assert faults() > 4 * PAGES
    assert faults("assert keep_freed_memory()") < PAGES // 10


def test_given_back_memory_is_cleared_again() -> None:
    assert faults("keep_freed_memory()", each="assert give_back_freed_memory()") > 4 * PAGES


def test_settings_of_the_user_stand() -> None:
    assert faults("assert not keep_freed_memory()", MALLOC_TRIM_THRESHOLD_="1000000") > 4 * PAGES


def test_the_command_line_keeps_memory() -> None:
    start = "from typer.testing import CliRunner; from synaptune.cli.application import application"
    assert faults(f"{start}; CliRunner().invoke(application, ['methods', '--json'])") < PAGES // 10


def test_memory_kept_from_before_is_no_peak_of_what_follows() -> None:
    script = """
import torch
from synaptune.allocator import keep_freed_memory
from synaptune.metrics import PeakMemory
keep_freed_memory()
with PeakMemory() as before:
    pass
torch.ones(2**27)
with PeakMemory() as after:
    torch.ones(2**20)
print(after.megabytes - before.megabytes)
"""
    with PeakMemory() as probe:
        pass
    if probe.megabytes is None:
        pytest.skip("this kernel does not set its high-water mark back")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 100

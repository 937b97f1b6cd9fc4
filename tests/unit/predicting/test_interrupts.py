"""Ctrl-C waits for a whole batch once, and only inside of one."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from synaptune.predicting import DeferredInterrupts


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_inside_waits_for_the_end() -> None:
    done: list[str] = []

    def work(interrupts: DeferredInterrupts) -> None:
        with interrupts.whole():
            press()
            done.append("finished")
        done.append("went on")

    with DeferredInterrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            work(interrupts)
        with interrupts.whole():
            done.append("next")
    assert done == ["finished", "next"]


def test_an_interrupt_outside_is_immediate() -> None:
    with DeferredInterrupts(), pytest.raises(KeyboardInterrupt):
        press()


def test_a_second_interrupt_does_not_wait() -> None:
    reached: list[str] = []

    def work(interrupts: DeferredInterrupts) -> None:
        with interrupts.whole():
            press()
            reached.append("first")
            press()
            reached.append("second")

    with DeferredInterrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        work(interrupts)
    assert reached == ["first"]


def test_the_former_handler_comes_back() -> None:
    former = signal.getsignal(signal.SIGINT)
    with DeferredInterrupts():
        assert signal.getsignal(signal.SIGINT) is not former
    assert signal.getsignal(signal.SIGINT) is former


def test_outside_of_the_main_thread_nothing_is_installed() -> None:
    former, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with DeferredInterrupts() as interrupts, interrupts.whole():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [former]

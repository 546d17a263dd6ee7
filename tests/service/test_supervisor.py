"""The parent of the service: what ends the child, what ends both, and how often it is started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

BEGIN = """
import os, signal, sys, threading
from lading.service.scheduling.supervisor import RestartPolicy, supervise
life = supervise(RestartPolicy(first_delay_s=0.01, most_in_a_row=3))
"""
COUNT = """
taken, first = [], threading.Event()
def take(number, frame):
    life.note_signal()
    taken.append(number)
    first.set()
signal.signal(signal.SIGTERM, take)
print("ready", flush=True)
while not first.wait(0.05):
    pass
threading.Event().wait(1.2)
print(len(taken), flush=True)
sys.exit(5)
"""


def started(script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BEGIN + script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(script: str) -> tuple[int, str, str]:
    process = started(script)
    out, said = process.communicate(timeout=30)
    return process.returncode, out, said


@pytest.mark.parametrize("number", ["SIGABRT", "SIGSEGV"])
def test_a_child_that_a_library_ended_is_started_again_and_its_status_is_kept(number: str) -> None:
    dies = f"os.kill(os.getpid(), signal.{number}) if life.restarts < 2 else print(life.restarts, life.last_signal)"
    assert ended(f"{dies}\nsys.exit(7)")[:2] == (7, f"2 {number}\n")


def test_a_child_that_dies_again_and_again_ends_with_an_error() -> None:
    code, out, said = ended("print('began', flush=True); os.abort()")
    assert (code, out.count("began")) == (-signal.SIGABRT, 4)
    assert "4 times in a row" in said


def test_a_child_that_was_killed_is_not_started_again() -> None:
    code, out, _ = ended("print('began', flush=True); os.kill(os.getpid(), signal.SIGKILL)")
    assert (code, out.count("began")) == (-signal.SIGKILL, 1)


@pytest.mark.parametrize("is_group", [False, True], ids=["to the parent", "to both"])
def test_a_signal_reaches_the_child_once(is_group: bool) -> None:
    process = started(COUNT)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    (os.killpg if is_group else os.kill)(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (5, "1\n")


def test_a_parent_that_is_killed_leaves_no_child_behind() -> None:
    process = started("print('began', flush=True)\nthreading.Event().wait()")
    assert process.stdout is not None
    assert process.stdout.readline() == "began\n"
    process.kill()
    assert process.communicate(timeout=30)[0] == "", "the pipe is closed once nobody holds it"

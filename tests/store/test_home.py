"""One service per home folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lading.errors import ConflictError
from lading.store.home import LOCK_NAME, HomeLock, read_home_holder
from lading.testing.clock import ManualClock

HOLD = """
import os, sys
from pathlib import Path
from lading.clock import SystemClock
from lading.store.home import HomeLock

lock = HomeLock.acquire(Path(sys.argv[1]), SystemClock())
if len(sys.argv) > 2:
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(told, b"x")  # It has given up what it got of the lock.
        sys.stdin.read()
        os._exit(0)
    os.read(ready, 1)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def hold(home: Path, *more: str) -> subprocess.Popen[str]:
    """Another process that holds the folder. It has it when this returns."""
    command = [sys.executable, "-c", HOLD, str(home), *more]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert int(process.stdout.readline()) == process.pid
    return process


def test_a_second_service_is_refused_with_the_pid_of_the_first(tmp_path: Path, clock: ManualClock) -> None:
    with hold(tmp_path) as process:
        with pytest.raises(ConflictError, match=f"in use by process {process.pid} on ") as caught:
            HomeLock.acquire(tmp_path, clock)
        assert caught.value.facts["pid"] == process.pid
        process.communicate("")
    assert process.returncode == 0


def test_the_lock_of_a_killed_process_is_free_and_known_to_be_stale(tmp_path: Path, clock: ManualClock) -> None:
    with hold(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    holder = read_home_holder(tmp_path)
    assert holder is not None
    assert holder.pid == process.pid
    with HomeLock.acquire(tmp_path, clock) as lock:
        assert lock.predecessor == holder


def test_a_forked_child_does_not_keep_the_folder(tmp_path: Path, clock: ManualClock) -> None:
    with hold(tmp_path, "fork") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        HomeLock.acquire(tmp_path, clock).close()
        process.communicate("")


def test_the_same_process_cannot_have_it_twice(tmp_path: Path, clock: ManualClock) -> None:
    home = tmp_path / "new" / "home"
    with HomeLock.acquire(home, clock) as lock:
        assert lock.holder.pid == os.getpid()
        assert read_home_holder(home) == lock.holder
        with pytest.raises(ConflictError, match=str(os.getpid())):
            HomeLock.acquire(home, clock)


def test_a_folder_that_was_given_back_has_no_holder(tmp_path: Path, clock: ManualClock) -> None:
    assert read_home_holder(tmp_path) is None
    lock = HomeLock.acquire(tmp_path, clock)
    lock.close()
    lock.close()
    assert read_home_holder(tmp_path) is None
    with HomeLock.acquire(tmp_path, clock) as again:
        assert again.predecessor is None


def test_a_lock_file_that_nobody_can_read_is_taken_over(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / LOCK_NAME).write_text("{half")
    with HomeLock.acquire(tmp_path, clock) as lock:
        assert lock.predecessor is None
        assert read_home_holder(tmp_path) == lock.holder

"""A small parent process that starts the service again when a library has aborted it.

Libraries in C end the whole process on a failed assertion (SIGABRT) or a bad address (SIGSEGV). Nothing in Python can
catch that. So the service is a forked child of a process that does nothing else than wait. Every step of a commit
allows the process to die there, so starting again is all that is needed.

- A child that was ended by such a signal is started again, after a growing delay. One that dies soon after its start,
  several times in a row, is not: the parent ends with the signal of the child.
- A child that ends in any other way (an exit status, SIGKILL) ends the parent in the same way.
- SIGTERM and SIGINT of the parent reach the child once. A terminal or an init system may send them to both: the child
  says through a pipe that it took one, and the parent passes on only what it did not.
- A parent that is killed takes the child with it. The next start takes the jobs over, as after any crash.
- As process 1 of a container the parent also reaps what other processes left behind.
"""

from __future__ import annotations

import ctypes
import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from lading.clock import Clock, SystemClock

CRASHES = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
_ENDS = frozenset({signal.SIGTERM, signal.SIGINT})
_WATCHED = _ENDS | {signal.SIGCHLD}
_PASS_ON_AFTER_S = 0.3
"""So long a signal that was sent to both may take to be told by the child."""
_LOOK_S = 0.05
_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """When a child that crashed is started again."""

    first_delay_s: float = 1.0
    """Doubled with every crash in a row."""
    longest_delay_s: float = 30.0
    healthy_after_s: float = 60.0
    """A child that lived so long was well: counting crashes in a row begins again."""
    most_in_a_row: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What a child knows of those before it."""

    restarts: int = 0
    last_signal: str = ""
    """What ended the one before; empty for the first."""
    note_signal: Callable[[], None] = lambda: None
    """To be called when the child takes a signal to end."""


def supervise(policy: RestartPolicy | None = None, clock: Clock | None = None) -> Life:
    """Fork. Returns in the child, which is the service, each time it is started; never in the parent.

    Call it from the main thread, before there are others.
    """
    return _Parent(policy or RestartPolicy(), clock or SystemClock()).run()


class _Parent:
    def __init__(self, policy: RestartPolicy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock
        self._log = logging.getLogger("lading.serve")
        self._asked = self._taken = 0
        """Signals to end: that the parent got, and that the child told of."""

    def run(self) -> Life:
        restarts, in_a_row, last_signal = 0, 0, ""
        old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        while True:
            began_s, (pid, told) = self._clock.monotonic_s(), _fork()
            if pid == 0:
                signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
                return Life(restarts=restarts, last_signal=last_signal, note_signal=partial(_tell, told))
            status = self._wait(pid, told)
            os.close(told)
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            if number not in CRASHES or self._asked:
                _end_like(status)
            was_well = self._clock.monotonic_s() - began_s >= self._policy.healthy_after_s
            restarts, in_a_row, last_signal = restarts + 1, 1 if was_well else in_a_row + 1, signal.Signals(number).name
            if in_a_row > self._policy.most_in_a_row:
                self._log.critical(
                    "The service was ended by %s %d times in a row, each soon after its start; it is not started "
                    "again. No row is lost; the log above and crash.log in the home say where it ended.",
                    last_signal,
                    in_a_row,
                )
                _end_like(status)
            delay_s = min(self._policy.first_delay_s * 2 ** (in_a_row - 1), self._policy.longest_delay_s)
            self._log.error("The service was ended by %s; it is started again in %g s", last_signal, delay_s)
            self._rest(delay_s, status)

    def _wait(self, pid: int, told: int) -> int:
        """The wait status of the child."""
        self._taken = self._asked
        while True:
            number = signal.sigwait(_WATCHED)
            if number == signal.SIGCHLD:
                status = _reap(pid)
                if status is not None:
                    return status
                continue
            self._asked += 1
            self._hear(told, _PASS_ON_AFTER_S)
            if self._taken < self._asked:
                os.kill(pid, number)  # Not reaped yet, so the number still is the child's.
                self._hear(told, _PASS_ON_AFTER_S)
                self._taken = self._asked

    def _hear(self, told: int, patience_s: float) -> None:
        """Wait until the child has taken as many signals as the parent, or has ended, or time is over."""
        until_s = self._clock.monotonic_s() + patience_s
        while self._taken < self._asked and (left_s := until_s - self._clock.monotonic_s()) > 0:
            if select.select([told], [], [], left_s)[0]:
                heard = os.read(told, 16)
                if not heard:
                    return
                self._taken += len(heard)

    def _rest(self, delay_s: float, status: int) -> None:
        """Wait, unless somebody wants the service to end."""
        until_s = self._clock.monotonic_s() + delay_s
        while self._clock.monotonic_s() < until_s:
            if signal.sigpending() & _ENDS:
                _end_like(status)
            self._clock.sleep(_LOOK_S)


def _fork() -> tuple[int, int]:
    """In the parent: the child, and where to read what it tells. In the child: 0, and where to tell it."""
    reading, writing = os.pipe()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    os.close(reading)
    _end_with(parent)
    return 0, writing


def _reap(wanted: int) -> int | None:
    """Take the status of every child that has ended; that of the wanted one if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == wanted:
            found = status


def _tell(writing: int) -> None:
    try:
        os.write(writing, b".")
    except OSError:
        return  # The parent is gone, and this process soon is.


def _end_with(parent: int) -> None:
    """End this process when its parent does. A thread waits where the system cannot do it."""
    try:
        is_set = ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    except (OSError, AttributeError):
        is_set = False
    if os.getppid() != parent:
        os._exit(1)  # It was too late to ask.
    if not is_set:
        threading.Thread(target=_watch, args=(parent,), name="lading-parent", daemon=True).start()


def _watch(parent: int) -> None:
    clock = SystemClock()
    while os.getppid() == parent:
        clock.sleep(1.0)
    os._exit(1)


def _end_like(status: int) -> NoReturn:
    """End as the child did, so that the process that started the service sees no parent between."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)

"""Forks a loader for each line it is given: one life of one job, without Spark, which is killed as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from lading.commit.steps import run_steps
from lading.errors import FencedError
from lading.failpoints import arm_from_text
from lading.tables.registry import NAMES, kind_of
from tests.support.stream_worker import StreamJob, load_on, make_coordinator, stop_file

FENCED = 3
"""How a loader ends that another one has taken over from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What a loader is to do until it is killed, or told to stop."""

    failpoints: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    """It moves these partitions first, as an operator would."""
    reason: str = ""
    rows: int = 1000
    """The most of a batch."""
    files: int = 4


class Lives:
    """The soak's side. One life at a time."""

    def __init__(self, *forms: str) -> None:
        self._pid = 0
        command = [sys.executable, "-m", "tests.soak.plain_worker", *(forms or NAMES)]
        self._parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
        self._parent.communicate(timeout=30)

    def start(self, job: StreamJob, life: Life) -> None:
        stop_file(job).unlink(missing_ok=True)
        assert self._parent.stdin is not None
        print(json.dumps([asdict(job), asdict(life)]), file=self._parent.stdin, flush=True)
        self._pid = int(self._line())

    def finish(self, job: StreamJob) -> int:
        """Let it load what is there. How it ended: 0, or minus the signal, or FENCED, or 1 when it raised."""
        stop_file(job).touch()
        code = int(self._line())
        self._pid = 0
        return code

    def kill(self, job: StreamJob) -> int:
        """SIGKILL, wherever it is."""
        with suppress(ProcessLookupError):  # It has ended, and how is about to be said.
            os.kill(self._pid, signal.SIGKILL)
        return self.finish(job)

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP and SIGCONT: as a machine that is too busy, or that was moved."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _line(self) -> str:
        assert self._parent.stdout is not None
        return self._parent.stdout.readline()


def _live(told: Any) -> int:
    job, life = StreamJob(**told[0]), Life(**told[1])
    try:
        arm_from_text(life.failpoints)
        job = replace(job, rows=life.rows, files=life.files)
        coordinator = make_coordinator(job)
        run_steps(coordinator.start())
        if life.changes:
            run_steps(coordinator.edit(life.changes, reason=life.reason))
        load_on(job, coordinator)
    except FencedError:
        return FENCED
    except BaseException:  # noqa: BLE001 - the end of a process that has no other way to say it
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    # Once, and not in each life.
    for name in sys.argv[1:]:
        if not kind_of(name).missing():
            import_module(f"lading.tables.{name}.table")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(_live(json.loads(line)))
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)

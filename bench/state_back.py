"""From kill -9 to the first new commit: a job that keeps 10 M keys, one that keeps nothing, and Structured Streaming.

`python -m bench.state_back lading|streaming <home> <folder> <tasks>` is the process that is killed. It loads what comes
until then.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.state_cases import DEDUPLICATION, FILES, PLAIN, ROCKS, lading, streaming, write_file, write_rows
from lading.pipeline.java import find_java
from lading.pipeline.session import open_session
from lading.service.facade import Lading

_LOOK_S = 0.02
_IN_BATCH_S = 0.3
"""After so long a process that got a file is in the middle of its batch."""
NEW_ROWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """What is killed."""

    who: str
    home: Path
    folder: Path
    commits: str
    """There is a file like this for each commit."""

    def count(self) -> int:
        return len(list(self.home.glob(self.commits)))

    def start(self, tasks: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "bench.state_back", self.who, str(self.home), str(self.folder), str(tasks)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def put(self) -> None:
        """One more file, of rows that nobody has seen."""
        number = len(list((self.folder / "in").iterdir()))
        rng = np.random.default_rng(number)
        write_file(self.folder / "in" / f"{number:03}.parquet", rng, NEW_ROWS, 2**40, FILES + number)

    def wait_for_more(self, before: int, process: subprocess.Popen[bytes]) -> None:
        while self.count() <= before:
            if process.poll() is not None:
                msg = f"{self.who} ended with {process.returncode}"
                raise RuntimeError(msg)
            time.sleep(_LOOK_S)


def come_back(console: Console, rounds: int) -> None:
    """Measure and print."""
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
    try:
        killed = _prepared(folder)
        shown = Table("tasks", *(f"{name}, s" for name in killed), "with / without state")
        for before, after in ((2, 2), (7, 2)):
            seconds: dict[str, list[float]] = {name: [] for name in killed}
            for number in range(rounds):
                for name, one in killed.items():
                    seconds[name].append(_seconds(one, before, after))
                    console.print(f"{before} → {after}, {name}, round {number}: {seconds[name][-1]:.1f} s")
            middle = [median(taken) for taken in seconds.values()]
            shown.add_row(f"{before} → {after}", *(f"{one:.1f}" for one in middle), f"{middle[1] / middle[0]:.2f}")
        console.print(shown)
        console.print("From kill -9 of all its processes, in a batch, to the first commit of those that are started.")
    finally:
        shutil.rmtree(folder)


def _prepared(folder: Path) -> dict[str, Killed]:
    """All of them with everything loaded."""
    write_rows(folder / "data", DEDUPLICATION)
    found: dict[str, Killed] = {}
    spark = open_session(ROCKS, find_java(os.environ, folder), folder)
    try:
        for name, who, case in (
            ("Lading without state", "lading", PLAIN),
            ("Lading, 10 M keys", "lading", DEDUPLICATION),
            ("Structured Streaming, 10 M keys", "streaming", DEDUPLICATION),
        ):
            own = folder / f"{len(found)}"
            (own / "in").mkdir(parents=True)
            for file in (folder / "data" / "in").iterdir():
                os.link(file, own / "in" / file.name)
            commits = "warehouse/*/t/_delta_log/*.json" if who == "lading" else "checkpoint/commits/[0-9]*"
            found[name] = Killed(who=who, home=own / "home", folder=own, commits=commits)
            (lading if who == "lading" else streaming)(spark, own / "home", own, case)
    finally:
        spark.stop()
    return found


def _seconds(killed: Killed, before: int, after: int) -> float:
    commits = killed.count()
    process = killed.start(before)
    try:
        killed.put()
        killed.wait_for_more(commits, process)
        commits = killed.count()
        killed.put()
        time.sleep(_IN_BATCH_S)
    finally:
        _kill(process)
    began = time.perf_counter()
    if killed.count() > commits:  # It was quicker than that.
        killed.put()
        commits = killed.count()
    process = killed.start(after)
    try:
        killed.wait_for_more(commits, process)
        return time.perf_counter() - began
    finally:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main(who: str, home: str, folder: str, tasks: str) -> None:
    """Load what is there and what comes, for ever."""
    settings = {**ROCKS, "spark.master": f"local[{tasks}]"}
    spark = open_session(settings, find_java(os.environ, Path(home)), Path(home))
    while who == "streaming":
        streaming(spark, Path(home), Path(folder), DEDUPLICATION)
        time.sleep(_LOOK_S)
    with Lading(Path(home), session=spark) as service:
        while True:
            service.run()
            time.sleep(_LOOK_S)


if __name__ == "__main__":
    main(*sys.argv[1:])

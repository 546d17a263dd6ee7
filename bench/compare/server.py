"""A contender's process: started once for many loads, or for one."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.compare.contenders import Contender
from bench.memory import Usage
from bench.peers.order import Order
from bench.scale import ROOT

END_S = 60


class FailedError(RuntimeError):
    """A contender did not do what was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one load took."""

    seconds: float
    cpu_s: float
    peak_mb: float


class Server:
    """`bench.peers.serve` in the environment of the contender."""

    def __init__(self, contender: Contender, home: Path, *, cores: int | None = None) -> None:
        """Start it, on so many cores. Raises NotInstalledError."""
        home.mkdir(parents=True)
        self._name = contender.name
        self._log = home / "log"
        self._began = time.perf_counter()
        given = {**os.environ, **contender.variables, "LADING_BENCH_HOME": str(home)}
        given["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "src")))
        given["LADING_BENCH_JARS"] = ",".join(contender.environment.jar_files())
        command = [contender.environment.python(), "-m", "bench.peers.serve", contender.module]
        self._began = time.perf_counter()
        all_cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(all_cores)[:cores])  # The process inherits it.
        try:
            with self._log.open("w") as log:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=given, cwd=home
                )
        finally:
            os.sched_setaffinity(0, all_cores)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def usage(self) -> Usage:
        """Watch its processes."""
        return Usage(self._process.pid)

    def load(self, order: Order) -> Taken:
        """One load in the running process: what it says of its time, what its processes used."""
        usage = Usage(self._process.pid)
        seconds = self._ask(order)
        used = usage.stop()
        return Taken(seconds=seconds, cpu_s=used.cpu_s, peak_mb=used.peak_mb)

    def load_once(self, order: Order) -> Taken:
        """One load, from the start of the process to its end."""
        usage = Usage(self._process.pid)
        self._ask(order)
        self.close()
        seconds = time.perf_counter() - self._began
        used = usage.stop()
        return Taken(seconds=seconds, cpu_s=used.cpu_s, peak_mb=used.peak_mb)

    def close(self) -> None:
        """No more orders."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, order: Order) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        Path(order.home).mkdir(parents=True)
        try:
            self._process.stdin.write(order.to_json() + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line) if line else {"error": f"it ended: {self._log.read_text()[-3000:]}"}
        if "error" in answer:
            raise FailedError(f"{self._name}: {answer['error']}")
        return float(answer["seconds"])

"""A driver in a process of its own, which a test talks to, stops at a step, and kills.

The test sends one JSON value a line and is answered with one. While jobs run, the driver says where it is, and waits
there until it is told to go on.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from lading.failpoints import arm
from lading.pipeline.executors import count_executors
from lading.service.facade import Lading

RUNNING, REDUCING = "running", "reducing"
"""Tasks of a batch run at this moment; tasks of a merge that read what the tasks before them have shuffled."""
_WATCHED = {"stage.before": RUNNING, "merge.before": REDUCING}


class Driver:
    """The test's side."""

    def __init__(self, home: Path, spark: Mapping[str, str]) -> None:
        self._log, self._ui = home.with_name(f"{home.name}.log"), ""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.cluster_driver", str(home), json.dumps(spark)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")},
            )
        self._said: queue.Queue[Any] = queue.Queue()
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ui(self) -> str:
        """Where Spark shows what it does. Asked for before jobs run, it is known while they do."""
        self._ui = self._ui or str(self.ask("facts")["ui"])
        return self._ui

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def ask(self, what: str, *words: Any, timeout_s: float = 180.0) -> Any:
        """One answer to one question."""
        self.tell(what, *words)
        return self.hear(timeout_s)

    def tell(self, what: str, *words: Any) -> None:
        assert self._process.stdin is not None
        print(json.dumps([what, *words]), file=self._process.stdin, flush=True)

    def hear(self, timeout_s: float = 180.0) -> Any:
        """What it says next. Fails when it says nothing, or that something failed."""
        try:
            kind, value = self._said.get(timeout=timeout_s)
        except queue.Empty:
            kind, value = "failed", f"it said nothing for {timeout_s} s"
        assert kind != "failed", f"{value}\n{self.log[-4000:]}"
        return value

    def run(self, stops: Mapping[str, Callable[[], object]], timeout_s: float = 600.0) -> dict[str, list[str]]:
        """Run all jobs; at each place that it stops at, do what is to be done there, and let it go on."""
        self.tell("run", list(stops))
        while True:
            said = self.hear(timeout_s)
            if isinstance(said, dict):
                return said
            stops[said]()
            self.tell("go")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30)
        self._hearing.join(30)
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # What was not sent yet cannot be sent any more.
                assert pipe is not None
                pipe.close()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("["):
                self._said.put(json.loads(line))
        self._said.put(["failed", "the driver ended"])


class _Served:
    """The driver's side."""

    def __init__(self, home: str, spark: dict[str, str]) -> None:
        self._lading = Lading(home, spark=spark, user="tester", allow_private_endpoints="true")

    def sql(self, text: str) -> list[list[str]]:
        return [[str(value) for value in row] for row in self._lading.sql(text)[-1].rows]

    def run(self, stops: list[str]) -> dict[str, list[str]]:
        """`commit.before:3` is the third time at that step; `running:2` the second batch's tasks, `reducing:2` those
        of the second merge."""
        hits: dict[str, int] = {}
        for name in {stop.partition(":")[0] for stop in stops} | _WATCHED.keys():
            arm(name, lambda name=name: self._reached(name, stops, hits))  # type: ignore[misc]
        ended = self._lading.run(timeout=1200)
        return {name: [job.state.value, job.reason.message if job.reason else ""] for name, job in ended.items()}

    def begin(self) -> str:
        """Run all jobs; other questions are answered meanwhile."""
        self._running = threading.Thread(target=self._lading.run, kwargs={"timeout": 600}, daemon=True)
        self._running.start()
        return "begun"

    def wait(self) -> str:
        """Until all jobs of `begin` have loaded what there was."""
        self._running.join()
        return "ended"

    def verify(self, job: str) -> list[Any]:
        verdict = self._lading.verify(job)
        return [verdict.is_clean, [str(finding) for finding in verdict.findings]]

    def tasks(self, job: str) -> list[int]:
        """How many splits with rows each commit had: a task writes one file to a table that is not partitioned."""
        found = self._lading.any_job(job)
        return [len(bill.files) for bill in reversed(self._lading.bills(found, 100)) if bill.files]

    def facts(self) -> dict[str, Any]:
        spark = self._lading.spark()
        return {
            "cores": self._lading.engine.cores(),
            "executors": count_executors(spark),
            "ui": spark.sparkContext.uiWebUrl,
            "settings": dict(spark.sparkContext.getConf().getAll()),
            "java": spark.sparkContext._gateway.proc.pid,  # type: ignore[union-attr]
        }

    def close(self) -> str:
        self._lading.close()
        return "closed"

    def _reached(self, name: str, stops: list[str], hits: dict[str, int]) -> None:
        hits[name] = hits.get(name, 0) + 1
        if (stop := f"{_WATCHED.get(name)}:{hits[name]}") in stops:
            threading.Thread(target=self._when_running, args=(stop,), daemon=True).start()
        if (stop := f"{name}:{hits[name]}") in stops:
            _say("at", stop)
            sys.stdin.readline()

    def _when_running(self, stop: str) -> None:
        """Tasks run: say so and do not wait, for they do not wait either."""
        waiting, is_so = threading.Event(), self._is_reducing if stop.startswith(REDUCING) else self._is_running
        while not is_so():
            waiting.wait(0.01)
        _say("at", stop)
        sys.stdin.readline()

    def _is_running(self) -> bool:
        context: Any = self._lading.spark().sparkContext._jsc.sc()
        return any(each.numRunningTasks() for each in context.statusTracker().getExecutorInfos())

    def _is_reducing(self) -> bool:
        """The last stage of a job of several runs: what it reads is on the disks of executors, and nowhere else."""
        tracker = self._lading.spark().sparkContext.statusTracker()
        jobs = [job for number in tracker.getActiveJobsIds() if (job := tracker.getJobInfo(number)) is not None]
        last = [tracker.getStageInfo(max(job.stageIds)) for job in jobs if len(job.stageIds) > 1]
        return any(stage is not None and stage.numActiveTasks > 0 for stage in last)


def _say(kind: str, value: object) -> None:
    print(json.dumps([kind, value]), flush=True)


def main() -> None:
    """Answer until there is nobody to answer."""
    served = _Served(sys.argv[1], json.loads(sys.argv[2]))
    for line in iter(sys.stdin.readline, ""):
        what, *words = json.loads(line)
        try:
            _say("done", getattr(served, what)(*words))
        except Exception as error:  # noqa: BLE001 - told to the test
            _say("failed", f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()

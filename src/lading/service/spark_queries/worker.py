"""The query process: a Spark of its own that answers queries, and nothing else.

The service starts it, sends it a socket for each query, and ends it. It ends by itself when the service is gone, when
its Java is gone, and when Java ran out of memory: then nothing in there can be relied on any more. What the service is
told of the reason is true: the query whose task ran out of memory hears that, the others hear that it was another one.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from lading.pipeline.child_output import is_greeting
from lading.pipeline.errors import cause_of
from lading.pipeline.java import Java
from lading.pipeline.private_memory import hide_memory
from lading.pipeline.session import open_session
from lading.service.spark_queries.answering import answer
from lading.service.spark_queries.wire import (
    NAME_BYTES,
    OUT_OF_MEMORY,
    READY,
    SPARK_ENDED,
    QueryFailure,
    read_frame,
    send_frame,
)

_EXPENDABLE = "700"
"""How much rather than others the kernel ends this process when the machine has no memory left."""
_MEMORY = re.compile(r"OutOfMemoryError|SparkOutOfMemory|UNABLE_TO_ACQUIRE_MEMORY")
_MARKED = re.compile(r"lading-query-[0-9a-f]{16}")
_NEAR_LINES = 40
"""So many lines after a line with a query's name may belong to it: a stack trace."""
_VERDICT_S = 5.0
_LAST_LINES_S = 1.0


class Verdicts:
    """Why Java ended, as far as what it wrote says it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.is_over = False
        """Java ended or must end."""
        self.is_memory = False
        self.guilty: str | None = None
        self._marked: tuple[str, int] | None = None
        self._lines = 0

    def line(self, text: str) -> None:
        """Something that Java wrote."""
        self._lines += 1
        if found := _MARKED.search(text):
            self._marked = (found[0], self._lines)
        if _MEMORY.search(text):
            near = self._marked is not None and self._lines - self._marked[1] <= _NEAR_LINES
            self.out_of_memory(self._marked[0] if near and self._marked else None)

    def out_of_memory(self, guilty: str | None) -> None:
        """A query took all memory. The first counts: those that fail after it may be its victims."""
        with self._changed:
            if not self.is_memory or self.guilty is None:
                self.guilty = guilty
            self.is_memory = self.is_over = True
            self._changed.notify_all()

    def ended(self) -> None:
        """Java is gone."""
        with self._changed:
            self.is_over = True
            self._changed.notify_all()

    def wait_until_over(self, seconds: float) -> bool:
        """Whether Java ended, or must end, soon."""
        with self._changed:
            return self._changed.wait_for(lambda: self.is_over, seconds)


def hear(reading: int, verdicts: Verdicts) -> None:
    """Java's errors, on their way to the log of the service, or to the terminal of a command."""
    with os.fdopen(reading, errors="replace") as lines:
        for line in lines:
            verdicts.line(line)
            if not is_greeting(line):
                sys.stderr.write(line)
                sys.stderr.flush()


class QueryWorker:
    """Answers queries until there is nobody to answer, or nothing to answer with."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._verdicts = Verdicts()
        self._running: dict[str, int] = {}
        """Names of queries, and the share of Spark that each has."""
        self._lock = threading.Condition()

    def run(self) -> None:
        """Start Spark, say so, and take queries."""
        _, raw = read_frame(self._control)
        spark = self._start(json.loads(raw))
        send_frame(self._control, READY)
        threading.Thread(target=self._end_when_over, name="lading-query-end", daemon=True).start()
        while True:
            called, descriptors, _, _ = socket.recv_fds(self._control, NAME_BYTES, 1)
            if not called:
                return  # The service closed its end, or is gone.
            peer = socket.socket(fileno=descriptors[0])
            name = called.decode()
            with self._lock:
                taken = set(self._running.values())
                self._running[name] = next(share for share in range(len(taken) + 1) if share not in taken)
            threading.Thread(target=self._answer, args=(spark, peer, name), name=name, daemon=True).start()

    def _start(self, told: dict[str, Any]) -> SparkSession:
        reading, writing = os.pipe()
        hearing = threading.Thread(target=hear, args=(reading, self._verdicts), name="lading-java-errors", daemon=True)
        hearing.start()
        launch = {"shares_group": True, "stderr": writing}
        java, home, archives = Java(**told["java"]), Path(told["home"]), Path(told["archives"])
        spark = open_session(told["settings"], java, home, launch=launch, archives=archives)
        os.close(writing)
        process: Any = spark.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001
        threading.Thread(target=self._wait, args=(process, hearing), name="lading-java-wait", daemon=True).start()
        return spark

    def _wait(self, process: Any, hearing: threading.Thread) -> None:
        process.wait()
        hearing.join(_LAST_LINES_S)  # What it wrote at the end says why.
        self._verdicts.ended()

    def _answer(self, spark: SparkSession, peer: socket.socket, name: str) -> None:
        try:
            # Spark shares its cores evenly between pools, however many tasks a query has. It forgets none of them.
            spark.sparkContext.setLocalProperty("spark.scheduler.pool", f"queries-{self._running[name]}")
            answer(spark, peer, name, self._why)
        finally:
            with self._lock:
                del self._running[name]
                self._lock.notify_all()

    def _why(self, name: str, error: Exception) -> QueryFailure:
        if isinstance(error, AnalysisException):  # It did not run, whatever words are in it.
            return QueryFailure(kind="query", text=cause_of(error))
        if _MEMORY.search(str(error)):
            self._verdicts.out_of_memory(name)
        elif not _is_of_java(error):
            return QueryFailure(kind="query", text=cause_of(error))
        if not self._verdicts.wait_until_over(_VERDICT_S):
            return QueryFailure(kind="query", text=cause_of(error))
        verdicts = self._verdicts
        if not verdicts.is_memory:
            return QueryFailure(kind="spark")
        with self._lock:
            is_alone = len(self._running) == 1
        if verdicts.guilty == name or (verdicts.guilty is None and is_alone):
            return QueryFailure(kind="memory")
        return QueryFailure(kind="victim" if verdicts.guilty else "perhaps")

    def _end_when_over(self) -> None:
        self._verdicts.wait_until_over(threading.TIMEOUT_MAX)
        with self._lock:
            self._lock.wait_for(lambda: not self._running, _VERDICT_S)
        # A query that waits for a Java which hears nothing any more learns from this what it was.
        guilty = (self._verdicts.guilty or "").encode()
        words = (OUT_OF_MEMORY, guilty) if self._verdicts.is_memory else (SPARK_ENDED,)
        with suppress(OSError):
            send_frame(self._control, *words)
        end_group()


def _is_of_java(error: Exception) -> bool:
    """Whether Java may be gone: what it says itself has a class of its own."""
    return not isinstance(error, PySparkException) or "cancelled because SparkContext was shut down" in str(error)


def end_group() -> None:
    """End this process and its Java, whatever they do. Python workers end with their Java."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main() -> None:
    """Serve the socket whose number is the argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_EXPENDABLE)
    hide_memory()
    control = socket.socket(fileno=int(sys.argv[1]))
    try:
        QueryWorker(control).run()
    finally:
        end_group()


if __name__ == "__main__":
    main()

"""The process of Spark that this one started: whether it lives, whether it lets go, and ending it.

A task that Spark is told to end is interrupted, and ends when it looks. Code that Spark made for a join of joins looks
once in ten thousand million rows, if ever, and holds its core until then. On a cluster the executor is replaced
(`spark.task.reaper`). On this machine the tasks run in the process that also plans the batches; there is no other way
than to end it and to start another. Batches that ran are done again, once: nothing of them was committed.
"""

from __future__ import annotations

from contextlib import suppress
from subprocess import Popen
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

_GONE_S = 10.0


def is_alive(session: SparkSession) -> bool:
    """Whether the process of a session is there. Of one that somebody else started nothing is known: yes."""
    process = _process(session.sparkContext)
    return process is None or process.poll() is None


def held_cores(session: SparkSession) -> int:
    """Tasks that still run though their stage has ended. Both counts are Spark's, and may be of different moments."""
    context: Any = session.sparkContext
    tracker = context._jsc.sc().statusTracker()  # noqa: SLF001 - Python's tracker has no executors
    running = sum(info.numRunningTasks() for info in tracker.getExecutorInfos())
    stages = (tracker.getStageInfo(number) for number in tracker.getActiveStageIds())
    known = sum(info.get().numActiveTasks() for info in stages if info.isDefined())
    return int(running - known)


def end_process(session: SparkSession) -> None:
    """End the process of a session, whatever it does, so that the next session starts another."""
    context: Any = session.sparkContext
    process = _process(context)
    if process is not None:
        process.kill()
        process.wait(_GONE_S)
    if context._accumulatorServer is not None:  # noqa: SLF001 - what `stop` does, for which it would ask the dead
        context._accumulatorServer.shutdown()  # noqa: SLF001
        context._accumulatorServer = None  # noqa: SLF001
    context._jsc = None  # noqa: SLF001
    with SparkContext._lock:  # noqa: SLF001
        gateway: Any = SparkContext._gateway  # noqa: SLF001
        SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
    if gateway is not None:
        with suppress(Py4JError, OSError):
            gateway.shutdown()


def _process(context: Any) -> Popen[bytes] | None:
    """None when Python was started by Spark and not the other way round."""
    found: Popen[bytes] | None = getattr(context._gateway, "proc", None)  # noqa: SLF001 - the only place it is kept
    return found

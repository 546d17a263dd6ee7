"""The process of Spark that this one started: whether it lives, and ending it."""

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


def process_of(session: SparkSession) -> Popen[bytes] | None:
    """The process of a session; None when somebody else started it."""
    return _process(session.sparkContext)


def end_java(session: SparkSession) -> None:
    """End the process of a session, whatever it does. What waits for it hears that it is gone."""
    process = _process(session.sparkContext)
    if process is not None:
        _end(process)


def _end(process: Popen[bytes]) -> None:
    process.kill()
    process.wait(_GONE_S)
    if process.stdin is not None:
        with suppress(OSError):  # What it was about to be told is lost with it.
            process.stdin.close()


def end_process(session: SparkSession) -> None:
    """End the process of a session, whatever it does, so that the next session starts another."""
    context: Any = session.sparkContext
    end_java(session)
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


def end_failed_start() -> None:
    """End the process of a Spark that was started and gave up: the next start needs another."""
    with SparkContext._lock:  # noqa: SLF001 - the only place it is kept
        gateway: Any = SparkContext._gateway  # noqa: SLF001
        SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    process = getattr(gateway, "proc", None)
    if process is not None:
        _end(process)
        with suppress(Py4JError, OSError):
            gateway.shutdown()


def _process(context: Any) -> Popen[bytes] | None:
    """None when Python was started by Spark and not the other way round."""
    found: Popen[bytes] | None = getattr(context._gateway, "proc", None)  # noqa: SLF001 - the only place it is kept
    return found

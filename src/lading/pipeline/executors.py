"""Executors on other machines: how many there are, how many cores they have, and whether any is left."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lading.clock import Clock, SystemClock
from lading.pipeline.process import end_java, is_alive
from lading.pipeline.session import is_local

TIMEOUT = "spark.lading.executors.timeout"
"""How many seconds an application of a standalone cluster may be without executors that it had; 0: for ever."""
_DEFAULT_TIMEOUT_S = 60.0
_FIRST_S = 30.0
_LOOK_S = 0.1
_WATCH_S = 2.0
_WAITING_S = 8.0
_WAITING_LOOK_S = 0.5
_log = logging.getLogger("lading.spark")


def count_executors(session: SparkSession) -> int:
    """Executors that have registered, beside the driver."""
    context: Any = session.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark has no other way to it
    return len(context.statusTracker().getExecutorInfos()) - 1


def cores_of(session: SparkSession, clock: Clock | None = None) -> int:
    """How many tasks Spark can run at once. A cluster whose first executors are on their way is waited for."""
    if not is_local(session) and not _comes_and_goes(session):
        now, waiting = (clock or SystemClock()).monotonic_s, threading.Event()
        until = now() + _FIRST_S
        while count_executors(session) < 1 and now() < until:
            waiting.wait(_LOOK_S)
    return int(session.sparkContext.defaultParallelism)


def is_stopped(session: SparkSession) -> bool:
    """Whether Spark itself has given up: its cluster has ended it, or cannot be reached any more."""
    context: Any = session.sparkContext
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())  # noqa: SLF001 - no other way to ask
    except (Py4JError, OSError):
        return True


def watch_executors(session: SparkSession, clock: Clock | None = None) -> threading.Thread | None:
    """End a Spark that a standalone cluster has forgotten; it is started again when it is needed.

    A master that is started again without a memory (`spark.deploy.recoveryMode`) does not know the applications of the
    one before it. It has their executors ended, and the driver waits for others for ever.
    """
    context = session.sparkContext
    timeout_s = float(context.getConf().get(TIMEOUT) or _DEFAULT_TIMEOUT_S)
    if not str(context.master).startswith("spark://") or not timeout_s or _comes_and_goes(session):
        return None
    words = (session, timeout_s, clock or SystemClock())
    watching = threading.Thread(target=_watch, args=words, name="lading-executors", daemon=True)
    watching.start()
    return watching


def watch_waiting(
    session: SparkSession, ended: threading.Event, tell: Callable[[str], None], clock: Clock | None = None
) -> threading.Thread | None:
    """Tell when a batch has waited for an executor for some seconds, and an empty text when there is one.

    The batch is left alone: it goes on when executors come, also on clusters that start them because it waits.
    """
    if is_local(session):
        return None
    words = (session, ended, tell, clock or SystemClock())
    watching = threading.Thread(target=_watch_waiting, args=words, name="lading-waiting", daemon=True)
    watching.start()
    return watching


def _watch_waiting(session: SparkSession, ended: threading.Event, tell: Callable[[str], None], clock: Clock) -> None:
    alone_since, is_told = clock.monotonic_s(), False
    while not ended.wait(_WAITING_LOOK_S):
        try:
            there = count_executors(session)
        except (Py4JError, OSError, AttributeError):
            return  # It has been stopped, and the batch with it.
        if there:
            alone_since = clock.monotonic_s()
            if is_told:
                tell("")
            is_told = False
        elif not is_told and clock.monotonic_s() - alone_since >= _WAITING_S:
            master = session.sparkContext.master
            tell(
                f"The batch waits: Spark has no executor from {master}. Is a worker there, with the cores and the "
                "memory that one asks for (spark.executor.cores, spark.executor.memory)? It goes on when there is one."
            )
            is_told = True


def _comes_and_goes(session: SparkSession) -> bool:
    """Whether Spark lets executors go while there is nothing to do, and asks for them when there is."""
    return str(session.sparkContext.getConf().get("spark.dynamicAllocation.enabled", "")).lower() == "true"


def _watch(session: SparkSession, timeout_s: float, clock: Clock) -> None:
    waiting = threading.Event()
    had_some, alone_since = False, clock.monotonic_s()
    while is_alive(session) and not waiting.wait(min(_WATCH_S, timeout_s / 2)):
        try:
            there = count_executors(session)
        except (Py4JError, OSError, AttributeError):
            return  # It has been stopped.
        if there:
            had_some, alone_since = True, clock.monotonic_s()
        elif had_some and clock.monotonic_s() - alone_since >= timeout_s:
            _log.error("Spark has lost all its executors and got no others for %g seconds; it is ended", timeout_s)
            end_java(session)
            return

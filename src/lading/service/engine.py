"""Spark as the service has it: started when it is first needed, and again when it died or does not let go."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lading.clock import Clock
from lading.service.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("lading.spark")
LET_GO_WITHIN_S = 30.0
LOOK_S = 1.0
FREE_LOOKS = 20
"""So many in a row at which no core was held: they have let go. What Spark says may be as old as a heartbeat, 10 s."""


class Engine:
    """One Spark for one home. Safe to use from many threads."""

    def __init__(
        self, home: Home, clock: Clock, settings: Mapping[str, str], session: SparkSession | None = None
    ) -> None:
        self._home = home
        self._clock = clock
        self._settings = settings
        self._session = session
        self._is_ours = session is None
        self._lock = threading.Lock()
        self._reaping = threading.Lock()
        self._is_closed = threading.Event()
        self.let_go_within_s = LET_GO_WITHIN_S

    def session(self) -> SparkSession:
        """The session, started when it is first needed. One whose process died is replaced."""
        from lading.pipeline.process import end_process, is_alive
        from lading.pipeline.session import NO_SUBSTITUTION

        with self._lock:
            if self._session is not None and self._is_ours and not is_alive(self._session):
                _log.error("Spark died; it is started again")
                end_process(self._session)
                self._session = None
            if self._session is None:
                self._session = self._start()
            if self._session.conf.get(NO_SUBSTITUTION) != "false":
                self._session.conf.set(NO_SUBSTITUTION, "false")  # Also in a session that somebody else made.
            return self._session

    def warm_up(self) -> None:
        """Let Spark do once what every batch does, so that the first batch need not wait for that."""
        from lading.pipeline.warm import warm_up

        warm_up(self.session())

    def reap(self) -> None:
        """A query was ended: see, in a thread beside, that its tasks end, too; else end Spark, which starts anew."""
        if self._reaping.acquire(blocking=False):
            threading.Thread(target=self._reap, name="lading-spark-reaper", daemon=True).start()

    def close(self) -> None:
        """End Spark, if it is ours."""
        from lading.pipeline.process import end_process, is_alive

        self._is_closed.set()
        with self._lock:  # It may be starting.
            if self._session is None or not self._is_ours:
                return
            if is_alive(self._session):
                self._session.stop()
            else:
                end_process(self._session)

    def _start(self) -> SparkSession:
        from pyspark import SparkContext

        from lading.pipeline.gateway import JAVA_LOG
        from lading.pipeline.java import find_java
        from lading.pipeline.session import open_session
        from lading.service.security.log_output import redact_logger
        from lading.settings import environment

        # A context that somebody else started in this process is used and left to them.
        self._is_ours = SparkContext._active_spark_context is None  # noqa: SLF001 - no public way to ask
        variables, folder = environment(), self._home.spark
        redact_logger(JAVA_LOG)
        return open_session(self._settings, find_java(variables, folder), folder, variables=variables)

    def _reap(self) -> None:
        from py4j.protocol import Py4JError

        try:
            session = self._session
            if session is not None and self._holds_on(session) and self._session is session:
                self._end(session)
        except (Py4JError, OSError) as error:
            _log.debug("Spark was ended meanwhile: %s", error)
        finally:
            self._reaping.release()

    def _holds_on(self, session: SparkSession) -> bool:
        """Whether tasks that should have ended run for all the time that they are given.

        What Spark says of its stages and its executors is of different moments: one look tells nothing.
        """
        from lading.pipeline.process import held_cores

        free, since_s = 0, self._clock.monotonic_s()
        while free < FREE_LOOKS:
            if held_cores(session) > 0:
                free = 0
            else:
                free, since_s = free + 1, self._clock.monotonic_s()
            if self._clock.monotonic_s() - since_s > self.let_go_within_s:
                return True
            if self._is_closed.wait(LOOK_S):
                return False
        return False

    def _end(self, session: SparkSession) -> None:
        from lading.pipeline.process import end_process

        if not self._is_ours or not str(session.sparkContext.master).startswith("local"):
            _log.warning("Tasks of a query that was ended still hold cores of Spark, which is not ours to end")
            return
        _log.error(
            "Tasks of a query that was ended held on to cores of Spark for %g s: Spark is ended and starts again; "
            "batches that run are done again",
            self.let_go_within_s,
        )
        with self._lock:
            if self._session is session and not self._is_closed.is_set():
                end_process(session)
                self._session = None
        self.warm_up()

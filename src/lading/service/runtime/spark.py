"""The Spark of the batches: started when it is first needed, and again when it died. Queries have another one."""

from __future__ import annotations

import logging
import os
import re
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from lading.errors import StageError
from lading.pipeline.kept_frames import KeptFrames
from lading.service.home import Home
from lading.service.runtime.fast_start import FastStart
from lading.settings import environment

if TYPE_CHECKING:
    from subprocess import Popen

    from pyspark.sql import SparkSession

    from lading.pipeline.local_pool import LocalPool

_log = logging.getLogger("lading.spark")
_MOST_ENDS = 3
"""So often Spark may end while it is asked something, one after the other, before a job hears of it."""

_WITHOUT_TASKS = {
    "spark.master",
    "spark.app.name",
    "spark.driver.memory",
    "spark.ui.enabled",
    "spark.local.dir",
    "spark.lading.classes",
}
"""Settings that are of no matter to what a task does in Python."""


class Engine:
    """One Spark for one home. Safe to use from many threads."""

    def __init__(self, home: Home, settings: Mapping[str, str], session: SparkSession | None = None) -> None:
        self._home = home
        self._settings = settings
        self._session = self._given = session
        self._is_ours = session is None
        self._lock = threading.Lock()
        self._near: LocalPool | None = None
        self._near_lock = threading.Lock()
        self._early = threading.Lock()
        self._beginning: threading.Thread | None = None
        self._java: Popen[bytes] | None = None
        """Of a start that has begun."""
        self._is_service = self._is_closing = False
        self._fast = FastStart(home.spark)
        self.frames = KeptFrames()

    def near_pool(self) -> LocalPool | None:
        """Processes of this machine for the batches that need no Spark, as long as Spark was not started here.

        None as soon as it was, and where somebody set more of Spark than where it runs: its tasks are what such
        settings are for.
        """
        if self._session is not None:
            with self._near_lock:
                if self._near is not None:
                    self._near.rest()
            return None
        if not self.is_local or not set(self._settings) <= _WITHOUT_TASKS:
            return None
        from lading.pipeline.local_pool import LOG, LocalPool, is_possible
        from lading.service.security.log_output import redact_logger

        variables = environment()
        if not is_possible(variables):
            return None
        with self._near_lock:
            if self._near is None:
                redact_logger(LOG)
                self._near = LocalPool(variables, local_cores(self._settings.get("spark.master", "")))
            return self._near

    def begin(self) -> None:
        """Start Spark beside what goes on, if nobody has: it will be needed. What fails is told to who needs it."""
        with self._early:
            if self._session is None and self._beginning is None and not self._is_closing:
                self._beginning = threading.Thread(target=self._begin, name="lading-spark-start", daemon=True)
                self._beginning.start()

    def _begin(self) -> None:
        try:
            if self._is_service:
                self._warm_up_and_keep()
            else:
                self.session()
        except Exception as error:  # noqa: BLE001 - logged; every batch says it again in the record of its job
            if not self._is_closing:
                _log.warning("Spark could not be started: %s", error)

    def _is_to_end(self, java: Popen[bytes]) -> None:
        self._java = java
        if self._is_closing:
            self._end_beginning()

    def _end_beginning(self) -> None:
        """Spark was started early, and nobody needs it any more."""
        from lading.pipeline.gateway import end_early

        if self._session is None and self._java is not None:
            end_early(self._java)

    def get_ready(self) -> None:
        """Have ready what the batches of a service need: processes of this machine, as long as they will do. The first
        job that needs Spark has it started. Where they will not do, Spark is, and does once what every batch does."""
        self._is_service = True
        near = self.near_pool()
        if near is not None:
            near.start(())
        else:
            self._warm_up_and_keep()

    def _warm_up_and_keep(self) -> None:
        from lading.pipeline.class_archive import is_wanted
        from lading.pipeline.java import find_java
        from lading.pipeline.process import process_of

        self.warm_up()
        process = process_of(self.session())
        if process is not None and is_wanted(self._settings):
            java = find_java(environment(), self._home.spark)
            keeping = threading.Thread(target=self._fast.keep, args=(java, process), name="lading-classes", daemon=True)
            keeping.start()

    def session(self) -> SparkSession:
        """The session, started when it is first needed. One whose process died is replaced."""
        from py4j.protocol import Py4JError

        told: Exception | None = None
        for _ in range(_MOST_ENDS):
            with self._lock:
                try:
                    return self._living()
                except (Py4JError, OSError) as error:
                    told = error  # It was alive a moment ago, or was ended because it did not answer.
        msg = "Spark ended when it was asked for"
        raise StageError(msg, left="Nothing was read.", todo="It is started again; see the log.") from told

    def _living(self) -> SparkSession:
        from lading.pipeline.executors import is_stopped
        from lading.pipeline.process import end_process, is_alive
        from lading.pipeline.session import NO_SUBSTITUTION

        if (
            self._session is not None
            and self._is_ours
            and (not is_alive(self._session) or (not self.is_local and is_stopped(self._session)))
        ):
            _log.error("Spark died; it is started again")
            end_process(self._session)
            self._session = None
        if self._session is None:
            if self._is_closing:
                msg = "Spark is not started: what it was for is being closed"
                raise StageError(msg, left="Nothing was read.", todo="Open it again.")
            self._session = self._start()
        if self._session.conf.get(NO_SUBSTITUTION) != "false":
            self._session.conf.set(NO_SUBSTITUTION, "false")  # Also in a session that somebody else made.
        return self._session

    @property
    def is_local(self) -> bool:
        """Whether tasks run on this machine, in the process that is started here."""
        from lading.pipeline.cluster import is_local_master

        master = self._settings.get("spark.master", "local") if self._given is None else self._given.sparkContext.master
        return is_local_master(str(master))

    def cores(self) -> int:
        """How many tasks Spark runs at once. Of a cluster only Spark knows: it is started."""
        if self.is_local and self._session is None:
            return local_cores(self._settings.get("spark.master", ""))
        from py4j.protocol import Py4JError

        from lading.pipeline.executors import cores_of

        told: Exception | None = None
        for _ in range(_MOST_ENDS):
            try:
                return cores_of(self.session())
            except (Py4JError, OSError, AttributeError) as error:
                told = error  # It was alive a moment ago. `session` starts another.
        msg = "Spark ended while it was asked how many tasks it can run"
        raise StageError(msg, left="Nothing was read.", todo="It is started again; see the log.") from told

    def warm_up(self) -> None:
        """Let Spark do once what every batch does, so that the first batch need not wait for that."""
        from lading.pipeline.warm import warm_up

        warm_up(self.session())

    def close(self) -> None:
        """End Spark, if it is ours, and what stood in for it. A start that is under way is ended, not waited for."""
        self._is_closing = True
        self._fast.close()
        with self._early:
            if self._beginning is not None and self._beginning.is_alive():
                self._end_beginning()
        with self._near_lock:
            if self._near is not None:
                self._near.close()
        with self._lock:  # It may be starting; one that was ended gives this free.
            if self._session is None or not self._is_ours:
                return
            from py4j.protocol import Py4JError

            from lading.pipeline.process import end_process, is_alive

            with suppress(Py4JError, OSError), warnings.catch_warnings():
                # It ended meanwhile, or was ended because it did not answer.
                warnings.simplefilter("ignore", RuntimeWarning)
                if is_alive(self._session):
                    self._session.stop()
            if not is_alive(self._session):
                end_process(self._session)

    def _start(self) -> SparkSession:
        from py4j.protocol import Py4JError
        from pyspark import SparkContext

        from lading.pipeline.class_archive import with_archive
        from lading.pipeline.errors import cause_of
        from lading.pipeline.executors import watch_executors
        from lading.pipeline.gateway import JAVA_LOG
        from lading.pipeline.java import find_java
        from lading.pipeline.process import end_failed_start
        from lading.pipeline.scratch import scratch_fault
        from lading.pipeline.session import open_session
        from lading.service.security.log_output import redact_logger

        # A context that somebody else started in this process is used and left to them.
        self._is_ours = SparkContext._active_spark_context is None  # noqa: SLF001 - no public way to ask
        variables, folder = environment(), self._home.spark
        redact_logger(JAVA_LOG)
        try:
            java = find_java(variables, folder)
            session = open_session(
                with_archive(self._settings, folder, java, notes=self._is_service),
                java,
                folder,
                variables=variables,
                launch={"on_begin": self._is_to_end},
            )
        except (Py4JError, OSError) as error:
            scratch = scratch_fault(self._settings, folder) if self.is_local else ""
            msg = f"Spark did not start: {scratch or cause_of(error)}"  # While Java is there to say it.
            end_failed_start()
            todo = "It is tried again; see the log, and whether the master of Spark can be reached."
            todo = "It is tried again; check that disk." if scratch else todo
            raise StageError(msg, left="Nothing was begun.", todo=todo) from error
        if self._is_ours:
            watch_executors(session)
        return session


def local_cores(master: str) -> int:
    """How many tasks `local[…]` runs at once."""
    found = re.fullmatch(r"local\[(\d+)(?:,.*)?]", master)
    return int(found[1]) if found else 1 if master == "local" else os.cpu_count() or 2

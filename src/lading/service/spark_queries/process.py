"""The query process as the service has it: started when a query needs it, and again when it ended."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from lading.errors import UnavailableError
from lading.pipeline.class_archive import with_archive
from lading.pipeline.cluster import query_settings
from lading.pipeline.environment import spark_environment
from lading.pipeline.java import find_java
from lading.service.home import Home
from lading.service.limits.cancellation import CancelToken
from lading.service.spark_queries.limits import MIB, QueryLimits
from lading.service.spark_queries.wire import (
    OUT_OF_MEMORY,
    SPARK_ENDED,
    PeerGoneError,
    QueryFailure,
    new_query_name,
    read_frame,
    send_frame,
)
from lading.settings import environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("lading.queries")
_START_S = 180.0
_GONE_S = 10.0
_LOOK_S = 0.1
_WORKER = "from lading.service.spark_queries.worker import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A socket on which one query is asked and answered. Closing it half ends the query."""

    peer: socket.socket
    why_gone: Callable[[], QueryFailure]
    """What to tell who asked, when the other end is gone."""
    give_up: Callable[[str], None]
    """What answers cannot be relied on any more, or holds on to what a query used: end it, and say why."""


class Answerer(Protocol):
    """What answers queries."""

    def ask(self, stop: CancelToken) -> Line:
        """Somebody who answers one query; started when nobody is there."""
        ...

    def close(self) -> None: ...


class QueryProcess:
    """One process for the queries of a home. Safe to use from many threads."""

    def __init__(self, home: Home, settings: Mapping[str, str], limits: QueryLimits) -> None:
        self._home = home
        self._settings = {**query_settings(settings), **_settings(limits)}
        self._lock = threading.Lock()
        self._child: Future[_Child] | None = None
        self._is_closed = False

    def ask(self, stop: CancelToken) -> Line:
        waiting = self._started()
        while True:
            stop.check()
            with suppress(TimeoutError):
                child = waiting.result(_LOOK_S)
                try:
                    return child.ask()
                except OSError:  # It has just ended.
                    waiting = self._started(instead_of=waiting)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            child, self._child = self._child, None
        if child is not None:
            with suppress(Exception):  # It did not start.
                child.result(_START_S).kill("the service is ending", level=logging.DEBUG)

    def _started(self, instead_of: Future[_Child] | None = None) -> Future[_Child]:
        with self._lock:
            if self._is_closed:
                msg = "The service is ending"
                raise UnavailableError(msg, left="The query was not begun.", todo="Retry when it runs again.")
            current = self._child
            is_over = current is not None and current.done() and (current.exception() or not current.result().is_alive)
            if current is not None and is_over and not current.exception():
                current.result().why_gone("")  # While what it said can be read: others may still want to know.
                current.result().kill("it had ended")
            if current is None or current is instead_of or is_over:
                current = self._child = Future()
                threading.Thread(target=self._start, args=(current,), name="lading-query-start", daemon=True).start()
            return current

    def _start(self, made: Future[_Child]) -> None:
        try:
            folder = self._home.spark / "queries"
            folder.mkdir(parents=True, exist_ok=True)
            java = find_java(environment(), self._home.spark)
            settings = with_archive(self._settings, self._home.spark, java)
            told = {"settings": settings, "java": asdict(java), "home": str(folder)}
            told["archives"] = str(self._home.spark)
            made.set_result(_Child(json.dumps(told).encode()))
        except Exception as error:  # noqa: BLE001 - raised where the query waits
            made.set_exception(error)


class _Child:
    """One process, from its start to its end."""

    def __init__(self, told: bytes) -> None:
        self._lock = threading.Lock()
        self._why = ""
        self._guilty: str | None = None
        """The query that took all memory, as it said at its end; empty when it did not know which."""
        self._is_group_ended = False
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-c", _WORKER, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=spark_environment(environment()),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # With its Java, so that both can be ended at once.
            )
        self._control.settimeout(_START_S)
        try:
            send_frame(self._control, b"S", told)
            read_frame(self._control)
        except (PeerGoneError, TimeoutError, OSError) as error:
            self.kill("it did not start")
            msg = "The query process did not start"
            todo = "See the log of the service; `lading doctor` tries the same."
            raise UnavailableError(msg, left="The query was not begun.", todo=todo) from error
        self._control.settimeout(None)

    def ask(self) -> Line:
        ours, theirs = socket.socketpair()
        name = new_query_name()
        try:
            with theirs:
                socket.send_fds(self._control, [name.encode()], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        return Line(peer=ours, why_gone=lambda: self.why_gone(name), give_up=self.kill)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def why_gone(self, query: str) -> QueryFailure:
        """What to tell who asked a query. The reason for which it was killed counts more than what it said before."""
        with self._lock:
            if not self._why:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_GONE_S)
                self._end_group()
                status = self._process.returncode
                self._hear_last_words()
                self._why = self._why or (f"killed by signal {-status}" if status and status < 0 else "")
                self._why = self._why or f"ended with status {status}"
            if self._guilty is None:
                return QueryFailure(kind="gone", text=self._why)
            return QueryFailure(kind={query: "memory", "": "perhaps"}.get(self._guilty, "victim"))

    def _hear_last_words(self) -> None:
        self._control.settimeout(0)
        with suppress(OSError):
            kind, content = read_frame(self._control)
            if kind == OUT_OF_MEMORY:
                self._why, self._guilty = "a query ran out of memory", content.decode()
            elif kind == SPARK_ENDED:
                self._why = "its Spark ended"

    def kill(self, why: str, *, level: int = logging.WARNING) -> None:
        """End it and its Java. Its number is not used again before it was waited for."""
        if not self._why:
            self._why = why
            _log.log(level, "The query process is ended, and started when it is needed next: %s", why)
        self._end_group()
        self._process.wait(_GONE_S)
        with self._lock:
            self._control.close()

    def _end_group(self) -> None:
        """Also when only the process itself is gone: its Java may be busy with what nobody wants any more."""
        if not self._is_group_ended:
            self._is_group_ended = True  # Once: when all of it is gone, its number may be used again.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


class OwnSession:
    """Answers in a Spark session that somebody else made: with limits of time and size, and without a wall."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def ask(self, stop: CancelToken) -> Line:
        from lading.pipeline.errors import cause_of
        from lading.service.spark_queries.answering import answer

        stop.check()
        ours, theirs = socket.socketpair()
        name = new_query_name()

        def why(_: str, error: Exception) -> QueryFailure:
            return QueryFailure(kind="query", text=cause_of(error))

        threading.Thread(target=answer, args=(self._session, theirs, name, why), name=name, daemon=True).start()
        return Line(
            peer=ours, why_gone=lambda: QueryFailure(kind="gone", text="its Spark session ended"), give_up=_warn
        )

    def close(self) -> None:
        pass


def _warn(why: str) -> None:
    _log.warning("Spark is not ours to end, although %s", why)


def _settings(limits: QueryLimits) -> dict[str, str]:
    """Settings of Spark that keep queries within their limits."""
    heap = limits.memory_bytes // MIB
    return {
        "spark.app.name": "lading-queries",
        "spark.driver.memory": f"{heap}m",
        # A part of an answer is in memory several times on its way out.
        "spark.driver.maxResultSize": f"{heap // 4}m",
        "spark.sql.files.maxPartitionBytes": "32m",
        "spark.sql.autoBroadcastJoinThreshold": f"{min(10, heap // 64)}m",
        # One query takes its share, however many tasks it has.
        "spark.scheduler.mode": "FAIR",
    }

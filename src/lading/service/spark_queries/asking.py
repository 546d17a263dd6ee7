"""Asking the query process, within limits: of time, of rows, of bytes, of queries at once."""

from __future__ import annotations

import logging
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lading.clock import Clock
from lading.errors import ConfigError, LadingError, NotSupportedError, UnavailableError
from lading.pipeline.plan_check import REFUSED_LEFT, REFUSED_TODO
from lading.service.home import Home
from lading.service.limits.cancellation import CancelToken, stopped
from lading.service.limits.spooled_rows import Portion, keep_portions
from lading.service.result import Result
from lading.service.spark_queries.limits import QueryLimits
from lading.service.spark_queries.process import Answerer, Line, OwnSession, QueryProcess
from lading.service.spark_queries.rows import rows_of
from lading.service.spark_queries.turns import QueryTurns
from lading.service.spark_queries.wire import (
    BATCH,
    DONE,
    HEAD,
    REQUEST,
    QueryFailure,
    QueryRequest,
    read_frame,
    send_frame,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("lading.queries")
LET_GO_WITHIN_S = 5.0
_LEFT = "Nothing was changed."
_LOOK_S = 0.2
_TOO_LARGE = "bigger than spark.driver.maxResultSize"


class Queries:
    """Queries over tables, of all users of a service."""

    def __init__(self, answerer: Answerer, limits: QueryLimits, clock: Clock) -> None:
        self._answerer = answerer
        self.limits = limits
        self._clock = clock
        self._turns = QueryTurns(limits, clock)

    def ask(self, request: QueryRequest, *, user: str, stop: CancelToken, seconds: float | None = None) -> Result:
        """The answer, whole. `seconds` is what somebody asked for; it can make the limit smaller."""
        allowed_s = min(seconds or self.limits.seconds, self.limits.seconds)
        give_back = self._turns.take(user, stop, allowed_s)
        try:
            line = self._answerer.ask(stop)
        except BaseException:
            give_back()
            raise
        asked = _Asked(line, self.limits, allowed_s, self._clock, stop)
        try:
            with stop.ending(asked.end):
                result = asked.result(request)
        except BaseException as error:
            asked.end()
            if isinstance(error, ConfigError) and error.code == "QueryMemory":
                # What is left of a Java without memory is not used again. Others who ask it now are told why.
                line.give_up("another query ran out of memory")
            _let_go(line, give_back)
            raise
        line.peer.close()
        give_back()
        return result

    def close(self) -> None:
        self._answerer.close()


def _let_go(line: Line, give_back: Callable[[], None]) -> None:
    """See, in a thread beside, that a query that had to end ends; its turn lasts until then."""

    def wait() -> None:
        try:
            with line.peer:
                line.peer.settimeout(LET_GO_WITHIN_S)
                while line.peer.recv(1 << 16):
                    pass
        except TimeoutError:
            line.give_up("a query that had to end did not let go of its cores")
        except OSError as error:
            _log.debug("The query process ended meanwhile: %s", error)
        finally:
            give_back()

    threading.Thread(target=wait, name="lading-query-end", daemon=True).start()


class _Asked:
    """One query on its way."""

    def __init__(
        self,
        line: Line,
        limits: QueryLimits,
        seconds: float,
        clock: Clock,
        stop: CancelToken,
    ) -> None:
        self._peer = line.peer
        self._limits = limits
        self._seconds = seconds
        self._clock = clock
        self._until_s = clock.monotonic_s() + seconds
        self._stop = stop
        self._why_gone = line.why_gone
        self._readable = select.poll()
        self._readable.register(line.peer, select.POLLIN)

    def end(self) -> None:
        """Nobody wants the answer any more. Never waits."""
        with suppress(OSError):
            self._peer.shutdown(socket.SHUT_WR)

    def result(self, request: QueryRequest) -> Result:
        self._send(request)
        kind, content = self._frame()
        if kind != HEAD:
            raise self._failed(QueryFailure.decoded(content))
        schema = pa.ipc.read_schema(pa.py_buffer(content))
        names = schema.metadata[b"names"].decode()
        columns = tuple(names.split("\0")) if len(schema) else ()
        return Result(columns=columns, rows=keep_portions(self._portions(schema.remove_metadata())))

    def _portions(self, schema: pa.Schema) -> Iterator[Portion]:
        rows = size = 0
        while True:
            kind, content = self._frame()
            if kind == DONE:
                return
            if kind != BATCH:
                raise self._failed(QueryFailure.decoded(content))
            batch = pa.ipc.read_record_batch(pa.py_buffer(content), schema)
            batch.validate(full=True)  # It comes from a process that runs what others wrote.
            rows, size = rows + batch.num_rows, size + len(content)
            if rows > self._limits.rows:
                msg = f"has more than {self._limits.rows:,} rows"
                raise _too_large(msg, "rows")
            if size > self._limits.size_bytes:
                msg = f"takes more than {self._limits.size_bytes:,} bytes"
                raise _too_large(msg, "bytes")
            yield rows_of(batch), len(content)

    def _send(self, request: QueryRequest) -> None:
        try:
            send_frame(self._peer, REQUEST, request.encoded())
        except OSError as error:  # It ended before it read what is asked, or the query was ended.
            self._stop.check()
            raise self._failed(self._why_gone()) from error

    def _frame(self) -> tuple[bytes, bytes]:
        try:
            return read_frame(self._peer, wait=self._wait)
        except OSError as error:
            self._stop.check()
            raise self._failed(self._why_gone()) from error

    def _wait(self) -> None:
        """Until there is something to read. Neither a client that left nor the clock waits for Spark."""
        while True:
            self._stop.check()
            left_s = self._until_s - self._clock.monotonic_s()
            if left_s <= 0:
                msg = f"The query took longer than {self._seconds:g} s and was ended"
                todo = "Ask for less; the limit is `query_timeout`, at most what the service allows."
                raise ConfigError(msg, code="QueryTimeout", left=_LEFT, todo=todo)
            if self._readable.poll(min(left_s, _LOOK_S) * 1000):
                return

    def _failed(self, failure: QueryFailure) -> LadingError:
        if self._stop.is_set:
            return stopped()
        retry: dict[str, Any] = {"left": _LEFT, "todo": "Retry; another query process is started."}
        match failure.kind:
            case "memory":
                todo = "Ask for less at a time, or let the service give queries more memory."
                return ConfigError(
                    "The query ran out of memory and was ended", code="QueryMemory", left=_LEFT, todo=todo
                )
            case "victim":
                return UnavailableError("The query process ran out of memory because of another query", **retry)
            case "perhaps":
                msg = "The query process ran out of memory; whether by this query or another one is not known"
                return UnavailableError(msg, **retry)
            case "gone":
                return UnavailableError(f"The query process ended while the query ran ({failure.text})", **retry)
            case "spark":
                return UnavailableError("Spark ended while the query ran", **retry)
        if failure.kind == "QueryLimit":
            return ConfigError(failure.text, code="QueryLimit", left=_LEFT, todo="Ask for less, or for shorter values.")
        if failure.kind == "RefusedPlan":
            return NotSupportedError(failure.text, code="RefusedPlan", left=REFUSED_LEFT, todo=REFUSED_TODO)
        if failure.kind != "query":
            return NotSupportedError(failure.text, todo="A query only reads tables.")
        if _TOO_LARGE in failure.text:
            msg = "Parts of the answer are too large for the memory of the query process"
            return ConfigError(msg, code="QueryLimit", left=_LEFT, todo="Ask for less at a time.")
        msg = f"Spark cannot answer the query: {failure.text or 'it gives no reason'}"
        return ConfigError(msg, left=_LEFT, todo="Check the names of its columns.")


def open_queries(
    home: Home, settings: Mapping[str, str], session: SparkSession | None, limits: QueryLimits | None, clock: Clock
) -> Queries:
    """Queries of one home, in a process of their own unless somebody lends a session."""
    asked = limits or QueryLimits()
    answerer = OwnSession(session) if session else QueryProcess(home, settings, asked)
    return Queries(answerer, asked, clock)


def _too_large(what: str, limit: str) -> ConfigError:
    msg = f"The answer {what}, which is the limit of the service"
    return ConfigError(
        msg, code="QueryLimit", left=_LEFT, todo=f"Ask for less, or raise `--query-limit {limit}=…` of the service."
    )

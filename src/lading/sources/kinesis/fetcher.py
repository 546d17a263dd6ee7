"""Fetching one shard in a thread of its own, into a buffer that is bounded in bytes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lading.clock import Clock
from lading.errors import LadingError, StageError
from lading.sources.kinesis.client import MAX_TRIES, Backoff, Client, server_date_or_none
from lading.sources.kinesis.errors import (
    EXPIRED_ITERATOR,
    INVALID,
    NOT_FOUND,
    Foreign,
    code_of,
    is_passing,
    is_throttled,
    translated,
)
from lading.sources.kinesis.position import Position, after_sequence
from lading.sources.kinesis.spec import KinesisSpec

BUFFER_BYTES = 8 * 1024 * 1024
"""No call is made while so much waits. An answer has at most 10 MiB, so a shard holds at most 18 MiB."""
_JOIN_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer of GetRecords."""

    records: list[dict[str, Any]]
    behind_ms: int | None
    ended: bool
    """No iterator came with it: there is nothing after these records, for ever."""
    asked_at: datetime
    """Before the service was asked."""

    @property
    def is_tip(self) -> bool:
        """Nothing is unread. An empty answer alone does not say so."""
        return not self.records and self.behind_ms == 0

    @property
    def size_bytes(self) -> int:
        return sum(len(record["Data"]) for record in self.records)


class ShardFetch:
    """Reads a shard on from a position until its end, its tip, a deadline, or until it is stopped.

    Records come in their order, none twice: after an iterator expired, a new one is asked for behind the last record
    that was put into the buffer.
    """

    def __init__(
        self,
        spec: KinesisSpec,
        client: Client,
        clock: Clock,
        *,
        shard: str,
        start: Position,
        limit: int,
        deadline_s: float,
    ) -> None:
        self._spec, self._client, self._clock = spec, client, clock
        self._shard, self._place = shard, start
        self._limit = min(spec.max_records, max(1, limit))
        self.deadline_s = deadline_s
        """By the monotonic clock. May be brought forward while it runs."""
        self._changed = threading.Condition()
        self._pages: deque[Page] = deque()
        self._buffered_bytes = 0
        self._stopped = threading.Event()
        self._done = False
        self._error: BaseException | None = None
        self._next_call_s = 0.0
        self._thread = threading.Thread(target=self._run, name=f"lading-{shard}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """What is in the buffer is thrown away."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()

    def join(self) -> None:
        self._thread.join(_JOIN_S)

    def pages(self) -> Iterator[Page]:
        """Every page, then nothing; or the error that ended it."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pages or self._done)
                if not self._pages:
                    break
                page = self._pages.popleft()
                self._buffered_bytes -= page.size_bytes
                self._changed.notify_all()
            yield page
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._fetch()
        except LadingError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001  # the boundary of a thread: the reader raises it
            self._error = error
        finally:
            with self._changed:
                self._done = True
                self._changed.notify_all()

    def _fetch(self) -> None:
        iterator: str | None = None
        backoff, failures = Backoff(), 0
        while self._has_room():
            asked_at = self._clock.now()
            try:
                iterator = iterator or self._new_iterator()
                answer = self._get(iterator)
            except Foreign as error:
                if code_of(error) == EXPIRED_ITERATOR:
                    iterator = None
                failures = 0 if is_throttled(error) else failures + 1
                self._check(error, failures)
                self._pause(backoff.next_delay_s())
                continue
            backoff.reset()
            failures = 0
            iterator = answer.get("NextShardIterator")
            page = Page(
                records=answer["Records"],
                behind_ms=answer.get("MillisBehindLatest"),
                ended=not iterator,
                asked_at=min(asked_at, server_date_or_none(answer) or asked_at),
            )
            self._put(page)
            if page.ended or page.is_tip:
                return
            self._set_pace(page.size_bytes)

    def _has_room(self) -> bool:
        """Wait until a call may be made. False: none may any more."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopped.is_set() or self._buffered_bytes < BUFFER_BYTES, timeout=self._left_s()
            )
        self._pause(self._next_call_s - self._clock.monotonic_s())
        return not self._stopped.is_set() and self._left_s() > 0 and self._buffered_bytes < BUFFER_BYTES

    def _left_s(self) -> float:
        return max(0.0, self.deadline_s - self._clock.monotonic_s())

    def _pause(self, delay_s: float) -> None:
        if delay_s > 0:
            self._stopped.wait(min(delay_s, self._left_s()))

    def _set_pace(self, size_bytes: int) -> None:
        pace = self._spec.pace
        self._next_call_s = self._clock.monotonic_s() + max(1 / pace.calls_per_s, size_bytes / pace.bytes_per_s)

    def _put(self, page: Page) -> None:
        if page.records:
            self._place = after_sequence(int(page.records[-1]["SequenceNumber"]))
        with self._changed:
            self._pages.append(page)
            self._buffered_bytes += page.size_bytes
            self._changed.notify_all()

    def _new_iterator(self) -> str:
        arguments = {**self._spec.target, "ShardId": self._shard, **self._place.iterator_arguments()}
        return str(self._client.get_shard_iterator(**arguments)["ShardIterator"])

    def _get(self, iterator: str) -> dict[str, Any]:
        arn = {"StreamARN": self._spec.stream_arn} if self._spec.stream_arn else {}
        return self._client.get_records(ShardIterator=iterator, Limit=self._limit, **arn)

    def _check(self, error: Exception, failures: int) -> None:
        """Go on, or raise. Throttling ends with the deadline and is no error."""
        if is_throttled(error) or (code_of(error) == EXPIRED_ITERATOR and failures < MAX_TRIES):
            return
        if code_of(error) in (INVALID, NOT_FOUND):
            msg = f"Shard {self._shard} cannot be read on from where it was planned: {error}"
            raise StageError(
                msg,
                left="Nothing was committed.",
                todo="The batch is planned again, which tells whether rows are gone.",
            ) from error
        if not is_passing(error) or failures >= MAX_TRIES:
            raise translated(error, self._spec.stream, f"reading {self._shard}") from error

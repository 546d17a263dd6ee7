"""One consumer that reads several ranges by assignment, and knows of each how far it has got.

A range ends when everything before its end was handed over, whether or not a record with the last offset exists:
compaction leaves gaps and transactions leave marks that no consumer ever sees. Three things tell it: a record at or
behind the end, the end of the partition at or behind it, or the consumer's own position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lading.sources.kafka.client import Complaints, open_consumer, without_secrets
from lading.sources.kafka.errors import cut_while_reading, read_failed
from lading.sources.kafka.spec import KafkaSpec

if TYPE_CHECKING:
    from confluent_kafka import Message

_MOST_AT_ONCE = 4096
_BYTES_AT_ONCE = 4 * 1024 * 1024
_WAIT_S = 0.05

_CUT = frozenset(("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE", "_LOG_TRUNCATION"))
_PASSING = frozenset(
    (
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_TIMED_OUT",
        "_UNKNOWN_TOPIC",
        "_UNKNOWN_PARTITION",
        "UNKNOWN_TOPIC_OR_PART",
        "UNKNOWN_TOPIC_ID",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "BROKER_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "KAFKA_STORAGE_ERROR",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
        "GROUP_AUTHORIZATION_FAILED",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
    )
)
"""Errors that the client gets over by itself. After any other one it may have left records out."""


class Run:
    """A range while it is read: how far it has got, and what waits to be taken."""

    __slots__ = (
        "at",
        "closed",
        "end",
        "keeps_messages",
        "leader_epoch",
        "max_bytes",
        "messages",
        "number",
        "offsets",
        "size",
        "skipped",
        "start",
        "values",
        "waiting_bytes",
    )

    def __init__(
        self,
        *,
        number: int,
        start: int,
        end: int,
        max_bytes: int,
        keeps_messages: bool,
        leader_epoch: int | None = None,
    ) -> None:
        self.number = number
        self.start = start
        self.end = end
        self.max_bytes = max_bytes
        self.keeps_messages = keeps_messages
        self.leader_epoch = leader_epoch
        self.at = start
        """Everything before it was added."""
        self.closed = start >= end
        """Nothing more is added."""
        self.size = 0
        self.skipped = 0
        self._empty()

    def _empty(self) -> None:
        self.values: list[bytes] = []
        self.offsets: list[int] = []
        self.messages: list[Message] = []
        self.waiting_bytes = 0

    def add(self, message: Any) -> None:
        """Take in the next record. One behind the end says that the range is whole."""
        offset = message.offset()
        if self.closed or offset < self.at:
            return
        if offset >= self.end:
            self.reach(offset)
            return
        self.at = offset + 1
        value = message.value()
        if value:
            self.values.append(value)
            self.offsets.append(offset)
            if self.keeps_messages:
                self.messages.append(message)
            self.size += len(value)
            self.waiting_bytes += len(value)
        else:
            self.skipped += 1
        self.closed = self.at >= self.end or self.size >= self.max_bytes

    def reach(self, offset: int) -> None:
        """No record that is not yet added is before this offset."""
        if not self.closed and offset > self.at:
            self.at = min(offset, self.end)
            self.closed = self.at >= self.end

    def take(self) -> tuple[list[bytes], list[int], list[Message]]:
        """What was added since the last time."""
        taken = (self.values, self.offsets, self.messages)
        self._empty()
        return taken


class Fetcher:
    """Fetches for the runs that are assigned. Not for several threads."""

    def __init__(self, spec: KafkaSpec) -> None:
        self._spec = spec
        self._complaints = Complaints(spec)
        self._consumer = open_consumer(spec, self._complaints)
        self._runs: dict[int, Run] = {}
        self._seen_rows = 0
        self._seen_bytes = 0

    def is_fetching(self, run: Run) -> bool:
        """Whether the run is assigned."""
        return run.number in self._runs

    def assign(self, runs: Iterable[Run]) -> None:
        """Read these from where they are, and no others."""
        from confluent_kafka import TopicPartition

        self._runs = {run.number: run for run in runs if not run.closed}
        self._consumer.assign([TopicPartition(self._spec.topic, run.number, run.at) for run in self._runs.values()])

    def pull(self) -> None:
        """Add what has come to its runs; wait a moment when nothing has."""
        count = self._count()
        messages: list[Any] = self._consumer.consume(count, 0) or self._consumer.consume(1, _WAIT_S)
        if not messages:
            self._ask_positions()
        for message in messages:
            if message.error() is not None:
                self._take_event(message)
            elif (run := self._runs.get(message.partition())) is not None:
                run.add(message)
        self._learn(messages)
        self._drop_closed()

    def explain(self, what: str) -> str:
        """What happened, and why if the client has said so."""
        return self._complaints.explain(what)

    def close(self) -> None:
        """Let go of the connection."""
        self._consumer.close()

    def _count(self) -> int:
        """As many records as make a few megabytes, going by those that came before."""
        if not self._seen_bytes:
            return 256
        return max(1, min(_MOST_AT_ONCE, _BYTES_AT_ONCE * self._seen_rows // self._seen_bytes))

    def _learn(self, messages: Sequence[Any]) -> None:
        if messages:
            self._seen_rows = len(messages)
            self._seen_bytes = sum(map(len, messages))

    def _ask_positions(self) -> None:
        """The consumer passes marks of transactions without a word."""
        from confluent_kafka import TopicPartition

        for told in self._consumer.position([TopicPartition(self._spec.topic, number) for number in self._runs]):
            if told.offset >= 0:
                self._runs[told.partition].reach(told.offset)

    def _drop_closed(self) -> None:
        """What comes after a closed range would fill the queue before the others get their turn."""
        from confluent_kafka import TopicPartition

        closed = [number for number, run in self._runs.items() if run.closed]
        if closed and len(closed) < len(self._runs):
            self._consumer.incremental_unassign([TopicPartition(self._spec.topic, number) for number in closed])
            for number in closed:
                del self._runs[number]

    def _take_event(self, message: Any) -> None:
        error, run = message.error(), self._runs.get(message.partition())
        if error.name() == "_PARTITION_EOF":
            if run is not None:
                run.reach(message.offset())
            return
        told = without_secrets(self._spec, error.str())
        if error.name() in _PASSING:
            self._complaints.last = told
        elif run is not None and error.name() in _CUT:
            raise cut_while_reading(self._spec.topic, run.number, run.at, told)
        elif run is not None or message.partition() < 0:
            raise read_failed(self._spec.topic, message.partition(), message.offset(), told)

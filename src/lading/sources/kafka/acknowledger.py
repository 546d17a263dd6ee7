"""Tells a consumer group how far a job is, for the tools that look there. Nobody reads it back."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from lading.errors import LadingError
from lading.ids import JobId
from lading.model.bill import Bill
from lading.sources.kafka.client import Complaints, group_of, open_consumer, without_secrets
from lading.sources.kafka.spec import KafkaSpec
from lading.sources.kafka.starts import offset_or_none

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_LOG = logging.getLogger(__name__)
_LOOK_S = 0.1


class KafkaAcknowledger:
    """Implements the coordinator's Follower: best effort, after the commit, and it never raises.

    It does not wait: a thread of its own sends, and of what comes meanwhile only the newest. Where it is lost, the next
    bill says more than it did.

    It commits offsets with a consumer that never joins its group. Not with the admin client: librdkafka's
    AlterConsumerGroupOffsets uses memory that it has freed when the coordinator's connection breaks, and its assertion
    then ends the whole process.
    """

    def __init__(self, spec: KafkaSpec, *, timeout_s: float = 10.0) -> None:
        self._spec = spec
        self._timeout_s = timeout_s
        self._idle = threading.Condition()
        self._followed: dict[JobId, int] = {}
        self._thread: threading.Thread | None = None
        self._next: Bill | None = None

    def followed_seq(self, job_id: JobId) -> int | None:
        """The newest bill that was taken in by this process."""
        return self._followed.get(job_id)

    def follow(self, bill: Bill) -> None:
        """Send the positions of a bill, unless a newer one was."""
        if not group_of(self._spec):
            return
        with self._idle:
            if self._followed.get(bill.job_id, -1) >= bill.seq:
                return
            self._followed[bill.job_id] = bill.seq
            self._next = bill
            if self._thread is None:
                self._thread = threading.Thread(target=self._send_all, name="lading-kafka-group", daemon=True)
                self._thread.start()

    def wait_until_idle(self, timeout_s: float = 30.0) -> bool:
        """Wait until everything was sent and answered; False when the time was over before."""
        with self._idle:
            return self._idle.wait_for(lambda: self._thread is None, timeout_s)

    def close(self) -> None:
        """What is under way may still be sent; nothing else is."""
        with self._idle:
            self._next = None

    def _send_all(self) -> None:
        """Send until nothing is left. The client is made, used and closed by this one thread."""
        client: _GroupClient | None = None
        while True:
            with self._idle:
                bill, self._next = self._next, None
                if bill is None:
                    self._thread = None
                    self._idle.notify_all()
                    break
            try:
                if offsets := self._offsets(bill):
                    client = client or _GroupClient(self._spec)
                    if problem := client.commit(offsets, self._timeout_s):
                        self._complain(problem)
            except Exception as error:  # noqa: BLE001 - acknowledging is a courtesy; the load must not care
                self._complain(error)
        if client is not None:
            client.close()

    def _offsets(self, bill: Bill) -> list[TopicPartition]:
        from confluent_kafka import TopicPartition

        return [
            TopicPartition(self._spec.topic, int(name), offset)
            for name, state in bill.positions.partitions.items()
            if (offset := offset_or_none(state.at)) is not None
        ]

    def _complain(self, error: object) -> None:
        told = str(error) if isinstance(error, LadingError) else without_secrets(self._spec, str(error))
        _LOG.warning("Consumer group %s was not told the positions of a job: %s", group_of(self._spec), told)


class _GroupClient:
    """A consumer that never joins its group and never reads. Of one thread."""

    def __init__(self, spec: KafkaSpec) -> None:
        self._complaints = Complaints(spec)
        self._answers: list[tuple[object, list[TopicPartition]]] = []
        self._consumer = open_consumer(
            spec, self._complaints, on_commit=lambda error, places: self._answers.append((error, places))
        )

    def commit(self, offsets: list[TopicPartition], timeout_s: float) -> object | None:
        """What went wrong, if anything. An answer can be good as a whole and bad for a partition."""
        self._answers.clear()
        # Not the call that waits: without a broker it waits for minutes.
        self._consumer.commit(offsets=offsets, asynchronous=True)
        for _ in range(max(1, round(timeout_s / _LOOK_S))):
            self._consumer.poll(_LOOK_S)
            if self._answers:
                error, places = self._answers[0]
                return error or next((place.error for place in places if place.error is not None), None)
        return self._complaints.explain(f"no broker answered within {timeout_s:g} s")

    def close(self) -> None:
        self._consumer.close()

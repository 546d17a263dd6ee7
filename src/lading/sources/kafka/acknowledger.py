"""Tells a consumer group how far a job is, for the tools that look there. Nobody reads it back."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from threading import Condition
from typing import TYPE_CHECKING, Any

from lading.errors import LadingError
from lading.ids import JobId
from lading.model.bill import Bill
from lading.sources.kafka.client import group_of, open_admin, without_secrets
from lading.sources.kafka.spec import KafkaSpec
from lading.sources.kafka.starts import offset_or_none

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_LOG = logging.getLogger(__name__)


class KafkaAcknowledger:
    """Implements the coordinator's Follower: best effort, after the commit, and it never raises.

    It does not wait: at most one request is under way, and of what comes meanwhile only the newest is sent. Where it
    is lost, the next bill says more than it did.
    """

    def __init__(self, spec: KafkaSpec, *, timeout_s: float = 10.0) -> None:
        self._spec = spec
        self._timeout_s = timeout_s
        self._admin: AdminClient | None = None
        self._idle = Condition()
        self._followed: dict[JobId, int] = {}
        self._underway: Future[Any] | None = None
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
        self._send()

    def wait_until_idle(self, timeout_s: float = 30.0) -> bool:
        """Wait until everything was sent and answered; False when the time was over before."""
        with self._idle:
            return self._idle.wait_for(lambda: self._underway is None and self._next is None, timeout_s)

    def close(self) -> None:
        """Let go of the connection, which others may share. What is under way may be lost."""
        self._admin = None

    def _send(self) -> None:
        with self._idle:
            if self._underway is not None or self._next is None:
                return
            bill, self._next = self._next, None
            try:
                started = self._underway = self._start(bill)
            except Exception as error:  # noqa: BLE001 - acknowledging is a courtesy; the load must not care
                started = None
                self._complain(error)
            self._idle.notify_all()
        if started is not None:
            started.add_done_callback(self._done)

    def _start(self, bill: Bill) -> Future[Any] | None:
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        offsets = [
            TopicPartition(self._spec.topic, int(name), offset)
            for name, state in bill.positions.partitions.items()
            if (offset := offset_or_none(state.at)) is not None
        ]
        if not offsets:
            return None
        if self._admin is None:
            self._admin, _ = open_admin(self._spec)
        group = group_of(self._spec)
        request = ConsumerGroupTopicPartitions(group, offsets)
        asked = self._admin.alter_consumer_group_offsets([request], request_timeout=self._timeout_s)
        return asked[group]

    def _done(self, future: Future[Any]) -> None:
        for error in _errors(future):
            self._complain(error)
        with self._idle:
            self._underway = None
            self._idle.notify_all()
        self._send()

    def _complain(self, error: object) -> None:
        told = str(error) if isinstance(error, LadingError) else without_secrets(self._spec, str(error))
        _LOG.warning("Consumer group %s was not told the positions of a job: %s", group_of(self._spec), told)


def _errors(future: Future[Any]) -> list[object]:
    """An answer can be good as a whole and bad for a partition; the first one is enough to say."""
    if (error := future.exception()) is not None:
        return [error]
    return [place.error for place in future.result().topic_partitions if place.error is not None][:1]

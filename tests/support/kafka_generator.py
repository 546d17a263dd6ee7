"""Writes messages that can be told apart: each key belongs to one partition and counts from 0."""

from __future__ import annotations

import json
from typing import Any

from lading.clock import SystemClock
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics

_FLUSH_S = 60.0


class KafkaGenerator:
    """Puts `{"k": "p3-1", "n": 17, "pad": "…"}` into a topic, each key in order and always into its own partition.

    Keys are bound to partitions by their names, so that partitions which are added change the place of no old key.
    The producer numbers its messages: a broker that dies and comes back takes none of them twice.
    """

    def __init__(self, broker: KafkaBroker, topic: str, *, partitions: int = 4, keys_each: int = 5) -> None:
        from confluent_kafka import Producer

        self.topic = topic
        self._keys_each = keys_each
        self.sent: dict[str, int] = {}
        """Per key how many messages the broker has acknowledged: 0, 1, … sent - 1."""
        self._errors: list[Any] = []
        self._topics = Topics(broker)
        self._topics.create(topic, partitions)
        self._producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        )
        self._partitions = 0
        self._add_keys(partitions)

    @property
    def count(self) -> int:
        return sum(self.sent.values())

    def grow(self, partitions: int) -> None:
        """Add partitions, each with keys of its own."""
        self._topics.grow(self.topic, partitions)
        self._wait_until_known(partitions)
        self._add_keys(partitions)

    def put(self, count: int, *, pad_bytes: int = 0) -> None:
        """Write at least `count` messages, the same number of each key, and wait until the broker has them."""
        self.begin(count, pad_bytes=pad_bytes)
        self.wait()

    def begin(self, count: int, *, pad_bytes: int = 0) -> None:
        """As `put`, but do not wait."""
        each = -(-count // len(self.sent))
        for _ in range(each):
            for key, n in self.sent.items():
                self._produce(key, message_of(key, n, pad_bytes))
                self.sent[key] = n + 1

    def wait(self) -> None:
        left = self._producer.flush(_FLUSH_S)
        if left or self._errors:
            msg = f"The broker did not take {left} messages: {self._errors[:3]}"
            raise RuntimeError(msg)

    def _wait_until_known(self, partitions: int) -> None:
        """The producer refuses partitions that it has not heard of."""
        clock = SystemClock()
        end_s = clock.monotonic_s() + _FLUSH_S
        while len(self._producer.list_topics(self.topic, timeout=10).topics[self.topic].partitions) < partitions:
            if clock.monotonic_s() > end_s:
                msg = f"{self.topic} did not get {partitions} partitions"
                raise RuntimeError(msg)
            clock.sleep(0.05)

    def _produce(self, key: str, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(
                    self.topic, value, key=key, partition=partition_of(key), on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._errors.append(error)

    def _add_keys(self, partitions: int) -> None:
        for partition in range(self._partitions, partitions):
            self.sent |= {f"p{partition}-{number}": 0 for number in range(self._keys_each)}
        self._partitions = partitions


def partition_of(key: str) -> int:
    """Where a key belongs."""
    return int(key[1:].partition("-")[0])


def message_of(key: str, n: int, pad_bytes: int = 0) -> bytes:
    """The bytes of one message."""
    return json.dumps({"k": key, "n": n, "pad": "x" * pad_bytes}).encode()

"""Topics that are really there, or really gone.

The controller answers when it has written the change down; the broker hears of it a moment later. Between the two a
topic that was deleted still takes positions of a group, and a partition that was added is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lading.clock import SystemClock
from tests.support.kafka_broker import KafkaBroker

if TYPE_CHECKING:
    from concurrent.futures import Future

_PATIENCE_S = 30.0


class Topics:
    """Makes, grows and deletes topics, and waits until the broker itself says so."""

    def __init__(self, broker: KafkaBroker) -> None:
        self._admin = broker.admin()

    def create(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """A new topic with one replica."""
        from confluent_kafka.cimpl import NewTopic

        self._do(self._admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))]))
        self._wait_for(name, partitions)

    def grow(self, name: str, partitions: int) -> None:
        """Add partitions until there are as many."""
        from confluent_kafka.cimpl import NewPartitions

        self._do(self._admin.create_partitions([NewPartitions(name, partitions)]))
        self._wait_for(name, partitions)

    def delete(self, name: str) -> None:
        """Remove a topic and what it holds."""
        self._do(self._admin.delete_topics([name]))
        self._wait_for(name, 0)

    def _do(self, asked: Mapping[str, Future[Any]]) -> None:
        for future in asked.values():
            future.result(_PATIENCE_S)

    def _wait_for(self, name: str, partitions: int) -> None:
        clock = SystemClock()
        until_s = clock.monotonic_s() + _PATIENCE_S
        while (known := self._known(name)) != partitions:
            if clock.monotonic_s() > until_s:
                msg = f"The broker knows {known} partitions of {name}, not {partitions}"
                raise RuntimeError(msg)
            clock.sleep(0.01)

    def _known(self, name: str) -> int:
        # All topics are asked for: to ask for one by its name makes the client remember it.
        topic = self._admin.list_topics(timeout=10).topics.get(name)
        return 0 if topic is None else sum(one.leader >= 0 for one in topic.partitions.values())

"""Whether a log still is the one that was read: an unclean election cuts it, and others write where rows were.

The position of a partition has a mark: the leader epoch when its end was asked for. Everything before the position
was in the log of that leader. While the epoch is the same, no log was cut. After an election the new leader says where
records of that epoch end in its own log (OffsetForLeaderEpoch); an end before the position means that records which
were read are gone, and that what is there now was written later and never read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.clock import Clock
from lading.model.positions import PartitionState
from lading.sources.kafka.client import Complaints, open_consumer, without_secrets
from lading.sources.kafka.errors import log_cut, unreachable
from lading.sources.kafka.spec import KafkaSpec

EPOCH = "leader_epoch"
_WAIT_S = 0.2
_TRUNCATION = "truncation"
"""librdkafka reports it under the name of the reset policy that it applies; only the text tells."""


def epoch_marks(epoch: int | None) -> dict[str, str]:
    """The mark of a position that the leader of this epoch has in its log."""
    return {} if epoch is None else {EPOCH: str(epoch)}


def epoch_or_none(state: PartitionState) -> int | None:
    """The mark, of positions that have one: older bills have none, and brokers before 2.1 tell none."""
    text = state.marks.get(EPOCH, "")
    return int(text) if text.isdigit() else None


def check_not_cut(spec: KafkaSpec, clock: Clock, places: Mapping[int, tuple[int, int]], timeout_s: float) -> None:
    """Ask leaders whether they have everything before offset, of leader epoch. By partition: offset, epoch.

    The client asks before it fetches: whatever it delivers of a partition, also its end, means that the log is whole.
    Raises SourceError, or ListingError when nobody answers.
    """
    from confluent_kafka import TopicPartition

    complaints, until_s = Complaints(spec), clock.monotonic_s() + timeout_s
    consumer = open_consumer(spec, complaints)
    try:
        asked = [TopicPartition(spec.topic, number, at, leader_epoch=epoch) for number, (at, epoch) in places.items()]
        consumer.assign(asked)
        waiting = dict(places)
        while waiting:
            message: Any = consumer.poll(_WAIT_S)
            if message is not None and _is_answer(spec, message, waiting):
                waiting.pop(message.partition(), None)
            elif clock.monotonic_s() > until_s:
                told = complaints.explain(f"no answer about the log of partition {min(waiting)} in time")
                raise unreachable(spec.topic, spec.brokers, told)
    finally:
        consumer.close()


def _is_answer(spec: KafkaSpec, message: Any, waiting: Mapping[int, tuple[int, int]]) -> bool:
    error, number = message.error(), message.partition()
    if error is None or error.name() == "_PARTITION_EOF":
        return True
    told = without_secrets(spec, error.str())
    if number in waiting and (error.name() == "_LOG_TRUNCATION" or _TRUNCATION in told):
        raise log_cut(spec.topic, number, waiting[number][0], told)
    return False  # It passes, or time runs out.

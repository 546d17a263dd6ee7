"""Telling the consumer group, on a real broker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from lading.clock import SystemClock
from lading.ids import Incarnation, JobId, Token
from lading.model.bill import Bill, BillKind
from lading.model.positions import PartitionState, Positions
from lading.sources.kafka.acknowledger import KafkaAcknowledger
from tests.sources.kafka.support import Topic, spec_of
from tests.support.kafka_broker import KafkaBroker

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = JobId("00000000-0000-4000-8000-000000000001")


def bill(seq: int, **at: str) -> Bill:
    partitions = {name.removeprefix("p"): PartitionState(at=place) for name, place in at.items()}
    return Bill(
        job_id=JOB,
        job_name="j",
        kind=BillKind.LOAD,
        epoch=0,
        seq=seq,
        token=Token(1),
        replaces=None,
        continues=None,
        incarnation=Incarnation("one"),
        positions=Positions(partitions=partitions),
        planned_at=NOW,
        billed_at=NOW,
    )


def told(broker: KafkaBroker, group: str) -> dict[int, int]:
    admin = broker.admin()  # A client that nobody holds never answers.
    answer: Any = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    return {place.partition: place.offset for place in answer[group].result(timeout=20).topic_partitions}


def test_the_group_is_told_the_newest_positions(broker: KafkaBroker) -> None:
    topic = Topic(broker, partitions=3)
    group = f"group-{topic.name}"
    acknowledger = KafkaAcknowledger(topic.spec(client={"group.id": group}))
    assert acknowledger.followed_seq(JOB) is None
    # A new broker has nobody to keep groups at first: what is lost, the next bill makes good.
    for seq in range(1, 50):
        for step in range(3):
            acknowledger.follow(bill(seq * 10 + step, p0=str(seq * 10 + step), p1="", p2="1"))
        assert acknowledger.wait_until_idle()
        if told(broker, group):
            break
        SystemClock().sleep(0.2)
    newest = seq * 10 + 2
    assert told(broker, group) == {0: newest, 2: 1}
    acknowledger.follow(bill(1, p0="1"))
    assert acknowledger.wait_until_idle()
    assert told(broker, group) == {0: newest, 2: 1}
    assert acknowledger.followed_seq(JOB) == newest
    acknowledger.close()


def test_a_topic_that_is_gone_is_complained_about(topic: Topic, caplog: pytest.LogCaptureFixture) -> None:
    acknowledger = KafkaAcknowledger(topic.spec(client={"group.id": f"group-{topic.name}"}))
    topic.delete()
    acknowledger.follow(bill(1, p0="5"))
    assert acknowledger.wait_until_idle()
    assert "was not told" in caplog.text


def test_without_a_group_nobody_is_told() -> None:
    acknowledger = KafkaAcknowledger(spec_of("127.0.0.1:1", "t"))
    acknowledger.follow(bill(1, p0="5"))
    assert acknowledger.followed_seq(JOB) is None


@pytest.mark.parametrize("client", [{}, {"no.such.setting": "1"}])
def test_it_never_raises_and_never_waits(client: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    acknowledger = KafkaAcknowledger(spec_of("127.0.0.1:1", "t", client={"group.id": "g", **client}), timeout_s=0.3)
    acknowledger.follow(bill(1, p0="5"))
    acknowledger.follow(bill(2, p0="6"))
    assert acknowledger.wait_until_idle()
    assert "Consumer group g was not told" in caplog.text
    acknowledger.close()

"""Starts, listings and plans, on a real broker."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer

from lading.clock import SystemClock
from lading.errors import ListingError, SourceError, SqlError, TrimmedError
from lading.model.batch import Limits
from lading.model.positions import PartitionState
from lading.sources.kafka.source import KafkaSource
from lading.sources.kafka.starts import OFFSET_BEGINNING, OFFSET_END, render_start
from tests.sources.kafka.support import FROM_BEGINNING, Loader, Topic, row, spec_of
from tests.support.kafka_broker import KAFKA_PASSWORD, KAFKA_USER, KafkaBroker


def test_a_start_becomes_an_offset_for_every_partition(broker: KafkaBroker) -> None:
    topic = Topic(broker, partitions=4)
    for partition in range(4):
        topic.count_up(0, 10, partition)
    topic.trim(3, partition=1)
    source = KafkaSource(topic.spec(), SystemClock())
    opened = source.open(render_start(OFFSET_END, {0: "7", 1: OFFSET_BEGINNING, 3: "99"}))
    assert {name: state.at for name, state in opened.partitions.items()} == {"0": "7", "1": "3", "2": "10", "3": "99"}
    assert opened.incarnation
    assert opened.incarnation == source.list_partitions().incarnation


def test_a_time_becomes_the_first_offset_at_or_after_it(topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": topic.broker.bootstrap})
    for number in range(10):
        producer.produce(topic.name, row("a", number), partition=0, timestamp=1_700_000_000_000 + number * 1000)
    producer.flush(20)
    source = KafkaSource(topic.spec(), SystemClock())
    for second, at in ((-5, "0"), (4, "4"), (9, "9"), (10, "10")):
        moment = datetime.fromtimestamp(1_700_000_000 + second, UTC).isoformat()
        assert source.open(render_start(moment)).partitions["0"].at == at
        assert source.open(render_start(OFFSET_END, {0: moment})).partitions["0"].at == at


def test_the_end_is_pinned_when_the_job_opens(topic: Topic) -> None:
    topic.count_up(0, 5)
    loader = Loader(topic.spec()).open(render_start(OFFSET_END))
    topic.count_up(5, 9)
    assert loader.drain().numbers == [5, 6, 7, 8]


def test_pinned_partitions_are_the_only_ones(broker: KafkaBroker) -> None:
    topic = Topic(broker, partitions=3)
    for partition in range(3):
        topic.count_up(0, 3, partition)
    loader = Loader(topic.spec(partitions=(0, 2))).open()
    topic.grow(5)
    loader.drain()
    assert loader.at == {"0": "3", "2": "3"}
    assert {one["_partition"] for one in loader.rows} == {0, 2}


def test_a_partition_that_is_not_there_is_refused(topic: Topic) -> None:
    words = f"custom kafka partition 7 .*invalid for topic {topic.name}"
    with pytest.raises(SqlError, match=words):
        KafkaSource(topic.spec(), SystemClock()).open(render_start(OFFSET_END, {7: "1"}))
    with pytest.raises(SqlError, match=words):
        KafkaSource(topic.spec(partitions=(0, 7)), SystemClock()).open(FROM_BEGINNING)


def test_a_topic_that_is_not_there_is_named(broker: KafkaBroker) -> None:
    source = KafkaSource(spec_of(broker.bootstrap, "no-such-topic"), SystemClock())
    with pytest.raises(ListingError, match="has no topic no-such-topic"):
        source.open(FROM_BEGINNING)
    with pytest.raises(ListingError, match="has no topic no-such-topic"):
        source.list_partitions()


def test_rows_are_shared_and_nothing_new_is_no_split(broker: KafkaBroker) -> None:
    topic = Topic(broker, partitions=3)
    topic.count_up(0, 100, 0)
    topic.count_up(0, 4, 2)
    source = KafkaSource(topic.spec(), SystemClock())
    opened = source.open(FROM_BEGINNING)
    splits = source.plan(opened.partitions, Limits(rows=24))
    assert [(one.number, one.partition, one.start, one.end) for one in splits] == [
        (0, "0", "0", "20"),
        (1, "2", "0", "4"),
    ]
    loader = Loader(topic.spec()).open().drain(Limits(rows=24))
    assert loader.batches == 6
    assert loader.at == {"0": "100", "1": "0", "2": "4"}
    assert source.plan(loader.positions.partitions, Limits()) == ()
    assert source.plan({}, Limits()) == ()


def test_lag_counts_offsets(broker: KafkaBroker) -> None:
    topic = Topic(broker, partitions=3)
    topic.count_up(0, 10, 0)
    topic.count_up(0, 6, 1)
    topic.trim(2, partition=1)
    loader = Loader(topic.spec()).open(render_start(OFFSET_END, {0: "4"}))
    states = {**loader.positions.partitions, "1": PartitionState(at=""), "2": PartitionState(at="0", finished=True)}
    sight = loader.source.sight(type(loader.positions)(partitions=states))
    assert dict(sight.lag) == {"0": 6, "1": 4}
    assert sight.open_partitions == ("0", "1")


def test_offsets_that_are_gone_stop_the_job_with_the_size_of_the_gap(topic: Topic) -> None:
    topic.count_up(0, 20)
    loader = Loader(topic.spec()).open(render_start(OFFSET_END, {0: "5"}))
    topic.trim(12)
    with pytest.raises(
        TrimmedError, match=r"Offset out of range: consume partition 0.*consume offset 5.*7 offsets"
    ) as no:
        loader.batch()
    assert no.value.facts == {"partition": "0", "at": "5", "horizon": "12"}
    assert loader.numbers == []


def test_who_chose_to_go_on_reads_behind_the_gap_and_it_is_written_down(topic: Topic) -> None:
    topic.count_up(0, 20)
    loader = Loader(topic.spec(), on_data_loss="CONTINUE").open()
    topic.trim(12)
    assert loader.drain().numbers == list(range(12, 20))
    assert loader.gaps == ["0:0-12"]


def test_a_position_behind_the_end_stops_the_job(topic: Topic) -> None:
    topic.count_up(0, 5)
    loader = Loader(topic.spec()).open(render_start(OFFSET_END, {0: "6"}))
    with pytest.raises(SourceError, match=r"Offset 6 .* is greater than kafka latest offset 5"):
        loader.batch()


def test_a_position_that_is_no_offset_is_refused(topic: Topic) -> None:
    with pytest.raises(SqlError, match="must be an integer"):
        KafkaSource(topic.spec(), SystemClock()).plan({"0": PartitionState(at="abc")}, Limits())


def test_new_partitions_are_read_from_their_beginning_whatever_the_default(broker: KafkaBroker) -> None:
    topic = Topic(broker, partitions=1)
    topic.count_up(0, 5)
    loader = Loader(topic.spec()).open(render_start(OFFSET_END))
    topic.grow(3)
    topic.count_up(0, 7, 2)
    loader.drain()
    assert loader.at == {"0": "5", "1": "", "2": "7"}
    assert [(one["_partition"], int(one["n"])) for one in loader.rows] == [(2, number) for number in range(7)]
    topic.count_up(0, 3, 1)
    assert loader.drain().at == {"0": "5", "1": "3", "2": "7"}


def test_a_topic_that_was_made_again_is_another_source(topic: Topic) -> None:
    topic.count_up(0, 5)
    loader = Loader(topic.spec()).open().drain()
    topic.delete()
    topic.create()
    topic.count_up(100, 110)
    with pytest.raises(SourceError, match="deleted and made again"):
        loader.batch()


def test_the_connection_may_be_dropped_at_any_time(topic: Topic) -> None:
    topic.count_up(0, 3)
    loader = Loader(topic.spec()).open()
    loader.source.close()
    assert loader.drain().numbers == [0, 1, 2]
    loader.source.close()


def sign_in(broker: KafkaBroker, password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": KAFKA_USER,
        "sasl.password": password,
        "ssl.ca.location": str(broker.certificate),
    }


@pytest.mark.usefixtures("own_broker")
def test_signing_in_over_tls(topic: Topic) -> None:
    topic.count_up(0, 3)
    broker = topic.broker
    spec = spec_of(broker.secure_bootstrap, topic.name, client=sign_in(broker, KAFKA_PASSWORD))
    assert Loader(spec).open().drain().numbers == [0, 1, 2]


@pytest.mark.usefixtures("own_broker")
def test_a_wrong_password_is_said_and_not_shown(topic: Topic) -> None:
    broker = topic.broker
    spec = spec_of(broker.secure_bootstrap, topic.name, client=sign_in(broker, "wrong-sesame"))
    with pytest.raises(ListingError, match="uthentication") as caught:
        KafkaSource(spec, SystemClock(), timeout_s=1.5).open(FROM_BEGINNING)
    assert "wrong-sesame" not in str(caught.value)

"""Rows that are gone from a log are told, also where others stand in their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from lading.clock import SystemClock
from lading.errors import SourceError, TrimmedError
from lading.model.batch import Limits
from lading.model.positions import PartitionState
from lading.sources.kafka.epochs import check_not_cut
from lading.sources.kafka.errors import log_cut
from lading.sources.kafka.listing import Bounds, Cluster, Topic
from lading.sources.kafka.payload import parse_payload
from lading.sources.kafka.source import KafkaSource
from lading.sources.kafka.spec import KafkaSpec
from lading.sources.kafka.starts import OFFSET_END, render_start
from tests.sources.kafka.support import Loader, new_name, row, spec_of
from tests.sources.kafka.support import Topic as RealTopic
from tests.support.kafka_broker import KafkaBroker, MockKafka


def test_a_partition_that_was_trimmed_before_its_first_read_is_noticed(broker: KafkaBroker) -> None:
    topic = RealTopic(broker)
    topic.count_up(0, 3)
    loader = Loader(topic.spec()).open().drain()
    topic.grow(2)
    topic.count_up(10, 20, partition=1)
    topic.trim(4, partition=1)
    with pytest.raises(TrimmedError, match=r"consume offset 0, but the first offset that is left is 4; 4 offsets"):
        loader.drain()
    goes_on = Loader(topic.spec(), on_data_loss="CONTINUE")
    goes_on.positions = loader.positions
    goes_on.drain()
    assert (goes_on.numbers, goes_on.gaps) == (list(range(14, 20)), ["1:-4"])


def test_a_leader_that_lacks_what_was_read_says_so(mock: MockKafka) -> None:
    name = new_name()
    for number in range(10):
        mock.producer.produce(name, row("a", number), partition=0)
    assert mock.producer.flush(20) == 0
    spec, clock = spec_of(mock.bootstrap, name), SystemClock()
    check_not_cut(spec, clock, {0: (10, 0)}, 20.0)
    check_not_cut(spec, clock, {0: (4, 0)}, 20.0)
    with pytest.raises(SourceError, match="was cut before offset 15"):
        check_not_cut(spec, clock, {0: (15, 0)}, 20.0)


class Elections(Cluster):
    """A topic whose leader changes. What new leaders have is scripted, and who asked them is noted."""

    def __init__(self, spec: KafkaSpec, *, kept: int = 10**9) -> None:
        super().__init__(spec, SystemClock())
        self.epoch, self.kept = 3, kept
        self.asked: list[Mapping[int, tuple[int, int]]] = []

    def topic(self) -> Topic:
        return Topic(incarnation="id", partitions=(0,))

    def bounds(self, partitions: Iterable[int]) -> Bounds:
        numbers = tuple(partitions)
        return Bounds(low=dict.fromkeys(numbers, 0), end=dict.fromkeys(numbers, 40), epoch={0: self.epoch})

    def check_not_cut(self, places: Mapping[int, tuple[int, int]]) -> None:
        self.asked.append(places)
        for number, (at, _) in places.items():
            if at > self.kept:
                raise log_cut("t", number, at, "scripted")


def source_of(elections: Elections) -> KafkaSource:
    source = KafkaSource(spec_of("127.0.0.1:1", "t"), SystemClock())
    source._cluster = elections
    return source


def test_a_position_keeps_the_epoch_of_the_leader_that_had_everything_before_it() -> None:
    source = source_of(Elections(spec_of("127.0.0.1:1", "t")))
    opened = source.open(render_start(OFFSET_END)).partitions["0"]
    assert (opened.at, opened.marks) == ("40", {"leader_epoch": "3"})
    assert source.open(render_start(OFFSET_END, {0: "99"})).partitions["0"].marks == {}, "nobody has these yet"
    split = source.plan({"0": PartitionState(at="7", marks={"leader_epoch": "3"})}, Limits())[0]
    assert parse_payload(split.payload).leader_epoch == 3


def test_after_an_election_the_new_leader_is_asked_once_for_what_was_read() -> None:
    elections = Elections(spec_of("127.0.0.1:1", "t"))
    source, ready = source_of(elections), {"0": PartitionState(at="40", marks={"leader_epoch": "3"})}
    source.plan(ready, Limits())
    assert elections.asked == [], "the same leader cuts nothing"
    elections.epoch = 4
    for _ in range(3):
        source.plan(ready, Limits())
    assert elections.asked == [{0: (40, 3)}]
    source.plan({"0": PartitionState(at="40")}, Limits())
    assert len(elections.asked) == 1, "positions of older bills have no epoch"


def test_a_log_that_was_cut_by_an_unclean_election_stops_the_job() -> None:
    elections = Elections(spec_of("127.0.0.1:1", "t"), kept=20)
    elections.epoch = 4
    source, ready = source_of(elections), {"0": PartitionState(at="30", marks={"leader_epoch": "3"})}
    for _ in range(2):
        with pytest.raises(SourceError, match="was cut before offset 30") as stopped:
            source.plan(ready, Limits())
    assert not stopped.value.retry

"""Rows that are gone from a log are told, also where others stand in their place."""

from __future__ import annotations

import pytest

from lading.errors import TrimmedError
from lading.sources.kafka.faults import LogCutError
from lading.sources.kafka.starts import OFFSET_END, render_start
from lading.testing.kafka_broker import KafkaBroker
from tests.sources.kafka.support import Loader, Topic


def test_a_partition_that_was_trimmed_before_its_first_read_is_noticed(broker: KafkaBroker) -> None:
    topic = Topic(broker)
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


def test_a_log_that_was_cut_by_an_unclean_election_is_noticed(own_broker: KafkaBroker) -> None:
    broker = own_broker
    read, opened, whole = Topic(broker), Topic(broker), Topic(broker)
    for topic in (read, opened, whole):
        topic.count_up(0, 10)
    loader = Loader(read.spec()).open().drain()
    at_end = Loader(opened.spec()).open(render_start(OFFSET_END))
    untouched = Loader(whole.spec()).open().drain()
    broker.kill()
    broker.cut_log(read.name)
    broker.cut_log(opened.name)
    broker.start()
    for topic in (read, opened, whole):
        topic.count_up(100, 115)
    with pytest.raises(LogCutError, match="was cut before offset 10"):
        loader.drain()
    with pytest.raises(LogCutError, match="was cut before offset 10"):
        at_end.drain()
    assert loader.numbers == list(range(10))
    assert untouched.drain().numbers == [*range(10), *range(100, 115)], "an election alone stops nothing"

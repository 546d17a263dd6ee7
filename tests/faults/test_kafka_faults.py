"""Kafka whose connections are cut and slow: those to the bootstrap and those to the brokers it sends its clients to."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.faults.rig import Service, tell_counts
from tests.support.fault_proxy import TCP_FAULTS, FaultProxy, Weather, serve_faults
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics

SEEDS = int(os.environ.get("LADING_TEST_FAULT_SEEDS", "12"))


@pytest.fixture
def proxy(own_broker: KafkaBroker) -> Iterator[FaultProxy]:
    with serve_faults(f"127.0.0.1:{own_broker.behind_port}", "tcp", own_broker.proxy_port) as made:
        yield made


class Clicks:
    """A topic that is written past the proxy, and a routine load that reads through it."""

    def __init__(self, broker: KafkaBroker, proxy: FaultProxy, path: Path) -> None:
        self.proxy, self.sent, self.topic = proxy, 0, f"t{uuid.uuid4().hex[:8]}"
        Topics(broker).create(self.topic, 3)
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        self.service = Service(path / "home")
        words = {
            "kafka_broker_list": f"127.0.0.1:{proxy.port}",
            "kafka_topic": self.topic,
            "property.kafka_default_offsets": "OFFSET_BEGINNING",
        }
        source = ", ".join(f'"{name}"="{value}"' for name, value in words.items())
        self.put()
        self.service.sql(
            f"CREATE TABLE t (id BIGINT, city STRING) USING delta LOCATION '{path / 'lake'}';"
            f'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="json", "max_batch_interval"="2") FROM KAFKA({source})'
        )

    def put(self, count: int = 20) -> None:
        for number in range(self.sent, self.sent + count):
            value = json.dumps({"id": number, "city": "essen"}).encode()
            self._producer.produce(self.topic, value, partition=number % 3)
        assert self._producer.flush(10) == 0
        self.sent += count

    def check(self) -> None:
        self.proxy.calm()
        self.service.run_until(self.service.is_loaded(self.sent))
        self.service.turn()
        assert self.service.ids() == list(range(self.sent))
        assert self.service.lading.verify("default.j").is_clean


@pytest.fixture
def clicks(own_broker: KafkaBroker, proxy: FaultProxy, tmp_path: Path) -> Iterator[Clicks]:
    made = Clicks(own_broker, proxy, tmp_path)
    yield made
    made.service.close()


def test_a_connection_that_is_cut_in_each_batch_makes_no_wrong_row(clicks: Clicks) -> None:
    """The quick form of what follows."""
    for _ in range(2):
        clicks.put()
        clicks.proxy.set(Weather(script=["pass", "delay", "pass", "cut"] * 2, delay_s=0.01))
        clicks.service.turn()
    clicks.check()
    assert clicks.proxy.counts()["cut"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_connections_that_are_cut_make_no_wrong_row(clicks: Clicks, seed: int) -> None:
    clicks.proxy.set(Weather(rate=(0.02, 0.1, 0.3)[seed % 3], faults=TCP_FAULTS, seed=seed, delay_s=0.05))
    for _ in range(3):
        clicks.put()
        clicks.service.turn()
    clicks.check()
    tell_counts("kafka", clicks.proxy, clicks.sent)
    assert clicks.proxy.counts()["pass"] > 0


@pytest.mark.slow
def test_an_outage_is_a_reason_in_show(clicks: Clicks) -> None:
    clicks.service.run_until(clicks.service.is_loaded(clicks.sent))
    clicks.proxy.set(Weather(is_down=True))
    clicks.put()
    clicks.service.forget()
    for _ in range(2):
        clicks.service.turn()
    assert any(clicks.topic in told for told in clicks.service.reasons), clicks.service.reasons
    clicks.check()


@pytest.mark.slow
def test_a_scheduler_goes_on_by_itself_after_an_outage(clicks: Clicks) -> None:
    with clicks.service.scheduled():
        clicks.service.wait_until(clicks.service.is_loaded(clicks.sent))
        clicks.proxy.set(Weather(is_down=True))
        clicks.put()
        clicks.service.wait_until(lambda: any(clicks.topic in told for told in clicks.service.reasons), 120)
        clicks.proxy.calm()
        clicks.service.wait_until(clicks.service.is_loaded(clicks.sent), 120)
    clicks.check()

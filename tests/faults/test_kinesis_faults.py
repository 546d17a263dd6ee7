"""Kinesis that throttles, fails, cuts and loses answers."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lading.testing.kinesis.server import KinesisServer
from tests.faults.rig import Service, tell_counts
from tests.support.fault_proxy import HTTP_FAULTS, FaultProxy, Weather, serve_faults

SEEDS = int(os.environ.get("LADING_TEST_FAULT_SEEDS", "12"))


@pytest.fixture
def proxy(kinesis: KinesisServer) -> Iterator[FaultProxy]:
    with serve_faults(kinesis.endpoint, "kinesis") as made:
        yield made


class Clicks:
    """A stream behind the proxy that is written past it, and a routine load."""

    def __init__(self, server: KinesisServer, proxy: FaultProxy, path: Path, on_data_loss: str = "PAUSE") -> None:
        self.proxy, self.sent, self.stream = proxy, 0, f"s{uuid.uuid4().hex[:8]}"
        self._client = server.create_stream(self.stream, 2)
        self.service = Service(path / "home")
        words = {
            "aws.region": server.region,
            "kinesis_stream": self.stream,
            "aws.endpoint": proxy.endpoint,
            "aws.access_key": server.access_key,
            "aws.secret_key": server.secret_key,
            "property.kinesis_default_pos": "TRIM_HORIZON",
            "property.on_data_loss": on_data_loss,
        }
        source = ", ".join(f'"{name}"="{value}"' for name, value in words.items())
        self.service.sql(
            f"CREATE TABLE t (id BIGINT, city STRING) USING delta LOCATION '{path / 'lake'}';"
            f'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="json", "max_batch_interval"="1") FROM KINESIS({source})'
        )

    def put(self, count: int = 5) -> None:
        for number in range(self.sent, self.sent + count):
            data = json.dumps({"id": number, "city": "essen"}).encode()
            self._client.put_record(StreamName=self.stream, Data=data, PartitionKey=str(number))
        self.sent += count

    def check(self) -> None:
        self.proxy.calm()
        self.service.run_until(self.service.is_loaded(self.sent))
        self.service.turn()
        assert self.service.ids() == list(range(self.sent))
        assert self.service.lading.verify("default.j").is_clean


@pytest.fixture
def clicks(kinesis: KinesisServer, proxy: FaultProxy, tmp_path: Path) -> Iterator[Clicks]:
    made = Clicks(kinesis, proxy, tmp_path)
    yield made
    made.service.close()


def storm(clicks: Clicks, seed: int, rate: float, rounds: int) -> None:
    clicks.proxy.set(Weather(rate=rate, faults=HTTP_FAULTS, seed=seed, delay_s=0.02))
    for _ in range(rounds):
        clicks.put()
        clicks.service.turn()
    clicks.check()
    tell_counts("kinesis", clicks.proxy, clicks.sent)
    assert sum(count for fault, count in clicks.proxy.counts().items() if fault in HTTP_FAULTS) > 0


def test_a_stream_that_throttles_and_fails_makes_no_wrong_row(clicks: Clicks) -> None:
    storm(clicks, 1, 0.2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 2 + SEEDS))
def test_many_storms_make_no_wrong_row(clicks: Clicks, seed: int) -> None:
    storm(clicks, seed, (0.05, 0.2, 0.4)[seed % 3], 5)


@pytest.mark.slow
def test_throttling_that_lasts_is_a_reason_in_show(clicks: Clicks) -> None:
    clicks.put()
    clicks.service.turn()
    clicks.proxy.set(Weather(rate=1.0, faults=["busy"]))
    clicks.put()
    for _ in range(2):
        clicks.service.turn()
    assert any("ProvisionedThroughputExceeded" in told for told in clicks.service.reasons), clicks.service.reasons
    clicks.check()


@pytest.mark.parametrize("hours", [48, pytest.param(-48, marks=pytest.mark.slow)])
def test_a_clock_that_jumps_past_the_retention_takes_nothing_for_lost(
    kinesis: KinesisServer, proxy: FaultProxy, tmp_path: Path, hours: int
) -> None:
    clicks = Clicks(kinesis, proxy, tmp_path, "CONTINUE")
    clicks.put()
    clicks.service.turn()
    for jump in (hours, 0):
        clicks.service.clock.jump = timedelta(hours=jump)
        clicks.put()
        clicks.check()
    assert clicks.service.sql("SHOW LOAD GAPS FOR default.j") == []
    clicks.service.close()

"""Servers that take a request and never answer: neither an error nor the end of the connection tells of it.

Nobody but the client ends the waiting, after its own time-out. Slow, since those take up to a minute each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.clock import SystemClock
from lading.testing.kinesis.server import KinesisServer
from tests.faults.test_catalog_faults import COMMIT
from tests.faults.test_catalog_faults import Lake as CatalogLake
from tests.faults.test_catalog_faults import lake as lake
from tests.faults.test_catalog_faults import rest as rest
from tests.faults.test_glue_faults import COMMIT as GLUE_COMMIT
from tests.faults.test_glue_faults import Lake as GlueLake
from tests.faults.test_glue_faults import glue as glue
from tests.faults.test_kafka_faults import Clicks as KafkaClicks
from tests.faults.test_kafka_faults import clicks as clicks
from tests.faults.test_kafka_faults import proxy as proxy
from tests.faults.test_kinesis_faults import Clicks as KinesisClicks
from tests.faults.test_s3_faults import Lake
from tests.faults.test_store_faults import Shop
from tests.store.conftest import postgres as postgres
from tests.store.postgres import PostgresServer
from tests.support.fault_proxy import FaultProxy, Weather, serve_faults
from tests.tables.s3_server import S3Server

pytestmark = pytest.mark.slow


@pytest.fixture
def s3_proxy(s3: S3Server) -> Iterator[FaultProxy]:
    with serve_faults(s3.endpoint, "s3") as made:
        yield made


@pytest.mark.parametrize("fault", ["silent", "mute"])
@pytest.mark.parametrize(
    ("form", "request_line"),
    [
        ("delta", r"^PUT \S*/_delta_log/0*2\.json"),
        ("delta", r"^PUT \S*\.parquet"),
        ("delta", r"^GET \S*in(%2F|/)000\.csv"),
        ("delta", r"^GET \S*\?\S*prefix=in"),
        ("delta", r"^PUT \S*/_lading/"),
        ("iceberg", r"^PUT \S*\.avro"),
        ("iceberg", r"^PUT \S*metadata\.json"),
    ],
)
def test_s3_that_never_answers_is_given_up_and_asked_again(
    s3: S3Server, s3_proxy: FaultProxy, tmp_path: Path, form: str, request_line: str, fault: str
) -> None:
    made = Lake(s3, s3_proxy, tmp_path / "home", form)
    s3_proxy.set(Weather(only=request_line, script=[fault]))
    made.service.turn()
    assert s3_proxy.counts()[fault] == 1, "nobody sent such a request"
    assert s3_proxy.counts()["given up"] == 1
    made.check(1)
    made.service.close()


@pytest.mark.parametrize(
    ("form", "request_line"),
    [
        ("delta", ""),
        ("delta", r"^PUT \S*/_delta_log/0"),
        ("delta", r"^PUT \S*\.parquet"),
        ("iceberg", "metadata/"),
        ("paimon", r"^PUT \S*/snapshot/"),
    ],
)
def test_s3_that_answers_nothing_for_long_is_a_reason_in_show_within_two_minutes(
    s3: S3Server, s3_proxy: FaultProxy, tmp_path: Path, form: str, request_line: str
) -> None:
    made = Lake(s3, s3_proxy, tmp_path / "home", form)
    made.service.turn()
    made.put(1)
    s3_proxy.set(Weather(only=request_line, rate=1.0, faults=["silent"]))
    began_s = SystemClock().monotonic_s()
    made.service.turn()
    assert SystemClock().monotonic_s() - began_s < 150
    assert made.bucket in made.service.reasons[-1], "it names what cannot be reached"
    made.check(2)
    made.service.close()


def test_glue_that_never_answers_a_commit_is_given_up(glue: GlueLake) -> None:
    glue.service.turn()
    for fault in ("silent", "mute"):
        glue.put()
        glue.proxy.set(Weather(only=GLUE_COMMIT, script=[fault]))
        glue.service.turn()
        assert glue.proxy.counts()[fault] == 1
    glue.check()


@pytest.mark.java
@pytest.mark.parametrize("fault", ["silent", "mute"])
def test_a_catalog_that_never_answers_a_commit_is_given_up(lake: CatalogLake, fault: str) -> None:
    lake.service.turn()
    lake.put()
    lake.proxy.set(Weather(only=COMMIT, script=[fault]))
    lake.service.turn()
    assert lake.proxy.counts()[fault] == 1
    assert lake.proxy.counts()["given up"] == 1
    lake.check()


def test_a_stream_that_never_answers_is_given_up(kinesis: KinesisServer, tmp_path: Path) -> None:
    with serve_faults(kinesis.endpoint, "kinesis") as proxy:
        made = KinesisClicks(kinesis, proxy, tmp_path)
        made.put()
        proxy.set(Weather(only="^POST", script=["silent", "pass", "mute"]))
        made.service.turn()
        assert proxy.counts()["silent"] == 1
        made.check()
        made.service.close()


@pytest.mark.kafka
def test_a_broker_that_never_answers_is_given_up(clicks: KafkaClicks) -> None:
    clicks.service.run_until(clicks.service.is_loaded(clicks.sent))
    clicks.put()
    clicks.proxy.set(Weather(rate=1.0, faults=["silent"]))
    clicks.service.turn()
    assert clicks.proxy.counts()["silent"] > 0
    assert any(clicks.topic in told for told in clicks.service.reasons), clicks.service.reasons
    clicks.check()


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_store_that_never_answers_and_is_gone_then(postgres: PostgresServer, tmp_path: Path, form: str) -> None:
    """A server that is stopped but whose machine is there: the system goes on saying that bytes have come."""
    with serve_faults(postgres.socket, "tcp") as proxy:
        shop = Shop(postgres, proxy, tmp_path, form)
        shop.service.turn()
        shop.put()
        proxy.set(Weather(rate=1.0, faults=["silent"]))
        shop.service.turn()
        assert proxy.counts()["silent"] > 0
        shop.check()
        shop.service.close()

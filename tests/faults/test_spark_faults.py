"""The same faults on Spark: its tasks read and write through the proxy, and its scratch disk cannot be written."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import boto3
import pytest
from confluent_kafka import Producer

from lading import failpoints
from lading.jobs import pace
from lading.pipeline.process import _process
from lading.service.facade import Lading
from lading.testing.marked import secret
from tests.faults.rig import Service
from tests.faults.test_disk_faults import Disk
from tests.faults.test_disk_faults import disk as disk
from tests.support.fault_proxy import HTTP_FAULTS, Weather, serve_faults
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics
from tests.tables.s3_server import S3Server

pytestmark = [pytest.mark.java, pytest.mark.slow]
ROWS = 20


class SparkService(Service):
    """The service as it is, with a Spark of its own, which the next test must not find."""

    opened: ClassVar[list[SparkService]] = []

    def __init__(self, home: Path, settings: dict[str, str]) -> None:
        # With a setting for its tasks, so that no batch does without Spark.
        self.settings = {"spark.task.maxFailures": "4", **settings}
        super().__init__(home)
        self.opened.append(self)

    def _open(self) -> Lading:  # type: ignore[override]  # not that without Spark
        spark = {"spark.master": "local[2]", **self.settings}
        return Lading(self.home, user="tester", clock=self.clock, spark=spark)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Also those of a test that failed: there is one Spark in a process."""
    yield
    while SparkService.opened:
        SparkService.opened.pop().close()


def test_tasks_that_read_and_write_s3_through_a_storm(s3: S3Server, tmp_path: Path) -> None:
    bucket = s3.make_bucket()
    owner = boto3.client(
        "s3",
        endpoint_url=s3.endpoint,
        region_name="us-east-1",
        aws_access_key_id=secret("owner"),
        aws_secret_access_key=secret("owner"),
    )

    def put(number: int) -> None:
        rows = "".join(f"{each},essen\n" for each in range(number * ROWS, (number + 1) * ROWS))
        owner.put_object(Bucket=bucket, Key=f"in/{number:03d}.csv", Body=f"id,city\n{rows}".encode())

    service = SparkService(tmp_path / "home", {})
    with serve_faults(s3.endpoint, "s3") as proxy:
        keys = f'"s3.access_key"="{secret("access")}", "s3.secret_key"="{secret("key")}"'
        place = f'"s3.endpoint"="{proxy.endpoint}", "s3.region"="us-east-1", "use_path_style"="true", {keys}'
        put(0)
        service.sql(
            f"CREATE TABLE t (id BIGINT, city STRING) USING delta LOCATION 's3://{bucket}/lake' TBLPROPERTIES({place});"
            'CREATE JOB j PROPERTIES("max_interval"="1") ON STREAMING DO INSERT INTO t SELECT id, city FROM '
            f'S3("uri"="s3://{bucket}/in/*.csv", "format"="csv_with_names", "column_separator"=",", {place})'
        )
        service.turn()
        proxy.set(Weather(rate=0.2, faults=HTTP_FAULTS, seed=3, delay_s=0.02))
        for number in range(1, 5):
            put(number)
            service.turn()
        proxy.calm()
        service.run_until(service.is_loaded(5 * ROWS))
        assert service.ids() == list(range(5 * ROWS))
        assert service.lading.verify("j").is_clean


def test_a_java_that_lives_and_says_nothing_is_ended_and_replaced(tmp_path: Path) -> None:
    """Stopped, or so short of memory that it does nothing else than look for some: in a batch, and while it is idle."""
    inbox = tmp_path / "in"
    inbox.mkdir()

    def put(number: int) -> None:
        rows = "".join(f"{each},essen\n" for each in range(number * ROWS, (number + 1) * ROWS))
        (inbox / f"{number:03d}.csv").write_text(f"id,city\n{rows}")

    service = SparkService(tmp_path / "home", {"spark.lading.driver.timeout": "10"})
    put(0)
    service.sql(
        f"CREATE TABLE t (id BIGINT, city STRING) USING delta LOCATION '{tmp_path / 'lake'}';"
        'CREATE JOB j PROPERTIES("max_interval"="1", "file.settle_seconds"="0") ON STREAMING DO INSERT INTO t '
        f'SELECT id, upper(city) FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    service.turn()
    stopped: list[int] = []

    def stop_java(_name: str = "") -> None:
        failpoints.disarm_all()
        stopped.append(_process(service.lading.spark().sparkContext).pid)  # type: ignore[union-attr]
        os.kill(stopped[-1], signal.SIGSTOP)

    put(1)
    failpoints.arm("stage.before", stop_java)
    service.run_until(service.is_loaded(2 * ROWS), 6)
    put(2)
    stop_java()
    service.run_until(service.is_loaded(3 * ROWS), 6)
    assert len(set(stopped)) == 2
    assert service.ids() == list(range(3 * ROWS))
    assert service.lading.verify("j").is_clean
    stop_java()


def test_a_scratch_disk_that_is_read_only_when_spark_starts_is_said_and_over_when_it_is(
    disk: Disk, tmp_path: Path
) -> None:
    inbox = tmp_path / "in"
    inbox.mkdir()
    (inbox / "a.csv").write_text("id,city\n" + "".join(f"{number},essen\n" for number in range(ROWS)))
    service = SparkService(tmp_path / "home", {"spark.local.dir": str(disk.path / "scratch")})
    service.sql(
        f"CREATE TABLE t (id BIGINT, city STRING) USING delta LOCATION '{tmp_path / 'lake'}';"
        'CREATE JOB j PROPERTIES("max_interval"="1", "file.settle_seconds"="0") ON STREAMING DO INSERT INTO t '
        f'SELECT id, city FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    disk.lock()
    for _ in range(2):
        service.turn()
    told = service.reasons[-1]
    assert f"its scratch folder {disk.path / 'scratch'} (spark.local.dir) cannot be written: Read-only" in told
    assert "check that disk" in told
    disk.unlock()
    service.run_until(service.is_loaded(ROWS))
    assert service.ids() == list(range(ROWS))


def test_a_scratch_disk_that_is_full_is_said_and_over_when_it_is(disk: Disk, tmp_path: Path) -> None:
    """A job that keeps state moves rows between tasks, over the scratch disk."""
    inbox = tmp_path / "in"
    inbox.mkdir()
    sent = 0

    def put(rows: int) -> None:
        nonlocal sent
        for _ in range(4):  # One task alone would have nothing to move.
            lines = "".join(f"{number},2026-01-01 12:00:00\n" for number in range(sent, sent + rows))
            (inbox / f"{sent:07d}.csv").write_text(f"id,at\n{lines}")
            sent += rows

    service = SparkService(tmp_path / "home", {"spark.local.dir": str(disk.path / "scratch")})
    put(1)
    service.sql(
        f"CREATE TABLE t (id BIGINT, at DATETIME) USING delta LOCATION '{tmp_path / 'lake'}';"
        'CREATE JOB j PROPERTIES("max_interval"="1", "file.settle_seconds"="0", "watermark.column"="at", '
        '"dedup.keys"="id") ON STREAMING DO INSERT INTO t SELECT id, at FROM '
        f'FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    service.run_until(service.is_loaded(sent))
    disk.fill()
    put(40_000)  # More than the first batch gives back when Spark forgets it.
    for _ in range(3):
        service.turn()
    assert any("No space left" in reason for reason in service.reasons), (service.reasons, service.shown())
    disk.free()
    service.run_until(service.is_loaded(sent))
    assert service.ids() == list(range(sent))
    assert service.lading.verify("j").is_clean


def test_a_row_that_needs_more_memory_than_a_worker_has_is_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers have a limit of the system, and a row of 120 MB does not fit under it."""
    monkeypatch.setattr(pace, "SUSPECT_WAIT_S", 0.1)
    inbox = tmp_path / "in"
    inbox.mkdir()
    for name, first in (("a", 0), ("b", ROWS), ("c", 2 * ROWS)):
        rows = [f"{number},essen\n" for number in range(first, first + ROWS)]
        with (inbox / f"{name}.csv").open("w") as file:
            file.write("id,city\n" + "".join(rows[:5]))
            if name == "b":
                file.write("-1,")
                for _ in range(120):
                    file.write("x" * (1 << 20))
                file.write("\n")
            file.write("".join(rows[5:]))
    service = SparkService(tmp_path / "home", {"spark.master": "local[1]", "spark.executor.pyspark.memory": "600m"})
    service.sql(
        f"CREATE TABLE t (id BIGINT, city STRING) USING delta LOCATION '{tmp_path / 'lake'}';"
        'CREATE JOB j PROPERTIES("max_interval"="1", "file.settle_seconds"="0", "on_poison_record"="QUARANTINE") '
        f'ON STREAMING DO INSERT INTO t SELECT id, city FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", '
        '"column_separator"=",", "max_record_bytes"="1000000000")'
    )
    service.run_until(service.is_loaded(3 * ROWS))
    assert service.ids() == list(range(3 * ROWS))
    assert any("MemoryError" in told for told in service.reasons), service.reasons
    (error,) = service.lading.sql("SHOW LOAD ERRORS FOR j")[-1].dicts()
    assert (str(error["File"]).rpartition("/")[2], error["Row"]) == ("b.csv", 6)
    assert "It ended 3 workers that read it alone" in str(error["Reason"])
    assert "MemoryError" in str(error["Reason"])
    assert service.lading.verify("j").is_clean


@pytest.mark.parametrize("hours", [7, -7])
def test_a_clock_that_jumps_makes_no_row_late(broker: KafkaBroker, tmp_path: Path, hours: int) -> None:
    """Of two partitions the one that has nothing new at the moment is not idle because somebody set the clock."""
    topic = f"t{uuid.uuid4().hex[:8]}"
    Topics(broker).create(topic, 2)
    producer, sent = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0}), 0

    def put(partition: int, second: int) -> None:
        nonlocal sent
        value = json.dumps({"id": sent, "at": f"2026-01-01 12:00:{second:02d}"}).encode()
        producer.produce(topic, value, partition=partition)
        assert producer.flush(10) == 0
        sent += 1

    service = SparkService(tmp_path / "home", {})
    words = {"kafka_broker_list": broker.bootstrap, "kafka_topic": topic}
    words["property.kafka_default_offsets"] = "OFFSET_BEGINNING"
    source = ", ".join(f'"{name}"="{value}"' for name, value in words.items())
    service.sql(
        f"CREATE TABLE t (id BIGINT, at DATETIME) USING delta LOCATION '{tmp_path / 'lake'}';"
        'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="json", "max_batch_interval"="2", "watermark.column"="at", '
        f'"watermark.idle_timeout"="10 minutes") FROM KAFKA({source})'
    )
    put(0, 10)
    put(1, 5)
    service.run_until(service.is_loaded(2))
    service.clock.jump = timedelta(hours=hours)
    for second in (20, 30):
        put(0, second)
        service.run_until(service.is_loaded(sent))
    put(1, 6)  # In order, in its partition: it is late if that was taken for idle.
    service.run_until(service.is_loaded(sent))
    assert service.ids() == list(range(sent))
    told = service.lading.sql("SHOW ALL ROUTINE LOAD FOR default.j")[-1].dicts()[-1]
    assert json.loads(told["Statistic"])["lateRows"] == 0

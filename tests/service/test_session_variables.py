"""session.* of a job that loads files: each does what its page says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lading.errors import StageError
from lading.model.batch import BatchPlan
from lading.service.facade import Lading
from tests.console.local import LocalLading, LocalStager
from tests.service.conftest import Desk


def test_times_without_a_zone_are_of_the_zone_of_the_job(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id BIGINT, at TIMESTAMP) USING delta")
    desk.put("a.csv", ["1,2026-01-01 12:00:00", "2,2026-01-01 12:00:00+00:00"], header="id,at")
    desk.sql(
        "CREATE JOB j PROPERTIES('session.time_zone'='Asia/Shanghai') ON STREAMING DO INSERT INTO t SELECT id, at "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    desk.run()
    rows = desk.lading.catalog.open_table("shop", "t").scan().sort_by("id").to_pylist()
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert [row["at"].replace(tzinfo=UTC) for row in rows] == [noon - timedelta(hours=8), noon]


class Hasty(Lading):
    """Its batches are late before Spark has begun to run them."""

    def _stager(self, compiled: Any) -> Any:
        assert compiled.stage.timeout_s == 1
        return super()._stager(replace(compiled, stage=replace(compiled.stage, timeout_s=0.001)))


def test_a_batch_that_takes_too_long_is_ended_and_says_why(tmp_path: Path, spark: SparkSession) -> None:
    """Spark was asked once to end it, and while it still planned the batch it had nothing to end."""
    (tmp_path / "a.csv").write_text("id\n" + "\n".join(map(str, range(60_000))))
    slow = "size(filter(sequence(1, 2000 + cast(id AS int) % 2), x -> md5(cast(x AS string)) = 'x'))"
    with Hasty(tmp_path / "home", session=spark, user="tester") as lading:
        lading.sql(
            "CREATE TABLE t (id BIGINT) USING delta;"
            "CREATE JOB j PROPERTIES('session.insert_timeout'='1', 'session.query_timeout'='1') ON STREAMING DO "
            f"INSERT INTO t SELECT if({slow} > 0, 1, 2) "
            f'FROM FILE("uri"="{tmp_path}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )
        runner = lading.runner(lading.job("j").job_id)
        runner.run_once()
        assert "took longer than 0.001 seconds, which is its session.insert_timeout" in str(runner.record())
        assert lading.catalog.open_table("default", "t").scan().num_rows == 0


class Dying(LocalStager):
    """Spark that ends in the first two batches."""

    deaths = 0

    def stage(self, plan: BatchPlan) -> Any:
        if Dying.deaths < 2:
            Dying.deaths += 1
            msg = "Spark ended while the batch ran"
            raise StageError(msg, left="Nothing was committed.", todo="")
        return super().stage(plan)


class DyingLading(LocalLading):
    def _stager(self, compiled: Any) -> Any:
        return Dying(compiled.stage) if compiled.stage is not None else super()._stager(compiled)


def test_a_batch_that_died_twice_is_halved_until_it_lives(tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    inbox.mkdir()
    for number in range(8):
        (inbox / f"{number}.csv").write_text(f"id\n{number}\n")
    with DyingLading(tmp_path / "home") as lading:
        lading.sql(
            "CREATE TABLE t (id BIGINT) USING delta;"
            "CREATE JOB j PROPERTIES('s3.max_batch_files'='4') ON STREAMING DO INSERT INTO t SELECT id "
            f'FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )
        runner = lading.runner(lading.job("j").job_id)
        for _ in range(12):
            runner.run_once()
        loads = [bill.tally.source_files for bill in lading.bills(lading.job("j"), 20) if bill.files]
        assert loads == [2, 2, 2, 2]
        assert lading.catalog.open_table("default", "t").scan().num_rows == 8


class NeverLiving(LocalStager):
    def stage(self, plan: BatchPlan) -> Any:
        msg = "Spark ended while the batch ran"
        raise StageError(msg, left="Nothing was committed.", todo="")


class NeverLivingLading(LocalLading):
    def _stager(self, compiled: Any) -> Any:
        return NeverLiving(compiled.stage) if compiled.stage is not None else super()._stager(compiled)


def test_a_batch_that_always_dies_pauses_its_job_after_four_attempts(tmp_path: Path) -> None:
    """Halving it opened the job again, which cancelled the task: its attempts began at 1 again, and again."""
    inbox = tmp_path / "in"
    inbox.mkdir()
    for number in range(64):
        (inbox / f"{number}.csv").write_text(f"id\n{number}\n")
    with NeverLivingLading(tmp_path / "home") as lading:
        lading.sql(
            "CREATE TABLE t (id BIGINT) USING delta;"
            "CREATE JOB j PROPERTIES('s3.max_batch_files'='64') ON STREAMING DO INSERT INTO t SELECT id "
            f'FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )
        runner = lading.runner(lading.job("j").job_id)
        assert [runner.run_once() for _ in range(4)] == [True, True, True, False]
        record = lading.job("j")
        assert (record.state.value, record.counts.begun, record.counts.failed) == ("PAUSED", 1, 1)
        assert record.batch_scale == 0.25

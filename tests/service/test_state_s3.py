"""State of tables in S3: copies on the disks of executors, files that somebody cut, and a second service."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lading.errors import LadingError
from lading.failpoints import arm, disarm_all
from lading.service.facade import Lading
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.service.test_watermarks import CSV, ids, put
from tests.tables.s3_server import S3Server

DEDUP = "'watermark.column'='at', 'dedup.keys'='id'"


def create_in_s3(desk: Desk, s3: S3Server, form: str) -> None:
    """One job that loads first rows into t, and one that counts by the minute into w."""
    bucket, source = s3.make_bucket(), f'FILE("uri"="{desk.inbox}/*.csv", {CSV})'
    for name, columns in (("t", "id BIGINT, at DATETIME"), ("w", "minute DATETIME, many BIGINT")):
        desk.sql(
            f"""CREATE TABLE {name} ({columns}) USING {form} LOCATION 's3://{bucket}/{name}' TBLPROPERTIES (
            "s3.endpoint"="{s3.endpoint}", "s3.region"="us-east-1", "s3.access_key"="{secret("access")}",
            "s3.secret_key"="{secret("key")}", "use_path_style"="true")"""
        )
    desk.sql(f"CREATE JOB j PROPERTIES({DEDUP}) ON STREAMING DO INSERT INTO t SELECT id, at FROM {source}")
    desk.sql(
        "CREATE JOB w PROPERTIES('watermark.column'='at') ON STREAMING DO INSERT INTO w "
        f"SELECT window_start, count(*) FROM {source} GROUP BY window(at, '1 minute')"
    )


def counts(desk: Desk) -> list[tuple[int, int]]:
    rows = desk.lading.catalog.open_table("shop", "w").scan().to_pylist()
    return sorted((row["minute"].minute, row["many"]) for row in rows)


@pytest.mark.parametrize("form", ["delta", pytest.param("iceberg", marks=pytest.mark.slow)])
def test_a_copy_that_is_not_whole_is_not_used_and_a_file_that_is_not_stops_the_job(
    desk: Desk, s3: S3Server, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = desk.path / "copies"
    monkeypatch.setenv("LADING_STATE_COPIES", str(copies))
    monkeypatch.setenv("LADING_STATE_COPIES_MB", "1")
    copies.mkdir()
    (old := copies / ("0" * 64)).write_bytes(b"x" * 2**21)
    os.utime(old, (0, 0))
    desk.restart()
    create_in_s3(desk, s3, form)
    put(desk, "a.csv", "1,2026-01-01 12:00:00", "2,2026-01-01 12:00:10")
    desk.run()
    put(desk, "b.csv", "1,2026-01-01 12:00:20", "3,2026-01-01 12:01:00")
    desk.run()
    assert not old.exists()  # Copies have no more room than the service gives them.
    whole = {path: path.read_bytes() for path in copies.iterdir()}
    assert whole
    for number, (path, content) in enumerate(whole.items()):  # Cut, or of the same length with other bytes.
        path.write_bytes(content[:-1] if number % 2 else bytes(reversed(content)))
    put(desk, "c.csv", "1,2026-01-01 12:01:10", "2,2026-01-01 12:01:20", "4,2026-01-01 12:05:00")
    desk.run()
    assert ids(desk) == [1, 2, 3, 4]
    assert counts(desk) == [(0, 3), (1, 3)]
    assert any(path.read_bytes() == content for path, content in whole.items())  # What was needed was fetched again.
    assert desk.lading.verify("j").is_clean
    _stops(desk, copies)


def _stops(desk: Desk, copies: Path) -> None:
    shutil.rmtree(copies)
    storage = desk.lading.catalog.open_table("shop", "t").bills.storage
    files = [key for key in storage.keys(f"_lading/{desk.lading.job('j').job_id}/state/") if "-s-" in key]
    lost = {key: storage.get(key) or b"" for key in files}
    runner = desk.lading.runner(desk.lading.job("j").job_id)
    put(desk, "d.csv", "1,2026-01-01 12:05:10", "5,2026-01-01 12:05:10")
    for left, told in ((0, "is gone"), (-1, "is not what was written: somebody cut or changed it")):
        storage.delete(files)
        for key, content in lost.items():
            if left:
                storage.put_if_absent(key, content[:left])
        runner.run_once()
        reason = desk.lading.job("j").reason
        assert reason is not None
        assert told in reason.message
        assert '"state" = "RESET"' in reason.message
        desk.sql("RESUME JOB WHERE jobName = 'j'")
    storage.delete(files)
    for key, content in lost.items():
        storage.put_if_absent(key, content)
    desk.run()
    assert ids(desk) == [1, 2, 3, 4, 5]


def test_a_second_service_in_the_middle_of_a_batch_lets_nothing_land_twice(
    desk: Desk, s3: S3Server, spark: SparkSession
) -> None:
    create_in_s3(desk, s3, "delta")
    put(desk, "a.csv", "1,2026-01-01 12:00:00")
    desk.run()
    desk.lading.close()
    shutil.copytree(desk.path / "home", desk.path / "other")
    desk.restart_empty()
    desk.sql("USE shop")
    put(desk, "b.csv", "1,2026-01-01 12:00:20", "2,2026-01-01 12:00:30", "3,2026-01-01 12:05:00")

    def other_service(_name: str) -> None:
        disarm_all()
        with Lading(desk.path / "other", session=spark, user="tester") as other:
            other.run()

    arm("merge.after", other_service)  # State and rows of the batch are written, and nothing is committed.
    try:
        desk.run()
    except LadingError:  # One of its jobs may say that it was fenced, or stop with that reason.
        pass
    finally:
        disarm_all()
    stopped = [desk.lading.job(name).reason for name in ("j", "w")]
    assert any(reason is not None and "incarnation" in reason.message for reason in stopped), stopped
    assert (ids(desk), counts(desk)) == ([1, 2, 3], [(0, 3)])
    for name in ("j", "w"):
        assert desk.lading.verify(name).is_clean

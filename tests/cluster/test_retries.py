"""Attempts that Spark makes again: stages whose input is gone, and tasks that hang. Results are exact."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from random import Random

import duckdb
import pytest

from tests.cluster.conftest import StartDriver
from tests.cluster.inbox import Inbox, create_table
from tests.cluster.shown import UI, attempts_of
from tests.cluster.test_kills import STRAINED, busy_machine, check_exact
from tests.support.cluster_driver import REDUCING, RUNNING
from tests.support.other_readers import read_elsewhere
from tests.support.spark_cluster import SparkCluster, go_on

pytestmark = [pytest.mark.java, pytest.mark.slow]

FILES, ROWS, KEYS = 16, 30_000, 200_000
JOBS = """CREATE DATABASE shop; USE shop;
CREATE TABLE firsts (id BIGINT, at DATETIME, n BIGINT) USING {form};
CREATE TABLE counts (minute DATETIME, city STRING, many BIGINT, total BIGINT) USING {form};
CREATE JOB firsts PROPERTIES("s3.max_batch_files"="4", "watermark.column"="at", "watermark.delay"="1 day",
"dedup.keys"="id", "dedup.horizon"="7 days") ON STREAMING DO INSERT INTO firsts SELECT id, at, n FROM {source};
CREATE JOB counts PROPERTIES("s3.max_batch_files"="4", "watermark.column"="at", "watermark.delay"="1 minute")
ON STREAMING DO INSERT INTO counts SELECT window.start, city, count(*), sum(n) FROM {source}
GROUP BY window(at, '1 minute'), city"""
EXPECTED = {
    "firsts": 'SELECT id, arg_min("at", n), min(n) FROM {} GROUP BY id',
    "counts": 'SELECT time_bucket(INTERVAL 1 MINUTE, "at"), city, count(*), sum(n) FROM {} '
    "WHERE \"at\" < TIMESTAMP '2026-01-02' GROUP BY ALL",
}
"""The same in DuckDB, from all files at once."""


class Events:
    """Files of rows with times that grow; two of three keys come again later."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        rng = Random(7)
        for number in range(FILES):
            lines = ["id,at,city,n"]
            for n in range(number * ROWS, (number + 1) * ROWS):
                second = n // 100
                at = f"2026-01-01 {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
                lines.append(f"{rng.randrange(KEYS)},{at},{rng.choice(('essen', 'bonn', 'ulm'))},{n}")
            if number == FILES - 1:
                lines.append(f"{KEYS},2026-01-02 00:00:00,end,{FILES * ROWS}")  # It closes all before it.
            (folder / f"{number:03}.csv").write_text("\n".join(lines) + "\n")
        self.pattern = f"{folder}/*.csv"
        self.source = f'FILE("uri"="{self.pattern}", "format"="csv_with_names", "column_separator"=",")'

    def compute(self, query: str) -> list[tuple[object, ...]]:
        with duckdb.connect() as other:
            return sorted(other.sql(query.format(f"read_csv('{self.pattern}')")).fetchall())


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_executors_die_between_the_shuffle_and_its_readers(
    tmp_path: Path, cluster: SparkCluster, start_driver: StartDriver, form: str
) -> None:
    """What tasks have written for others is gone with their executor: Spark runs their stage again."""
    events, killed = Events(tmp_path / "in"), list[int]()
    driver = start_driver(**STRAINED, **UI)
    driver.ask("sql", JOBS.format(form=form, source=events.source))

    def kill(most: int) -> None:
        killed.append(cluster.kill_executors(most))

    states = driver.run(
        {f"{REDUCING}:2": lambda: kill(1), f"{REDUCING}:4": lambda: kill(9), f"{REDUCING}:6": lambda: kill(1)}
    )
    assert {state for state, _ in states.values()} == {"RUNNING"}, states
    assert len(killed) == 3
    assert min(killed) > 0, killed
    attempts = attempts_of(driver)
    print(f"{form}: {sum(killed)} executors killed while a shuffle was read; {attempts}")
    assert attempts.retried > 0
    assert attempts.fetch_failures > 0
    for name, query in EXPECTED.items():
        rows = read_elsewhere(form, tmp_path / "home" / "warehouse" / "shop" / name)
        there = [tuple(_plain(value) for value in row.values()) for row in rows.to_pylist()]
        print(f"{name}: {len(there)} rows, {len(set(there))} different")
        assert sorted(there) == events.compute(query)
        assert driver.ask("verify", name) == [True, []]


def _plain(value: object) -> object:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def test_a_second_attempt_overtakes_tasks_that_hang_and_the_first_goes_on_after_the_commit(
    tmp_path: Path, cluster: SparkCluster, start_driver: StartDriver
) -> None:
    """The Python workers of an executor are stopped in the middle of a batch. It can end only by second attempts, on
    the other one; then the first attempts go on, and write what nobody reads."""
    inbox = Inbox(tmp_path / "in", files=6, rows=20_000)
    driver = start_driver(**STRAINED, **UI)
    driver.ask("sql", f"CREATE DATABASE shop; {create_table('orders')}; {inbox.job('j', 'orders', files=2)}")
    cluster.wait_until(lambda: driver.ask("facts")["executors"] == len(cluster.cores), "executors")
    stopped, went_on = list[int](), list[int]()

    def let_go() -> None:
        went_on.extend(stopped)
        go_on(stopped)

    with busy_machine():
        states = driver.run(
            {
                f"{RUNNING}:1": lambda: stopped.extend(cluster.stop_python_workers("worker-1")),
                "commit.after:1": let_go,
            }
        )
    assert states["j"][0] == "RUNNING", states
    attempts = attempts_of(driver)
    print(f"{len(stopped)} Python workers stopped; {attempts}")
    assert went_on == stopped != []
    assert attempts.speculative > 0
    check_exact(driver, inbox, "tasks that hang")

"""What is rare in the life of a job that keeps state: mistaken clocks, changed tables, long rows, merges cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.types import LongType
from pyspark.sql import SparkSession

from lading.errors import SqlError
from lading.pipeline.state.jobs import StateJobs
from lading.service.facade import Lading
from lading.tables.iceberg.table import IcebergTable
from tests.service.conftest import Desk
from tests.service.test_watermarks import CSV, create, ids, put, statistic

DEDUP = "'watermark.column'='at', 'watermark.delay'='1 hour', 'dedup.keys'='id'"


@pytest.mark.parametrize(("more", "late"), [("", 0), (", 'watermark.max_future'='0'", 1)])
def test_a_row_of_the_far_future_does_not_make_the_others_late(desk: Desk, more: str, late: int) -> None:
    create(desk, f"'watermark.column'='at'{more}")
    put(desk, "a.csv", "1,2026-01-01 12:00:00", "2,9999-12-31 23:59:59")
    desk.run()
    put(desk, "b.csv", "3,2026-01-01 12:00:01")
    desk.run()
    assert ids(desk) == [1, 2, 3][: 3 - late]
    assert (statistic(desk)["lateRows"], statistic(desk)["futureRows"]) == (late, 1 - late)
    assert str(statistic(desk)["watermark"])[:4] == ("9999" if late else "2026")


def test_keys_of_another_type_stop_the_job_until_somebody_decides(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id INT, at DATETIME) USING iceberg")
    source = f'FILE("uri"="{desk.inbox}/*.csv", {CSV})'
    desk.sql(f"CREATE JOB j PROPERTIES({DEDUP}) ON STREAMING DO INSERT INTO t SELECT id, at FROM {source}")
    put(desk, "a.csv", "1,2026-01-01 12:00:00")
    desk.run()
    table = desk.lading.catalog.open_table("shop", "t")
    assert isinstance(table, IcebergTable)
    with table._load().update_schema() as update:
        update.update_column("id", field_type=LongType())
    desk.restart()
    put(desk, "b.csv", "1,2026-01-01 12:00:01", "2,2026-01-01 12:00:01")
    desk.run()
    # The buckets of keys follow from their values in the type of before: they would not be found again.
    assert (desk.show("Status"), ids(desk)) == ("PAUSED", [1])
    assert "another form than it keeps now" in desk.show("ErrorMsg")
    desk.sql("ALTER JOB j PROPERTIES('state'='RESET'); RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert ids(desk) == [1, 1, 2]


@pytest.mark.parametrize(
    ("column", "properties", "select", "group"),
    [
        ("__bucket", DEDUP, "id, at, 1", ""),
        ("__fate", "'watermark.column'='at'", "count(*), window_start, 1", "GROUP BY window(at, '1 minute')"),
    ],
)
def test_columns_with_names_of_ours_are_refused(
    desk: Desk, column: str, properties: str, select: str, group: str
) -> None:
    desk.sql(f"CREATE TABLE t (id BIGINT, at DATETIME, {column} BIGINT) USING delta")
    put(desk, "a.csv", "1,2026-01-01 12:00:00")
    with pytest.raises(SqlError, match=f"The table has a column {column}"):
        desk.sql(
            f"CREATE JOB j PROPERTIES({properties}) ON STREAMING DO INSERT INTO t SELECT {select} "
            f'FROM FILE("uri"="{desk.inbox}/*.csv", {CSV}) {group}'
        )


@pytest.mark.slow
def test_long_rows_are_merged(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id BIGINT, at DATETIME, page STRING) USING delta")
    source = f'FILE("uri"="{desk.inbox}/*.csv", {CSV})'
    desk.sql(f"CREATE JOB j PROPERTIES({DEDUP}) ON STREAMING DO INSERT INTO t SELECT id, at, page FROM {source}")
    rows = [f"{n % 24},2026-01-01 12:00:00,{chr(97 + n % 24) * 3_000_000}" for n in range(26)]
    for name, part in (("a.csv", rows[:23]), ("b.csv", rows[23:])):
        desk.put(name, part, header="id,at,page")
        desk.run()
    found = desk.lading.catalog.open_table("shop", "t").scan().to_pylist()
    assert sorted((row["id"], len(row["page"]), row["page"][0]) for row in found) == [
        (n, 3_000_000, chr(97 + n)) for n in range(24)
    ]


def _in_merges(wrap: Callable[[Any], None]) -> type[Lading]:
    """A service whose stagers are changed just before they merge."""

    class Changed(Lading):
        def _stager(self, compiled: Any) -> Any:
            lazy: Any = super()._stager(compiled)
            merge = lazy.merge

            def changed(*given: Any) -> Any:
                wrap(lazy._stager())
                return merge(*given)

            lazy.merge = changed
            return lazy

    return Changed


def hurry(stager: Any) -> None:
    stager._stage = replace(stager._stage, timeout_s=0.001)


def cut_off(stager: Any) -> None:
    watched = stager.watched

    @contextmanager
    def cancelled() -> Iterator[None]:
        with watched():
            stager.cancel()  # What PAUSE does, for as long as the merge runs.
            yield

    stager.watched = cancelled


@pytest.fixture
def slow_merges(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Merges that take longer than it takes to cut them off."""
    write = StateJobs.write
    slow = "size(filter(sequence(1, 60000 + cast(c0 AS int) % 2), x -> md5(cast(x AS string)) = 'x')) = 0"
    monkeypatch.setattr(StateJobs, "write", lambda self, rows, *more: write(self, rows.where(slow), *more))
    return monkeypatch


@pytest.mark.parametrize(
    ("wrap", "told"), [(hurry, "took longer than 0.001 seconds"), (cut_off, "The batch could not be staged")]
)
def test_a_merge_that_is_cut_off_commits_nothing_and_is_done_again(
    tmp_path: Path, spark: SparkSession, slow_merges: pytest.MonkeyPatch, wrap: Callable[[Any], None], told: str
) -> None:
    (tmp_path / "a.csv").write_text("id,at\n" + "".join(f"{n % 50},2026-01-01 12:00:00\n" for n in range(100)))
    with _in_merges(wrap)(tmp_path / "home", session=spark, user="tester") as lading:
        lading.sql(
            "CREATE TABLE t (id BIGINT, at DATETIME) USING delta;"
            f"CREATE JOB j PROPERTIES({DEDUP}) ON STREAMING DO INSERT INTO t SELECT id, at "
            f'FROM FILE("uri"="{tmp_path}/*.csv", {CSV})'
        )
        runner = lading.runner(lading.job("j").job_id)
        runner.run_once()
        record = runner.record()
        assert told in record.runtime_message
        assert lading.catalog.open_table("default", "t").scan().num_rows == 0
    slow_merges.undo()
    with Lading(tmp_path / "home", session=spark, user="tester") as lading:
        lading.run()
        assert sorted(lading.catalog.open_table("default", "t").scan()["id"].to_pylist()) == list(range(50))

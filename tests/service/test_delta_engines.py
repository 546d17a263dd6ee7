"""Spark on the JVM changes a Delta table between the batches of a job and during one: the job goes on exactly once, or
stops with the reason and both ways on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.failpoints import arm, disarm_all
from tests.service.delta_rig import Lake
from tests.support.jvm_engine import JvmEngine

UNCHECKED = "SET spark.databricks.delta.retentionDurationCheck.enabled = false"
FEW = "SET spark.sql.sources.parallelPartitionDiscovery.parallelism = 1"
"""VACUUM lists files in so many tasks; ten thousand without it."""
DURING = "check.after"
"""Files are staged, and nothing of them is in the table yet."""


@pytest.fixture
def lake(tmp_path: Path, jvm: JvmEngine) -> Iterator[Lake]:
    made = Lake(tmp_path, jvm)
    yield made
    made.lading.close()


def begun(lake: Lake, *, more: str = "", **properties: str) -> None:
    """Rows 0 of Spark, 1 to 4 of two batches."""
    lake.make(more=more, **properties)
    lake.spark("INSERT INTO {} VALUES (0, 'a')")
    lake.adopt()
    lake.create_job()
    lake.load(1, 2)
    lake.load(3, 4)


def load_while(lake: Lake, ids: tuple[int, ...], *statements: str) -> None:
    """A batch, and what Spark does between its files and its commit."""
    left = list(statements)

    def run(_: str) -> None:
        while left:
            lake.spark(left.pop(0))

    arm(DURING, run)
    try:
        lake.load(*ids)
    finally:
        disarm_all()
    assert not left


OPERATIONS = {
    "OPTIMIZE": (["OPTIMIZE {}"], set(), set()),
    "ZORDER": (["OPTIMIZE {} ZORDER BY (id)"], set(), set()),
    "VACUUM": ([UNCHECKED, FEW, "VACUUM {} RETAIN 0 HOURS"], set(), set()),
    "DELETE": (["DELETE FROM {} WHERE id = 1"], {1}, set()),
    "UPDATE": (["UPDATE {} SET id = id + 1000 WHERE id = 2"], {2}, {1002}),
    "MERGE": (
        [
            "MERGE INTO {} t USING (SELECT * FROM VALUES (3, 'b'), (77, 'c') AS v(id, city)) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
        ],
        {3},
        {77},
    ),
    "INSERT": (["INSERT INTO {} VALUES (88, 'd')"], set(), {88}),
    "REORG": (["DELETE FROM {} WHERE id = 4", "REORG TABLE {} APPLY (PURGE)"], {4}, set()),
    "ADD COLUMN": (["ALTER TABLE {} ADD COLUMN note STRING"], set(), set()),
    "ADD nested COLUMN": (["ALTER TABLE {} ADD COLUMN more STRUCT<a: INT, b: ARRAY<STRING>>"], set(), set()),
    "SET TBLPROPERTIES": (["ALTER TABLE {} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"], set(), set()),
    "ADD and then DROP CONSTRAINT": (
        ["ALTER TABLE {} ADD CONSTRAINT c CHECK (id >= 0)", "ALTER TABLE {} DROP CONSTRAINT c"],
        set(),
        set(),
    ),
}
QUICK = ("VACUUM", "MERGE", "ADD nested COLUMN")
CASES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in OPERATIONS]


@pytest.mark.parametrize("name", CASES)
def test_the_job_goes_on(lake: Lake, name: str) -> None:
    """Between two batches, during one, and after a restart."""
    statements, gone, new = OPERATIONS[name]
    begun(lake, **{"delta.enableDeletionVectors": "true"} if name == "REORG" else {})
    for statement in statements:
        lake.spark(statement)
    is_repeatable = not gone and not new and "COLUMN" not in name
    load_while(lake, (5, 6), *(statements if is_repeatable else ["OPTIMIZE {}"]))
    lake.restart()
    lake.load(7)
    assert lake.ids() == sorted(({0, 1, 2, 3, 4} - gone) | new | {5, 6, 7})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DELETE", "UPDATE", "MERGE", "INSERT", "REORG", "ADD COLUMN", "ADD nested COLUMN"])
def test_the_job_goes_on_when_it_happens_during_a_batch(lake: Lake, name: str) -> None:
    statements, gone, new = OPERATIONS[name]
    begun(lake, **{"delta.enableDeletionVectors": "true"} if name == "REORG" else {})
    load_while(lake, (5, 6), *statements)
    lake.load(7)
    assert lake.ids() == sorted(({0, 1, 2, 3, 4} - gone) | new | {5, 6, 7})


@pytest.mark.parametrize(("way", "ids"), [("KEEP POSITION", [0, 1, 2, 6]), ("LOAD AGAIN", [0, 1, 2, 3, 4, 5, 6])])
def test_restore_stops_the_job_and_both_ways_lead_on(lake: Lake, way: str, ids: list[int]) -> None:
    begun(lake)
    version = int(str(lake.spark("DESCRIBE HISTORY {}")[0]["version"]))
    lake.spark(f"RESTORE TABLE {{}} TO VERSION AS OF {version - 1}")
    lake.put(5)
    assert lake.lading.run()["j"].state.value == "PAUSED"
    assert "ACCEPT ROLLBACK" in lake.status()[1]
    lake.lading.sql(f"ACCEPT ROLLBACK OF JOB j {way}; RESUME JOB WHERE jobName = 'j'")
    lake.load(6)
    assert sorted({*lake.ids()} - {5}) == sorted({*ids} - {5})
    assert len(lake.ids()) == len({*lake.ids()})
    assert 5 in lake.ids()


@pytest.mark.slow
def test_restore_during_a_batch_stops_the_job(lake: Lake) -> None:
    begun(lake)
    lake.put(5)
    done: list[object] = []

    def restore(_: str) -> None:
        done.append(done or lake.spark("RESTORE TABLE {} TO VERSION AS OF 2"))

    arm(DURING, restore)
    try:
        assert lake.lading.run()["j"].state.value == "PAUSED"
    finally:
        disarm_all()
    assert "ACCEPT ROLLBACK" in lake.status()[1]
    lake.lading.sql("ACCEPT ROLLBACK OF JOB j LOAD AGAIN; RESUME JOB WHERE jobName = 'j'")
    lake.lading.run()
    assert lake.ids() == [0, 1, 2, 3, 4, 5]


@pytest.mark.slow
def test_log_cleanup_with_a_short_retention_leaves_the_head(lake: Lake) -> None:
    begun(
        lake,
        **{
            "delta.logRetentionDuration": "interval 1 days",
            "delta.deletedFileRetentionDuration": "interval 1 days",
            "delta.checkpointInterval": "1",
        },
    )
    old = 1_600_000_000
    for path in (Path(lake.place) / "_delta_log").glob("0*"):
        os.utime(path, (old, old))
    lake.spark("INSERT INTO {} VALUES (50, 'x')")
    lake.spark("INSERT INTO {} VALUES (51, 'x')")
    assert not (Path(lake.place) / "_delta_log" / f"{1:020d}.json").exists()
    lake.load(5)
    lake.restart()
    lake.load(6)
    assert lake.ids() == [0, 1, 2, 3, 4, 5, 6, 50, 51]


def test_transactions_that_expire_do_not_take_the_head_with_them(lake: Lake) -> None:
    begun(lake, **{"delta.setTransactionRetentionDuration": "interval 1 seconds", "delta.checkpointInterval": "1"})
    lake.spark("INSERT INTO {} VALUES (50, 'x')")  # After more than a second, with a checkpoint.
    lake.restart()
    lake.load(5)
    assert lake.ids() == [0, 1, 2, 3, 4, 5, 50]


def test_a_head_that_expired_stops_the_job_and_both_ways_lead_on(lake: Lake) -> None:
    """The property was set after the last commit, which says when it was made."""
    begun(lake)
    lake.spark(
        "ALTER TABLE {} SET TBLPROPERTIES ('delta.setTransactionRetentionDuration' = 'interval 1 seconds', "
        "'delta.checkpointInterval' = '1')"
    )
    lake.spark("INSERT INTO {} VALUES (50, 'x')")
    lake.restart()
    lake.put(5)
    assert lake.lading.run()["j"].state.value == "PAUSED"
    assert "setTransactionRetentionDuration" in lake.status()[1]
    lake.lading.sql("ACCEPT ROLLBACK OF JOB j KEEP POSITION; RESUME JOB WHERE jobName = 'j'")
    lake.lading.run()
    assert lake.ids() == [0, 1, 2, 3, 4, 5, 50]


@pytest.mark.slow
@pytest.mark.parametrize("change", ["RENAME COLUMN city TO town", "DROP COLUMN city"])
def test_a_column_that_the_job_fills_and_others_took_away_pauses_it(lake: Lake, change: str) -> None:
    begun(lake, **{"delta.columnMapping.mode": "name"})
    lake.spark(f"ALTER TABLE {{}} {change}")
    lake.restart()
    lake.put(5)
    assert lake.lading.run()["j"].state.value == "PAUSED"
    assert "city" in lake.status()[1]
    assert lake.ids() == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_a_feature_that_lading_cannot_keep_pauses_the_job(lake: Lake) -> None:
    begun(lake)
    lake.spark("ALTER TABLE {} ADD CONSTRAINT small CHECK (id < 5)")
    lake.put(99)
    assert lake.lading.run()["j"].state.value == "PAUSED"
    assert "checkConstraints (delta.constraints.small)" in lake.status()[1]
    lake.spark("ALTER TABLE {} DROP CONSTRAINT small")
    lake.lading.sql("RESUME JOB WHERE jobName = 'j'")
    lake.lading.run()
    assert lake.ids() == [0, 1, 2, 3, 4, 99]

"""What Iceberg on the JVM does to a table between two batches, and during one: every row is there once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.jvm_engine import JvmEngine
from tests.tables.engine_rig import Interrupted, Shared

FAR = "older_than => TIMESTAMP '2099-01-01 00:00:00'"
MOR = "ALTER TABLE {t} SET TBLPROPERTIES ('write.%s.mode' = 'merge-on-read')"
HARMLESS: dict[str, tuple[str, ...]] = {
    "rewrite_data_files": ("CALL rewrite_data_files(options => map('rewrite-all', 'true'))",),
    "rewrite_manifests": ("CALL rewrite_manifests()",),
    "expire_snapshots": (f"CALL expire_snapshots({FAR}, retain_last => 1)",),
    "rewrite_then_expire": (
        "CALL rewrite_data_files(options => map('rewrite-all', 'true'))",
        f"CALL expire_snapshots({FAR}, retain_last => 1)",
    ),
    "branch_and_tag": (
        "ALTER TABLE {t} CREATE BRANCH trial",
        "INSERT INTO {t}.branch_trial VALUES (900, 'trial')",
        "ALTER TABLE {t} CREATE TAG here",
        "ALTER TABLE {t} DROP BRANCH trial",
    ),
    "add_partition_field": ("ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)",),
    "replace_and_drop_partition_field": (
        "ALTER TABLE {t} ADD PARTITION FIELD truncate(1, city) AS c",
        "INSERT INTO {t} SELECT 2, 'c2' WHERE false",
        "ALTER TABLE {t} REPLACE PARTITION FIELD c WITH bucket(2, city) AS d",
        "ALTER TABLE {t} DROP PARTITION FIELD d",
    ),
    "add_column": ("ALTER TABLE {t} ADD COLUMN note STRING FIRST",),
    "add_nested_column": ("ALTER TABLE {t} ADD COLUMN more STRUCT<a: INT, b: ARRAY<MAP<STRING, DOUBLE>>>",),
    "widen_column": ("ALTER TABLE {t} ADD COLUMN n INT", "ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT"),
    "set_properties": ("ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'them', 'commit.retry.num-retries' = '9')",),
    "write_ordered_by": ("ALTER TABLE {t} WRITE ORDERED BY city, id",),
    "upgrade_to_format_3": ("ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')",),
}
QUICK = {"rewrite_then_expire", "add_nested_column"}
QUICK_DURING = {"add_partition_field"}


def tried(names: dict[str, tuple[str, ...]], quick: set[str] = QUICK) -> list[object]:
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


def do(shared: Shared, name: str, statements: dict[str, tuple[str, ...]]) -> None:
    for statement in statements[name]:
        if statement.startswith("CALL "):
            procedure, _, arguments = statement.removeprefix("CALL ").removesuffix(")").partition("(")
            shared.call(procedure, arguments)
        else:
            shared.spark(statement)


@pytest.fixture
def share(tmp_path: Path, jvm: JvmEngine) -> Iterator[Callable[..., Shared]]:
    made: list[Shared] = []

    def make(columns: str = "", *, job: bool = True) -> Shared:
        made.append(Shared(tmp_path, jvm, columns, job=job))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("name", tried(HARMLESS))
def test_between_batches(share: Callable[..., Shared], name: str) -> None:
    shared = share()
    shared.load(1)
    do(shared, name, HARMLESS)
    shared.load(2)
    shared.restart()
    shared.load(3)
    assert shared.ids() == [1, 2, 3]
    assert "LOSS" not in shared.verdict()


@pytest.mark.parametrize("name", tried(HARMLESS, QUICK_DURING))
def test_during_a_batch(share: Callable[..., Shared], name: str) -> None:
    shared = share()
    shared.load(1)
    shared.load_while(lambda: do(shared, name, HARMLESS), 2)
    shared.load(3)
    assert shared.ids() == [1, 2, 3]
    assert "LOSS" not in shared.verdict()


CHANGES: dict[str, tuple[str, ...]] = {
    "delete": ("DELETE FROM {t} WHERE id = 1",),
    "delete_merge_on_read": (MOR % "delete", "DELETE FROM {t} WHERE id = 1"),
    "delete_of_some_rows": ("DELETE FROM {t} WHERE id % 2 = 1",),
    "update": ("UPDATE {t} SET city = 'new' WHERE id = 1",),
    "update_merge_on_read": (MOR % "update", "UPDATE {t} SET city = 'new' WHERE id = 1"),
    "merge": ("MERGE INTO {t} USING (SELECT 1 AS id) s ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET city = 'new'",),
    "merge_merge_on_read": (
        MOR % "merge",
        "MERGE INTO {t} USING (SELECT 1 AS id) s ON {t}.id = s.id WHEN MATCHED THEN DELETE",
    ),
    "overwrite": ("INSERT OVERWRITE {t} VALUES (1, 'new')",),
    "position_deletes_rewritten": (
        MOR % "delete",
        "DELETE FROM {t} WHERE id = 1",
        "CALL rewrite_position_delete_files(options => map('rewrite-all', 'true'))",
    ),
    "delete_then_expire": (
        "DELETE FROM {t} WHERE id = 1",
        f"CALL expire_snapshots({FAR}, retain_last => 1)",
    ),
}
QUICK |= {"delete_merge_on_read", "merge", "delete_then_expire"}


@pytest.mark.parametrize("name", tried(CHANGES))
@pytest.mark.parametrize("when", [pytest.param("between"), pytest.param("during", marks=pytest.mark.slow)])
def test_rows_that_others_change_stay_changed(share: Callable[..., Shared], name: str, when: str) -> None:
    """Nothing that others took out comes back, nothing of the job is missing, and `verify` tells one from the other."""
    shared = share()
    shared.load(1, 2)
    if when == "between":
        do(shared, name, CHANGES)
        before = shared.ids()
        shared.load(3)
    else:
        shared.load_while(lambda: do(shared, name, CHANGES), 3)
        before = [number for number in shared.ids() if number != 3]
    assert before in ([1, 2], [2], [1])
    assert shared.ids() == [*before, 3]
    told = shared.verdict()
    assert "others" in told, told
    assert "LOSS" not in told


def test_what_expired_cannot_be_told(share: Callable[..., Shared]) -> None:
    shared = share()
    shared.load(1, 2)
    shared.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    shared.load(3)
    shared.call("expire_snapshots", f"{FAR}, retain_last => 1")
    assert shared.verdict().startswith("cannot be told of 2 rows: their files are gone")


ROLLBACKS = {
    "rollback_to_snapshot": ("CALL rollback_to_snapshot(snapshot_id => {old})",),
    "set_current_snapshot": ("CALL set_current_snapshot(snapshot_id => {old})",),
    "rollback_and_insert": ("CALL rollback_to_snapshot(snapshot_id => {old})", "INSERT INTO {t} VALUES (50, 'x')"),
    "rollback_insert_expire": (
        "CALL rollback_to_snapshot(snapshot_id => {old})",
        "INSERT INTO {t} VALUES (50, 'x')",
        "INSERT INTO {t} VALUES (51, 'x')",
        f"CALL expire_snapshots({FAR}, retain_last => 1)",
    ),
}
QUICK |= {"rollback_insert_expire"}


@pytest.mark.parametrize("name", tried(ROLLBACKS))
@pytest.mark.parametrize("when", [pytest.param("between"), pytest.param("during", marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", ["KEEP POSITION", pytest.param("LOAD AGAIN", marks=pytest.mark.slow)])
def test_a_rollback_stops_the_job_until_it_is_accepted(
    share: Callable[..., Shared], name: str, when: str, way: str
) -> None:
    shared = share()
    shared.load(1)
    old = shared.spark("SELECT snapshot_id FROM {t}.snapshots ORDER BY committed_at DESC LIMIT 1")[0]["snapshot_id"]
    shared.load(2)
    steps = {name: tuple(step.replace("{old}", str(old)) for step in ROLLBACKS[name])}
    if when == "between":
        do(shared, name, steps)
        shared.put(3)
    else:
        assert isinstance(shared.desk.lading, Interrupted)
        shared.desk.lading.meanwhile = lambda: do(shared, name, steps)
        shared.put(3)
    record = shared.run()
    assert record.state.value == "PAUSED"
    assert record.reason is not None
    assert "was rolled back" in record.reason.message
    shared.desk.sql(f"ACCEPT ROLLBACK OF JOB j {way}; RESUME JOB WHERE jobname = 'j'")
    shared.desk.run()
    loaded = [1, 3] if way == "KEEP POSITION" else [1, 2, 3]
    assert shared.ids() == [*loaded, *([50] if "insert" in name else []), *([51] if "expire" in name else [])]


def test_inserts_and_an_expiry_are_no_rollback(share: Callable[..., Shared]) -> None:
    """The snapshots look the same; the older metadata files tell."""
    shared = share()
    shared.load(1)
    for number in (50, 51):
        shared.spark(f"INSERT INTO {{t}} VALUES ({number}, 'x')")
    shared.call("expire_snapshots", f"{FAR}, retain_last => 1")
    shared.load(2)
    assert shared.ids() == [1, 2, 50, 51]


@pytest.mark.slow
def test_cherrypick_and_fast_forward(share: Callable[..., Shared]) -> None:
    shared = share()
    shared.load(1)
    shared.spark("ALTER TABLE {t} CREATE BRANCH trial")
    shared.spark("INSERT INTO {t}.branch_trial VALUES (50, 'x')")
    shared.spark("CALL lading.system.fast_forward('shop.orders', 'main', 'trial')")
    shared.load(2)
    shared.spark("INSERT INTO {t}.branch_trial VALUES (51, 'x')")
    picked = shared.spark("SELECT snapshot_id FROM {t}.refs WHERE name = 'trial'")[0]["snapshot_id"]
    shared.call("cherrypick_snapshot", f"snapshot_id => {picked}")
    shared.load(3)
    assert shared.ids() == [1, 2, 3, 50, 51]


def age(shared: Shared) -> None:
    """Every file is a week old."""
    for file in (shared.home / "warehouse" / "shop" / "orders").rglob("*"):
        os.utime(file, (time.time() - 7 * 86_400,) * 2)


def test_remove_orphan_files(share: Callable[..., Shared]) -> None:
    """It leaves what Lading keeps beside the table. Staged files are safe while young; else they are made again."""
    shared = share()
    shared.load(1)
    kept = sorted(path.name for path in (shared.home / "warehouse").rglob("_lading/*/*"))
    orphan = shared.home / "warehouse" / "shop" / "orders" / "data" / "orphan.parquet"
    orphan.write_bytes(b"nobody names it")
    age(shared)
    assert len(shared.call("remove_orphan_files")) == 1
    assert not orphan.exists()
    assert kept == sorted(path.name for path in (shared.home / "warehouse").rglob("_lading/*/*"))
    shared.load_while(lambda: shared.call("remove_orphan_files"), 2)

    def clean() -> None:
        age(shared)
        assert len(shared.call("remove_orphan_files")) == 1

    shared.load_while(clean, 3)
    shared.restart()
    shared.load(4)
    assert shared.ids() == [1, 2, 3, 4]
    assert shared.verdict() == "clean"


@pytest.mark.parametrize("change", ["RENAME COLUMN city TO town", "DROP COLUMN city"])
@pytest.mark.slow
def test_a_column_of_the_job_that_goes_stops_it_with_what_to_do(share: Callable[..., Shared], change: str) -> None:
    shared = share()
    shared.load(1)
    shared.spark(f"ALTER TABLE {{t}} {change}")
    shared.put(2)
    shared.desk.restart()
    record = shared.run()
    assert record.state.value == "PAUSED"
    assert record.reason is not None
    assert "column city (string) was dropped" in record.reason.message
    assert "ALTER the job" in record.reason.message
    assert shared.ids() == [1]

"""What Iceberg on the JVM does to a table between two batches, and during one: the job goes on, and every row is there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.jvm_engine import JvmEngine
from tests.tables.engine_rig import Shared

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
    "set_properties": ("ALTER TABLE {t} SET TBLPROPERTIES ('owner' = 'them', 'commit.retry.num-retries' = '9')",),
    "write_ordered_by": ("ALTER TABLE {t} WRITE ORDERED BY city, id",),
    "upgrade_to_format_3": ("ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')",),
}
QUICK = {"rewrite_then_expire", "add_partition_field", "add_nested_column", "upgrade_to_format_3"}


def tried(names: dict[str, tuple[str, ...]]) -> list[object]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


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


@pytest.mark.parametrize("name", tried(HARMLESS))
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
    """Nothing that others took out comes back, nothing of the job is missing, and `verify` tells the one from the other."""
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
    assert "others" in told or "cannot be told" in told, told

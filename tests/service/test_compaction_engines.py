"""Compaction beside Delta and Iceberg on the JVM: what they read, and who gives way when both change a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lading import failpoints
from tests.service.test_compaction import LocalDesk, loaded
from tests.support.jvm_engine import JvmEngine

MOR = "ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
VECTORS = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
DELETE = "DELETE FROM {t} WHERE id = 3"
INSERT = "INSERT INTO {t} VALUES (100, 'bonn', 1.50)"
REWRITE = "CALL lading.system.rewrite_data_files(table => 'shop.orders', options => map('rewrite-all', 'true'))"
WHOLE = list(range(8))
WITHOUT = [0, 1, 2, 4, 5, 6, 7]
RACES = [
    ("delta", "OPTIMIZE {t}", "given up", WHOLE),
    ("delta", DELETE, "given up", WITHOUT),
    ("delta", INSERT, "compacted", [*WHOLE, 100]),
    ("iceberg", REWRITE, "given up", WHOLE),
    ("iceberg", DELETE, "given up", WITHOUT),
    ("iceberg", INSERT, "compacted", [*WHOLE, 100]),
]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[LocalDesk]:
    made = LocalDesk(tmp_path)
    yield made
    failpoints.disarm_all()
    made.lading.close()


class Other:
    """The engine on the JVM, with the table of the desk."""

    def __init__(self, desk: LocalDesk, jvm: JvmEngine, form: str) -> None:
        self._jvm, self._home = jvm, desk.path / "home"
        place = self._home / "warehouse" / "shop" / "orders"
        self._table = "lading.shop.orders" if form == "iceberg" else f"delta.`{place}`"

    def sql(self, text: str) -> list[dict[str, object]]:
        return self._jvm.sql(text.replace("{t}", self._table), self._home)

    def ids(self) -> list[object]:
        return [row["id"] for row in self.sql("SELECT id FROM {t} ORDER BY id")]


@pytest.mark.parametrize(("form", "statement", "outcome", "rows"), RACES)
def test_between_the_copy_and_the_commit(
    desk: LocalDesk, jvm: JvmEngine, form: str, statement: str, outcome: str, rows: list[int]
) -> None:
    loaded(desk, form, batches=4)
    other = Other(desk, jvm, form)
    other.sql(MOR if form == "iceberg" else VECTORS)

    def meanwhile(_name: str) -> None:
        other.sql(statement)

    failpoints.arm("compact.note.after", meanwhile)
    done = desk.sql("OPTIMIZE orders")
    failpoints.disarm_all()
    assert [row[7] for row in done] == [outcome], done
    assert other.ids() == rows
    desk.load(1, first=4)
    assert other.ids() == sorted([*rows, 8, 9])


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_what_others_delete_after_a_compaction_is_deleted(desk: LocalDesk, jvm: JvmEngine, form: str) -> None:
    loaded(desk, form, batches=4)
    desk.sql("OPTIMIZE orders")
    other = Other(desk, jvm, form)
    assert other.sql("SELECT count(*) n FROM {t} WHERE id = 3 AND city = 'essen' AND amount = 3.50") == [{"n": 1}]
    other.sql(MOR if form == "iceberg" else VECTORS)
    other.sql(DELETE)
    assert other.ids() == WITHOUT
    desk.load(2, first=4)
    # The file with deleted rows is left alone; the two after it become one.
    assert [row[2] for row in desk.sql("OPTIMIZE orders")] == [2]
    assert other.ids() == [*WITHOUT, 8, 9, 10, 11]

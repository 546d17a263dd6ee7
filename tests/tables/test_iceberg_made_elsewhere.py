"""Tables that Iceberg on the JVM made, and what they ask of writers: written right, or refused at CREATE JOB."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    GeographyType,
    GeometryType,
    LongType,
    NestedField,
    PrimitiveType,
    TimestampNanoType,
    TimestamptzNanoType,
    TimeType,
    UnknownType,
    UUIDType,
)

from lading.errors import LadingError, TableError
from lading.model.s3_access import S3Access
from lading.model.table import Column, TableSpec
from lading.tables.iceberg.catalog import open_catalog, sqlite_catalog
from lading.tables.iceberg.features import find_lost
from tests.support.jvm_engine import JvmEngine
from tests.support.other_readers import newest_metadata
from tests.tables.drive import load, new_job, opening, put_and_commit
from tests.tables.engine_rig import COLUMNS, InterruptedDesk, Shared
from tests.tables.rig_iceberg import iceberg_local

V3 = "TBLPROPERTIES ('format-version' = '3')"
Share = Callable[..., Shared]


@pytest.fixture
def share(tmp_path: Path, jvm: JvmEngine) -> Iterator[Share]:
    made: list[Shared] = []

    def make(columns: str = "", *, job: bool = True) -> Shared:
        made.append(Shared(tmp_path, jvm, columns, job=job))
        return made[-1]

    yield make
    for each in made:
        each.close()


def refusal(shared: Shared, columns: str = "id, city") -> str:
    """What CREATE JOB says. There is no job after it."""
    with pytest.raises(LadingError) as caught:
        shared.create_job(columns)
    assert not shared.desk.lading.store.list_jobs()
    return str(caught.value)


def row_ids(shared: Shared) -> dict[int, int]:
    rows = shared.spark("SELECT id, _row_id FROM {t}")
    found = {row["id"]: row["_row_id"] for row in rows}
    assert len(set(found.values())) == len(rows), rows
    assert None not in found.values()
    return found


def test_format_3_keeps_the_id_of_every_row(share: Share) -> None:
    """Through merged manifests, inserts, deletes (deletion vectors) and rewrites of the JVM in between."""
    settings = (
        "'format-version' = '3', 'commit.manifest.min-count-to-merge' = '3', 'write.delete.mode' = 'merge-on-read'"
    )
    shared = share(f"({COLUMNS}) TBLPROPERTIES ({settings})")
    shared.load(1, 2)
    shared.load(3)
    known = row_ids(shared)
    shared.spark("INSERT INTO {t} VALUES (50, 'x')")
    for number in (4, 5, 6):
        shared.load(number)
    shared.spark("DELETE FROM {t} WHERE id = 2")
    shared.load(7)
    del known[2]
    found = row_ids(shared)
    assert known.items() <= found.items()
    assert sorted(found) == [1, 3, 4, 5, 6, 7, 50]
    assert len(shared.spark("SELECT path FROM {t}.manifests WHERE content = 0")) < 6
    shared.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    shared.load(8)
    assert found.items() <= row_ids(shared).items()
    updated = shared.spark("SELECT _last_updated_sequence_number n FROM {t} WHERE id IN (1, 8) ORDER BY id")
    assert updated[0]["n"] < updated[1]["n"]


def test_a_table_of_lading_in_format_3(share: Share) -> None:
    shared = share(job=False)
    shared.desk.sql(f"DROP TABLE orders; CREATE TABLE orders ({COLUMNS}) USING iceberg {V3}")
    shared.create_job()
    shared.load(1)
    shared.spark("INSERT INTO {t} VALUES (50, 'x')")
    shared.load(2)
    assert sorted(row_ids(shared)) == [1, 2, 50]


def test_an_upgrade_gives_older_rows_ids(share: Share) -> None:
    shared = share()
    shared.load(1)
    shared.spark("INSERT INTO {t} VALUES (50, 'x')")
    shared.spark(f"ALTER TABLE {{t}} SET {V3}")
    shared.load(2)
    assert sorted(row_ids(shared)) == [1, 2, 50]


@pytest.mark.slow
def test_format_1_is_refused_and_upgraded_by_one_statement(share: Share) -> None:
    """With specs that changed while it had version 1, where fields that are dropped stay as `void`."""
    shared = share(f"({COLUMNS}) PARTITIONED BY (city) TBLPROPERTIES ('format-version' = '1')", job=False)
    shared.spark("INSERT INTO {t} VALUES (50, 'x')")
    shared.spark("ALTER TABLE {t} DROP PARTITION FIELD city")
    shared.spark("ALTER TABLE {t} ADD PARTITION FIELD bucket(3, id)")
    assert "has format version 1; Lading writes versions 2 and 3" in refusal(shared)
    shared.spark("ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '2')")
    shared.create_job()
    shared.load(1, 2)
    shared.spark("ALTER TABLE {t} REPLACE PARTITION FIELD id_bucket_3 WITH truncate(1, city)")
    shared.load(3)
    assert shared.ids() == [1, 2, 3, 50]
    assert len(shared.spark("SELECT DISTINCT spec_id FROM {t}.files")) == 3
    assert shared.spark("SELECT id FROM {t} WHERE city = 'c3'") == [{"id": 3}]
    assert shared.spark("SELECT id FROM {t} WHERE id = 2") == [{"id": 2}]


@pytest.mark.slow
def test_a_sort_order_is_not_claimed(share: Share) -> None:
    shared = share(f"({COLUMNS})")
    shared.spark("ALTER TABLE {t} WRITE ORDERED BY city DESC")
    shared.load(2, 1, 3)
    assert shared.spark("SELECT DISTINCT sort_order_id FROM {t}.files") == [{"sort_order_id": 0}]
    assert shared.ids() == [1, 2, 3]


@pytest.mark.slow
def test_identifier_fields(share: Share) -> None:
    shared = share("(id BIGINT NOT NULL, city STRING)", job=False)
    shared.spark("ALTER TABLE {t} SET IDENTIFIER FIELDS id")
    shared.create_job()
    shared.load(1)
    assert shared.ids() == [1]
    assert shared.table().handle.load().schema().identifier_field_ids == [1]


def test_other_settings_of_writers(share: Share) -> None:
    """Metrics, folders, formats and commits as the table says; staged publishing (WAP) binds those who ask for it."""
    shared = share(
        f"({COLUMNS}) TBLPROPERTIES ('write.metadata.metrics.default' = 'none', "
        "'write.metadata.metrics.column.id' = 'full', 'write.object-storage.enabled' = 'true', "
        "'write.wap.enabled' = 'true', 'write.format.default' = 'orc', "
        "'commit.manifest-merge.enabled' = 'false', 'commit.retry.num-retries' = '0')",
        job=False,
    )
    shared.spark("INSERT INTO {t} VALUES (50, 'x')")
    shared.create_job()
    shared.load(1)
    shared.load(2)
    files = shared.spark("SELECT file_path, file_format, lower_bounds FROM {t}.files WHERE file_format = 'PARQUET'")
    assert [list(file["lower_bounds"]) for file in files] == [["1"], ["1"]]
    for file in files:
        place = file["file_path"].rpartition("/data/")[2].split("/")
        assert [len(part) for part in place[:4]] == [4, 4, 4, 8]
        assert set("".join(place[:4])) <= set("01")
    assert len(shared.spark("SELECT path FROM {t}.manifests")) == 3
    assert shared.ids() == [1, 2, 50]


@pytest.mark.slow
def test_a_folder_for_data_below_the_table(share: Share) -> None:
    shared = share(job=False)
    place = f"{shared.home}/warehouse/shop/orders/rows"
    shared.spark(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('write.data.path' = '{place}')")
    shared.create_job()
    shared.load(1)
    assert [row["file_path"].startswith(place) for row in shared.spark("SELECT file_path FROM {t}.files")] == [True]
    shared.spark(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('write.data.path' = '{place}2')")
    shared.load(2)
    assert shared.ids() == [1, 2]
    assert shared.verdict() == "clean"


def test_a_default_is_written(share: Share) -> None:
    """Spark reads them and cannot set them: other engines do."""
    shared = share(f"({COLUMNS}, n INT, place STRING, price DECIMAL(9,2)) {V3}", job=False)
    path = newest_metadata(shared.home / "warehouse" / "shop" / "orders")
    made = json.loads(path.read_text())
    for field, value in zip(made["schemas"][0]["fields"][2:], (7, "here", "1.50"), strict=True):
        field["initial-default"] = field["write-default"] = value
    path.write_text(json.dumps(made))
    shared.create_job()
    shared.load(1)
    (row,) = shared.spark("SELECT id, n, place, price FROM {t}")
    assert row == {"id": 1, "n": 7, "place": "here", "price": 1.5}
    assert shared.spark("SELECT value_counts FROM {t}.files")[0]["value_counts"].keys() >= {"3", "4", "5"}
    with pytest.raises(TableError, match="has defaults of columns, which Lading does not apply"):
        shared.table().snapshot()


def test_nested_columns_stay_null_until_a_job_fills_them(share: Share) -> None:
    shared = share(f"({COLUMNS}, more STRUCT<a: BINARY>, many ARRAY<STRING>, by MAP<STRING, INT>)", job=False)
    assert (
        "Column more is to be filled by the job, and Lading cannot load into its type struct<a:binary>: "
        "binary cannot be inside of others"
    ) in refusal(shared, "id, more")
    shared.create_job()
    shared.load(1)
    assert shared.spark("SELECT * FROM {t}") == [{"id": 1, "city": "c1", "more": None, "many": None, "by": None}]
    shown = [row[1] for row in shared.desk.sql("DESCRIBE orders")]
    assert shown[2:] == [
        "struct<a:binary>",
        "array<string>",
        "map<string,int>",
    ]


SPEC = (Column(name="id", type="bigint"), Column(name="city", type="string"))
REFUSED = {
    "files at another place (write.data.path = file:///elsewhere)": "'write.data.path' = 'file:///elsewhere'",
    "encryption (encryption.key-id)": "'encryption.key-id' = 'k'",
}


@pytest.mark.slow
@pytest.mark.parametrize("needs", REFUSED)
def test_settings_that_are_refused_by_name(share: Share, needs: str) -> None:
    shared = share(job=False)
    shared.spark(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({REFUSED[needs]})")
    assert f"asks for {needs}, which Lading does not write" in refusal(shared)


def test_a_variant_is_refused_by_name(share: Share) -> None:
    shared = share(f"({COLUMNS}, v VARIANT) {V3}", job=False)
    assert "asks for the type variant, which Lading does not write" in refusal(shared)


@pytest.mark.parametrize(
    "kind",
    [
        TimestampNanoType(),
        TimestamptzNanoType(),
        UnknownType(),
        GeometryType(),
        GeographyType(),
        UUIDType(),
        TimeType(),
    ],
    ids=str,
)
def test_types_that_are_refused_by_name(tmp_path: Path, kind: PrimitiveType) -> None:
    """Which Spark cannot make."""
    desk = InterruptedDesk(tmp_path)
    desk.sql(f"CREATE TABLE orders ({COLUMNS}) USING iceberg")
    catalog = open_catalog(sqlite_catalog(tmp_path / "home"), S3Access())
    catalog.drop_table("shop.orders")
    columns = (NestedField(1, "id", LongType()), NestedField(2, "at", kind))
    catalog.create_table("shop.orders", Schema(*columns), properties={"format-version": "3"})
    catalog.close()
    with pytest.raises(LadingError, match=r"asks for the type .* \(column at\), which Lading does not write"):
        desk.create(select="id")
    desk.lading.close()


def test_what_lading_would_leave_out_of_metadata_is_found() -> None:
    theirs = {"a": 1, "new-in-3": [{"x": 1}], "list": [{"b": 2}], "none": None, "type": "decimal(9, 2)"}
    assert find_lost(theirs, {**theirs, "more": 1}) == ""
    assert find_lost(theirs, {"a": 1, "list": [{"b": 2}], "type": "decimal(9,2)"}) == "/new-in-3"
    assert find_lost(theirs, {**theirs, "list": [{"b": 3}]}) == "/list/0/b"
    assert find_lost(theirs, {**theirs, "list": []}) == "/list"


def test_metadata_that_lading_does_not_know_stop_every_commit(tmp_path: Path) -> None:
    """In a catalog without a server: what a newer engine has said would be gone."""
    rig = iceberg_local(tmp_path, None)
    table, job = rig.create("t", TableSpec(columns=SPEC, properties={"format-version": "3"})), new_job()
    first = opening(job)
    put_and_commit(table, first)
    path = newest_metadata(tmp_path / "home" / "warehouse" / "lake" / "t")
    path.write_text(json.dumps({**json.loads(path.read_text()), "new-in-4": [1]}))
    with pytest.raises(TableError, match="asks for metadata that Lading does not know: /new-in-4"):
        table.writer_spec()
    with pytest.raises(TableError, match="asks for metadata that Lading does not know: /new-in-4"):
        put_and_commit(table, load(job, first, ()))
    with pytest.raises(TableError, match="would leave out: /new-in-4"):
        table.end_job(job.job_id)
    assert json.loads(path.read_text())["new-in-4"] == [1]

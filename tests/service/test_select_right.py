"""SELECT of tables that others look after: the right rows, or a refusal."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import LongType, StringType

from lading.errors import LadingError
from lading.tables.iceberg.table import IcebergTable
from tests.service.conftest import Desk

LONG = "x" * 150
ODD = ["münchen", "a/b", "50%", "a=b", "日本", LONG]


def theirs(desk: Desk, name: str) -> Table:
    ours = desk.lading.catalog.open_table("shop", name)
    assert isinstance(ours, IcebergTable)
    return load_catalog(ours.handle.catalog.name, **ours.handle.catalog.properties).load_table(f"shop.{name}")


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_values_of_partitions_are_whole(desk: Desk, form: str) -> None:
    desk.sql(f"CREATE TABLE orders (id BIGINT, city VARCHAR(300)) USING {form} PARTITIONED BY (city)")
    desk.put("a.csv", [f'{number},"{city}"' for number, city in enumerate(ODD)], header="id,city")
    desk.sql(
        "CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT id, city "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",", "enclose"=\'"\')'
    )
    desk.run()
    found = desk.sql("SELECT id, city FROM orders ORDER BY id")
    assert [city for _, city in found] == ODD
    assert desk.sql("SELECT id FROM orders WHERE city = 'münchen'") == [(0,)]


def test_an_ordinary_partition_is_read_by_java_and_an_odd_type_too(desk: Desk) -> None:
    desk.sql("CREATE TABLE orders (id BIGINT, day DATE, n INT) USING delta PARTITIONED BY (day, n)")
    desk.put("a.csv", ["1,2026-01-02,7", "2,,8", "3,2026-01-03,"], header="id,day,n")
    desk.sql(
        "CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT id, nullif(day, ''), nullif(n, '') "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    desk.run()
    shown = desk.sql("SELECT id, CAST(day AS STRING), n FROM orders ORDER BY id")
    assert shown == [(1, "2026-01-02", 7), (2, None, 8), (3, "2026-01-03", None)]


def test_a_renamed_column_and_one_that_took_its_name(desk: Desk) -> None:
    desk.table(form="iceberg")
    desk.put_orders("a.csv", 0, 2)
    desk.create()
    desk.run()
    with theirs(desk, "orders").update_schema() as change:
        change.rename_column("city", "town")
    with theirs(desk, "orders").update_schema() as change:
        change.add_column("city", LongType())
        change.add_column("note", StringType())
    assert desk.sql("SELECT id, town, city, note FROM orders ORDER BY id") == [
        (0, "essen", None, None),
        (1, "essen", None, None),
    ]


def test_the_same_of_files_that_java_does_not_read(desk: Desk) -> None:
    """The names of their folders are not ASCII."""
    desk.sql("CREATE TABLE orders (id BIGINT, city VARCHAR(300)) USING iceberg PARTITIONED BY (city)")
    desk.put("a.csv", ["1,münchen", "2,köln"], header="id,city")
    desk.create()
    desk.run()
    with theirs(desk, "orders").update_schema() as change:
        change.rename_column("id", "number")
        change.add_column("note", StringType())
    assert desk.sql("SELECT number, city, note FROM orders ORDER BY number") == [
        (1, "münchen", None),
        (2, "köln", None),
    ]


def test_rows_that_were_deleted_beside_their_files_are_not_shown(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.create()
    desk.run()
    delete_first_row(desk.path / "home" / "warehouse" / "shop" / "orders" / "_delta_log")
    with pytest.raises(LadingError, match="has deletion vectors, which Lading does not apply"):
        desk.sql("SELECT id FROM orders")


def delete_first_row(log: Path) -> None:
    """As Spark writes it: the file again, with a vector of the rows that are gone."""
    newest = sorted(log.glob("*.json"))[-1]
    lines = [json.loads(line) for line in newest.read_text().splitlines()]
    (add,) = [line["add"] for line in lines if "add" in line]
    bitmap = struct.pack("<IQIIIHHIH", 1681511377, 1, 0, 12346, 1, 0, 0, 16, 0)
    padded = bitmap + b"\0" * (-len(bitmap) % 4)
    vector = {
        "storageType": "i",
        "pathOrInlineDv": base64.b85encode(padded).decode().translate(_Z85),
        "sizeInBytes": len(bitmap),
        "cardinality": 1,
    }
    features = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True, "size": add["size"]}
    entry = [
        {"commitInfo": {"timestamp": 1, "operation": "DELETE"}},
        {"protocol": protocol},
        {"remove": remove},
        {"add": {**add, "deletionVector": vector}},
    ]
    version = int(newest.stem) + 1
    (log / f"{version:020d}.json").write_text("\n".join(json.dumps(action) for action in entry) + "\n")


_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = str.maketrans(_B85, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#")


def test_delete_files_of_iceberg_are_not_passed_over(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.table(form="iceberg")
    desk.put_orders("a.csv", 0, 3)
    desk.create()
    desk.run()
    # PyIceberg writes no delete files; a scan of another engine's table finds some, like this.
    made = FileScanTask.__init__

    def with_deletes(self: FileScanTask, data_file: DataFile, *_: object, **__: object) -> None:
        made(self, data_file, {data_file})

    monkeypatch.setattr(FileScanTask, "__init__", with_deletes)
    with pytest.raises(LadingError, match="has delete files, which Lading does not apply"):
        desk.sql("SELECT id FROM orders")

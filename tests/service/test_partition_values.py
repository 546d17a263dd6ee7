"""Partitioned tables and values that are awkward to name a folder by: every row in its partition, or a bad row."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyiceberg.expressions import EqualTo, IsNull
from pyiceberg.table import StaticTable

from tests.service.conftest import Desk

VALUES: list[str | None] = [
    *("plain", "a/b", "/", "a=b", "city=x", "100%", "%2F", "a b", " ", "+", "..", ".", "a:b*?<>|", "a\\b", "a'b\"c"),
    *(
        "null",
        "NULL",
        "__HIVE_DEFAULT_PARTITION__",
        "ü/ß=日本 🙂",
        "e\u0301",
        "a\nb\tc\r",
        "\x01",
        "x" * 3000,
        "é" * 200,
    ),
    *("", None),
]


def put(desk: Desk, name: str, values: list[str | None]) -> None:
    lines = [json.dumps({"id": number, "city": value}) for number, value in enumerate(values)]
    (desk.inbox / name).write_text("\n".join(lines) + "\n")


def start(desk: Desk, form: str, kind: str, properties: str = "") -> None:
    said = f"PROPERTIES({properties})" if properties else ""
    desk.sql(f"CREATE TABLE orders (id BIGINT, city {kind}) USING {form} PARTITIONED BY (city)")
    desk.sql(
        f"CREATE JOB j {said} ON STREAMING DO INSERT INTO orders SELECT id, city "
        f'FROM FILE("uri"="{desk.inbox}/*.json", "format"="json")'
    )


def rows_of_delta(desk: Desk, city: str | None) -> list[int]:
    """The rows of one partition, as another reader of Delta finds them."""
    table = DeltaTable(desk.lading.catalog.open_table("shop", "orders").location)
    wanted = pc.field("city").is_null() if city is None else pc.field("city") == city
    found = table.to_pyarrow_table(filters=wanted)
    assert set(found["city"].to_pylist()) == {city}
    return sorted(found["id"].to_pylist())


def rows_of_iceberg(desk: Desk, city: str | None) -> list[int]:
    """The rows of one partition, as another reader of Iceberg finds them."""
    location = desk.lading.catalog.open_table("shop", "orders").location
    newest = max((desk.path / "home").rglob("*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
    assert location.removeprefix("file://") in str(newest)
    wanted: Any = IsNull("city") if city is None else EqualTo("city", city)  # type: ignore[call-arg,arg-type]  # its pydantic types name other arguments
    found = StaticTable.from_metadata(str(newest)).scan(wanted)
    assert all(task.file.partition[0] == city for task in found.plan_files())
    return sorted(found.to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_every_value_is_in_its_partition(desk: Desk, form: str) -> None:
    put(desk, "a.json", VALUES)
    start(desk, form, "STRING")
    desk.run()
    assert (desk.show("Status"), desk.show("ErrorMsg")) == ("RUNNING", "")
    assert desk.ids() == list(range(len(VALUES)))
    read = rows_of_delta if form == "delta" else rows_of_iceberg
    for number, city in enumerate(VALUES):
        expected = [number]
        if form == "delta" and not city:
            expected, city = [number for number, value in enumerate(VALUES) if not value], None
        assert read(desk, city) == expected, city
    assert desk.lading.verify("j").is_clean


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_what_no_partition_can_take_is_a_bad_row_and_blocks_nothing(desk: Desk, form: str) -> None:
    put(desk, "a.json", ["essen", "", None, "oslo"])
    start(desk, form, "STRING NOT NULL", '"session.enable_insert_strict"="false"')
    desk.run()
    put(desk, "b.json", ["bonn"])
    desk.run()
    assert (desk.show("Status"), desk.show("ErrorMsg")) == ("RUNNING", "")
    # An empty text as a partition value is null in Delta; Iceberg keeps it.
    assert desk.ids() == ([0, 0, 3] if form == "delta" else [0, 0, 1, 3])
    reasons = {row[2]: row[3] for row in desk.sql("SHOW LOAD ERRORS FOR j")}
    assert reasons.keys() == ({2, 3} if form == "delta" else {3})
    assert set(reasons.values()) == {"column city: NULL in a column that is NOT NULL"}

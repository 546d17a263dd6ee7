"""Tables that get the columns their source has: statements as a user types them, tables read by others."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lading.errors import ConfigError, SqlError
from lading.tables.iceberg.table import IcebergTable
from lading.testing.kinesis.server import KinesisServer
from tests.console.local import LocalLading
from tests.service.conftest import Desk
from tests.service.test_routine_kafka import Topic
from tests.service.test_routine_kinesis import Stream
from tests.support.kafka_broker import KafkaBroker


def put(desk: Desk, name: str, rows: list[dict[str, Any]]) -> None:
    draft = desk.path / f"{name}.draft"
    draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
    draft.rename(desk.inbox / name)


def create(desk: Desk, properties: str, form: str = "json", more: str = "") -> None:
    desk.sql(
        f"CREATE JOB j PROPERTIES({properties}) ON STREAMING DO INSERT INTO t SELECT * "
        f'FROM FILE("uri"="{desk.inbox}/*", "format"="{form}"{more})'
    )


def rows(desk: Desk) -> list[dict[str, Any]]:
    """What Polars reads, without nulls, by id."""
    place = desk.lading.catalog.entry("shop", "t").location
    found = pl.read_delta(place).sort("id").to_dicts()
    return [{name: value for name, value in row.items() if value is not None} for row in found]


def test_fields_that_appear_become_columns(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id BIGINT) USING delta")
    create(desk, '"schema.evolution"="ADD"')
    put(desk, "1.json", [{"id": 1}])
    desk.run()
    put(
        desk, "2.json", [{"id": 2, "city": "essen", "big": True, "n": 7, "x": 1.5, "deep": {"a": [1, 2.5]}, "no": None}]
    )
    put(desk, "3.json", [{"id": 3, "n": 2**60}, {"id": 4, "x": 3}])
    desk.run()
    assert rows(desk) == [
        {"id": 1},
        {"id": 2, "city": "essen", "big": True, "n": 7, "x": 1.5, "deep": '{"a":[1,2.5]}'},
        {"id": 3, "n": 2**60},
        {"id": 4, "x": 3.0},
    ]
    assert desk.sql("DESCRIBE t") == [
        ("id", "bigint", "Yes"),
        ("city", "string", "Yes"),
        ("big", "boolean", "Yes"),
        ("n", "bigint", "Yes"),
        ("x", "double", "Yes"),
        ("deep", "string", "Yes"),
    ]


def test_what_fits_nowhere_is_rescued_with_its_place(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id BIGINT, n INT, name VARCHAR(3), _rescued STRING) USING delta")
    create(desk, '"rescued_data_column"="_rescued"')
    put(
        desk,
        "1.json",
        [
            {"id": 1, "n": 2},
            {"id": 2, "n": "many", "city": "essen", "deep": {"a": 1.50}},
            {"id": 3, "n": 3_000_000_000, "name": "longer"},
            {"id": 4, "who": 'a"b\\c'},
        ],
    )
    desk.run()
    assert desk.show("Status") == "RUNNING"
    found = rows(desk)
    rescued = {row["id"]: json.loads(row.pop("_rescued")) for row in found if "_rescued" in row}
    place = {"_file": str(desk.inbox / "1.json")}
    assert found == [{"id": 1, "n": 2}, {"id": 2}, {"id": 3}, {"id": 4}]
    assert {number: {**row, "_file": row["_file"].removeprefix("file://")} for number, row in rescued.items()} == {
        2: {"n": "many", "city": "essen", "deep": {"a": 1.5}, **place, "_row": 2},
        3: {"n": "3000000000", "name": "longer", **place, "_row": 3},
        4: {"who": 'a"b\\c', **place, "_row": 4},
    }


def test_columns_widen_in_iceberg(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id INT, price DECIMAL(4,2)) USING iceberg")
    create(desk, '"schema.evolution"="ADD_AND_WIDEN"')
    put(desk, "1.json", [{"id": 1, "price": 1.25}])
    desk.run()
    put(desk, "2.json", [{"id": 3_000_000_000, "price": 1234.5}, {"id": 2, "more": "x"}])
    desk.run()
    table = desk.lading.catalog.open_table("shop", "t")
    found = sorted(table.scan().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], str(row["price"]), row["more"]) for row in found] == [
        (1, "1.25", None),
        (2, "None", "x"),
        (3_000_000_000, "1234.50", None),
    ]
    assert desk.sql("DESCRIBE t")[:2] == [("id", "bigint", "Yes"), ("price", "decimal(6,2)", "Yes")]
    assert any(entry.action == "EVOLVE TABLE" for entry in desk.lading.store.list_audit())


def test_parquet_brings_its_own_types(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id INT, _rescued STRING) USING delta")
    create(desk, '"schema.evolution"="ADD", "rescued_data_column"="_rescued"', "parquet")
    day = datetime.fromisoformat("2026-01-01T12:30:00")
    first = pa.table({"id": pa.array([1, 2], pa.int64()), "at": pa.array([day, None], pa.timestamp("us"))})
    pq.write_table(first, desk.inbox / "1.parquet")
    desk.run()
    nested = pa.table({"id": ["3", "x"], "tags": pa.array([[1], None], pa.list_(pa.int32()))})
    pq.write_table(nested, desk.inbox / "2.parquet")
    desk.run()
    place = desk.lading.catalog.entry("shop", "t").location
    found = {row["id"]: row for row in pl.read_delta(place).to_dicts()}
    assert (found[1]["at"], found[2]["at"], found[3]["tags"]) == (day, None, "[1]")
    assert json.loads(found[None]["_rescued"])["id"] == "x"


def test_a_column_that_others_drop_pauses_the_job(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id BIGINT, city STRING) USING iceberg")
    create(desk, '"schema.evolution"="ADD"')
    put(desk, "1.json", [{"id": 1, "city": "essen"}])
    desk.run()
    table = desk.lading.catalog.open_table("shop", "t")
    assert isinstance(table, IcebergTable)
    with table.handle.load().update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("city")
    desk.restart()
    put(desk, "2.json", [{"id": 2, "city": "ulm"}])
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "column city (string) was dropped" in desk.show("ErrorMsg")
    assert "ALTER TABLE shop.t ADD COLUMN city string" in desk.show("ErrorMsg")
    desk.sql("ALTER TABLE t ADD COLUMN city STRING; RESUME JOB WHERE jobName = 'j'")
    desk.run()
    found = desk.lading.catalog.open_table("shop", "t").scan().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == [{"id": 1, "city": None}, {"id": 2, "city": "ulm"}]


def test_too_many_fields_pause_the_job(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id BIGINT) USING delta")
    create(desk, '"schema.evolution"="ADD"')
    put(desk, "1.json", [{"id": 1, **{f"key{number}": 1 for number in range(2000)}}])
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "LADING_EVOLUTION_MAX_COLUMNS allows 1000" in desk.show("ErrorMsg")
    assert desk.sql("DESCRIBE t") == [("id", "bigint", "Yes")]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_thousand_columns_and_not_one_more(desk: Desk, form: str) -> None:
    desk.sql(f"CREATE TABLE t (id BIGINT) USING {form}")
    create(desk, '"schema.evolution"="ADD"')
    put(desk, "1.json", [{"id": first, **{f"c{n:03}": first + n for n in range(999)}} for first in range(3)])
    desk.run()
    put(desk, "2.json", [{"id": 9, "c998": 1}])
    desk.run()
    assert desk.show("Status") == "RUNNING"
    put(desk, "3.json", [{"id": 10, "c999": 1}])
    desk.run()
    assert "with them it would have 1001 columns" in desk.show("ErrorMsg")
    table = desk.lading.catalog.open_table("shop", "t")
    assert len(desk.sql("DESCRIBE t")) == 1000
    found = {row["id"]: row for row in table.scan().to_pylist()}
    assert [found[first]["c500"] for first in range(3)] == [500, 501, 502]
    assert ({*found}, found[9]["c998"], found[9]["c997"]) == ({0, 1, 2, 9}, 1, None)
    assert desk.sql("SELECT count(*), sum(c998) FROM t") == [(4, 998 + 999 + 1000 + 1)]


CHANGING = [7, 1.5, "text", {"a": 1}, [1, 2], True, None, 2**70, 8, "9", 1e300, 2.0]
"""Values of one field, whose type goes back and forth."""


@pytest.mark.slow
@pytest.mark.parametrize(("form", "mode"), [("delta", "ADD"), ("iceberg", "ADD_AND_WIDEN")])
def test_a_type_that_goes_back_and_forth_loses_no_value(desk: Desk, form: str, mode: str) -> None:
    """The first batch makes the column; what does not fit it later is rescued as it was."""
    desk.sql(f"CREATE TABLE t (id BIGINT, _rescued STRING) USING {form}")
    create(desk, f'"schema.evolution"="{mode}", "rescued_data_column"="_rescued"')
    for number, value in enumerate(CHANGING):
        put(desk, f"{number:02}.json", [{"id": number, "x": value}])
        desk.run()
        assert desk.show("Status") == "RUNNING", desk.show("ErrorMsg")
    assert desk.sql("DESCRIBE t")[-1] == ("x", "bigint", "Yes")
    found = desk.lading.catalog.open_table("shop", "t").scan().sort_by("id").to_pylist()
    kept = [row["x"] if row["_rescued"] is None else json.loads(row["_rescued"])["x"] for row in found]
    assert kept == [7, "1.5", "text", '{"a":1}', "[1,2]", "true", None, str(2**70), 8, 9, "1e+300", 2]


@pytest.mark.slow
def test_types_that_differ_within_a_batch_make_a_text(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id BIGINT) USING delta")
    create(desk, '"schema.evolution"="ADD"')
    put(desk, "1.json", [{"id": number, "x": value} for number, value in enumerate(CHANGING[:10])])
    desk.run()
    kept = [row.get("x") for row in rows(desk)]
    assert kept == ["7", "1.5", "text", '{"a":1}', "[1,2]", "true", None, str(2**70), "8", "9"]


@pytest.mark.parametrize(
    ("table", "job", "why"),
    [
        ("id BIGINT", 'PROPERTIES("schema.evolution"="ADD_AND_WIDEN") {} SELECT * FROM {}', "cannot widen columns"),
        ("id BIGINT", 'PROPERTIES("schema.evolution"="ADD") {} SELECT id FROM {}', "names its columns"),
        ("id BIGINT", 'PROPERTIES("rescued_data_column"="r") {} SELECT * FROM {}', "has no such column"),
        ("id BIGINT, r INT", 'PROPERTIES("rescued_data_column"="r") {} SELECT * FROM {}', "which is int"),
    ],
)
def test_what_cannot_evolve_is_refused_at_create(tmp_path: Path, table: str, job: str, why: str) -> None:
    with LocalLading(tmp_path / "home") as lading:
        lading.sql(f"CREATE TABLE t ({table}) USING delta")
        source = f'FILE("uri"="{tmp_path}/in/*", "format"="json")'
        with pytest.raises(SqlError, match=why):
            lading.sql("CREATE JOB j " + job.format("ON STREAMING DO INSERT INTO t", source))


def test_records_of_kafka_bring_columns_and_can_be_looked_at(desk: Desk, broker: KafkaBroker) -> None:
    topic = Topic(broker, desk, partitions=1)
    desk.sql("ALTER TABLE t ADD COLUMN _rescued STRING")
    topic.send({0: [json.dumps({"id": 1}), json.dumps({"id": 2, "note": "new", "Id": "odd"})]})
    seen = desk.lading.sql(f"SELECT * {topic.source(format='json')} LIMIT 5")[0]
    assert (seen.columns, seen.rows) == (("id", "note", "Id"), ((1, None, None), (2, "new", "odd")))
    topic.create(properties='"format"="json", "schema.evolution"="ADD", "rescued_data_column"="_rescued"')
    desk.run()
    found = rows(desk)
    assert [row.get("note") for row in found] == [None, "new"]
    assert json.loads(found[1]["_rescued"]) == {"Id": "odd", "_file": f"{topic.name}/0", "_row": 1}


def test_records_of_kinesis_bring_columns(desk: Desk, kinesis: KinesisServer) -> None:
    stream = Stream(kinesis, desk, shards=1)
    stream.put(json.dumps({"id": 1, "city": "essen", "note": "new"}), "k")
    stream.create(properties='"schema.evolution"="ADD"')
    desk.run()
    assert rows(desk) == [{"id": 1, "city": "essen", "note": "new"}]


def test_names_that_iceberg_keeps_for_itself_become_no_columns(tmp_path: Path) -> None:
    """Spark and Trino would not read the table any more."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id":1,"_deleted":true,"city":"essen"}\n')
    with LocalLading(tmp_path / "home") as lading:
        with pytest.raises(ConfigError, match="Column _File cannot be in an Iceberg table"):
            lading.sql("CREATE TABLE t (id BIGINT, _File STRING) USING iceberg")
        lading.sql("CREATE TABLE t (id BIGINT, r STRING) USING iceberg; CREATE TABLE u (id BIGINT) USING iceberg")
        with pytest.raises(ConfigError, match="Column _pos cannot be in an Iceberg table"):
            lading.sql("ALTER TABLE t ADD COLUMN _pos BIGINT")
        source = f'SELECT * FROM FILE("uri"="{tmp_path}/in/*.json", "format"="json")'
        rescues = '"schema.evolution"="ADD", "rescued_data_column"="r"'
        lading.sql(f"CREATE JOB j PROPERTIES({rescues}) ON STREAMING DO INSERT INTO t {source}")
        lading.sql(f'CREATE JOB k PROPERTIES("schema.evolution"="ADD") ON STREAMING DO INSERT INTO u {source}')
        lading.run()
        (row,) = lading.catalog.open_table("default", "t").scan().to_pylist()
        assert (row["id"], row["city"], json.loads(row["r"])) == (1, "essen", {"_deleted": True})
        assert lading.catalog.open_table("default", "t").schema().names == ["id", "r", "city"]
        assert lading.catalog.open_table("default", "u").schema().names == ["id"]
        reason = lading.job("k").reason
        assert reason is not None
        assert "fields that cannot be columns of default.u: '_deleted'" in reason.message

"""Nested values, paths into them and what files tell of their rows: typed by a user, read by others' readers."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lading.errors import LadingError
from tests.service.conftest import Desk
from tests.service.vector_rig import VectorDesk, vector_desk

__all__ = ["vector_desk"]

KEPT = (
    '"session.enable_insert_strict"="false", "session.enable_strict_cast"="true", "session.insert_max_filter_ratio"="1"'
)
LOOSE = '"session.enable_insert_strict"="false", "session.insert_max_filter_ratio"="1"'
COLUMNS = (
    "id BIGINT, who STRUCT<name:STRING, age:INT>, lines ARRAY<STRUCT<price:DECIMAL(24,6), at:DATETIME>>, "
    "marks MAP<STRING, DOUBLE>, grid ARRAY<ARRAY<SMALLINT>>, days MAP<INT, DATE>, raw STRING"
)
DOCUMENTS = [
    '{"id":1,"who":{"name":"ann","age":"7"},"lines":[{"price":12345678901234567.654321,"at":"2026-01-02T03:04:05Z"},null],'
    '"marks":{"a":1,"b":null},"grid":[[1,2],[],null],"days":{"1":"2026-01-02"},"raw":{"n":1.10,"l":[1]}}',
    '{"id":2,"who":{"age":"old"}}',
    '{"id":3,"lines":{"price":1}}',
    '{"id":4,"grid":[[1],[4000000000]]}',
    '{"id":5,"days":{"x":"2026-01-02"}}',
    '{"id":6,"who":{"other":1},"lines":[],"marks":{}}',
    '{"id":7}',
    '{"id":8,"lines":[{"price":1},{"at":"soon"}]}',
]
FIRST = {
    "id": 1,
    "who": {"name": "ann", "age": 7},
    "lines": [
        {"price": Decimal("12345678901234567.654321"), "at": datetime.fromisoformat("2026-01-02T03:04:05")},
        None,
    ],
    "marks": [("a", 1.0), ("b", None)],
    "grid": [[1, 2], [], None],
    "days": [(1, date(2026, 1, 2))],
    "raw": '{"n":1.10,"l":[1]}',
}
NOTHING: dict[str, Any] = dict.fromkeys(FIRST)


def rows_of(desk: Desk, table: str, form: str = "delta") -> list[dict[str, Any]]:
    """The rows of a table, by a reader that is not Lading's."""
    location = desk.lading.catalog.open_table("shop", table).location.removeprefix("file://")
    if form == "delta":
        found = DeltaTable(location).to_pyarrow_table()
    else:
        # PyIceberg makes empty lists of lists of structs that are NULL: the files themselves are asked.
        found = pa.concat_tables(pq.read_table(path) for path in Path(location).rglob("data/**/*.parquet"))
    return sorted(found.to_pylist(), key=lambda row: (row["id"] is None, row["id"]))


def load(desk: Desk, job: str, target: str, select: str, uri: str, form: str, properties: str = KEPT) -> None:
    desk.sql(
        f"CREATE JOB {job} PROPERTIES({properties}) ON STREAMING DO INSERT INTO {target} SELECT {select} "
        f'FROM FILE("uri"="{desk.inbox}/{uri}", "format"="{form}", "column_separator"=",")'
    )


def told(desk: Desk, job: str) -> dict[str, str]:
    return {str(what): str(how) for what, how in desk.sql(f"EXPLAIN JOB {job}")}


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_nested_json_fills_nested_columns_and_what_does_not_fit_is_a_bad_row(
    vector_desk: VectorDesk, form: str
) -> None:
    desk = vector_desk
    desk.sql(f"CREATE TABLE strict ({COLUMNS}) USING {form}; CREATE TABLE loose ({COLUMNS}) USING {form}")
    (desk.inbox / "a.json").write_text("\n".join(DOCUMENTS) + "\n")
    tried = desk.sql(
        f"EXPLAIN CREATE JOB x PROPERTIES({KEPT}) ON STREAMING DO INSERT INTO strict SELECT * "
        f'FROM FILE("uri"="{desk.inbox}/*.json", "format"="json")'
    )
    assert {("loaded", "3"), ("bad", "5")} <= set(tried)
    load(desk, "s", "strict", "*", "*.json", "json")
    load(desk, "l", "loose", "*", "*.json", "json", LOOSE)
    explained = told(desk, "s")
    assert explained["path"].startswith("vector")
    assert explained["column who"] == "`who` → struct<name:string,age:int>"
    desk.run()
    sixth = {**NOTHING, "id": 6, "who": {"name": None, "age": None}, "lines": [], "marks": []}
    assert rows_of(desk, "strict", form) == [FIRST, sixth, {**NOTHING, "id": 7}]
    errors = {int(str(row[2])): str(row[3]) for row in desk.sql("SHOW LOAD ERRORS FOR s")}
    assert errors == {
        2: "column who.age: cannot read 'old' as int",
        3: "column lines: cannot read '{\"price\":1}' as array",
        4: f"column grid[2][1]: cannot read '4000000000' as {'smallint' if form == 'delta' else 'int'}",
        5: 'column days: cannot read \'{"x":"2026-01-02"}\' as map with keys of type int',
        8: "column lines[2].at: cannot read 'soon' as timestamp_ntz",
    }
    kept = [json.loads(str(row[4])) for row in desk.sql("SHOW LOAD ERRORS FOR s")]
    assert {"id": "2", "who": '{"age":"old"}'} in kept
    counts = desk.lading.job("s").totals
    assert counts is not None
    assert (counts.rows.total, counts.rows.loaded, counts.rows.error) == (8, 3, 5)
    loose = rows_of(desk, "loose", form)
    assert [row["id"] for row in loose] == list(range(1, 9))
    assert loose[0] == FIRST
    assert (loose[1]["who"], loose[2]["lines"]) == ({"name": None, "age": None}, None)
    assert (loose[3]["grid"], loose[4]["days"]) == ([[1], [None]], None)
    if form == "delta":
        location = desk.lading.catalog.open_table("shop", "strict").location
        assert pl.read_delta(location).sort("id")["who"].struct.field("age").to_list() == [7, None, None]
    assert desk.lading.verify("s").is_clean


def test_typed_files_fill_nested_columns_and_are_json_in_a_string(desk: Desk) -> None:
    desk.sql(
        "CREATE TABLE t (id BIGINT, who STRUCT<name:STRING, age:SMALLINT>, marks MAP<STRING,BIGINT>, text STRING, "
        "age INT, second STRING, price DECIMAL(20,3), f STRING, r BIGINT) USING delta"
    )
    who = pa.struct([("age", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
    lines = pa.list_(pa.struct([("price", pa.decimal128(20, 3))]))
    table = pa.table(
        {
            "id": pa.array(range(9)),
            "who": pa.array(
                [{"age": n * 10_000, "name": f"n{n}", "at": datetime(2026, 1, 1, 0, 0, n, 5, UTC)} for n in range(8)]
                + [None],
                who,
            ),
            "tags": pa.array([["a", f"b{n}"] for n in range(9)]),
            "lines": pa.array([[{"price": Decimal("1234567890123456.125")}]] * 8 + [[]], lines),
            "marks": pa.array([[("k", n)] for n in range(9)], pa.map_(pa.string(), pa.int32())),
        }
    )
    pq.write_table(table, desk.inbox / "a.parquet", row_group_size=2)
    paorc.write_table(table.drop_columns(["marks"]), desk.inbox / "b.orc")
    select = "id, who, {marks}, who, s.who.age, tags[2], lines[1].price, _file, _row"
    for form, marks in {"parquet": "marks", "orc": "map('k', id)"}.items():
        desk.sql(
            f"CREATE JOB {form} PROPERTIES({KEPT}) ON STREAMING DO INSERT INTO t SELECT {select.format(marks=marks)} "
            f'FROM FILE("uri"="{desk.inbox}/*.{form}", "format"="{form}") s '
            "WHERE who.age > 0 OR id = 8 OR tags[2] = 'b0'"
        )
    assert "is not in the vector set" in told(desk, "parquet")["why"]
    desk.run()
    for name in ("a.parquet", "b.orc"):
        rows = [row for row in rows_of(desk, "t") if row["f"].endswith(name)]
        assert [(row["id"], row["r"]) for row in rows] == [(0, 1), (1, 2), (2, 3), (3, 4), (8, 9)]
        assert rows[1] == {
            "id": 1,
            "who": {"name": "n1", "age": 10_000},
            "marks": [("k", 1)],
            "text": '{"age":10000,"name":"n1","at":"2026-01-01T00:00:01.000005Z"}',
            "age": 10_000,
            "second": "b1",
            "price": Decimal("1234567890123456.125"),
            "f": f"file://{desk.inbox}/{name}",
            "r": 2,
        }
        assert (rows[-1]["who"], rows[-1]["text"], rows[-1]["price"]) == (None, None, None)
    said = {str(row[3]) for row in desk.sql("SHOW LOAD ERRORS FOR parquet")}
    assert said == {f"column who.age: cannot read '{n}0000' as smallint" for n in range(4, 8)}


def test_paths_lead_into_json_and_rows_tell_where_they_are_from(desk: Desk) -> None:
    desk.sql(
        "CREATE TABLE t (id BIGINT, age INT, price DECIMAL(30,10), code STRING, odd STRING, list ARRAY<INT>, f STRING, "
        "r BIGINT, at TIMESTAMP, b BIGINT) USING delta"
    )
    select = "id, who.age, s.who.price, who.codes[2].c, who['k k'], who.list, _file, _row, _loaded_at, _batch"

    def put(name: str, *documents: str) -> None:
        (desk.inbox / name).write_text("\n".join(documents) + "\n")

    put(
        "a.json",
        '{"id":1,"who":{"age":7,"price":1234567890123456.1234567890,"codes":[{"c":"x"},{"c":"y"}],"k k":true,'
        '"list":[3]}}',
        '{"id":2,"who":{"age":70}}',
        "",
        "no JSON",
        '{"id":3}',
        '{"id":4,"who":5}',
    )
    desk.sql(
        f"CREATE JOB j PROPERTIES({KEPT}) ON STREAMING DO INSERT INTO t SELECT {select} "
        f'FROM FILE("uri"="{desk.inbox}/*.json", "format"="json") s WHERE who.age < 50 OR who.age IS NULL'
    )
    assert told(desk, "j")["why"] == "column age: try_variant_get is not in the vector set"
    desk.run()
    desk.restart()
    put("b.json", '{"id":9,"who":{"age":1}}')
    desk.run()
    rows = rows_of(desk, "t")
    assert [(row["id"], row["r"], Path(row["f"]).name) for row in rows] == [
        (1, 1, "a.json"),
        (3, 4, "a.json"),
        (4, 5, "a.json"),
        (9, 1, "b.json"),
    ]
    wanted = (7, Decimal("1234567890123456.1234567890"), "y", "true", [3])
    assert tuple(rows[0][name] for name in ("age", "price", "code", "odd", "list")) == wanted
    assert rows[2]["f"] == f"file://{desk.inbox}/a.json"
    assert [row["age"] for row in rows[1:]] == [None, None, 1]
    # What rows say of their batch is what its bill says.
    table = desk.lading.catalog.open_table("shop", "t")
    job_id = desk.lading.job("j").job_id
    heads = {head.seq: table.bills.read(job_id, head) for head in table.bills.heads(job_id)}
    for row in rows:
        assert row["at"] == heads[row["b"]].planned_at
        assert heads[row["b"]].tally.rows.loaded == sum(other["b"] == row["b"] for other in rows)
    assert len({row["b"] for row in rows}) == 2


def test_what_rows_tell_of_their_batch_is_what_its_bill_says(vector_desk: VectorDesk) -> None:
    desk = vector_desk
    desk.sql("CREATE TABLE t (id BIGINT, f STRING, r BIGINT, at TIMESTAMP, b BIGINT) USING iceberg")
    (desk.inbox / "0.csv").write_text("id\n00\nno number\n\n01\n")
    tried = desk.sql(
        f"EXPLAIN CREATE JOB x PROPERTIES({KEPT}) ON STREAMING DO "
        "INSERT INTO t SELECT id, _file, _row, _loaded_at, _batch "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    assert {("loaded", "2"), ("bad", "1")} <= set(tried)
    load(desk, "j", "t", "id, _file, _row, _loaded_at, _batch", "*.csv", "csv_with_names")
    for number in range(3):
        (desk.inbox / f"{number}.csv").write_text(f"id\n{number}0\nno number\n\n{number}1\n")
        desk.run()
        desk.restart()  # Another incarnation, which may commit a bill of its own.
    table, job_id = desk.lading.catalog.open_table("shop", "t"), desk.lading.job("j").job_id
    bills = {head.seq: table.bills.read(job_id, head) for head in table.bills.heads(job_id)}
    rows = rows_of(desk, "t", "iceberg")
    assert [(row["id"], row["r"]) for row in rows] == [(0, 1), (1, 3), (10, 1), (11, 3), (20, 1), (21, 3)]
    assert [row["f"] for row in rows[::2]] == [f"file://{desk.inbox}/{number}.csv" for number in range(3)]
    assert [row["at"] for row in rows] == [bills[row["b"]].planned_at for row in rows]
    assert [bills[row["b"]].tally.rows.loaded for row in rows] == [2] * 6
    assert len({row["b"] for row in rows}) == 3


def test_a_column_of_the_file_itself_is_meant_and_star_tells_nothing(vector_desk: VectorDesk) -> None:
    desk = vector_desk
    desk.sql(
        "CREATE TABLE t (id BIGINT, f STRING, b BIGINT) USING delta; CREATE TABLE u (id BIGINT, f STRING) USING delta"
    )
    (desk.inbox / "a.csv").write_text("id,_file\n1,mine\nx,yours\n")
    load(desk, "j", "t", "id, _file, _batch", "*.csv", "csv_with_names")
    load(desk, "k", "u", "*", "*.csv", "csv_with_names")
    desk.sql("CREATE TABLE v (id BIGINT, f STRING, r BIGINT, b BIGINT) USING delta")
    load(desk, "l", "v", "*, _row, _batch + 10", "*.csv", "csv_with_names")
    assert told(desk, "j")["path"].startswith("vector")
    desk.run()
    assert rows_of(desk, "t") == [{"id": 1, "f": "mine", "b": 1}]
    assert rows_of(desk, "u") == [{"id": 1, "f": "mine"}]
    assert rows_of(desk, "v") == [{"id": 1, "f": "mine", "r": 1, "b": 11}]
    assert told(desk, "j")["path"].startswith(
        "vector"
    )  # Also after a bad row, whose record is shown without the batch.
    assert [str(row[4]) for row in desk.sql("SHOW LOAD ERRORS FOR j")] == ['{"id":"x","_file":"yours"}']


def test_what_is_not_possible_is_refused_by_name(vector_desk: VectorDesk) -> None:
    desk = vector_desk
    desk.sql("CREATE TABLE t (id BIGINT, tag BIGINT, l ARRAY<TIMESTAMP>) USING delta")
    pq.write_table(pa.table({"id": [1], "who": [{"age": 1}], "tags": [["a"]]}), desk.inbox / "a.parquet")
    source = f'FILE("uri"="{desk.inbox}/*.parquet", "format"="parquet")'

    def refusal(statement: str) -> str:
        with pytest.raises(LadingError) as caught:
            desk.sql(statement)
        return str(caught.value)

    job = "CREATE JOB j ON STREAMING DO INSERT INTO t (id, tag) "
    assert "posexplode makes many rows from one" in refusal(f"{job} SELECT id, posexplode(tags) FROM {source}")
    lateral = refusal(f"{job} SELECT id, x FROM {source} LATERAL VIEW explode(tags) v AS x")
    assert "LATERAL" in lateral
    assert "Write explode(lines).sku in the SELECT" in lateral
    assert "struct<age:bigint> has no field size" in refusal(f"{job} SELECT id, who.size FROM {source}")
    assert "Column tag is bigint, and is filled with a struct<age:bigint>" in refusal(
        f"{job} SELECT id, who FROM {source}"
    )
    zoned = 'CREATE JOB j PROPERTIES("session.time_zone"="Europe/Berlin") ON STREAMING DO INSERT INTO t (id, l) SELECT '
    assert "has times inside of array<timestamp>" in refusal(f"{zoned} id, array(who.age) FROM {source}")
    number = "CREATE JOB j ON STREAMING DO INSERT INTO t (id, l) SELECT id, id"
    assert "Column l is array<timestamp>, and is filled with a bigint" in refusal(f"{number} FROM {source}")
    assert "cannot have a length" in refusal("CREATE TABLE n (a ARRAY<VARCHAR(3)>) USING delta")
    assert "Field A is there twice" in refusal("CREATE TABLE n (a STRUCT<a:INT, A:INT>) USING delta")
    assert "does not write ARRAY, MAP and STRUCT to Paimon" in refusal("CREATE TABLE n (a ARRAY<INT>) USING paimon")
    assert "a column of a nested type cannot be added" in refusal("ALTER TABLE t ADD COLUMN n MAP<STRING,INT>")


def test_a_field_without_a_name_is_read_and_a_path_past_it_too(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id BIGINT, who STRUCT<name:STRING>, text STRING, name STRING) USING delta")
    kind = pa.struct([pa.field("", pa.int32()), pa.field("name", pa.string())])
    values = pa.array([{"": 7, "name": "ann"}, None], kind)
    pq.write_table(pa.table({"id": [1, 2], "who": values}), desk.inbox / "a.parquet")
    load(desk, "j", "t", "id, who, who, who.name", "*.parquet", "parquet")
    desk.run()
    assert rows_of(desk, "t") == [
        {"id": 1, "who": {"name": "ann"}, "text": '{"":7,"name":"ann"}', "name": "ann"},
        {"id": 2, "who": None, "text": None, "name": None},
    ]


def test_of_a_key_that_stands_twice_the_last_one_counts_on_every_path(desk: Desk) -> None:
    twice = '{"y":1,"y":{"z":2,"z":3}}'
    desk.sql("CREATE TABLE paths (id BIGINT, z INT) USING delta")
    desk.sql("CREATE TABLE whole (id BIGINT, x STRUCT<y:STRUCT<z:INT>>) USING delta")
    (desk.inbox / "a.csv").write_text("id,x\n1," + '"' + twice.replace('"', '""') + '"\n')
    (desk.inbox / "a.json").write_text(f'{{"id":2,"x":0,"x":{twice}}}\n')
    for number, (form, uri) in enumerate([("csv_with_names", "*.csv"), ("json", "*.json")]):
        load(desk, f"p{number}", "paths", "id, x.y.z", uri, form)
        load(desk, f"w{number}", "whole", "id, x", uri, form)
        assert told(desk, f"w{number}")["path"].startswith("vector")
        assert not told(desk, f"p{number}")["path"].startswith("vector")
    desk.run()
    assert rows_of(desk, "paths") == [{"id": 1, "z": 3}, {"id": 2, "z": 3}]
    assert rows_of(desk, "whole") == [{"id": 1, "x": {"y": {"z": 3}}}, {"id": 2, "x": {"y": {"z": 3}}}]

"""`explode(column)` in a mapping: typed by a user, read by others' readers, and each element once."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lading.errors import LadingError
from tests.service.conftest import Desk
from tests.service.test_nested_jobs import KEPT, load, rows_of, told
from tests.service.vector_rig import VectorDesk, vector_desk

__all__ = ["vector_desk"]

BASKETS = [
    '{"id":1,"city":"essen","lines":[{"sku":"x","price":1.50},{"sku":"y","price":"2"}]}',
    '{"id":2,"city":"bonn","lines":[]}',
    '{"id":3,"city":"ulm","lines":[{"sku":"z","price":"dear"},{"sku":"w","price":4}]}',
    '{"id":4,"city":"ulm","lines":{"sku":"v"}}',
    '{"id":5,"city":"ulm"}',
    "{",
]
LINES = "id BIGINT, city STRING, line STRUCT<sku:STRING, price:DECIMAL(9,2)>, at BIGINT"
SELECT = "id, city, explode(lines), _row"


def put(desk: Desk, name: str, *documents: str) -> None:
    (desk.inbox / name).write_text("\n".join(documents) + "\n")


def lines_of(desk: Desk, form: str = "delta") -> list[tuple[object, ...]]:
    rows = rows_of(desk, "lines", form)
    return sorted((row["id"], row["city"], row["line"]["sku"], row["line"]["price"], row["at"]) for row in rows)


LOADED = [
    (1, "essen", "x", Decimal("1.50"), 1),
    (1, "essen", "y", Decimal("2.00"), 1),
    (3, "ulm", "w", Decimal("4.00"), 3),
]


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_each_element_is_a_row_and_every_record_is_counted(vector_desk: VectorDesk, form: str) -> None:
    desk = vector_desk
    desk.sql(f"CREATE TABLE lines ({LINES}) USING {form}")
    put(desk, "a.json", *BASKETS)
    source = f'FILE("uri"="{desk.inbox}/*.json", "format"="json")'
    tried = desk.sql(
        f"EXPLAIN CREATE JOB x PROPERTIES({KEPT}) ON STREAMING DO INSERT INTO lines SELECT {SELECT} FROM {source}"
    )
    assert {("loaded", "3"), ("bad", "3"), ("without a row", "2 records")} <= set(tried)
    load(desk, "j", "lines", SELECT, "*.json", "json")
    explained = told(desk, "j")
    assert explained["path"].startswith("vector")
    assert explained["explode"].startswith("one row for each element of lines")
    desk.run()
    assert lines_of(desk, form) == LOADED
    rows = desk.lading.bills(desk.lading.job("j"), 1)[0].totals.rows
    assert (rows.total, rows.loaded, rows.error, rows.unselected) == (8, 3, 3, 2)
    errors = sorted((int(str(row[2])), str(row[3])) for row in desk.sql("SHOW LOAD ERRORS FOR j"))
    assert [row for row, _ in errors] == [3, 4, 6]
    assert "column line.price: cannot read 'dear' as decimal(9,2)" in errors[0][1]
    assert errors[1][1] == """cannot explode '{"sku":"v"}': it is no array"""
    put(desk, "b.json", BASKETS[0])
    desk.restart()
    desk.run()
    assert lines_of(desk, form) == sorted([*LOADED, *LOADED[:2]])
    assert desk.lading.verify("j").is_clean


def test_a_shown_definition_makes_the_same_job_and_alter_changes_what_is_exploded(vector_desk: VectorDesk) -> None:
    desk = vector_desk
    desk.sql("CREATE TABLE tags (id BIGINT, tag STRING) USING delta")
    put(desk, "a.json", '{"id":1,"tags":["a",null],"marks":[]}', '{"id":2,"tags":[],"marks":["m"]}')
    desk.sql(
        "CREATE JOB j ON STREAMING DO INSERT INTO tags SELECT s.id, EXPLODE_OUTER(s.`tags`) "
        f'FROM FILE("uri"="{desk.inbox}/*.json", "format"="json") s'
    )
    ((_, shown, *_),) = desk.sql("SHOW CREATE JOB j")
    assert "EXPLODE_OUTER(s.`tags`)" in str(shown)
    desk.sql("DROP JOB WHERE jobName = 'j'")
    desk.sql(str(shown))
    desk.run()
    assert [(row["id"], row["tag"]) for row in rows_of(desk, "tags")] == [(1, "a"), (1, None), (2, None)]
    desk.sql("PAUSE JOB WHERE jobName = 'j'")
    source = f'FILE("uri"="{desk.inbox}/*.json", "format"="json")'
    desk.sql(f"ALTER JOB j INSERT INTO tags SELECT id, explode(marks) FROM {source}")
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    put(desk, "b.json", '{"id":3,"tags":["a"],"marks":["n"]}')
    desk.run()
    assert [(row["id"], row["tag"]) for row in rows_of(desk, "tags")][3:] == [(3, "n")]


def test_a_bad_element_is_loaded_again_alone_and_not_by_a_job_that_explodes_nothing(vector_desk: VectorDesk) -> None:
    desk = vector_desk
    desk.sql("CREATE TABLE prices (id BIGINT NOT NULL, price BIGINT NOT NULL) USING delta")
    put(desk, "a.json", '{"id":1,"prices":["7","dear","8"]}')
    load(desk, "j", "prices", "id, explode(prices)", "*.json", "json")
    desk.run()
    source = f'FILE("uri"="{desk.inbox}/*.json", "format"="json", "column_separator"=",")'
    desk.sql("PAUSE JOB WHERE jobName = 'j'")
    desk.sql(f"ALTER JOB j INSERT INTO prices SELECT id, coalesce(try_cast(prices AS BIGINT), 0) FROM {source}")
    assert "none of the 1 bad rows" in desk.lading.sql("REPLAY ERRORS FOR j")[-1].message
    fixed = "id, coalesce(try_cast(explode(prices) AS BIGINT), 0)"
    desk.sql(f"ALTER JOB j INSERT INTO prices SELECT {fixed} FROM {source}")
    assert "1 bad row of job j was loaded" in desk.lading.sql("REPLAY ERRORS FOR j")[-1].message
    assert sorted(row["price"] for row in rows_of(desk, "prices")) == [0, 7, 8]
    assert desk.lading.verify("j").is_clean


def test_parts_of_elements_and_arrays_of_typed_files(desk: Desk) -> None:
    desk.sql("CREATE TABLE lines (id BIGINT, sku STRING, price DECIMAL(9,2)) USING delta")
    put(desk, "a.json", *BASKETS[:2])
    kind = pa.list_(pa.struct([("sku", pa.string()), ("price", pa.decimal128(9, 2))]))
    values = pa.array([[{"sku": "p", "price": Decimal("3.00")}, {"sku": "q", "price": None}], None], kind)
    pq.write_table(pa.table({"id": [8, 9], "lines": values}), desk.inbox / "a.parquet")
    select = "id, explode(lines).sku, explode(lines).price"
    load(desk, "j", "lines", select, "*.json", "json")
    load(desk, "p", "lines", select, "*.parquet", "parquet")
    desk.run()
    found = [(row["id"], row["sku"], row["price"] and str(row["price"])) for row in rows_of(desk, "lines")]
    assert sorted(found, key=str) == [(1, "x", "1.50"), (1, "y", "2.00"), (8, "p", "3.00"), (8, "q", None)]
    assert all(desk.lading.verify(job).is_clean for job in "jp")


@pytest.mark.parametrize(
    ("select", "said"),
    [
        (
            "id, explode(lines), explode(tags)",
            "A job explodes one column, in one way, and this one explodes lines and tags",
        ),
        ("id, explode(lines), explode_outer(lines)", "explodes lines with and without its empty arrays"),
        ("id, explode(lines), size(lines)", "lines is exploded, and the same statement reads it as a whole"),
        ("*, explode(lines)", "the same statement reads * as a whole"),
        ("id, explode(who.lines)", "explode takes a column of the source, and nothing else"),
        ("id, explode(split(a, ','))", "explode takes a column of the source, and nothing else"),
        ("id, posexplode(lines)", "posexplode makes many rows from one"),
        ("id, explode()", "explode takes a column of the source"),
    ],
)
def test_what_is_not_possible_is_refused_with_what_is(vector_desk: VectorDesk, select: str, said: str) -> None:
    desk = vector_desk
    desk.sql("CREATE TABLE t (id BIGINT, a STRING, b STRING) USING delta")
    put(desk, "a.json", BASKETS[0])
    with pytest.raises(LadingError) as refused:
        load(desk, "j", "t (id, a, b)" if select.count(",") > 1 else "t (id, a)", select, "*.json", "json")
    assert said in str(refused.value), refused.value
    assert "explode(" in str(refused.value) or "job of its own" in str(refused.value)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ('"dedup.keys"="id", "watermark.column"="id"', "explode is not possible together with dedup.keys"),
    ],
)
def test_with_what_it_is_not_possible(vector_desk: VectorDesk, properties: str, said: str) -> None:
    desk = vector_desk
    desk.sql("CREATE TABLE t (id DATETIME, a STRING) USING delta")
    put(desk, "a.json", BASKETS[0])
    with pytest.raises(LadingError, match=said):
        load(desk, "j", "t", "id, explode(lines)", "*.json", "json", properties)


def test_only_arrays_are_exploded(vector_desk: VectorDesk) -> None:
    desk = vector_desk
    desk.sql("CREATE TABLE t (id BIGINT, a STRING) USING delta")
    pq.write_table(pa.table({"id": [1], "who": [{"age": 1}]}), desk.inbox / "a.parquet")
    for name, said in {
        "id": "id is bigint, and only an array",
        "who": "who is struct<",
        "ho": "Did you mean who",
    }.items():
        with pytest.raises(LadingError, match=said):
            load(
                desk, "j", "t", f"id + 1, explode({name})" if name != "id" else "1, explode(id)", "*.parquet", "parquet"
            )


def test_a_csv_with_an_array_of_json_in_a_field(vector_desk: VectorDesk) -> None:
    desk = vector_desk
    desk.sql("CREATE TABLE t (id BIGINT, a BIGINT) USING delta")
    (desk.inbox / "a.csv").write_text('id,xs\n1,"[1,2]"\n2,\n')
    load(desk, "j", "t", "id, explode(xs)", "*.csv", "csv_with_names")
    desk.run()
    assert [(row["id"], row["a"]) for row in rows_of(desk, "t")] == [(1, 1), (1, 2)]
    assert json.loads(json.dumps(told(desk, "j")["column a"]))

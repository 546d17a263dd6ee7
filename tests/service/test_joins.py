"""JOIN with a table, from the statement to the table, compared with what DuckDB computes over the whole input."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from lading.errors import LadingError, SqlError
from lading.tables.registry import kind_of
from lading.testing.kinesis.server import KinesisServer
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.service.join_rig import CSV, Dimension, bills, create, put, reason, rows_of
from tests.service.test_selected_streams import Selected
from tests.tables.optional import skip_without
from tests.tables.s3_server import S3Server


def test_rows_are_looked_up_multiply_and_are_counted_once(desk: Desk) -> None:
    pages = Dimension(desk)
    pages.add((1, "home", 1.5), (2, "cart", None), (2, "basket", 2), (None, "nobody", 0), (9007199254740993, "far", 1))
    create(desk)
    # A key that is no number, an empty one, one of no page, and one that is not the same number as a double.
    put(desk, "a.csv", "1,1", "2,2", "3,x", "4,", "5,77", "6,2.0", "7,9007199254740992", "8,9007199254740993")
    desk.run()
    assert rows_of(desk) == [
        (1, "1", "home"),
        (2, "2", "basket"),
        (2, "2", "cart"),
        (6, "2.0", "basket"),
        (6, "2.0", "cart"),
        (8, "9007199254740993", "far"),
    ]
    bill = bills(desk)[0]
    assert (bill.tally.rows.total, bill.tally.rows.loaded, bill.tally.rows.unselected) == (8, 4, 4)
    assert (bill.tally.written, bill.totals.written) == (6, 6)
    assert desk.lading.verify("j").is_clean
    assert json.loads(desk.show("LoadStatistic"))["joined"] == {"shop.pages": "1"}


def test_a_left_join_keeps_rows_without_a_match_and_where_looks_at_both_sides(desk: Desk) -> None:
    pages = Dimension(desk)
    pages.add((1, "home", 1), (2, "cart", 2), (2, "old", 3))
    create(desk, join="LEFT JOIN", on="s.page = d.id AND d.title <> 'old'", where="WHERE s.id > 1 OR d.title = 'home'")
    put(desk, "a.csv", "1,1", "2,2", "3,3", "0,2")
    desk.run()
    assert rows_of(desk) == [(1, "1", "home"), (2, "2", "cart"), (3, "3", None)]
    rows = bills(desk)[0].tally.rows
    assert (rows.loaded, rows.unselected) == (3, 1)


def test_a_row_with_one_bad_result_is_a_bad_row_of_which_nothing_is_written(desk: Desk) -> None:
    pages = Dimension(desk)
    pages.add((1, "12", 1), (2, "13", 1), (2, "thirteen", 1))
    create(
        desk,
        columns="id BIGINT NOT NULL, n INT",
        select="s.id, d.title",
        properties="'session.insert_max_filter_ratio'='0.7', 'session.enable_insert_strict'='false', "
        "'session.enable_strict_cast'='true'",
    )
    put(desk, "a.csv", "1,1", "2,2", "x,1")
    desk.run()
    assert rows_of(desk) == [(1, 12)]
    bill = bills(desk)[0]
    assert (bill.tally.rows.loaded, bill.tally.rows.error, bill.tally.written) == (1, 2, 1)
    shown = desk.sql("SHOW LOAD ERRORS FOR j")
    assert sorted((str(row[1]).rpartition("/")[2], row[2]) for row in shown) == [("a.csv", 2), ("a.csv", 3)]
    assert any("cannot read 'thirteen' as int" in str(row[3]) for row in shown)
    assert any('"s.page":"2"' in str(row[4]) for row in shown)
    # Who may see bad rows of the job may not SELECT from the table that it joins with.
    assert not any("d.title" in str(row[4]) for row in shown)


def test_bad_results_count_for_the_error_budget_before_anything_is_committed(desk: Desk) -> None:
    pages = Dimension(desk)
    pages.add((1, "twelve", 1))
    create(desk, columns="id BIGINT, n INT", select="s.id, d.title", properties="'session.enable_insert_strict'='true'")
    put(desk, "a.csv", "1,1")
    desk.run()
    assert "Insert has filtered data in strict mode: 1 of 1 rows are bad" in reason(desk)
    assert rows_of(desk, is_stopped=True) == []


@pytest.mark.parametrize("form", ["iceberg", "paimon"])
def test_tables_of_each_format_are_joined_with(desk: Desk, form: str) -> None:
    skip_without(kind_of(form))
    desk.sql(f"CREATE TABLE pages (id BIGINT, title STRING, price DECIMAL(10,2)) USING {form} PARTITIONED BY (title)")
    (desk.path / "dim").mkdir()
    (desk.path / "dim" / "a.csv").write_text("id,title,price\n1,home,1\n2,cart,2\n")
    desk.sql(
        f'CREATE JOB fill ON STREAMING DO INSERT INTO pages SELECT * FROM FILE("uri"="{desk.path}/dim/*.csv", {CSV})'
    )
    desk.run()
    create(desk, select="s.id, s.page, concat(d.title, d.price)")
    put(desk, "a.csv", "1,1", "2,2", "3,3")
    desk.run()
    (desk.path / "dim" / "b.csv").write_text("id,title,price\n3,late,3\n")
    desk.run()
    put(desk, "b.csv", "4,3")
    desk.run()
    assert rows_of(desk) == [(1, "1", "home1.00"), (2, "2", "cart2.00"), (4, "3", "late3.00")]


def test_event_time_comes_from_the_source(desk: Desk) -> None:
    Dimension(desk).add((1, "home", 1))
    create(
        desk,
        columns="id BIGINT, title STRING",
        select="s.id, d.title",
        properties="'watermark.column'='s.at', 'watermark.delay'='1 minute', 'session.enable_insert_strict'='false', "
        "'session.insert_max_filter_ratio'='0.5'",
    )
    desk.put("a.csv", ["1,1,2026-01-01 12:00:00", "2,1,never"], header="id,page,at")
    desk.run()
    desk.put("b.csv", ["3,1,2026-01-01 11:00:00", "4,1,2026-01-01 12:01:00"], header="id,page,at")
    desk.run()
    assert rows_of(desk) == [(1, "home"), (4, "home")]
    rows = bills(desk)[0].totals.rows
    assert (rows.loaded, rows.late, rows.error) == (2, 1, 1)


def test_what_is_wrong_with_a_join_is_said_at_create(desk: Desk) -> None:
    Dimension(desk)
    put(desk, "a.csv", "1,1")
    for wrong, told in (
        ({"select": "s.id, s.page, d.name"}, "shop.pages, which has no column name"),
        ({"select": "s.id, s.page, s.title"}, "Unknown column 's.title' in the source"),
        ({"on": "s.page = e.id"}, "e.id does not say which side"),
        ({"properties": "'watermark.column'='title'"}, "Unknown column 's.title' in the source"),
    ):
        with pytest.raises(SqlError, match=told):
            create(desk, **wrong)
        desk.sql("DROP TABLE t")
    with pytest.raises(LadingError, match=r"joins with shop\.nothing, and this table is gone"):
        desk.sql(
            "CREATE TABLE t (id BIGINT) USING delta; CREATE JOB j ON STREAMING DO INSERT INTO t SELECT s.id "
            f'FROM FILE("uri"="{desk.inbox}/*.csv", {CSV}) AS s JOIN nothing AS d ON s.page = d.id'
        )


@pytest.mark.parametrize("seed", range(2))
def test_any_input_is_joined_as_duckdb_joins_all_of_it(desk: Desk, spark: SparkSession, seed: int) -> None:
    rng = Random(seed)
    pages = Dimension(desk)
    there = [(rng.choice([None, *range(20)]), f"t{n}", n / 10) for n in range(40)]
    pages.add(*there)
    left = rng.random() < 0.5
    create(desk, join="LEFT JOIN" if left else "JOIN", on="s.page = d.id AND d.price < s.id", where="WHERE s.id <> '3'")
    files = [[(n, rng.choice(["", "x", *map(str, range(25))])) for n in range(30)] for _ in range(4)]
    # Spark sends small tables everywhere and sorts large ones.
    threshold = "spark.sql.autoBroadcastJoinThreshold"
    old = str(spark.conf.get(threshold))
    spark.conf.set(threshold, "-1" if seed % 2 else old)
    try:
        for number, rows in enumerate(files):
            put(desk, f"{number}.csv", *(f"{n},{page}" for n, page in rows))
            if rng.random() < 0.5:
                desk.restart()
            if rng.random() < 0.7:
                desk.run()
        desk.run()
    finally:
        spark.conf.set(threshold, old)
    given = [(str(n), page) for file in files for n, page in file]
    with duckdb.connect() as connection:
        connection.register("s", pa.table({"id": [n for n, _ in given], "page": [page for _, page in given]}))
        dim = {"id": pa.array([i for i, _, _ in there], pa.int64()), "title": [t for _, t, _ in there]}
        connection.register("d", pa.table({**dim, "price": [p for _, _, p in there]}))
        query = (
            "SELECT s.id::BIGINT, s.page, d.title FROM s {} JOIN d ON try_cast(s.page AS DOUBLE) = d.id "
            "AND d.price < s.id::DOUBLE WHERE s.id <> '3'"
        )
        expected = connection.sql(query.format("LEFT" if left else "")).fetchall()
    assert rows_of(desk) == sorted(expected, key=str)
    bill = bills(desk)[0]
    assert bill.totals.rows.total == 120
    assert bill.totals.written == len(expected)
    assert desk.lading.verify("j").is_clean


def test_the_example_of_the_page_runs(desk: Desk) -> None:
    page = (Path(__file__).parents[2] / "docs" / "joins.md").read_text().replace("/data/clicks", str(desk.inbox))
    tables, job, change, *_ = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    desk.sql(tables)
    write_deltalake(
        desk.lading.catalog.open_table("shop", "pages").location,
        pa.table({"id": [7], "title": ["Home"]}, schema=pa.schema([("id", pa.int64()), ("title", pa.string())])),
        mode="append",
    )
    desk.put("a.csv", ["1,7,2026-01-01 12:00:00", "2,8,2026-01-01 12:00:01"], header="id,page,at")
    desk.sql(job)
    desk.run()
    there = desk.lading.catalog.open_table("shop", "named_clicks")
    assert sorted(row[:2] for row in pl.read_delta(there.location).rows()) == [(1, "Home"), (2, None)]
    desk.sql("PAUSE JOB WHERE jobName = 'named_clicks'")
    desk.sql(change)


def test_records_of_a_stream_are_joined_with_a_table(desk: Desk, kinesis: KinesisServer) -> None:
    Dimension(desk).add((1, "home", 1))
    desk.sql("CREATE TABLE t (id BIGINT, title STRING, shard STRING) USING delta")
    stream = Selected(kinesis, desk)
    stream.put({"id": 1, "page": 1}, {"id": 2, "page": 2}, {"id": 3, "page": "x"})
    stream.create("s.id, d.title, s._shard", "AS s LEFT JOIN pages AS d ON s.page = d.id")
    desk.run()
    assert [row[:2] for row in rows_of(desk)] == [(1, "home"), (2, None), (3, None)]
    assert all(row[2].startswith("shardId-") for row in rows_of(desk))


def test_a_table_in_a_bucket_is_joined_with(desk: Desk, s3: S3Server) -> None:
    bucket = s3.make_bucket()
    reach = f'"s3.endpoint"="{s3.endpoint}", "s3.region"="us-east-1", "use_path_style"="true"'
    keys = f'"s3.access_key"="{secret("dim")}", "s3.secret_key"="{secret("dim")}"'
    place = f"LOCATION 's3://{bucket}/lake/pages' TBLPROPERTIES ({reach}, {keys})"
    desk.sql(f"CREATE TABLE pages (id BIGINT, title STRING) USING delta PARTITIONED BY (title) {place}")
    (desk.path / "dim").mkdir()
    (desk.path / "dim" / "a.csv").write_text("id,title\n1,home\n2,cart\n")
    desk.sql(
        f'CREATE JOB fill ON STREAMING DO INSERT INTO pages SELECT * FROM FILE("uri"="{desk.path}/dim/*.csv", {CSV})'
    )
    desk.run()
    create(desk)
    put(desk, "a.csv", "1,1", "2,2", "3,3")
    desk.run()
    assert rows_of(desk) == [(1, "1", "home"), (2, "2", "cart")]

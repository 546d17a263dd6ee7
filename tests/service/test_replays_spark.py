"""REPLAY ERRORS on Spark, typed as a user would: what is in the table is read with Polars."""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from tests.service.conftest import Desk

SOURCE = 'FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
LENIENT = '"session.enable_insert_strict"="false", "session.insert_max_filter_ratio"="1", "file.settle_seconds"="0"'


def test_bad_rows_are_loaded_once_by_spark_itself(desk: Desk) -> None:
    desk.table()
    desk.create(properties=LENIENT, select="id, city, amount")
    desk.put("a.csv", ["1,essen,1.50", "two,bonn,2.50", "three,,3.50", "four,a,4.50"])
    desk.run()
    assert desk.ids() == [1]
    desk.sql("PAUSE JOB WHERE jobName = 'j'")
    number = "CASE id WHEN 'two' THEN 2 WHEN 'three' THEN 3 ELSE try_cast(id AS BIGINT) END"
    desk.sql(f"ALTER JOB j INSERT INTO orders SELECT {number}, soundex(city), amount {SOURCE.format(inbox=desk.inbox)}")
    paths = {str(row[0]): str(row[1]) for row in desk.sql("EXPLAIN JOB j")}
    assert paths["path"].startswith("general"), "the other path has tests without Spark"
    [result] = desk.lading.sql("REPLAY ERRORS FOR j")
    assert "2 bad rows of job j were loaded" in result.message
    assert "still bad: 1" in result.message
    desk.sql("REPLAY ERRORS FOR j; RESUME JOB WHERE jobName = 'j'")
    desk.run()
    rows = sorted(pl.read_delta(f"{desk.path}/home/warehouse/shop/orders").rows())
    assert rows == [(1, "essen", Decimal("1.50")), (2, "B500", Decimal("2.50")), (3, "", Decimal("3.50"))]
    assert desk.sql("EXPLAIN REPLAY ERRORS FOR j")[0][2] == 1
    assert desk.lading.verify("j").is_clean

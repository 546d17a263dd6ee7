"""Texts beside numbers, from the statement to the table: no filter loses a row, and money is exact."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from tests.service.conftest import Desk
from tests.service.test_routine_kafka import Topic
from tests.support.kafka_broker import KafkaBroker

LENIENT = '"session.enable_insert_strict"="false"'
AMOUNTS = ["10.5", "1e2", "10", "9.99", "11", "10.0000001", "-10.5", "007", "+10.25"]
"""The rows 0, 1, 4, 5 and 8 are over ten."""


def put(desk: Desk, form: str, rows: list[dict[str, Any]]) -> None:
    """Rows of texts, as CSV or as JSON."""
    if form == "csv":
        lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
    else:
        lines = [json.dumps(row) for row in rows]
    draft = desk.path / "draft"
    draft.write_text("\n".join(lines) + "\n")
    draft.rename(desk.inbox / f"a.{form}")


def create(desk: Desk, form: str, select: str, where: str = "", properties: str = "") -> None:
    said = f"PROPERTIES({properties})" if properties else ""
    options = '"format"="csv_with_names", "column_separator"=","' if form == "csv" else '"format"="json"'
    desk.sql(
        f"CREATE JOB j {said} ON STREAMING DO INSERT INTO orders SELECT {select} "
        f'FROM FILE("uri"="{desk.inbox}/*.{form}", {options}) {where}'
    )


def rows_of(desk: Desk, table: str) -> list[dict[str, Any]]:
    """The rows as another reader of the format finds them."""
    location = desk.lading.catalog.open_table("shop", "orders").location
    if table == "delta":
        found = DeltaTable(location).to_pyarrow_table()
    else:
        newest = max((desk.path / "home").rglob("*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
        found = StaticTable.from_metadata(str(newest)).scan().to_arrow()
    return sorted(found.to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize(("form", "table", "properties"), [("csv", "delta", ""), ("json", "iceberg", LENIENT)])
def test_a_filter_over_texts_takes_every_number_over_ten(desk: Desk, form: str, table: str, properties: str) -> None:
    """10.5 and 1e2 were left out, in silence."""
    desk.sql(f"CREATE TABLE orders (id BIGINT NOT NULL, amount DOUBLE) USING {table}")
    put(desk, form, [{"id": number, "amount": amount} for number, amount in enumerate(AMOUNTS)])
    create(desk, form, "id, amount", "WHERE amount > 10 AND id IN (0, 1, 2, 3, 4, 5.0, 6, 7, 8)", properties)
    desk.run()
    assert [row["id"] for row in rows_of(desk, table)] == [0, 1, 4, 5, 8]
    assert [row["amount"] for row in rows_of(desk, table)] == [10.5, 100.0, 11.0, 10.0000001, 10.25]


def test_money_is_multiplied_exactly(desk: Desk) -> None:
    table = "iceberg"
    desk.sql(f"CREATE TABLE orders (id BIGINT, gross DECIMAL(20,4), big DECIMAL(30,2)) USING {table}")
    rows = [("123456789012345.67", "0.1"), ("0.07", "0.2"), ("2.675", "1e1")]
    put(desk, "csv", [{"id": n, "price": price, "rate": rate} for n, (price, rate) in enumerate(rows)])
    create(desk, "csv", "id, price * 1.19 + rate, if(rate > 0.15, price * 100, price)")
    desk.run()
    assert [(row["gross"], row["big"]) for row in rows_of(desk, table)] == [
        (Decimal("146913578924691.4473"), Decimal("123456789012345.67")),
        (Decimal("0.2833"), Decimal("7.00")),
        (Decimal("13.1833"), Decimal("267.50")),
    ]


def test_in_strict_mode_what_cannot_be_read_is_a_bad_row_also_inside_an_expression(desk: Desk) -> None:
    desk.sql("CREATE TABLE orders (id BIGINT, amount DECIMAL(10,2), size STRING) USING delta")
    raws = ["1.5", "n/a", "", "2", "12d", "unknown"]
    put(desk, "csv", [{"id": number, "raw": raw} for number, raw in enumerate(raws)])
    size = "CASE WHEN raw = '' THEN 'none' WHEN raw = 'unknown' THEN raw WHEN raw > 1.6 THEN 'big' ELSE 'small' END"
    amount = "if(raw IN ('', 'unknown'), NULL, raw * 100)"
    create(desk, "csv", f"id, {amount}, {size}", properties='"session.enable_insert_strict"="true"')
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "column raw: cannot read 'n/a' as decimal(28,10)" in desk.show("ErrorMsg")
    assert rows_of(desk, "delta") == []


def test_bad_rows_of_expressions_and_filters_are_counted_and_kept_apart(desk: Desk) -> None:
    """Strict casts with room for bad rows: the good ones are loaded, the bad ones have their reasons."""
    desk.sql("CREATE TABLE orders (id BIGINT, amount DECIMAL(10,2)) USING delta")
    raws = ["1.5", "n/a", "", "2", "12d", "-1", "5"]
    put(desk, "csv", [{"id": number, "raw": raw, "ok": "x" if number else "y"} for number, raw in enumerate(raws)])
    properties = f'{LENIENT}, "session.enable_strict_cast"="true", "session.insert_max_filter_ratio"="1"'
    create(desk, "csv", "id, raw * 100", "WHERE (raw <> '' AND raw > 0) OR ok = 'y'", properties)
    desk.run()
    assert [(row["id"], row["amount"]) for row in rows_of(desk, "delta")] == [(0, 150), (3, 200), (6, 500)]
    reasons = {row[2]: row[3] for row in desk.sql("SHOW LOAD ERRORS FOR j")}
    assert reasons == {
        2: "column raw: cannot read 'n/a' as double",
        5: "column raw: cannot read '12d' as double",
    }
    assert json.loads(desk.show("LoadStatistic"))["filteredRows"] == 2


def test_a_lenient_job_loads_null_for_what_it_cannot_read(desk: Desk) -> None:
    desk.sql("CREATE TABLE orders (id BIGINT, amount DECIMAL(10,2)) USING delta")
    put(desk, "csv", [{"id": number, "raw": raw} for number, raw in enumerate(["1.5", "n/a", "-1"])])
    create(desk, "csv", "id, raw * 100", "WHERE raw > 0 OR id = 1", LENIENT)
    desk.run()
    assert [(row["id"], row["amount"]) for row in rows_of(desk, "delta")] == [(0, 150), (1, None)]


def test_whole_numbers_are_integers_however_they_are_written(desk: Desk) -> None:
    desk.sql("CREATE TABLE orders (id BIGINT, n INT) USING delta")
    (desk.inbox / "a.json").write_text('{"id": 1.0, "n": 1e2}\n{"id": 2, "n": "-5.00"}\n{"id": 3, "n": 1.5}\n')
    create(desk, "json", "id, n", properties=f'{LENIENT}, "session.insert_max_filter_ratio"="1"')
    desk.run()
    assert [(row["id"], row["n"]) for row in rows_of(desk, "delta")] == [(1, 100), (2, -5), (3, None)]


def test_numbers_of_json_keep_every_digit_on_their_way_to_decimals_and_texts(desk: Desk) -> None:
    table = "delta"
    desk.sql(f"CREATE TABLE orders (id BIGINT, amount DECIMAL(38,20), said STRING, near DOUBLE) USING {table}")
    numbers = ["12345678901234567.89", "0.12345678901234567891", "1.10", "1e2"]
    lines = [f'{{"id": {at}, "amount": {number}}}' for at, number in enumerate(numbers)]
    (desk.inbox / "a.json").write_text("\n".join(lines) + "\n")
    create(desk, "json", "id, amount, amount, amount", "WHERE amount < 12345678901234567.9")
    desk.run()
    rows = rows_of(desk, table)
    assert [row["amount"] for row in rows] == [Decimal(number) for number in numbers]
    assert [row["said"] for row in rows] == numbers
    assert [row["near"] for row in rows] == [float(number) for number in numbers]


def test_filters_and_columns_of_a_routine_load_read_texts_as_numbers(broker: KafkaBroker, desk: Desk) -> None:
    topic = Topic(broker, desk, partitions=1)
    values = ["1,10.5", "2,1e2", "3,10", "4,n/a", "5,9", "6,70"]
    topic.send({0: [f"{value},essen" for value in values]})
    topic.create(
        'COLUMNS TERMINATED BY ",", COLUMNS (id, raw, city, net = raw * 1.1, amount = net + 0.005), '
        "PRECEDING FILTER raw BETWEEN 9.5 AND 200 OR id = 4, WHERE amount < 100.5 AND id <> 6.0",
        '"strict_mode"="true", "max_error_number"="10"',
    )
    desk.run()
    assert desk.sql("SELECT id, amount FROM t ORDER BY id") == [(1, Decimal("11.56")), (3, Decimal("11.01"))]
    statistic = topic.show("Statistic")
    assert (statistic["loadedRows"], statistic["errorRows"], statistic["unselectedRows"]) == (2, 1, 3)
    ((_, _, _, reason, _),) = desk.sql("SHOW LOAD ERRORS FOR j")
    assert reason == "column raw: cannot read 'n/a' as decimal(28,10)"

"""COLUMNS, PRECEDING FILTER and WHERE as Spark SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lading.errors import NotSupportedError, PropertyError, SqlError
from lading.service.routine_mapping import Mapped, map_rows, zoned
from lading.service.spark_text import substitute
from lading.sql.definitions import define_routine_load
from lading.sql.expressions import translate_expression
from lading.sql.parse import parse_statement
from lading.sql.statements import CreateRoutineLoad
from tests.sql.golden import load_lines

TABLE = pa.schema([pa.field("id", pa.int64(), nullable=False), ("city", pa.string()), ("amount", pa.float64())])
METADATA = ("_key", "_offset")


def mapped(clauses: str = "", properties: str = "", table: pa.Schema = TABLE) -> Mapped:
    said = f"PROPERTIES({properties})" if properties else ""
    statement = parse_statement(
        f'CREATE ROUTINE LOAD j ON t {clauses} {said} FROM KAFKA("kafka_broker_list"="b", "kafka_topic"="t")'
    )
    assert isinstance(statement, CreateRoutineLoad)
    return map_rows(define_routine_load(statement), table, {"lading.length.city": "10"}, METADATA)


def expressions(found: Mapped) -> dict[str, str | None]:
    return {column.name: column.expression for column in found.mapping.columns}


def test_without_columns_the_source_has_the_columns_of_the_table() -> None:
    found = mapped()
    assert found.source_columns == ("id", "city", "amount")
    assert expressions(found) == {"id": "`id`", "city": "`city`", "amount": "`amount`"}
    assert (found.metadata, found.mapping.where) == ((), None)


def test_columns_name_the_fields_and_derive_others() -> None:
    found = mapped("COLUMNS (tmp, ID, amount = tmp * 2, city = upper(_key))")
    assert found.source_columns == ("tmp", "ID")
    assert found.metadata == ("_key",)
    assert expressions(found) == {"id": "`ID`", "city": "UPPER(`_key`)", "amount": "`tmp` * 2"}


def test_strict_mode_is_not_for_derived_columns() -> None:
    found = mapped("COLUMNS (id, raw, amount = raw)", '"strict_mode"="true"')
    checks = {column.name: column.checks_cast for column in found.mapping.columns}
    assert found.mapping.strict
    assert checks == {"id": None, "city": None, "amount": False}


def test_a_derived_column_may_be_made_from_another_one() -> None:
    found = mapped("COLUMNS (id, a, twice = a * 2, amount = twice + 1)")
    assert expressions(found)["amount"] == "(`a` * 2) + 1"
    with pytest.raises(PropertyError, match="derives amount from x from y from x"):
        mapped("COLUMNS (id, amount = x, x = y + 1, y = x + 1)")


def test_a_column_may_be_derived_from_the_field_of_the_same_name() -> None:
    assert expressions(mapped("COLUMNS (id, amount, amount = amount / 100)"))["amount"] == "`amount` / 100"


def test_where_sees_mapped_values_and_the_preceding_filter_raw_ones() -> None:
    found = mapped("COLUMNS (id, city, amount = id * 2), PRECEDING FILTER id > '5', WHERE amount > 7 AND city <> _key")
    assert found.mapping.where == (
        "coalesce((`id` > '5'), false) AND "
        "coalesce(((TRY_CAST(`id` * 2 AS DOUBLE)) > 7 AND (TRY_CAST(`city` AS STRING)) <> `_key`), false)"
    )
    assert found.metadata == ("_key",)


def test_where_over_a_temporary_and_over_a_column_that_is_not_filled() -> None:
    found = mapped("COLUMNS (id, tmp, more = tmp + 1), WHERE tmp = 1 OR more = 2 OR city IS NULL")
    assert found.mapping.where == (
        "coalesce((`tmp` = 1 OR (`tmp` + 1) = 2 OR (TRY_CAST(NULL AS STRING)) IS NULL), false)"
    )


@pytest.mark.parametrize(
    ("clauses", "properties", "fragment"),
    [
        ("COLUMNS (id, amount = nosuch)", "", "Unknown column 'nosuch'"),
        ("COLUMNS (id), WHERE nosuch = 1", "", "Unknown column 'nosuch'"),
        ("COLUMNS (id, amount = id * 2), PRECEDING FILTER amount > 1", "", "Unknown column 'amount'"),
        ("COLUMNS (city)", "", "Column id is NOT NULL, has no default value"),
        ("COLUMNS (id, ID)", "", "twice"),
        ("COLUMNS (id, a = 1, a = 2)", "", "twice"),
        ("COLUMNS (id, city)", '"format"="json", "jsonpaths"=\'["$.a"]\'', "1 jsonpaths for 2 columns"),
        ("", '"format"="json", "jsonpaths"=\'["$.a","$.b","$.c","$.d"]\'', "4 jsonpaths for 3 columns"),
    ],
)
def test_what_cannot_be_mapped_is_refused(clauses: str, properties: str, fragment: str) -> None:
    with pytest.raises(SqlError) as caught:
        mapped(clauses, properties)
    assert fragment in str(caught.value)


def test_paths_feed_the_columns_that_have_no_expression() -> None:
    found = mapped("COLUMNS (a, amount = 1, id)", '"format"="json", "jsonpaths"=\'["$.x", "$.y"]\'')
    assert found.source_columns == ("a", "id")
    assert mapped("", '"format"="json", "jsonpaths"=\'["$.x", "$.y"]\'').source_columns == ("id", "city")


def test_times_are_read_in_the_zone_of_the_job() -> None:
    assert zoned("`a`", "bigint", "Asia/Tokyo") == "`a`"
    assert zoned("`a`", "timestamp", "UTC") == "`a`"
    assert zoned("`a`", "timestamp_ntz", "UTC") == "coalesce(cast(try_cast(`a` AS timestamp) AS string), `a`)"
    assert "to_utc_timestamp(try_cast(`a` AS timestamp), 'Asia/Tokyo')" in zoned("`a`", "timestamp", "Asia/Tokyo")


@pytest.mark.parametrize(
    "text",
    [case.expected for case in load_lines("expressions.sql") if not case.expected.startswith("! ")],
)
def test_an_expression_stays_as_it_is_when_nothing_is_put_into_it(text: str) -> None:
    assert substitute(text, {"no_such_column": "1"}) == text


def test_the_arguments_of_a_lambda_are_no_columns() -> None:
    text = translate_expression("array_filter(x -> x > b, a)").text
    made = substitute(text, {"x": "1", "b": "`q` + 1"})
    assert "(`q` + 1)" in made
    assert "`x` -> `x` >" in made


def test_a_text_that_would_not_come_back_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="cannot be used inside of another one"):
        substitute("select 1 from", {"a": "1"})

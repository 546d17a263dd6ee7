"""COLUMNS, PRECEDING FILTER and WHERE as Spark SQL."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

from lading.errors import SqlError
from lading.pipeline.mapping import RowMapping
from lading.service.compile.mapping import asked_columns, map_rows, zoned
from lading.sql.statements.jobs import CreateRoutineLoad
from lading.sql.statements.load_specs import load_spec
from lading.sql.syntax.parse import parse_statement

TABLE = pa.schema([pa.field("id", pa.int64(), nullable=False), ("city", pa.string()), ("amount", pa.float64())])
METADATA = pa.schema([("_key", pa.string()), ("_offset", pa.int64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """What a routine load reads and does."""

    source_columns: tuple[str, ...]
    metadata: tuple[str, ...]
    mapping: RowMapping


def mapped(clauses: str = "", properties: str = "", table: pa.Schema = TABLE) -> Mapped:
    said = f"PROPERTIES({properties})" if properties else ""
    statement = parse_statement(
        f'CREATE ROUTINE LOAD j ON t {clauses} {said} FROM KAFKA("kafka_broker_list"="b", "kafka_topic"="t")'
    )
    assert isinstance(statement, CreateRoutineLoad)
    load = load_spec(statement)
    columns, metadata = asked_columns(load, table, METADATA)
    source = pa.schema([*((name, pa.string()) for name in columns), *(METADATA.field(name) for name in metadata)])
    mapping = map_rows(load, table, {"lading.length.city": "10"}, source)
    return Mapped(source_columns=columns, metadata=metadata, mapping=mapping)


def double(column: str) -> str:
    """How a text is read as a number."""
    return f"TRY_CAST(CASE WHEN `{column}` RLIKE '[0-9.][dDfF]|[xX]' THEN NULL ELSE `{column}` END AS DOUBLE)"


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
    assert expressions(found) == {"id": "`ID`", "city": "UPPER(`_key`)", "amount": f"{double('tmp')} * 2"}


def test_strict_mode_is_for_derived_columns_too() -> None:
    found = mapped("COLUMNS (id, raw, amount = raw * 100)", '"strict_mode"="true"')
    unread = {column.name: column.unread for column in found.mapping.columns}
    assert found.mapping.strict
    assert unread["id"] is unread["city"] is None
    assert "'column raw: cannot read \\''" in (unread["amount"] or "")


def test_a_filter_that_is_false_decides_whatever_the_other_one_cannot_read() -> None:
    found = mapped("COLUMNS (id, raw), PRECEDING FILTER raw > 5, WHERE id > 7")
    undecided = found.mapping.where_unread or ""
    assert undecided.startswith("coalesce(CASE WHEN (NOT coalesce((")
    assert "cannot read" in undecided


def test_a_derived_column_may_be_made_from_another_one() -> None:
    found = mapped("COLUMNS (id, a, twice = a * 2, amount = twice + 1)")
    assert expressions(found)["amount"] == f"({double('a')} * 2) + 1"
    with pytest.raises(SqlError, match="derives amount from x from y from x"):
        mapped("COLUMNS (id, amount = x, x = y + 1, y = x + 1)")


def test_a_column_may_be_derived_from_the_field_of_the_same_name() -> None:
    assert expressions(mapped("COLUMNS (id, amount, amount = amount / 100)"))["amount"] == f"{double('amount')} / 100"


def test_where_sees_mapped_values_and_the_preceding_filter_raw_ones() -> None:
    found = mapped("COLUMNS (id, city, amount = id * 2), PRECEDING FILTER id > '5', WHERE amount > 7 AND city <> _key")
    assert found.mapping.where == (
        "(`id` > '5') AND "
        f"((try_cast(({double('id')} * 2) AS double)) > 7 AND (try_cast((`city`) AS string)) <> `_key`)"
    )
    assert found.metadata == ("_key",)


def test_where_over_a_temporary_and_over_a_column_that_is_not_filled() -> None:
    found = mapped("COLUMNS (id, tmp, more = tmp + 1), WHERE tmp = 1 OR more = 2 OR city IS NULL")
    assert found.mapping.where == (
        f"({double('tmp')} = 1 OR ({double('tmp')} + 1) = 2 OR (try_cast((NULL) AS string)) IS NULL)"
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

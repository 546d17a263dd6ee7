"""Texts of JSON as nested values: what is read, and what is told of the rest."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lading.errors import ConfigError
from lading.model.nested_types import nested_type
from lading.model.table import Column
from lading.pipeline.nested import nested_values
from lading.tables.types import arrow_type, spark_type


def read(kind: str, *texts: str | None, nullable: bool = True) -> tuple[list[Any], dict[int, str]]:
    arrow = arrow_type(Column(name="c", type=kind))
    found, bad = nested_values("c", arrow, pa.array(texts, pa.string()), nullable=nullable)
    found.validate(full=True)
    assert found.type == arrow
    return found.to_pylist(), bad


GOOD = [
    ("struct<a:int,b:string>", '{"a":1,"b":"x"}', {"a": 1, "b": "x"}),
    ("struct<a:int,b:string>", '{"a":5.0,"b":{"z":[1.10,null]}}', {"a": 5, "b": '{"z":[1.10,null]}'}),
    ("struct<a:int,b:string>", '{"A":1,"b":null}', {"a": None, "b": None}),
    ("array<decimal(38,18)>", '[12345678901234567890.123456789012345678,"7"]', None),
    ("array<tinyint>", '[1,"1e2",-128]', [1, 100, -128]),
    ("array<bigint>", "[9223372036854775807,-9223372036854775808]", [2**63 - 1, -(2**63)]),
    ("array<boolean>", '[true,"no",1]', [True, False, True]),
    ("array<float>", '[0.1,16777217,"inf"]', [0.10000000149011612, 16777216.0, float("inf")]),
    ("array<timestamp>", '["2026-01-02T03:04:05.000006+02:00"]', [datetime(2026, 1, 2, 1, 4, 5, 6, UTC)]),
    ("array<timestamp_ntz>", '["2026-01-02 03:04:05+02:00"]', [datetime.fromisoformat("2026-01-02T01:04:05")]),
    ("array<date>", '["2026-1-2",null]', [date(2026, 1, 2), None]),
    ("map<string,array<int>>", '{"":[],"k":null}', [("", []), ("k", None)]),
    ("map<bigint,struct<x:double>>", '{"7":{"x":0.5}}', [(7, {"x": 0.5})]),
    ("struct<`a b`:array<array<string>>>", '{"a b":[["x"],[],null]}', {"a b": [["x"], [], None]}),
    ("array<string>", '["\\u00e9\\ud83d\\ude00"]', ["é😀"]),
    ("array<string>", "null", None),
]


@pytest.mark.parametrize(("kind", "text", "wanted"), GOOD)
def test_what_fits_is_read(kind: str, text: str, wanted: Any) -> None:
    if kind == "array<decimal(38,18)>":
        wanted = [Decimal("12345678901234567890.123456789012345678"), Decimal("7.000000000000000000")]
    assert read(kind, None, text, None) == ([None, wanted, None], {})


BAD = [
    ("struct<a:int>", '{"a":"x"}', {"a": None}, "column c.a: cannot read 'x' as int"),
    ("struct<a:int>", '{"a":1.5}', {"a": None}, "column c.a: cannot read '1.5' as int"),
    ("struct<a:int>", "[1]", None, "column c: cannot read '[1]' as struct"),
    ("struct<a:int>", "7", None, "column c: cannot read '7' as struct"),
    ("struct<a:int>", '{"a":1} x', None, "column c: cannot read '{\"a\":1} x' as JSON"),
    ("struct<a:int>", '{"a":NaN}', None, "column c: cannot read '{\"a\":NaN}' as JSON"),
    (
        "array<struct<q:date>>",
        '[{},{"q":"soon"}]',
        [{"q": None}, {"q": None}],
        "column c[2].q: cannot read 'soon' as date",
    ),
    ("array<timestamp>", '["12:00"]', [None], "column c[1]: cannot read '12:00' as timestamp"),
    ("map<string,int>", '{"k":"x"}', [("k", None)], "column c['k']: cannot read 'x' as int"),
    ("map<int,int>", '{"1":1,"01":2}', None, 'column c: cannot read \'{"1":1,"01":2}\' as map with keys of type int'),
    (
        "map<date,int>",
        '{"99999-01-01":1,"+99999-01-01":2}',
        None,
        'column c: cannot read \'{"99999-01-01":1,"+99999-01-01":2}\' as map with keys of type date',
    ),
    ("array<string>", '["\\ud800"]', None, "column c: cannot read '[\"\\ud800\"]' as JSON"),
    ("array<string>", "[" * 150 + "]" * 150, None, f"column c: cannot read '{'[' * 100}' as JSON"),
]


@pytest.mark.parametrize(("kind", "text", "wanted", "reason"), BAD)
def test_what_does_not_fit_is_null_and_told_with_its_path(kind: str, text: str, wanted: Any, reason: str) -> None:
    assert read(kind, text, None) == ([wanted, None], {0: reason})


def test_a_null_of_json_is_bad_where_the_column_must_not_be_null() -> None:
    assert read("array<int>", "null", "[]", nullable=False)[1] == {0: "column c: NULL in a column that is NOT NULL"}


def test_many_rows_keep_their_places() -> None:
    kind = "struct<a:array<int>,m:map<string,string>>"
    wanted: list[dict[str, Any] | None] = [
        None if n % 7 == 0 else {"a": list(range(n % 5)), "m": [(f"k{m}", str(m)) for m in range(n % 3)]}
        for n in range(500)
    ]
    texts = [None if row is None else json.dumps({"a": row["a"], "m": dict(row["m"])}) for row in wanted]
    assert read(kind, *texts) == (wanted, {})


@pytest.mark.parametrize(
    "name",
    ["int", "array<decimal(10,2)>", "map<string,array<struct<a:int,`b c`:date,`x``y`:map<int,string>>>>"],
)
def test_names_of_types_are_read_and_written_again(name: str) -> None:
    assert str(nested_type(name)) == name
    assert spark_type(arrow_type(Column(name="c", type=name))) == name


@pytest.mark.parametrize(
    "name", ["array<>", "map<int>", "struct<a>", "array<int", "array<int>>", "array<int,int>", "<", ""]
)
def test_what_is_no_type_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="has a type that is not known"):
        arrow_type(Column(name="c", type=name))

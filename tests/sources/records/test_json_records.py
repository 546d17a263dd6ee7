"""What JSON records become, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from lading.errors import ConfigError
from lading.model.row_formats import JsonOptions
from lading.sources.records.parser import RecordParser
from lading.sources.records.spec import RecordFormat, RecordKind
from tests.sources.records.support import META, bad, good, parse


@pytest.fixture(params=[True, False], ids=["quick", "slow"])
def fast(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def spec(*columns: str, **options: Any) -> RecordFormat:
    return RecordFormat(kind=RecordKind.JSON, columns=columns, json=JsonOptions(**options))


def test_one_object_is_one_row(fast: bool) -> None:
    rows = parse(spec("a", "b"), [b'{"a":1,"b":"x"}', b' {"b":null, "a":true}\n', b'{"c":1}'], fast=fast)
    assert good(rows, "a", "b", "__row") == [("1", "x", 100), ("true", None, 101), (None, None, 102)]


def test_values_become_texts(fast: bool) -> None:
    values = [
        b'{"a":1.50}',
        b'{"a":[1, {"x" : 2.50}]}',
        b'{"a":"\\u00e9"}',
        b'{"a":1e2}',
        b'{"a":12345678901234567890123}',
    ]
    rows = parse(spec("a"), values, fast=fast)
    assert [row["a"] for row in rows] == ["1.50", '[1,{"x":2.50}]', "é", "1e2", "12345678901234567890123"]


def test_numbers_keep_their_letters(fast: bool) -> None:
    """A double has 17 digits; what goes to DECIMAL or text may have more."""
    numbers = ["12345678901234567.89", "0.12345678901234567891", "1.10", "1e2", "-0.0", "-0", "1E+400", "5", "0"]
    values = [b'{"a" : %s, "b": "x\\"a\\": 1.50"}' % number.encode() for number in numbers]
    for _ in range(2):  # The fast way learns from the first run.
        assert [row["a"] for row in parse(spec("a"), values * 2, fast=fast)] == numbers * 2


def test_of_a_key_that_stands_twice_the_last_counts(fast: bool) -> None:
    assert good(parse(spec("a"), [b'{"a":1,"a":2}'], fast=fast), "a") == [("2",)]


def test_a_malformed_document_is_one_bad_row_with_its_bytes(fast: bool) -> None:
    rows = parse(spec("a"), [b'{"a":1}', b'{"a":\n ', b'{"a":"\xff"}', b'{"a":3}'], fast=fast)
    assert good(rows, "a") == [("1",), ("3",)]
    assert [(number, raw) for number, raw, _ in bad(rows)] == [(101, b'{"a":\n '), (102, b'{"a":"\xff"}')]
    assert bad(rows)[0][2].startswith("Malformed JSON")
    assert bad(rows)[1][2] == "Not UTF-8"
    assert [row["__row"] for row in rows] == [100, 101, 102, 103]


def test_lines_of_documents_are_several_rows(fast: bool) -> None:
    rows = parse(spec("a"), [b'{"a":1}\n\n{"a":2}\r\n', b'{"a":3}\nbad\n{"a":4}', b'{\n "a": 5\n}'], fast=fast)
    assert good(rows, "a", "__row") == [("1", 100), ("2", 100), ("3", 101), ("4", 101), ("5", 102)]
    assert [(number, raw) for number, raw, _ in bad(rows)] == [(101, b"bad")]


def test_a_blank_record_gives_no_row(fast: bool) -> None:
    assert parse(spec("a"), [b" \n\t", b"\r\n"], fast=fast) == []


def test_an_array_needs_strip_outer_array(fast: bool) -> None:
    values = [b'[{"a":1},{"a":2}]', b'{"a":3}', b"[]", b'[{"a":4},5]']
    rows = parse(spec("a"), values, fast=fast)
    assert good(rows, "a") == [("3",)]
    assert "strip_outer_array" in bad(rows)[0][2]
    rows = parse(spec("a", strip_outer_array=True), values, fast=fast)
    assert good(rows, "a", "__row") == [("1", 100), ("2", 100), ("4", 103)]
    assert [(number, raw) for number, raw, _ in bad(rows)] == [(101, values[1]), (103, values[3])]


def test_paths_feed_columns_in_order(fast: bool) -> None:
    values = [b'{"u":{"n":"x"},"l":[7]}', b'{"u":{"n":null}}', b'{"v":1}']
    rows = parse(spec("name", "first", "all", jsonpaths=("$.u.n", "$.l[0]", "$.")), values[:2], fast=fast)
    assert good(rows, "name", "first") == [("x", "7"), (None, None)]
    assert [row["all"] for row in rows] == [value.decode() for value in values[:2]]
    rows = parse(spec("name", "first", jsonpaths=("$.u.n", "$.l[0]")), values, fast=fast)
    assert bad(rows) == [(102, values[2], "No json path matches this document")]


def test_a_flat_path_that_matches_nothing_is_a_bad_row(fast: bool) -> None:
    rows = parse(spec("a", "b", jsonpaths=("$.a", "$.b")), [b'{"a":1}'] * 3 + [b'{"c":1}', b'{"a":null}'], fast=fast)
    assert [number for number, _, _ in bad(rows)] == [103]
    assert good(rows, "a")[-1] == (None,)


def test_the_root_is_where_rows_are(fast: bool) -> None:
    values = [b'{"d":{"a":1}}', b'{"e":1}', b'{"d":[{"a":2},{"a":3}]}']
    rows = parse(spec("a", json_root="$.d"), values, fast=fast)
    assert good(rows, "a") == [("1",)]
    assert [number for number, _, _ in bad(rows)] == [101, 102]
    rows = parse(spec("a", json_root="$.d", strip_outer_array=True), values, fast=fast)
    assert good(rows, "a") == [("2",), ("3",)]


def test_a_wrong_path_is_said_before_anything_is_read() -> None:
    with pytest.raises(ConfigError, match="Invalid json path"):
        RecordParser(spec("a", jsonpaths=("a.b",)), META)


@pytest.mark.parametrize("key", [b"a", b"unwanted"])
@pytest.mark.parametrize("depth", [10, 850, 990, 100_000])
def test_deep_nesting_costs_one_row_at_most(depth: int, key: bytes) -> None:
    values = [b'{"a":1}', b'{"a":3,"' + key + b'":' + b"[" * depth + b"]" * depth + b"}", b'{"a":2}']
    quick, slow = (parse(spec("a"), values, fast=fast) for fast in (True, False))
    assert quick == slow
    assert [row["__row"] for row in slow] == [100, 101, 102]
    assert [slow[0]["a"], slow[2]["a"]] == ["1", "2"]

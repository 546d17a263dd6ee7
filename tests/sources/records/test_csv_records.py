"""What csv records become, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from lading.model.row_formats import CsvOptions
from lading.sources.records.spec import RecordFormat
from tests.sources.records.support import bad, good, parse


@pytest.fixture(params=[True, False], ids=["quick", "slow"])
def fast(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def spec(*columns: str, separator: str = ",", **options: Any) -> RecordFormat:
    return RecordFormat(columns=columns, csv=CsvOptions(column_separator=separator, **options))


def test_a_record_is_a_line(fast: bool) -> None:
    rows = parse(spec("a", "b"), [b"1,x", b"2,y\n", b"3,\\N\r\n", b"4,"], fast=fast)
    assert good(rows, "a", "b") == [("1", "x"), ("2", "y"), ("3", None), ("4", "")]


def test_a_record_of_several_lines_is_several_rows(fast: bool) -> None:
    rows = parse(spec("a", "b"), [b"1,x\n2,y\n", b"3,z", b"\n\n", b"4,\n\n5,v"], fast=fast)
    assert good(rows, "a", "__row") == [("1", 100), ("2", 100), ("3", 101), ("4", 103), ("5", 103)]


def test_bad_rows_stay_at_their_places(fast: bool) -> None:
    rows = parse(spec("a", "b"), [b"1,x", b"2", b"3,y", b"4,y,z\n5,u", b"6,\xff", b"7,w"], fast=fast)
    assert [row["__row"] for row in rows] == [100, 101, 102, 103, 103, 104, 105]
    assert good(rows, "a") == [("1",), ("3",), ("5",), ("7",)]
    assert bad(rows) == [
        (101, b"2", "Column count mismatch: 1 fields, 2 expected"),
        (103, b"4,y,z", "Column count mismatch: 3 fields, 2 expected"),
        (104, b"6,\xff", "Not UTF-8"),
    ]


def test_separators_may_be_long(fast: bool) -> None:
    rows = parse(spec("a", "b", separator="||"), [b"1||x|", b"2||y"], fast=fast)
    assert good(rows, "a", "b") == [("1", "x|"), ("2", "y")]


def test_enclosed_fields_keep_separators_and_lines(fast: bool) -> None:
    values = [b'1,"x,\ny"', b'2,"a""b"', b'3,"a\\"b"', b'4,"open', b'5,"z"']
    rows = parse(spec("a", "b", enclose='"', escape="\\"), values, fast=fast)
    assert good(rows, "a", "b") == [("1", "x,\ny"), ("2", 'a"b'), ("3", 'a"b'), ("5", "z")]
    assert bad(rows) == [(103, b'4,"open', "Enclosed field is not closed")]


def test_an_empty_field_is_null_where_the_job_says_so(fast: bool) -> None:
    rows = parse(spec("a", "b", empty_field_as_null=True), [b"1,", b",2"], fast=fast)
    assert good(rows, "a", "b") == [("1", None), (None, "2")]

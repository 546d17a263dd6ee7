"""The quick way and the letter give the same rows of csv."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lading.model.row_formats import CsvOptions
from lading.sources.records import csv_records
from lading.sources.records.parser import RecordParser
from lading.sources.records.spec import RecordFormat
from tests.sources.records.support import META, block, rows_of
from tests.support.examples import examples

NAMES = ("a", "b", "c")

signs = [b"a", b"1", b"xy", b",", b",", b",", b"||", b"|", b'"', b'""', b"\\", b"\\N", b"\n", b"\r\n", b"\r", b" "]
signs += ["é".encode(), b"\xff", b"\xef\xbb\xbf", b"\0", b"##", b"#", b"\x01"]
pieces = st.sampled_from(signs)
wild = st.lists(pieces, min_size=1, max_size=12).map(b"".join)
fields = st.sampled_from([b"1", b"x", b"", b"\\N", b'"q"', b'"a,b"', b'"a""b"', b'"a\nb"', b'"open', "é".encode()])
tame = st.lists(fields, min_size=2, max_size=4).map(b",".join)
tidy = st.lists(fields, min_size=3, max_size=3).map(b",".join)
ends = st.sampled_from([b"", b"", b"\n", b"\r\n", b"##", b"\n\n"])
record = st.builds(lambda text, end: text + end, st.one_of(tame, tidy, tidy, wild), ends).filter(bool)
several = st.lists(record, min_size=1, max_size=3).map(b"\n".join)
values_ = st.one_of(st.lists(st.one_of(record, several), max_size=12), st.lists(tidy, max_size=12))
options_ = st.builds(
    CsvOptions,
    column_separator=st.sampled_from([",", ",", "||", "\x01"]),
    line_delimiter=st.sampled_from(["\n", "\n", "\r\n", "##", "|"]),
    enclose=st.sampled_from(["", "", '"']),
    escape=st.sampled_from(["", "", "\\"]),
    empty_field_as_null=st.booleans(),
    trim_double_quotes=st.booleans(),
)


@settings(max_examples=examples(200), deadline=None)
@given(values_, options_, st.sampled_from([1, 40, 100_000]), st.sampled_from([NAMES, ("a",)]))
@example([b'"a', b'b",2,3', b"1,2,3\n1,2,3"], CsvOptions(column_separator=",", enclose='"'), 100_000, NAMES)
@example([b"1,2,3#", b"#1,2,3"], CsvOptions(column_separator=",", line_delimiter="##"), 100_000, NAMES)
@example([b"a###"], CsvOptions(column_separator=",", line_delimiter="##"), 100_000, NAMES)
@example([b"1,2,3", b"1,2", b"4,5,6"], CsvOptions(column_separator=","), 100_000, NAMES)
def test_quick_and_slow_agree(values: list[bytes], options: CsvOptions, run_bytes: int, names: tuple[str, ...]) -> None:
    spec = RecordFormat(columns=names, csv=options)
    with patch.object(csv_records, "_RUN_BYTES", run_bytes), patch.object(csv_records, "_SMALL_BYTES", 20):
        quick = rows_of(RecordParser(spec, META), block(values))
        assert quick == rows_of(RecordParser(spec, META, fast=False), block(values))


@st.composite
def plain_with_one_odd(draw: st.DrawFn) -> tuple[list[bytes], CsvOptions]:
    """Records that go the quick way, and one that may not."""
    options = replace(draw(options_), trim_double_quotes=False)
    separator, end = options.column_separator.encode(), options.line_delimiter.encode()
    easy = st.sampled_from([b"1", b"x", b"\\N", b"", b"long text"])
    lines = [separator.join(row) for row in draw(st.lists(st.lists(easy, min_size=3, max_size=3), max_size=4))]
    hard = [b'"a%sb"', b'"a', b'b"', b"a\rb", b"\xff", b"\r", b"%s", b"%s%s", b"a%sb", b'"x""y"', b'"', b"", b"\n"]
    cells = [draw(st.sampled_from(hard + [b"1"] * 6)).replace(b"%s", end) for _ in range(draw(st.integers(2, 4)))]
    at = draw(st.integers(0, 4))
    odd_ones = [separator.join(cells), *draw(st.sampled_from([[], [b'b"' + separator + b"2"], [end], [b"\n"]]))]
    values = [*lines[:at], *odd_ones, *lines[at:]]
    ending = draw(st.sampled_from([b"", b"", end]))
    return [value + ending for value in values if value + ending], options


@settings(max_examples=examples(250), deadline=None)
@given(plain_with_one_odd())
@example(([b'1,2,"a', b'b",2,3', b'1,2,"a', b'b"'], CsvOptions(column_separator=",", enclose='"')))
def test_one_odd_record_among_plain_ones(case: tuple[list[bytes], CsvOptions]) -> None:
    values, options = case
    spec = RecordFormat(columns=NAMES, csv=options)
    quick = rows_of(RecordParser(spec, META), block(values))
    assert quick == rows_of(RecordParser(spec, META, fast=False), block(values))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(record, max_size=6), options_)
def test_records_do_not_touch_each_other(values: list[bytes], options: CsvOptions) -> None:
    parser = RecordParser(RecordFormat(columns=NAMES, csv=options), META)
    alone = [row for at, value in enumerate(values) for row in rows_of(parser, block([value], 100 + at))]
    assert rows_of(parser, block(values)) == alone

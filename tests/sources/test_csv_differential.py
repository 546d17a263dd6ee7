"""The fast way and the slow way through csv give the same rows, whatever is in the file and however it is cut."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lading.model.row_formats import CsvOptions
from lading.sources.files.blocks import Lines
from lading.sources.files.csv_reader import CsvReader
from lading.sources.files.rows import RowShaper
from tests.support.examples import examples

NAMES = ["a", "b", "c"]
SCHEMA = pa.schema([(name, pa.string()) for name in NAMES])


def read(content: bytes, options: CsvOptions, *, fast: bool, block: int, max_record: int = 10_000) -> list[Any]:
    lines = Lines(options.line_delimiter.encode(), max_record=max_record, uri="f", block_bytes=block)
    reader = CsvReader(options, lines, RowShaper(SCHEMA, "f", {}), NAMES, fast=fast)
    rows = [row for batch in reader.batches(io.BytesIO(content).read) for row in batch.to_pylist()]
    assert sorted(row["__row"] for row in rows) == list(range(1, len(rows) + 1))
    return sorted(rows, key=lambda row: row["__row"])


pieces = [b"", b"x", b"\\N", b'"', b'""', b",", b"||", b"|", b"\n", b"\r\n", b"\r", b"\\", b"\xff", b"\x01", b" "]
pieces += ["é€".encode(), b'"q"', b'"a,b"', b'"a\nb"', b'"a""b"', b"1,2,3\n", b"a||b||c\n", b'"1","2",""\r\n', b"\x00"]
pieces += [b"\xef\xbb\xbf", b"a\x1fb", b"$$", b"$", b"l$$m"]
contents = st.lists(st.sampled_from(pieces), max_size=25).map(b"".join)
options_ = st.builds(
    CsvOptions,
    column_separator=st.sampled_from([",", "||", "\x01", "é", "\x00"]),
    line_delimiter=st.sampled_from(["\n", "\r\n", "$$", "#", "aa"]),
    enclose=st.sampled_from(["", '"']),
    escape=st.sampled_from(["", "\\"]),
    empty_field_as_null=st.booleans(),
    trim_double_quotes=st.booleans(),
)


@settings(max_examples=examples(200), deadline=None)
@given(contents, options_, st.sampled_from([1, 7, 64, 10_000]))
@example(b'1,2,"3\n4,5,6\n', CsvOptions(column_separator=",", enclose='"'), 10_000)
@example(b'1,2,"3', CsvOptions(column_separator=",", enclose='"'), 10_000)
@example(b'1,"\n\n",3\n\n4,5,6\n', CsvOptions(column_separator=",", enclose='"'), 10_000)
@example(b"1,2,3\n\xef\xbb\xbf1,2,3\n", CsvOptions(column_separator=","), 7)
def test_fast_and_slow_agree(content: bytes, options: CsvOptions, block: int) -> None:
    judge = read(content, options, fast=False, block=10_000)
    assert read(content, options, fast=True, block=10_000) == judge
    assert read(content, options, fast=True, block=block) == judge
    assert read(content, options, fast=False, block=block) == judge


rows_ = st.lists(st.lists(st.text(alphabet='ab,"\n\r\\é€|', max_size=6), min_size=1, max_size=4), max_size=30)


@settings(max_examples=examples(100), deadline=None)
@given(rows_, st.sampled_from([9, 100, 10_000]))
def test_what_was_enclosed_comes_back(rows: list[list[str]], block: int) -> None:
    text = "".join(",".join('"' + v.replace('"', '""') + '"' for v in row) + "\n" for row in rows).encode()
    options = CsvOptions(column_separator=",", enclose='"')
    for fast in (True, False):
        found = read(text, options, fast=fast, block=block)
        good = [[row[name] for name in NAMES] for row in found if row["__error"] is None]
        assert good == [[None if v == "\\N" else v for v in row] for row in rows if len(row) == 3]
        assert len(found) == len(rows)


def test_large_blocks_with_trouble_here_and_there_agree() -> None:
    lines = [f"{n},{n},x{n}".encode() for n in range(20_000)]
    lines[3] = b"a\rb,1,2"
    lines[9_000] = b"\xff,1,2"
    lines[9_001] = b"too,few"
    lines[15_000] = b""
    content = b"\n".join(lines)
    options = CsvOptions(column_separator=",")
    fast = read(content, options, fast=True, block=100_000)
    assert fast == read(content, options, fast=False, block=100_000)
    assert [(row["__row"], row["__error"]) for row in fast if row["__error"]] == [
        (9_001, "Not UTF-8"),
        (9_002, "Column count mismatch: 2 fields, 3 expected"),
    ]
    assert fast[3]["a"] == "a\rb"


def test_enclosed_newlines_here_and_there_agree_in_large_blocks() -> None:
    lines = [f'"{n}","{n}","x{n}"' for n in range(5_000)]
    lines[100] = '"1","two\nlines","x"'
    lines[4_000] = '"1","not closed,"x"'
    lines[4_500] = '"1",5" wide,"x"'
    content = "\n".join(lines).encode()
    options = CsvOptions(column_separator=",", enclose='"')
    fast = read(content, options, fast=True, block=20_000)
    assert fast == read(content, options, fast=False, block=20_000)
    assert fast[100]["b"] == "two\nlines"


def test_an_enclosed_field_that_is_never_closed_costs_its_line_only() -> None:
    content = b'1,2,3\n4,"5,6\n' + b"7,8,9\n" * 500
    options = CsvOptions(column_separator=",", enclose='"')
    for fast in (True, False):
        found = read(content, options, fast=fast, block=100, max_record=1_000)
        bad = [(row["__row"], row["__raw"], row["__error"]) for row in found if row["__error"]]
        assert bad == [(2, b'4,"5,6', "Enclosed field is not closed")]
        assert len(found) == 502

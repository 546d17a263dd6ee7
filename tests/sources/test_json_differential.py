"""The fast way and the slow way through JSON lines give the same rows."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lading.model.row_formats import JsonOptions
from lading.sources.files.blocks import Lines
from lading.sources.files.json_reader import JsonReader
from lading.sources.files.rows import RowShaper
from lading.sources.records.json_records import JsonRecords
from tests.support.examples import examples

NAMES = ["a", "b", "c"]
SCHEMA = pa.schema([(name, pa.string()) for name in NAMES])


def read(content: bytes, options: JsonOptions, *, fast: bool, block: int) -> list[Any]:
    lines = Lines(b"\n", max_record=100_000, uri="f", block_bytes=block)
    reader = JsonReader(options, lines, RowShaper(SCHEMA, "f", {}), fast=fast)
    rows = [row for batch in reader.batches(io.BytesIO(content).read) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: row["__row"])


numbers = ["0", "-0", "-0.0", "7", "1.5", "1.10", "1e3", "2.0", "12345678901", "9007199254740993", "1e999", "0.1", "-3"]
numbers += ["99999999999999999999999", "1E-7", "01", "+1", ".5", "NaN", "Infinity", "10000000000.5", "123456789.25"]
texts = ['"x"', '""', '"é"', '"\\u00e9"', '"\\ud800"', '"2025-01-01"', '"a\\"b"', '"NaN"', '"\\u0000"', '"-0"']
others = ["null", "true", "false", "[1, 2.50]", '{"x": 1}', '"cut', "", "[]"]
value = st.sampled_from(numbers + texts + others)
kinds = [st.sampled_from(numbers), st.sampled_from(texts), st.sampled_from(["true", "false", "null"]), value]
field = st.tuples(st.sampled_from(["a", "b", "c", "d", "a", "\\u0061"]), value).map(
    lambda pair: f'"{pair[0]}":{pair[1]}'
)
wild = st.lists(field, max_size=4).map(lambda fields: "{" + ",".join(fields) + "}")
tame = st.builds(
    lambda a, b, c: f'{{"a":{a},"b":{b},"c":{c}}}',
    *(st.sampled_from(["1", "2", "3.5", "null"]), st.sampled_from(['"x"', '"é"']), st.sampled_from(["true", "false"])),
)
odd = st.sampled_from(
    ["", "  ", "bad", "5", "[1]", "null", '{"a":1}{"a":2}', '{"a":', "1}", '{"a":1} ', ' {"a":1}', "\r"]
)
ends = st.sampled_from(["\n", "\n", "\n", "\r\n"])
contents = st.lists(st.tuples(st.one_of(tame, tame, wild, odd), ends), max_size=30).map(
    lambda lines: "".join(line + end for line, end in lines).encode()
)
options_ = st.builds(
    JsonOptions,
    jsonpaths=st.sampled_from([(), (), ("$.a", "$.b", "$.c"), ("$.a", "$.", "$.c[0]")]),
)


@settings(max_examples=examples(150), deadline=None)
@given(contents, options_, st.sampled_from([30, 200, 100_000]), st.booleans())
@example(b'{"a":1}\n{"a":1}{"a":2}\n{"a":\n3}\n', JsonOptions(), 100_000, False)
@example(b'{"a":1}\n{"a":1,"d":NaN}\n', JsonOptions(), 9, False)
@example(b'{"a":1.5}\n{"a":100000000000}\n', JsonOptions(), 10, False)
def test_fast_and_slow_agree(content: bytes, options: JsonOptions, block: int, is_cut: bool) -> None:
    text = content[:-1] if is_cut else content
    judge = read(text, options, fast=False, block=100_000)
    assert read(text, options, fast=True, block=block) == judge
    assert read(text, options, fast=True, block=100_000) == judge


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5))))
def test_numbers_and_texts_come_back(rows: list[tuple[int, float, str]]) -> None:
    content = "".join(json.dumps({"a": a, "b": b, "c": c}) + "\n" for a, b, c in rows).encode()
    for fast in (True, False):
        found = read(content, JsonOptions(), fast=fast, block=500)
        assert [int(row["a"]) for row in found] == [a for a, _, _ in rows]
        assert [float(row["b"]) for row in found] == [b for _, b, _ in rows]
        assert [row["c"] for row in found] == [c for _, _, c in rows]


def test_large_blocks_with_trouble_here_and_there_agree() -> None:
    lines = [json.dumps({"a": n, "b": f"x{n}", "c": n / 4}) for n in range(20_000)]
    lines[5_000] = "bad"
    lines[9_000] = '{"a":"text","b":"x","c":1}'
    lines[15_000] = '{"a":1,"b":"x","c":10000000000000}'
    content = "\n".join(lines).encode()
    judge = read(content, JsonOptions(), fast=False, block=200_000)
    assert read(content, JsonOptions(), fast=True, block=200_000) == judge
    assert [row["__row"] for row in judge if row["__error"]] == [5_001]
    assert judge[15_000]["c"] == "10000000000000"


def test_the_fast_way_is_really_taken() -> None:
    records = JsonRecords(JsonOptions(), NAMES, of_file=True)
    block = b'{"a":1,"b":"x","c":true,"d":[1]}\n' * 3
    assert records.take_lines(block) is None
    records.take_documents(block.splitlines())
    taken = records.take_lines(block)
    assert taken is not None
    assert [column.to_pylist() for column in taken.columns] == [["1"] * 3, ["x"] * 3, ["true"] * 3]


def test_a_line_is_as_deep_behind_many_others_as_alone() -> None:
    records = JsonRecords(JsonOptions(), NAMES, of_file=True)
    plain = b'{"a":1,"b":"x","z":[1]}\n' * 3
    deep = b'{"a":1,"b":"x","z":' + b"[" * 2000 + b"]" * 2000 + b"}\n"
    records.take_documents(plain.splitlines())
    assert records.take_lines(plain) is not None
    assert records.take_lines(plain + deep) is None  # It is for the judge.
    judge = read(plain + deep, JsonOptions(), fast=False, block=100_000)
    assert read(plain * 50 + deep, JsonOptions(), fast=True, block=500)[-1]["__error"] == judge[-1]["__error"]
    assert judge[-1]["__error"] == "Malformed JSON: nested too deeply"


@pytest.mark.parametrize("depth", [10, 900, 100_000])
def test_deep_nesting_costs_one_row_at_most(depth: int) -> None:
    content = b'{"a":1}\n{"a":' + b"[" * depth + b"]" * depth + b'}\n{"a":2}\n'
    lines = Lines(b"\n", max_record=10_000_000, uri="f")
    for fast in (True, False):
        reader = JsonReader(JsonOptions(), lines, RowShaper(SCHEMA, "f", {}), fast=fast)
        rows = [row for batch in reader.batches(io.BytesIO(content).read) for row in batch.to_pylist()]
        assert sorted(row["a"] for row in rows if row["__error"] is None and row["a"] in ("1", "2")) == ["1", "2"]
        assert len(rows) == 3

"""The quick ways and the judge give the same rows, whatever the records are."""

from __future__ import annotations

import json
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lading.model.row_formats import JsonOptions
from lading.sources.records import json_records
from lading.sources.records.arrow_json import FlatJson
from lading.sources.records.parser import RecordParser
from lading.sources.records.spec import RecordFormat, RecordKind
from tests.sources.records.support import META, block, rows_of
from tests.support.examples import examples

NAMES = ("a", "b", "c")

numbers = ["0", "-0", "-0.0", "7", "1.5", "1.10", "1e3", "2.0", "12345678901", "9007199254740993", "1e999", "0.1", "-3"]
numbers += ["99999999999999999999999", "1E-7", "01", "+1", ".5", "1.", "NaN", "Infinity", "-Infinity", "10000000000.5"]
numbers += [
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "-9223372036854775809",
    "1e23",
    "5e-324",
]
texts = ['"x"', '""', '"é"', '"\\u00e9"', '"\\ud800"', '"\\ud83d\\ude00"', '"2025-01-01"', '"a\\"b"', '"NaN"', '"Info"']
texts += ['"\\u0000"', '"-0"', '"a: -0 "', '": NaN"', '"}\\n{"', '"\\/"', '"\x7f"', '"\x01"', '"\\x"', '"1.50"']
others = [
    "null",
    "true",
    "false",
    "[1, 2.50]",
    '{"x": 1}',
    '{"x":1.5}',
    '{"x":1,"x":[]}',
    "[-0]",
    '["-0",0]',
    '"cut',
    "",
    "[]",
]
value = st.sampled_from(numbers + texts + others)
field = st.tuples(st.sampled_from(["a", "b", "c", "d", "a", "\\u0061"]), value).map(
    lambda pair: f'"{pair[0]}":{pair[1]}'
)
wild = st.lists(field, max_size=4).map(lambda fields: "{" + ",".join(fields) + "}")
tame = st.builds(
    lambda a, b, c, d: f'{{"a":{a},"b":{b},"c":{c},"d":{d}}}',
    *(
        st.sampled_from(["1", "2", "3.5", "null", "-0", "1e12", "100000000000"]),
        st.sampled_from(['"x"', '"é"', "null"]),
    ),
    *(st.sampled_from(["true", "false"]), value),
)
same = st.builds(
    lambda a, d: f'{{"a":{a},"b":"{a}","c":null,"d":{d}}}', st.integers(1, 9), st.sampled_from(["1", '"x"'])
)
arrays = st.lists(st.one_of(tame, wild, value), max_size=3).map(lambda items: "[" + ",".join(items) + "]")
nested = st.one_of(tame, arrays).map(lambda item: f'{{"r":{item},"a":1}}')
odd = st.sampled_from(
    ["  ", "\n", "bad", "5", "[1]", "null", '{"a":1}{"a":2}', '{"a":', "1}", '{"a":1} ', ' {"a":1}', "\r\n", "\ufeff{}"]
)
document = st.one_of(same, same, tame, tame, wild, arrays, nested, odd)
several = st.lists(document, min_size=1, max_size=3).map("\n".join)
ending = st.sampled_from(["", "", "", "\n", "\r\n", " "])
record = st.one_of(
    st.builds(lambda text, end: (text + end).encode(), st.one_of(document, document, several), ending),
    st.builds(lambda text: json.dumps(json.loads(text), indent=2).encode(), same.filter(lambda text: _is_json(text))),
    st.builds(lambda text, at: text.encode()[:at] + b"\xff" + text.encode()[at:], tame, st.integers(0, 30)),
    st.binary(min_size=1, max_size=8),
)
runs = st.one_of(
    st.lists(record, max_size=8),
    st.lists(st.one_of(same, tame).map(str.encode), max_size=8),
    st.lists(same.map(str.encode)),
)
options_ = st.builds(
    JsonOptions,
    strip_outer_array=st.sampled_from([False, False, True]),
    json_root=st.sampled_from(["", "", "$.r", "$.d[0]"]),
    jsonpaths=st.sampled_from([(), (), ("$.a", "$.b", "$.c"), ("$.a", "$.", "$.c[0]"), ("$.d.x", "$.a", "$.r[*].a")]),
)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(runs, min_size=1, max_size=4), options_, st.sampled_from([1, 40, 200, 100_000]))
@example([[b'{"a":1}'], [b'{"a":1,"d":NaN}']], JsonOptions(), 100_000)
@example([[b'{"a":1}', b'{"a":1}{"a":2}', b'{"a":\n3}']], JsonOptions(), 100_000)
@example([[b'{"a":1.5}'], [b'{"a":100000000000}']], JsonOptions(), 100_000)
@example([[b'{"a":1.5}'], [b'{"a":-0}']], JsonOptions(), 100_000)
@example([[b'{"a":1}'], [b'{"a":-0}']], JsonOptions(), 100_000)
@example([[b'{"a":1}'], [b'{"a":2}\n{"a":3}', b'\n{"a":4}']], JsonOptions(), 100_000)
@example([[b'{"a":[0, -0]}', b'{"a":[-0]}']], JsonOptions(), 100_000)
def test_quick_and_slow_agree(blocks: list[list[bytes]], options: JsonOptions, run_bytes: int) -> None:
    spec = RecordFormat(kind=RecordKind.JSON, columns=NAMES, json=options)
    quick, slow = RecordParser(spec, META), RecordParser(spec, META, fast=False)
    with patch.object(json_records, "_RUN_BYTES", run_bytes):
        for values in blocks:
            assert rows_of(quick, block(values)) == rows_of(slow, block(values))


TRAINING = [b'{"a":1,"b":"x","c":null}', b'{"a":1.5,"b":"x","c":null}', b'{"a":"x","b":"x","c":null}']
near = [b'{"a":1}{"a":2}', b'{"a":1},{"a":2}', b'{"a":1}}', b"{}", b'{"a":1}\n{"a":2}', b'{"a":\n1}', b'{"a":"\xff"}']
near += [
    b'{"d":"\xed\xa0\x80"}',
    b'{"d":{"x":[{}\n{}]}}',
    b'{"b":"}\n{"}',
    b'{"d":{"x":-0}}',
    b'{"d":1}',
    b'{"a":1,"d":-Inf}',
]
near += [
    b'{"a":null}',
    b'{"a":1.10}',
    b'{"a":-0}',
    b'{"a":-0.0}',
    b'{"d":[Infinity]}',
    b'{"c":"\\ud800"}',
    b'{"a":1}\r\n',
]
near += [b'{"a":1,"d":' + b"[" * deep + b"]" * deep + b"}" for deep in (850, 985, 1100)]


@settings(max_examples=examples(250), deadline=None)
@given(
    st.sampled_from(TRAINING),
    st.lists(same.map(str.encode), min_size=1, max_size=4),
    st.one_of(st.sampled_from(near), st.sampled_from(near), record),
    st.integers(0, 4),
    st.builds(JsonOptions, jsonpaths=st.sampled_from([(), ("$.a", "$.b", "$.c")])),
)
def test_one_odd_record_among_plain_ones(
    trained: bytes, plain: list[bytes], odd_one: bytes, at: int, options: JsonOptions
) -> None:
    spec = RecordFormat(kind=RecordKind.JSON, columns=NAMES, json=options)
    quick, slow = RecordParser(spec, META), RecordParser(spec, META, fast=False)
    assert rows_of(quick, block([trained])) == rows_of(slow, block([trained]))
    values = [*plain[:at], odd_one, *plain[at:]]
    assert rows_of(quick, block(values)) == rows_of(slow, block(values))


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.tuples(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5))),
    st.booleans(),
)
def test_numbers_and_texts_come_back(rows: list[tuple[int, float, str]], is_ascii: bool) -> None:
    spec = RecordFormat(kind=RecordKind.JSON, columns=NAMES)
    values = [json.dumps({"a": a, "b": b, "c": c}, ensure_ascii=is_ascii).encode() for a, b, c in rows]
    for fast in (True, False):
        parser = RecordParser(spec, META, fast=fast)
        for _ in range(2):
            found = rows_of(parser, block(values))
            assert [int(row["a"]) for row in found] == [a for a, _, _ in rows]
            assert [float(row["b"]) for row in found] == [b for _, b, _ in rows]
            assert [row["c"] for row in found] == [c for _, _, c in rows]


def test_large_runs_with_trouble_here_and_there_agree() -> None:
    values = [json.dumps({"a": n, "b": f"user-0 Info {n}", "c": n / 4}).encode() for n in range(20_000)]
    values[5_000] = b"bad"
    values[9_000] = b'{"a":"text","b":"x","c":1}'
    values[15_000] = b'{"a":1,"b":"x","c":10000000000000}'
    spec = RecordFormat(kind=RecordKind.JSON, columns=NAMES)
    judge = rows_of(RecordParser(spec, META, fast=False), block(values, 1))
    assert rows_of(RecordParser(spec, META), block(values, 1)) == judge
    assert [row["__row"] for row in judge if row["__error"]] == [5_001]
    assert judge[15_000]["c"] == "10000000000000"


def test_the_quickest_way_is_really_taken() -> None:
    flat = FlatJson(NAMES, needs_value=False)
    values = [b'{"a":1,"b":"Info: x-0","c":true,"d":[1]}\n'] * 3
    assert flat.parse(values) is None
    flat.learn([{int}, {str}, {bool}])
    columns = flat.parse(values)
    assert columns is not None
    assert [column.to_pylist() for column in columns] == [["1"] * 3, ["Info: x-0"] * 3, ["true"] * 3]
    flat.learn([{int, float}, {str}, {bool}])
    mixed = flat.parse(
        [b'{"a":1.50,"b":"x","c":true}', b'{"a":1e2,"b":"\\"a\\":1.5","c":false}', b'{"a":"z","b":null}']
    )
    assert mixed is not None
    assert [column.to_pylist() for column in mixed[:2]] == [["1.50", "1e2", "z"], ["x", '"a":1.5', None]]


def test_a_way_that_keeps_failing_is_tried_less_often() -> None:
    flat = FlatJson(("a",), needs_value=False)
    flat.learn([{int}])
    with patch.object(flat, "_read", return_value=None) as tried:
        for _ in range(1000):
            flat.parse([b'{"a":1}'])
    assert tried.call_count < 30
    for _ in range(100):
        flat.parse([b'{"a":1}'])
    assert flat.parse([b'{"a":1}']) is not None

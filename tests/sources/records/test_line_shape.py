"""Lines of one shape are taken whole, and only where the judge says the same of each of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.model.row_formats import JsonOptions
from lading.sources.files.json_reference import BadDocument, JsonText
from lading.sources.records.line_shape import ShapedLines
from tests.support.examples import examples

NAMES = ["a", "b", "c"]
WHOLE = b'{"a": 1, "b": "x, y", "c": null, "d": true}\n{"a": -2.50, "b": null, "c": null, "d": 1e5}\n'


def taken(text: bytes, *, keeps_rest: bool = False, shape: ShapedLines | None = None) -> list[list[Any]] | None:
    columns = (shape or ShapedLines(NAMES, keeps_rest=keeps_rest)).take(text)
    return None if columns is None else [list(row) for row in zip(*(one.to_pylist() for one in columns), strict=True)]


def judged(text: bytes) -> list[list[str | None] | BadDocument]:
    judge = JsonText(JsonOptions(), NAMES)
    return [row for line in text.removesuffix(b"\n").split(b"\n") for row in judge.rows(line)]


scalars = ["0", "-0", "7", "-3", "1.50", "1e5", "1E-07", "true", "false", "null", "99999999999999999999999"]
wrong = ["01", "+1", ".5", "1.", "NaN", "Infinity", "nul", "1 1", "[]", '["x"]', "{}", '"x', 'x"', '"x"y"', '""', ""]
strings = ['"x"', '"é,"', '"a, b"', '", "', '"a":1', '"}{"', '"\\n"', '"\\""', '"\t"', '"\x7f"', '"null"', '"-0"']
value = st.one_of(st.sampled_from(scalars), st.sampled_from(strings), st.sampled_from(wrong))
keys = st.lists(st.sampled_from(["a", "b", "c", "d", "é", "a b"]), min_size=1, max_size=5)
spaces = st.sampled_from([(":", ","), (": ", ", "), (" :", " ,  ")])


@st.composite
def blocks(draw: st.DrawFn) -> bytes:
    """Lines that mostly have one shape, and now and then a letter more or less."""
    names, (colon, comma) = draw(keys), draw(spaces)
    kinds = [draw(st.sampled_from([scalars, strings, [*scalars, *strings], [*strings, *wrong]])) for _ in names]
    lines = [
        "{"
        + comma.join(f'"{name}"{colon}{draw(st.sampled_from(kind))}' for name, kind in zip(names, kinds, strict=True))
        + "}"
        for _ in range(draw(st.integers(1, 5)))
    ]
    text = "\n".join(lines).encode() + draw(st.sampled_from([b"", b"\n"]))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(text)))
        more = draw(st.sampled_from([b"", b'"', b",", b" ", b"\n", b"\r", b"\xff", b"}", b"{", b"\x01", b"0", b"-"]))
        text = text[:at] + more + text[at + draw(st.integers(0, 2)) :]
    return text


@settings(max_examples=examples(600), deadline=None)
@given(blocks(), blocks())
def test_what_is_taken_is_what_the_judge_says(first: bytes, second: bytes) -> None:
    """The same reader, one block after another: it remembers how the last one was cut."""
    shape = ShapedLines(NAMES, keeps_rest=False)
    for text in (first, second, first):
        rows = taken(text, shape=shape)
        assert rows is None or rows == judged(text)


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, len(WHOLE)), st.binary(max_size=2), st.integers(0, 2))
def test_a_wrong_letter_is_never_overlooked(at: int, more: bytes, less: int) -> None:
    text = WHOLE[:at] + more + WHOLE[at + less :]
    rows = taken(text)
    assert rows is None or rows == judged(text)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (WHOLE, [["1", "x, y", None], ["-2.50", None, None]]),
        (b'{"c":"","a":"\xc3\xa9"}\n{"c":"z","a":null}', [["é", None, ""], [None, None, "z"]]),
        (b'{"a" : 12345678901234567890.10 , "b" : "," }', [["12345678901234567890.10", ",", None]]),
        (b'{"a":null}\n{"a":"x"}\n', [[None, None, None], ["x", None, None]]),
    ],
)
def test_lines_of_one_shape_are_taken(text: bytes, rows: list[list[str | None]]) -> None:
    assert taken(text) == rows == judged(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'{"a":1}\n{"b":1}\n', id="another key"),
        pytest.param(b'{"a":1,"a":2}\n', id="a key twice"),
        pytest.param(b'{"a":1}\n\n{"a":1}\n', id="an empty line"),
        pytest.param(b'{"a":1}\r\n{"a":1}\r\n', id="lines of Windows"),
        pytest.param(b'{"a":"x"}\n{"a":""","b":"x}\n', id="as many quotes as there should be"),
        pytest.param(b'{"a":"x"}\n{"a":"}\n{"a":"y"z"}\n', id="a quote that one has and another lacks"),
        pytest.param(b'{"a":"x"}\n{"a":"x"0}\n', id="a letter behind the string"),
        pytest.param(b'{"a":"\xff"}\n', id="not UTF-8"),
        pytest.param(b'{"a":{"b":1}}\n', id="nested"),
        pytest.param(b'{"a":"\\u0041"}\n', id="escaped"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_everything_else_is_left_to_others(text: bytes) -> None:
    assert taken(text) is None


def test_a_field_that_nobody_asked_for_is_not_lost() -> None:
    assert taken(WHOLE, keeps_rest=True) is None
    assert taken(WHOLE.replace(b', "d": true', b"").replace(b', "d": 1e5', b""), keeps_rest=True) is not None


def test_records_with_several_lines_are_not_counted_as_lines() -> None:
    shape = ShapedLines(["a"], keeps_rest=False)
    assert shape.take(b'{"a":1}\n{"a":2}', 1) is None
    assert shape.take(b'{"a":1}\n{"a":2}', 2) is not None


def test_many_rows_are_taken_as_the_judge_takes_them() -> None:
    lines = [
        json.dumps({"a": n, "b": f"text {n}, {n}", "c": None if n % 3 else n / 4, "d": n % 2 == 0}) for n in range(3000)
    ]
    text = "\n".join(lines).encode()
    assert taken(text) == judged(text)

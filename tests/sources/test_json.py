"""What JSON options mean."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import ConfigError
from lading.model.row_formats import JsonOptions
from lading.sources.files.blocks import Lines
from lading.sources.files.json_reader import JsonReader
from lading.sources.files.jsonpath import parse_jsonpath
from lading.sources.files.rows import RowShaper
from tests.sources.support import Place, errors, load, values, with_columns
from tests.support.examples import examples


def test_a_path_gives_a_column_and_the_dollar_the_whole_document(place: Place) -> None:
    place.put("a.json", b'{"id": 7, "deep": {"x": [10, 20]}, "name": "n"}\n{"other": 1}\n')
    paths = '["$.id", "$.deep.x[1]", "$.deep.x[*]", "$.", "$.none"]'
    spec = with_columns(place.bare("a.json", format="json", jsonpaths=paths), "id", "x1", "xs", "doc", "none")
    rows = load(spec)
    assert values(rows) == [
        ("7", "20", "[10,20]", '{"id":7,"deep":{"x":[10,20]},"name":"n"}', None),
        (None, None, None, '{"other":1}', None),
    ]


def test_a_document_that_no_path_matches_is_a_bad_row(folder: Place) -> None:
    folder.put("a.json", b'{"a": 1}\n{"b": 2}\n{"a": null}\n')
    rows = load(folder.spec("a.json", format="json", jsonpaths='["$.a"]'))
    assert values(rows) == [("1",), (None,)]
    assert errors(rows) == [(2, b'{"b": 2}', "No json path matches this document")]


def test_an_outer_array_over_the_whole_file(place: Place) -> None:
    place.put("a.json", b'\xef\xbb\xbf [ {"a": 1, "s": "],{["},\n{"a": 2x}, 5, {"a": 3} ]\n')
    rows = load(place.spec("a.json", format="json", strip_outer_array="true"))
    assert values(rows) == [("1", "],{["), ("3", None)]
    assert [row for row, _, _ in errors(rows)] == [2, 3]


def test_an_array_that_is_cut_off_leaves_a_bad_row_and_not_silence(folder: Place) -> None:
    for number, (text, reason) in enumerate(
        [(b'[{"a": 1}, {"a": 2', "cut off"), (b'[{"a": 1},', "not closed"), (b'[{"a": 1}', "not closed")]
    ):
        folder.put(f"{number}.json", text)
        rows = load(with_columns(folder.bare(f"{number}.json", format="json", strip_outer_array="true"), "a"))
        assert values(rows) == [("1",)]
        assert reason in errors(rows)[0][2]


def test_an_object_where_an_array_should_be_is_a_bad_row(folder: Place) -> None:
    folder.put("a.json", b'{"a": 1}')
    by_file = with_columns(folder.bare("a.json", format="json", strip_outer_array="true"), "a")
    assert "strip_outer_array` must be FALSE" in errors(load(by_file))[0][2]
    by_line = with_columns(
        folder.bare("a.json", format="json", strip_outer_array="true", read_json_by_line="true"), "a"
    )
    assert "strip_outer_array` must be FALSE" in errors(load(by_line))[0][2]


def test_arrays_line_by_line_and_below_a_root(folder: Place) -> None:
    folder.put("a.json", b'{"data": [{"a": 1}, {"a": 2}]}\n{"nodata": 1}\n{"data": [{"a": 3}]}\n')
    common = {"format": "json", "strip_outer_array": "true", "json_root": "$.data"}
    for by_line in ("true", "false"):
        rows = load(folder.spec("a.json", **common, read_json_by_line=by_line))
        assert values(rows) == [("1",), ("2",), ("3",)]
        assert errors(rows) == [(3, b'{"nodata": 1}', "json_root leads nowhere in this document")]
        assert [row["__row"] for row in rows] == [1, 2, 3, 4]


def test_documents_that_are_not_kept_line_by_line(folder: Place) -> None:
    folder.put("a.json", b'{"a":\n 1}\n\n{"a": 2,\n"b": "}"} {"a": 3}')
    rows = load(folder.spec("a.json", format="json", read_json_by_line="false"))
    assert values(rows) == [("1", None), ("2", "}"), ("3", None)]


def test_numbers_keep_their_letters(folder: Place) -> None:
    folder.put("a.json", b'{"a": 1.10, "b": [1.10, 1e2], "c": 12345678901234567890123, "d": true}\n')
    for asked in ({}, {"num_as_string": "true"}):
        read = load(folder.spec("a.json", format="json", **asked))
        assert values(read) == [("1.10", "[1.10,1e2]", "12345678901234567890123", "true")]


def test_numbers_keep_their_letters_on_the_fast_way_too(folder: Place) -> None:
    numbers = ["12345678901234567.89", "0.12345678901234567891", "1.10", "1e2", "5", "-0.0"]
    lines = [f'{{"n": {at}, "a": {number}, "b": "\\"a\\": 1.50"}}' for at, number in enumerate(numbers * 5000)]
    folder.put("a.json", "\n".join(lines).encode() + b"\n")
    rows = load(folder.spec("a.json", format="json"))
    assert [row["a"] for row in sorted(rows, key=lambda row: int(row["n"]))] == numbers * 5000
    assert {row["b"] for row in rows} == {'"a": 1.50'}


def test_keys_of_all_first_documents_become_columns(folder: Place) -> None:
    folder.put("a.json", b'{"b": 1}\n{"a": 2, "b": 3}\n')
    schema = folder.spec("a.json", format="json").schema
    assert schema is not None
    assert schema.names == ["b", "a"]


@pytest.mark.parametrize("path", ["a", "$a", "$.a[", "$.a[x]", "$..a", "$.a b]", ""])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="Invalid json path"):
        parse_jsonpath(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\[]{},é', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.fixed_dictionaries({"a": json_values}), max_size=8), st.sampled_from([1, 5, 1000]), st.booleans())
def test_the_scanner_finds_every_element_however_it_is_cut(
    rows: list[dict[str, object]], block: int, pretty: bool
) -> None:
    import json

    content = json.dumps(rows, indent=1 if pretty else None, ensure_ascii=False).encode()
    lines = Lines(b"\n", max_record=100_000, uri="f", block_bytes=block)
    options = JsonOptions(read_by_line=False, strip_outer_array=True)
    reader = JsonReader(options, lines, RowShaper(pa.schema([("a", pa.string())]), "f", {}))
    found = [row for batch in reader.batches(io.BytesIO(content).read) for row in batch.to_pylist()]
    assert [row["__error"] for row in found] == [None] * len(rows)
    for row, expected in zip(found, rows, strict=True):
        value = expected["a"]
        if value is None or isinstance(value, str):
            assert row["a"] == value
        else:
            assert json.loads(row["a"]) == value

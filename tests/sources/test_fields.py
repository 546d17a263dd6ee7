"""Fields that a job does not know: none is lost, and the columns that are told have room for every value."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.model.field_types import WHOLE, joined_type, text_type_for, wider_type
from lading.model.row_formats import JsonOptions
from lading.model.rows import REST
from lading.sources.fields import FieldNotes, FieldWatch
from lading.sources.records.parser import RecordBlock, RecordParser
from lading.sources.records.spec import RecordFormat, RecordKind

NAMES = st.sampled_from(["a", "b", "A", "x y", "c1", "__note", "ünlich", ""])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
RECORDS = st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=8)


def parse(watch: FieldWatch, records: list[dict[str, Any]], fast: bool) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Texts of columns and rest of each record, and the columns that are missing."""
    format_ = RecordFormat(
        kind=RecordKind.JSON, columns=(*watch.columns, REST), json=JsonOptions(read_by_line=True), watch=watch
    )
    parser = RecordParser(format_, pa.schema([]), fast=fast)
    values = [json.dumps(record).encode() for record in records]
    batches = list(parser.parse(RecordBlock(values, "t/0", range(len(values)), {})))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert all(row["__error"] is None for row in rows)
    return rows, parser.fields()


def known(text: str) -> Any:
    return json.JSONDecoder(parse_float=Decimal, parse_int=Decimal).decode(text)


@given(records=RECORDS, fast=st.booleans())
def test_no_field_is_lost_and_columns_have_room(records: list[dict[str, Any]], fast: bool) -> None:
    watch = FieldWatch(known={"id": "bigint", "_r": "string"}, rescued_column="_r", adds=True)
    for _ in range(2):
        rows, fields = parse(watch, records, fast)
        for row, record in zip(rows, records, strict=True):
            given_ = {name: value for name, value in known(json.dumps(record)).items() if value is not None}
            rest = known(row[REST]) if row[REST] is not None else {}
            texts = {name: row[name] for name in watch.columns if row[name] is not None}
            assert rest == {name: value for name, value in given_.items() if name not in watch.columns}
            assert texts.keys() == {name for name in given_ if name in watch.columns}
            for name, text in texts.items():
                assert fits(text, watch.known[name]) or name == "id"
        watch = FieldWatch(
            known={**watch.known, **{name: "bigint" if kind == WHOLE else kind for name, kind in fields.items()}},
            rescued_column="_r",
            adds=True,
        )
    assert not parse(watch, records, fast)[1]


def fits(text: str, kind: str) -> bool:
    """Whether a column keeps the value as it is."""
    match kind:
        case "boolean":
            return text in ("true", "false")
        case "bigint":
            return abs(int(text)) < 2**63
        case "double":
            return Decimal(repr(float(text))) == Decimal(text)
        case _:
            return kind == "string"


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        (WHOLE, "double", "double"),
        ("bigint", "double", "string"),
        (WHOLE, "bigint", "bigint"),
        ("int", "bigint", "bigint"),
        ("int", "boolean", "string"),
        ("decimal(4,2)", "decimal(6,2)", "decimal(6,2)"),
        ("decimal(4,2)", "decimal(6,4)", "decimal(6,4)"),
        ("float", "double", "double"),
    ],
)
def test_types_of_one_column_join(old: str, new: str, both: str) -> None:
    assert joined_type(old, new) == joined_type(new, old) == both


def test_only_what_loses_nothing_widens() -> None:
    assert wider_type("int", "bigint") == "bigint"
    assert wider_type("bigint", "int") == "bigint"
    assert wider_type("int", "string") is None
    assert wider_type("decimal(4,2)", "decimal(6,3)") is None
    assert text_type_for("3000000000", "int") == "bigint"
    assert text_type_for("0000000000001", "int") is None
    assert text_type_for("1" * 30, "int") is None
    assert text_type_for("1234.5", "decimal(4,2)") == "decimal(6,2)"
    assert text_type_for("1e39", "float") == "double"


def test_a_name_that_cannot_be_a_column_is_told_where_nothing_rescues_it() -> None:
    notes = FieldNotes(FieldWatch(known={"Id": "bigint"}, adds=True))
    for name in ("id", "a b", "__row"):
        notes.see(name, "string")
    assert notes.drain() == {"id": "", "a b": "", "__row": ""}

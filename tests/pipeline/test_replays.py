"""What tasks of a replay read, and where rows go that are bad once more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lading.errors import SourceError
from lading.model.batch import Split
from lading.model.row_formats import JsonOptions
from lading.model.rows import ERROR, FILE, ROW, SplitEnd
from lading.pipeline.kept_rows import RowForm
from lading.pipeline.quarantine import QuarantineFile, quarantine_lines
from lading.pipeline.replays import ReplayQuarantine, ReplayReader
from lading.sources.records.parser import parse_record, stands_alone
from lading.sources.records.spec import RecordFormat, RecordKind

SCHEMA = pa.schema(
    [
        *(("id", pa.int64()), ("name", pa.string()), ("is_new", pa.bool_())),
        *(("price", pa.decimal128(10, 2)), ("day", pa.date32())),
    ]
)
FORM = RowForm(reads="csv", columns=tuple((field.name, str(field.type)) for field in SCHEMA))
RECORD = '{"id":1,"name":"x\\"y","is_new":false,"price":1.50,"day":"2026-02-03"}'
VALUES = (1, 'x"y', False, Decimal("1.50"), date(2026, 2, 3))


def open_lines(place: str) -> Iterator[bytes]:
    return quarantine_lines(lambda: pytest.fail("it is no object"), place)


def put(folder: Path, *rows: tuple[str, Any]) -> str:
    file = QuarantineFile(str(folder), "a")
    for number, (raw, form) in enumerate(rows, 1):
        file.add(file="in.csv", row=10 * number, reason=f"bad {number}", raw=raw.encode(), form=form)
    return file.close()


def read(place: str, schema: pa.Schema = SCHEMA, form: RowForm = FORM, **more: Any) -> list[tuple[Any, ...]]:
    """Values of each row, and why it is bad."""
    reader = ReplayReader(open_lines=open_lines, schema=schema, form=form, **more)
    *batches, end = reader([Split(number=0, partition="quarantine", start=place, end=place, payload=place)])
    rows = [row for batch in batches if isinstance(batch, pa.RecordBatch) for row in batch.to_pylist()]
    assert isinstance(end, SplitEnd)
    assert (end.end, end.rows) == (place, len(rows))
    assert [(row[FILE], row[ROW]) for row in rows] == [(place, number) for number in range(1, len(rows) + 1)]
    return [(*(row[name] for name in schema.names), row[ERROR]) for row in rows]


def test_values_are_read_as_they_were(tmp_path: Path) -> None:
    place = put(tmp_path, (RECORD, FORM.of_values), ('{"name":"only"}', FORM.of_values))
    assert read(place) == [(*VALUES, None), (None, "only", None, None, None, None)]


def test_a_definition_that_reads_fewer_columns_takes_them(tmp_path: Path) -> None:
    place = put(tmp_path, (RECORD, FORM.of_values))
    schema = pa.schema([SCHEMA.field("name")])
    assert read(place, schema, RowForm(reads="csv", columns=(("name", "string"),))) == [('x"y', None)]


NOTHING = (None, None, None, None, None, "bad 1")


@pytest.mark.parametrize(
    ("raw", "form"),
    [
        (RECORD, None),
        (RECORD, {**FORM.of_values, "reads": "csv, separated in another way"}),
        (RECORD, {**FORM.of_values, "columns": {"id": "int64"}}),
        (RECORD, {**FORM.of_values, "columns": {**FORM.of_values["columns"], "id": "string"}}),
        ("1,x", FORM.of_values),
        ("[1]", FORM.of_values),
        ('{"id":"1"}', FORM.of_values),
        ('{"id":true}', FORM.of_values),
        ('{"day":"0000-13-01"}', FORM.of_values),
        ('{"price":NaN}', FORM.of_values),
        ("1,x", {"reads": "csv", "record": True}),
    ],
)
def test_a_row_that_is_not_kept_exactly_stays_bad_for_its_reason(tmp_path: Path, raw: str, form: Any) -> None:
    assert read(put(tmp_path, (raw, form))) == [NOTHING]


@pytest.mark.parametrize("kind", [pa.float64(), pa.timestamp("us"), pa.binary(), pa.list_(pa.int64())])
def test_types_that_an_object_does_not_hold_exactly_stay_bad(tmp_path: Path, kind: pa.DataType) -> None:
    schema = pa.schema([("x", kind)])
    form = RowForm(reads="parquet", columns=(("x", str(kind)),))
    place = put(tmp_path, ('{"x":1.5}', form.of_values), ("{}", form.of_values))
    assert read(place, schema, form) == [(None, "bad 1"), (None, "bad 2")]


CSV = RecordFormat(kind=RecordKind.CSV, columns=("id", "name"))
TEXTS = pa.schema([("id", pa.string()), ("name", pa.string())])
TEXT_FORM = RowForm(reads="other", columns=(("id", "string"), ("name", "string")), keeps_records=True)


def test_a_record_that_could_not_be_taken_apart_is_taken_apart_as_the_job_does_now(tmp_path: Path) -> None:
    place = put(tmp_path, *((raw, {"reads": "old", "record": True}) for raw in ("1\tx", "1\tx\t3", "1\tx\n2\ty")))
    found = read(place, TEXTS, TEXT_FORM, parse=partial(parse_record, CSV))
    assert found[0] == ("1", "x", None)
    assert found[1][:2] == (None, None)
    assert "actual column number" in found[1][2] or "3" in found[1][2]
    assert found[2] == (None, None, "bad 3"), "two rows: one of them may have been loaded"


def test_only_a_whole_record_that_is_one_row_is_kept_to_be_taken_apart() -> None:
    assert TEXT_FORM.of_record(b"1,x") == {"reads": "other", "record": True}
    assert [TEXT_FORM.of_record(raw) for raw in (b"", b"\xff")] == [None, None]
    assert FORM.of_record(b"1,x") is None
    arrays = RecordFormat(kind=RecordKind.JSON, columns=("id",), json=JsonOptions(strip_outer_array=True))
    nothing, told = pa.schema([]), pa.schema([("_key", pa.string())])
    assert [stands_alone(CSV, nothing), stands_alone(CSV, told), stands_alone(arrays, nothing)] == [True, False, False]


def test_rows_that_are_bad_again_keep_what_they_were_and_get_the_reason_of_now(tmp_path: Path) -> None:
    place = put(tmp_path / "old", (RECORD, FORM.of_values), ("1,x", None), (RECORD, FORM.of_values))
    again = ReplayQuarantine(open_lines, partial(QuarantineFile, str(tmp_path / "new")), "b")
    for number, reason in ((1, "still"), (3, "other")):
        again.add(file=place, row=number, reason=reason, raw=b"{}")
    old, new = ([json.loads(line) for line in open_lines(each)] for each in (place, again.close()))
    assert new == [{**old[0], "reason": "still"}, {**old[2], "reason": "other"}]


def test_a_file_that_is_gone_or_damaged_is_an_error_and_never_no_rows(tmp_path: Path) -> None:
    place = put(tmp_path, (RECORD, FORM.of_values))
    Path(place).write_bytes(Path(place).read_bytes()[:-20] + b"\n")
    with pytest.raises(SourceError, match="is damaged"):
        read(place)
    with pytest.raises(SourceError, match="cannot be read"):
        read(f"{place}.gone")

"""What stands beside the source columns, and how batches are cut."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

from lading.errors import ConfigError
from lading.sources.files.rows import MAX_ROWS
from lading.sources.hidden import HIDDEN
from lading.sources.records.parsed import runs
from lading.sources.records.parser import RecordBlock, RecordParser
from lading.sources.records.spec import RecordFormat, RecordKind, RegistryAccess
from tests.sources.records.support import META, bad, good, parse

JSON = RecordFormat(kind=RecordKind.JSON, columns=("a",))


def test_metadata_of_all_types_goes_with_its_record() -> None:
    types = {"s": pa.string(), "b": pa.binary(), "i": pa.int32(), "l": pa.int64(), "f": pa.float64(), "o": pa.bool_()}
    types |= {"t": pa.timestamp("ms", "UTC"), "m": pa.list_(pa.int64())}
    meta = {"s": ["x", None, "é"], "b": [b"\xff", b"", None], "i": [1, None, -3], "l": [2**60, 0, None]}
    meta |= {"f": [0.5, None, 2.0], "o": [True, None, False], "t": [None, 0, 1_000], "m": pa.array([[1], None, []])}
    parser = RecordParser(JSON, pa.schema(list(types.items())))
    values = [b'{"a":1}\n{"a":2}', b"bad", b'{"a":3}']
    block = RecordBlock(values=values, places=["p", "q", "r"], numbers=[7, 8, 9], meta=meta)
    (batch,) = parser.parse(block)
    batch.validate(full=True)
    assert parser.schema.names == ["a", *types, *HIDDEN.names]
    expected = [pa.array(meta[name], type=kind).to_pylist() for name, kind in types.items()]
    for row, record in zip(batch.to_pylist(), [0, 0, 1, 2], strict=True):
        assert [row[name] for name in types] == [column[record] for column in expected]
        assert (row["__file"], row["__row"]) == ("pqr"[record], 7 + record)


def test_a_block_whose_columns_have_other_lengths_is_refused() -> None:
    block = RecordBlock(values=[b"{}"], places="p", numbers=[1, 2], meta={"key": ["k"]})
    with pytest.raises(ConfigError, match="1 records"):
        list(RecordParser(JSON, META).parse(block))


def test_metadata_of_other_types_must_come_as_arrays() -> None:
    block = RecordBlock(values=[b"{}"], places="p", numbers=[1], meta={"m": [[1]]})
    with pytest.raises(ConfigError, match="cannot be of the type"):
        list(RecordParser(JSON, pa.schema([("m", pa.list_(pa.int64()))])).parse(block))


def test_an_empty_block_gives_nothing() -> None:
    assert parse(JSON, []) == []


def test_batches_are_not_too_large_and_not_too_small() -> None:
    line = b'{"a":1}\n'
    many = [line * 100_000, *[line] * 50_000, b"bad", *[line] * 100]
    parser = RecordParser(JSON, pa.schema([]))
    batches = list(parser.parse(RecordBlock(values=many, places="p", numbers=range(len(many)), meta={})))
    assert max(batch.num_rows for batch in batches) <= MAX_ROWS
    assert len(batches) < 12
    numbers = [number for batch in batches for number in batch.column("__row").to_pylist()]
    assert numbers == [0] * 100_000 + list(range(1, len(many)))
    errors = pa.Table.from_batches(batches).column("__error")
    assert len(errors) - errors.null_count == 1
    assert errors[150_000].as_py() is not None


def test_a_record_that_is_too_long_is_a_bad_row_at_its_place() -> None:
    spec = RecordFormat(kind=RecordKind.JSON, columns=("a",), max_record_bytes=10)
    values = [b'{"a":1}', b'{"a":12345}', b'{"a":2}', b'{"a":"123"}']
    rows = parse(spec, values)
    assert good(rows, "a") == [("1",), ("2",)]
    assert [(number, raw) for number, raw, _ in bad(rows)] == [(101, values[1]), (103, values[3])]
    assert "max_record_bytes" in bad(rows)[0][2]


def test_no_source_columns_still_count_rows() -> None:
    rows = parse(RecordFormat(kind=RecordKind.JSON, columns=()), [b'{"a":1}', b"bad"])
    assert [row["__error"] is None for row in rows] == [True, False]


def test_runs_cover_all_values_in_order() -> None:
    values = [b"x" * size for size in (1, 5, 100, 1, 1, 1, 7, 100, 100)]
    found = list(runs(values, 8))
    assert [value for run in found for value in run] == values
    assert all(len(run) == 1 or sum(map(len, run)) <= 8 for run in found)


def test_the_format_pickles_and_hides_its_secrets() -> None:
    access = RegistryAccess(url="http://r", settings={"basic.auth.user.info": "me:secret"})
    spec = RecordFormat(kind=RecordKind.AVRO, columns=("a",), registry=access)
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert "secret" not in repr(spec)


_WORKER = """
import sys, pyarrow as pa
from lading.model.row_formats import CsvOptions
from lading.sources.records.parser import RecordBlock, RecordParser
from lading.sources.records.spec import RecordFormat, RecordKind
meta = pa.schema([("s", pa.string()), ("t", pa.timestamp("ms"))])
rows = 0
for kind, good in ((RecordKind.JSON, b'{"a":1,"b":1.5}'), (RecordKind.CSV, b"1\\t2")):
    parser = RecordParser(RecordFormat(kind=kind, columns=("a", "b")), meta)
    for _ in range(3):
        values = [good, good, b"bad"]
        given = {"s": ["x", None, "y"], "t": [1, 2, None]}
        block = RecordBlock(values=values, places="p", numbers=[1, 2, 3], meta=given)
        rows += sum(batch.num_rows for batch in parser.parse(block))
heavy = {"pandas", "confluent_kafka", "fastavro", "google.protobuf", "pyspark", "boto3"}
print(rows, *sorted(heavy & set(sys.modules)))
"""


def test_workers_import_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", _WORKER], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("18", "")

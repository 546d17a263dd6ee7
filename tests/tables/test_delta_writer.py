"""Files, statistics and partition values of a Delta table, down to the letter."""

from __future__ import annotations

import io
import json
import math
import pickle
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.model.outcome import Landed
from lading.model.table import Column, PartitionField, TableSpec
from lading.tables.base import WriterSpec
from lading.tables.delta.actions import Restore
from lading.tables.delta.create import create_delta_table, open_delta_table
from lading.tables.delta.heads import still_holds
from lading.tables.delta.partitions import folder_of, render_values
from lading.tables.delta.stats import render_stats
from lading.tables.delta.table import DeltaLakeTable
from lading.tables.delta.writer import DeltaWriter
from lading.tables.parquet import FileNotes
from tests.tables.drive import SPEC, load, new_job, opening, put_and_commit, some_rows


def stats_of(values: list[Any], kind: pa.DataType, *, unbounded: bool = False) -> tuple[Any, Any, int]:
    """Lower bound, upper bound and nulls of a column, as the log would have them; one row group per value."""
    schema = pa.schema([("before", pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())]))), ("x", kind)])
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, store_schema=False) as writer:
        for value in values:
            writer.write_table(pa.Table.from_pylist([{"before": [{"a": 1, "b": 2}], "x": value}], schema=schema))
    footer = pq.read_metadata(io.BytesIO(sink.getvalue()))
    notes = FileNotes(nulls={"x": values.count(None)}, with_nan=frozenset({"x"} if unbounded else ()))
    text = render_stats(footer, schema, notes, columns={"before", "x"})
    stats = json.loads(text, parse_float=Decimal)
    assert stats["numRecords"] == len(values)
    return stats["minValues"].get("x"), stats["maxValues"].get("x"), stats["nullCount"]["x"]


def test_timestamps_are_in_milliseconds_and_the_upper_bound_is_rounded_up() -> None:
    moment = datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=UTC)
    low, high, _ = stats_of([moment], pa.timestamp("us", tz="UTC"))
    assert (low, high) == ("2024-02-29T12:30:00.123Z", "2024-02-29T12:30:00.124Z")


def test_timestamps_without_a_zone_have_no_letter_at_the_end() -> None:
    low, high, _ = stats_of([datetime.fromisoformat("1969-01-01T00:00:00.000001")], pa.timestamp("us"))
    assert (low, high) == ("1969-01-01T00:00:00.000", "1969-01-01T00:00:00.001")


def test_moments_that_the_calendar_cannot_say_are_left_out() -> None:
    low, high, nulls = stats_of([-(2**62), 2**62], pa.timestamp("us", tz="UTC"))
    assert (low, high, nulls) == (None, None, 0)


def test_long_text_is_cut_and_the_upper_bound_stays_above() -> None:
    low, high, _ = stats_of(["a" * 40, "b" * 40], pa.string())
    assert low == "a" * 32
    assert high == "b" * 31 + "c"


def test_text_of_the_last_code_points_has_no_upper_bound() -> None:
    low, high, _ = stats_of(["\U0010ffff" * 40], pa.string())
    assert (low, high) == ("\U0010ffff" * 32, None)


def test_decimals_keep_every_digit() -> None:
    value = Decimal("12345678901234567890.123456789012345678")
    low, high, _ = stats_of([-value, None, value], pa.decimal128(38, 18))
    assert (low, high) == (-value, value)


def test_numbers_that_json_cannot_say_are_left_out() -> None:
    assert stats_of([math.inf, 1.0], pa.float64()) == (Decimal("1.0"), None, 0)
    assert stats_of([-math.inf, 1.0], pa.float64()) == (None, Decimal("1.0"), 0)


def test_truths_and_bytes_have_no_bounds() -> None:
    assert stats_of([True, None], pa.bool_()) == (None, None, 1)
    assert stats_of([b"a", None], pa.binary()) == (None, None, 1)


@given(st.lists(st.text(max_size=80), min_size=1, max_size=3))
def test_bounds_of_text_are_bounds(values: list[str]) -> None:
    low, high, _ = stats_of(values, pa.string())
    assert low is None or low <= min(values)
    assert high is None or high >= max(values)


def test_a_column_that_holds_nan_gets_no_bounds(tmp_path: Path) -> None:
    spec = TableSpec(columns=(Column(name="x", type="double"), Column(name="y", type="double")))
    table = create_delta_table(str(tmp_path), spec)
    writer = DeltaWriter(table.writer_spec(), "a")
    writer.write(pa.record_batch({"x": pa.array([1.0, math.nan]), "y": pa.array([1.0, 2.0])}))
    [file] = writer.close()
    stats = json.loads(json.loads(file.stats)["stats"])
    assert stats["minValues"] == {"y": 1.0}
    assert stats["maxValues"] == {"y": 2.0}
    assert stats["nullCount"] == {"x": 0, "y": 0}


def test_the_table_says_how_many_columns_get_statistics(tmp_path: Path) -> None:
    spec = TableSpec(columns=SPEC.columns, properties={"delta.dataSkippingNumIndexedCols": "1"})
    table = create_delta_table(str(tmp_path), spec)
    writer = DeltaWriter(table.writer_spec(), "a")
    for batch in some_rows(0, 2).to_batches():
        writer.write(batch)
    [file] = writer.close()
    assert json.loads(json.loads(file.stats)["stats"])["nullCount"] == {"id": 0}


VALUES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "bigint": ("bigint", pa.int64(), [-(2**63), 0, 2**63 - 1, None]),
    "tinyint": ("tinyint", pa.int8(), [-128, 127]),
    "boolean": ("boolean", pa.bool_(), [True, False, None]),
    "date": ("date", pa.date32(), [date(1, 1, 1), date(1969, 7, 20), date(9999, 12, 31)]),
    "decimal": ("decimal(20,3)", pa.decimal128(20, 3), [Decimal("-0.001"), Decimal("12345678901234567.890")]),
    "timestamp": (
        "timestamp",
        pa.timestamp("us", tz="UTC"),
        [datetime(2024, 2, 29, 1, 2, 3, 456789, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC)],
    ),
    "timestamp_ntz": ("timestamp_ntz", pa.timestamp("us"), [datetime.fromisoformat("2024-02-29T01:02:03.456789")]),
    "string": ("string", pa.string(), ["plain", "null", "__HIVE_DEFAULT_PARTITION__", "a b", None, "é" * 3000]),
}


@pytest.mark.parametrize("case", VALUES)
def test_partition_values_of_every_type_come_back(tmp_path: Path, case: str) -> None:
    name, kind, values = VALUES[case]
    columns = (Column(name="id", type="bigint"), Column(name="my col=ü", type=name))
    spec = TableSpec(columns=columns, partition_by=(PartitionField(column="my col=ü"),))
    table, job = create_delta_table(str(tmp_path / "t"), spec), new_job()
    first = opening(job)
    put_and_commit(table, first)
    rows = pa.table({"id": pa.array(range(len(values)), pa.int64()), "my col=ü": pa.array(values, kind)})
    writer = DeltaWriter(table.writer_spec(), "a")
    for batch in rows.to_batches():
        writer.write(batch)
    assert isinstance(put_and_commit(table, load(job, first, writer.close())), Landed)
    assert open_delta_table(str(tmp_path / "t")).scan().sort_by("id").equals(rows)


def test_an_empty_partition_value_means_null_in_delta() -> None:
    assert render_values(pa.array(["", None, "x"])).to_pylist() == [None, None, "x"]
    assert folder_of(["c"], [None]) == "c=__HIVE_DEFAULT_PARTITION__"


def test_large_input_is_split_into_files_of_the_wanted_size(tmp_path: Path) -> None:
    table = create_delta_table(str(tmp_path), SPEC)
    spec = table.writer_spec()
    small = WriterSpec(
        format=spec.format, location=spec.location, schema=spec.schema, extra=spec.extra, target_bytes=1000
    )
    writer = DeltaWriter(small, "a")
    for start in range(0, 4000, 1000):
        for batch in some_rows(start, 1000).to_batches():
            writer.write(batch)
    files = writer.close()
    assert len(files) == 4
    assert len({file.path for file in files}) == 4
    assert all((tmp_path / file.path).stat().st_size == file.size_bytes for file in files)


def test_an_aborted_attempt_leaves_no_files(tmp_path: Path) -> None:
    table = create_delta_table(str(tmp_path), SPEC)
    writer = DeltaWriter(table.writer_spec(), "a")
    for batch in some_rows(0, 10).to_batches():
        writer.write(batch)
    writer.abort()
    assert list(tmp_path.glob("*.parquet")) == []


def test_what_a_task_needs_can_be_pickled(tmp_path: Path) -> None:
    table: DeltaLakeTable = create_delta_table(str(tmp_path), SPEC)
    spec = table.writer_spec()
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_the_writer_does_not_load_the_library() -> None:
    code = "import sys, lading.tables.delta.writer; sys.exit('deltalake' in sys.modules or 'boto3' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=12), st.integers(0, 12))
def test_whether_rows_are_still_there_after_any_restores(history: list[int | None], landed_at: int) -> None:
    """Version 0 is empty; each later one is a commit (None) or a restore of an earlier version."""
    content: list[frozenset[int]] = [frozenset({0})]
    restores: dict[int, Restore] = {}
    for version, target in enumerate(history, start=1):
        if target is None or target >= version:
            content.append(content[-1] | {version})
        else:
            restores[version] = Restore(to=target)
            content.append(content[target])
    newest = len(content) - 1
    if landed_at <= newest and landed_at not in restores:
        assert still_holds(landed_at, newest, restores) == (landed_at in content[newest])

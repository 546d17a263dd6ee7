"""What Iceberg's writer stages: field ids, partitions, statistics; and what the table takes."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    LongType,
    StringType,
    TimestamptzType,
)

from lading.errors import ConfigError, RecordError, SchemaMismatchError
from lading.model.batch import StagedFile
from lading.model.bill import Bill
from lading.model.job import Job
from lading.model.outcome import Landed
from lading.model.table import Column, PartitionField, TableSpec
from lading.tables.iceberg.partitions import parse_value, render_value
from lading.tables.iceberg.table import IcebergTable
from lading.tables.iceberg.writer import IcebergWriter
from tests.tables.drive import SPEC, load, new_job, opening, put_and_commit, some_rows
from tests.tables.rig_iceberg import IcebergRig, iceberg_local

WIDE = TableSpec(
    columns=(
        Column(name="id", type="bigint", nullable=False),
        Column(name="tiny", type="tinyint"),
        Column(name="city", type="string"),
        Column(name="price", type="decimal(10,2)"),
        Column(name="born", type="date"),
        Column(name="at", type="timestamp"),
        Column(name="local", type="timestamp_ntz"),
        Column(name="ratio", type="double"),
        Column(name="raw", type="binary"),
        Column(name="ok", type="boolean"),
    )
)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "tiny": pa.array([-1, None, 7], pa.int8()),
        "city": ["Ålesund", None, "a/b c%"],
        "price": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(10, 2)),
        "born": pa.array([date(1969, 12, 31), date(2026, 2, 1), None], pa.date32()),
        "at": pa.array(
            [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(2026, 2, 1, 12, 30, tzinfo=UTC), None],
            pa.timestamp("us", tz="UTC"),
        ),
        "local": pa.array([datetime(2000, 1, 1), datetime(2026, 2, 1, 1), None], pa.timestamp("us")),  # noqa: DTZ001
        "ratio": [0.5, math.nan, None],
        "raw": pa.array([b"\x00\xff", b"", None], pa.binary()),
        "ok": [True, False, None],
    }
)


@pytest.fixture
def rig(tmp_path: Path) -> IcebergRig:
    return iceberg_local(tmp_path, None)


def opened(rig: IcebergRig, spec: TableSpec) -> tuple[IcebergTable, Job, Bill]:
    table, job = rig.create("wide", spec), new_job()
    bill = opening(job)
    assert isinstance(put_and_commit(table, bill), Landed)
    return table, job, bill


def partitioned(*fields: tuple[str, str]) -> TableSpec:
    by = tuple(PartitionField(column=column, transform=transform) for column, transform in fields)
    return TableSpec(columns=WIDE.columns, partition_by=by)


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def test_all_types_come_back_as_they_went_in(rig: IcebergRig) -> None:
    table, job, first = opened(rig, WIDE)
    assert isinstance(put_and_commit(table, load(job, first, rig.stage(table, ROWS, "a"))), Landed)
    found = by_id(rig.rows(table))
    assert math.isnan(found[1].pop("ratio"))
    expected = by_id(ROWS.to_pylist())
    expected[1].pop("ratio")
    assert found == expected


def test_files_carry_field_ids_and_partition_columns(rig: IcebergRig) -> None:
    table, _, _ = opened(rig, partitioned(("city", "identity")))
    staged = rig.stage(table, ROWS, "a")
    schema = pq.read_schema(Path(table.location.removeprefix("file://")) / staged[0].path)
    ids = {field.name: field.metadata[b"PARQUET:field_id"] for field in schema}
    assert ids == {column.name: str(number).encode() for number, column in enumerate(WIDE.columns, start=1)}


def test_a_pickled_writer_spec_writes_the_same(rig: IcebergRig) -> None:
    table, job, first = opened(rig, partitioned(("at", "day"), ("id", "bucket[4]")))
    spec = pickle.loads(pickle.dumps(table.writer_spec()))
    writer = IcebergWriter(spec, "a")
    for batch in ROWS.to_batches():
        writer.write(batch)
    files = writer.close()
    assert isinstance(put_and_commit(table, load(job, first, files)), Landed)
    assert len(rig.rows(table)) == 3


@pytest.mark.parametrize(
    ("column", "transform"),
    [
        ("city", "identity"),
        ("price", "identity"),
        ("born", "identity"),
        ("at", "identity"),
        ("raw", "identity"),
        ("ok", "identity"),
        ("born", "year"),
        ("born", "month"),
        ("born", "day"),
        ("at", "year"),
        ("at", "month"),
        ("at", "day"),
        ("at", "hour"),
        ("local", "hour"),
        ("id", "bucket[16]"),
        ("city", "bucket[16]"),
        ("price", "bucket[16]"),
        ("born", "bucket[16]"),
        ("at", "bucket[16]"),
        ("raw", "bucket[16]"),
        ("id", "truncate[2]"),
        ("city", "truncate[2]"),
        ("price", "truncate[100]"),
    ],
)
def test_partition_values_are_what_iceberg_says_they_are(rig: IcebergRig, column: str, transform: str) -> None:
    table, job, first = opened(rig, partitioned((column, transform)))
    assert isinstance(put_and_commit(table, load(job, first, rig.stage(table, ROWS, "a"))), Landed)
    stranger = rig.stranger("wide")
    field = stranger.schema().find_field(column)
    scalar = parse_transform(transform).transform(field.field_type)
    found = {task.file.partition[0]: task.file.record_count for task in stranger.scan().plan_files()}
    expected: dict[Any, int] = {}
    for value in ROWS.column(column).to_pylist():
        made = None if value is None else scalar(_stored(value))
        expected[made] = expected.get(made, 0) + 1
    assert found == expected
    assert len(rig.rows(table)) == 3


def _stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return (
            pa.scalar(value, pa.timestamp("us", tz="UTC") if value.tzinfo else pa.timestamp("us"))
            .cast(pa.int64())
            .as_py()
        )
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return value


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (0, LongType()),
        (-(2**63), LongType()),
        ("", StringType()),
        ('quote " and \\ and \n and ☃', StringType()),
        ("null", StringType()),
        (Decimal("0.10"), DecimalType(10, 2)),
        (Decimal("-99999999999999999999999999999999999.999"), DecimalType(38, 3)),
        (b"\x00\xff", BinaryType()),
        (True, BooleanType()),
        (-1, DateType()),
        (1_767_225_600_000_000, TimestamptzType()),
        (0.1, DoubleType()),
        (math.inf, DoubleType()),
    ],
)
def test_a_partition_value_and_its_text_are_one(value: Any, kind: IcebergType) -> None:
    again = parse_value(render_value(value, kind), kind)
    assert (again, type(again), str(again)) == (value, type(value), str(value))


def test_a_partition_value_of_any_length_can_be_stored(rig: IcebergRig) -> None:
    table, job, first = opened(rig, partitioned(("city", "identity")))
    long = ROWS.set_column(2, "city", pa.array(["x" * 1000, "../" * 200, ""]))
    assert isinstance(put_and_commit(table, load(job, first, rig.stage(table, long, "a"))), Landed)
    assert {row["city"] for row in rig.rows(table)} == {"x" * 1000, "../" * 200, ""}
    assert all(path.startswith("data/") and ".." not in path.split("/") for path in table.files())


def test_statistics_prune_files_and_never_a_row(rig: IcebergRig) -> None:
    table, job, base = opened(rig, WIDE)
    for number in range(4):
        shifted = ROWS.set_column(0, "id", pa.array([number * 10 + extra for extra in range(3)], pa.int64()))
        base = load(job, base, rig.stage(table, shifted, "a"))
        assert isinstance(put_and_commit(table, base), Landed)
    stranger = rig.stranger("wide")
    assert len(list(stranger.scan(row_filter="id >= 20").plan_files())) == 2
    assert stranger.scan(row_filter="id >= 20").to_arrow().num_rows == 6
    assert len(list(stranger.scan(row_filter="city = 'Zoo'").plan_files())) == 0
    assert stranger.scan(row_filter="city is null").to_arrow().num_rows == 4
    facts = stranger.inspect.files().to_pylist()
    assert [fact["record_count"] for fact in facts] == [3, 3, 3, 3]
    assert {fact["readable_metrics"]["price"]["lower_bound"] for fact in facts} == {Decimal("-2.25")}
    assert {fact["readable_metrics"]["at"]["null_value_count"] for fact in facts} == {1}


def test_metrics_settings_of_the_table_are_obeyed(rig: IcebergRig) -> None:
    spec = TableSpec(columns=WIDE.columns, properties={"write.metadata.metrics.column.city": "none"})
    table, job, first = opened(rig, spec)
    assert isinstance(put_and_commit(table, load(job, first, rig.stage(table, ROWS, "a"))), Landed)
    (found,) = rig.statistics(table)
    assert "city" not in found.lows
    assert found.lows["id"] == 1


def test_an_added_optional_column_and_a_widened_type_still_take_staged_files(rig: IcebergRig) -> None:
    columns = (Column(name="id", type="int"), Column(name="name", type="string"))
    table, job, first = opened(rig, TableSpec(columns=columns))
    narrow = some_rows(0, 2).cast(pa.schema([("id", pa.int32()), ("name", pa.string())]))
    staged = rig.stage(table, narrow, "a")
    with rig.stranger("wide").update_schema() as update:
        update.add_column("extra", StringType()).update_column("id", LongType())
    assert isinstance(put_and_commit(table, load(job, first, staged)), Landed)
    assert by_id(rig.rows(table)) == [
        {"id": 0, "name": "row 0", "extra": None},
        {"id": 1, "name": "row 1", "extra": None},
    ]


def test_files_that_no_longer_fit_are_refused_before_anything_is_written(rig: IcebergRig) -> None:
    table, job, first = opened(rig, SPEC)
    bill = load(job, first, rig.stage(table, some_rows(0, 2), "a"))
    rig.change_schema("wide")
    versions = rig.versions("wide")
    with pytest.raises(SchemaMismatchError, match="no longer part of the table"):
        put_and_commit(table, bill)
    assert rig.versions("wide") == versions
    assert table.read_head(job.job_id) == first.head


def test_files_of_another_partitioning_are_refused(rig: IcebergRig) -> None:
    table, job, first = opened(rig, SPEC)
    bill = load(job, first, rig.stage(table, some_rows(0, 2), "a"))
    with rig.stranger("wide").update_spec() as update:
        update.add_identity("name")
    with pytest.raises(SchemaMismatchError, match="another schema or partitioning"):
        put_and_commit(table, bill)


def test_a_staged_file_that_is_gone_is_refused(rig: IcebergRig) -> None:
    table, job, first = opened(rig, SPEC)
    staged = rig.stage(table, some_rows(0, 2), "a")
    table.discard(staged)
    table.discard(staged)
    with pytest.raises(SchemaMismatchError, match="is gone"):
        put_and_commit(table, load(job, first, staged))


@pytest.mark.parametrize("stats", ["", "{}", "[1]", '{"v":2}', '{"v":1,"schema":0,"spec":0,"record_count":1}'])
def test_statistics_that_are_garbage_are_refused(rig: IcebergRig, stats: str) -> None:
    table, job, first = opened(rig, SPEC)
    (file,) = rig.stage(table, some_rows(0, 2), "a")
    broken = StagedFile(path=file.path, rows=file.rows, size_bytes=file.size_bytes, stats=stats)
    with pytest.raises(RecordError, match="cannot be used"):
        put_and_commit(table, load(job, first, [broken]))
    assert table.read_head(job.job_id) == first.head


def test_rows_that_do_not_fit_the_columns_are_refused(rig: IcebergRig) -> None:
    table, _, _ = opened(rig, WIDE)
    writer = IcebergWriter(table.writer_spec(), "a")
    with pytest.raises(SchemaMismatchError):
        writer.write(pa.record_batch({"id": [1]}))
    with pytest.raises(SchemaMismatchError):
        writer.write(ROWS.set_column(0, "id", pa.array([1, None, 3])).to_batches()[0])
    writer.abort()
    assert not list((Path(table.location.removeprefix("file://")) / "data").rglob("*.parquet"))


@pytest.mark.parametrize(
    "spec",
    [
        partitioned(("nowhere", "identity")),
        partitioned(("city", "day")),
        partitioned(("city", "bucket[x]")),
        partitioned(("city", "sometimes")),
        TableSpec(columns=(Column(name="id", type="int"), Column(name="id", type="int"))),
        TableSpec(columns=(Column(name="id", type="elephant"),)),
    ],
)
def test_a_description_that_makes_no_table_is_refused(rig: IcebergRig, spec: TableSpec) -> None:
    with pytest.raises(ConfigError):
        rig.create("wide", spec)

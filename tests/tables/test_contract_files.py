"""What tables do with files: schema, statistics, partitions, care. The same tests for every table with real files."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pytest

from lading.errors import SchemaMismatchError
from lading.model.outcome import Landed
from lading.model.table import Column, PartitionField, TableSpec
from lading.tables.base import LakeTable
from lading.tables.maintenance import CarePolicy
from tests.tables.drive import SPEC, driver, ids, load, new_job, opening, put_and_commit, some_rows
from tests.tables.rig import Rig

WIDE = TableSpec(
    columns=(
        Column(name="id", type="bigint"),
        Column(name="small", type="int"),
        Column(name="name", type="string"),
        Column(name="amount", type="double"),
        Column(name="price", type="decimal(12,3)"),
        Column(name="day", type="date"),
        Column(name="at", type="timestamp"),
        Column(name="flag", type="boolean"),
        Column(name="raw", type="binary"),
        Column(name="empty", type="string"),
    )
)
EXACT = ("id", "small", "price", "day")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("name", pa.string()),
        ("amount", pa.float64()),
        ("price", pa.decimal128(12, 3)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("flag", pa.bool_()),
        ("raw", pa.binary()),
        ("empty", pa.string()),
    ]
)


def wide_row(number: int, **changes: Any) -> dict[str, Any]:
    row = {
        "id": number,
        "small": -number,
        "name": f"row {number}",
        "amount": number / 7,
        "price": Decimal(number).scaleb(-3),
        "day": date(2024, 1, 1) + timedelta(days=number),
        "at": datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC) + timedelta(microseconds=number),
        "flag": number % 2 == 0,
        "raw": bytes([number % 256]),
        "empty": None,
    }
    return row | changes


def wide_table(*rows: dict[str, Any]) -> pa.Table:
    """One record batch, and so one row group, per row."""
    return pa.concat_tables([pa.Table.from_pylist([row], schema=SCHEMA) for row in rows])


CASES = {
    "plain": [wide_row(number) for number in range(1, 6)],
    "nulls": [wide_row(1), dict.fromkeys(SCHEMA.names), wide_row(3)],
    "only nulls": [dict.fromkeys(SCHEMA.names)],
    "not a number": [wide_row(1, amount=math.nan), wide_row(2), wide_row(3, amount=None)],
    "infinite": [wide_row(1, amount=math.inf), wide_row(2, amount=-math.inf)],
    "long text": [
        wide_row(1, name="é" * 40),
        wide_row(2, name="z" * 100),
        wide_row(3, name="z" * 31 + "\U0010ffff" * 9),
    ],
    "last code points": [wide_row(1, name="\U0010ffff" * 40)],
    "before surrogates": [wide_row(1, name="\ud7ff" * 40)],
    "old and far": [
        wide_row(1, at=datetime(1, 1, 1, tzinfo=UTC), day=date(1, 1, 1)),
        wide_row(2, at=datetime(9999, 12, 31, 23, 59, 59, 998001, tzinfo=UTC), day=date(9999, 12, 31)),
    ],
    "awkward text": [wide_row(1, name='"\\\n\t\x00'), wide_row(2, name="")],
    "extreme numbers": [wide_row(1, id=-(2**63), price=Decimal("-999999999.999")), wide_row(2, id=2**63 - 1)],
}


@pytest.mark.parametrize("case", CASES)
def test_rows_come_back_and_statistics_bound_them(local_lake: Rig, case: str) -> None:
    lake = local_lake
    table, job = lake.create("wide", WIDE), new_job()
    first = opening(job)
    put_and_commit(table, first)
    rows = CASES[case]
    files = lake.stage(table, wide_table(*rows), "a")
    assert isinstance(put_and_commit(table, load(job, first, files)), Landed)
    again = lake.reopen("wide")
    assert sorted(map(repr, lake.rows(again))) == sorted(map(repr, wide_table(*rows).to_pylist()))
    [stats] = lake.statistics(again)
    assert stats.rows == len(rows) == files[0].rows
    assert stats.path == files[0].path
    for name in SCHEMA.names:
        values = [row[name] for row in rows if row[name] is not None and row[name] == row[name]]
        if name in stats.nulls:
            assert stats.nulls[name] == sum(row[name] is None for row in rows)
        if name in stats.lows:
            assert stats.lows[name] <= min(values)
        if name in stats.highs:
            assert stats.highs[name] >= max(values)
        if values and name in EXACT:
            assert (stats.lows[name], stats.highs[name]) == (min(values), max(values))
            assert name in stats.nulls


PARTITIONED = TableSpec(
    columns=(
        Column(name="id", type="bigint"),
        Column(name="city", type="string"),
        Column(name="day", type="date"),
    ),
    partition_by=(PartitionField(column="city"), PartitionField(column="day")),
)
CITIES = ("Bonn", "São Paulo", "東京", "it's", 'a "b"', "100%", "a/b", "x=y", "a%2Fb", "c:d?*#[]{}^\\+&", "🚚", None)


def city_rows() -> list[dict[str, Any]]:
    cities = list(enumerate(CITIES))
    days = (date(2024, 2, 29), date(1969, 7, 20), None)
    return [
        {"id": number * 10 + offset, "city": city, "day": day}
        for number, city in cities
        for offset, day in enumerate(days)
    ]


def city_table() -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("day", pa.date32())])
    return pa.Table.from_pylist(city_rows(), schema=schema)


def test_rows_of_a_partitioned_table_come_back_from_any_partition_value(lake: Rig) -> None:
    table, job = lake.create("cities", PARTITIONED), new_job()
    first = opening(job)
    put_and_commit(table, first)
    files = lake.stage(table, city_table(), "a")
    assert len(files) == len(CITIES) * 3
    assert isinstance(put_and_commit(table, load(job, first, files)), Landed)
    expected = sorted(map(repr, city_rows()))
    assert sorted(map(repr, lake.rows(lake.reopen("cities")))) == expected
    lake.others_maintain("cities")
    assert sorted(map(repr, lake.rows(lake.reopen("cities")))) == expected


def test_files_for_another_schema_are_refused_before_anything_is_written(lake: Rig) -> None:
    table, job = lake.create("clicks", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    files = lake.stage(table, some_rows(0, 3), "a")
    lake.change_schema("clicks")
    versions = lake.versions("clicks")
    bill = load(job, first, files)
    table.bills.put(bill)
    with pytest.raises(SchemaMismatchError):
        table.commit(bill.replaces, bill.files, bill)
    assert lake.versions("clicks") == versions
    assert lake.reopen("clicks").read_head(job.job_id) == first.head


def test_a_staged_file_that_is_gone_is_refused_before_anything_is_written(lake: Rig) -> None:
    table, job = lake.create("clicks", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    files = lake.stage(table, some_rows(0, 3), "a")
    table.discard(files)
    versions = lake.versions("clicks")
    bill = load(job, first, files)
    table.bills.put(bill)
    with pytest.raises(SchemaMismatchError):
        table.commit(bill.replaces, bill.files, bill)
    assert lake.versions("clicks") == versions
    assert table.read_head(job.job_id) == first.head


def test_care_keeps_the_rows_the_head_and_what_others_made(lake: Rig) -> None:
    table, job = lake.create("clicks", SPEC), new_job()
    loader = driver(lake, table, job)
    loader.start()
    for _ in range(4):
        loader.run_batch()
    before = set(lake.versions("clicks"))
    lake.append_unrelated("clicks", some_rows(100, 2))
    strangers = set(lake.versions("clicks")) - before
    for _ in range(4):
        bill = loader.run_batch()
    assert bill is not None
    policy = CarePolicy(keep_commits=2, keep_age=timedelta(0), thin_to=timedelta(0), every_commits=1)
    # After the time of grace, and within the thirty days for which a Delta table keeps its log.
    report = lake.look_after(table, job.job_id, policy, datetime.now(UTC) + timedelta(days=2))
    assert report.bills_deleted == bill.seq - 2
    for handle in (table, lake.reopen("clicks")):
        assert handle.read_head(job.job_id) == bill.head
        assert ids(lake, handle) == [*range(24), 100, 101]
    assert strangers <= set(lake.versions("clicks"))
    loader.run_batch()
    fresh = driver(lake, lake.reopen("clicks"), job)
    fresh.start()
    assert ids(lake, table) == [*range(27), 100, 101]


def test_the_history_names_the_commit_of_each_version(lake: Rig) -> None:
    table, job = lake.create("clicks", SPEC), new_job()
    first = opening(job)
    assert isinstance(put_and_commit(table, first), Landed)
    bill = load(job, first, lake.stage(table, some_rows(0, 3), "a"))
    assert isinstance(put_and_commit(table, bill), Landed)
    lake.append_unrelated("clicks", some_rows(3, 2))
    again = cast("LakeTable", lake.reopen("clicks"))
    versions = again.history(10)
    assert again.snapshot_name().startswith(versions[0].name)
    assert (versions[0].job_id, versions[0].head) == (None, None)
    assert versions[0].what
    assert versions[0].at is not None
    assert (versions[1].job_id, versions[1].head) == (job.job_id, bill.head)
    assert len({version.name for version in versions}) == len(versions)
    assert again.history(1) == versions[:1]

"""Log entries of a Delta table are kept as long as the table says, however it says it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import deltalake
import pytest

from lading.model.job import Job
from lading.tables.delta.actions import LOG
from lading.tables.delta.create import create_delta_table, open_delta_table
from lading.tables.delta.intervals import parse_interval
from lading.tables.delta.table import DeltaLakeTable
from lading.tables.maintenance import CarePolicy
from tests.tables.delta_by_hand import actions, add_entry
from tests.tables.drive import SPEC, new_job, opening, put_and_commit, takeover

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ENTRIES = 6

INTERVALS = [
    ("interval 365 days", timedelta(days=365)),
    ("365 days", timedelta(days=365)),
    ("INTERVAL 365 DAYS", timedelta(days=365)),
    ("interval 52 weeks 1 day", timedelta(days=365)),
    ("interval  8760   hours", timedelta(days=365)),
    ("interval '365' day", timedelta(days=365)),
    ("interval 1 day 2 hours 3 minutes 4 seconds 5 milliseconds", timedelta(1, 7384, 0, 5)),
    ("interval 99999999999 weeks", timedelta.max),
    ("interval 0 seconds", timedelta(0)),
    ("interval 1 year", None),
    ("interval 2 months", None),
    ("interval -1 days", None),
    ("a while", None),
    ("365", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "length"), INTERVALS)
def test_durations_are_read_as_spark_writes_them(text: str, length: timedelta | None) -> None:
    assert parse_interval(text) == length


def aged(location: Path, settings: dict[str, str], age: timedelta) -> tuple[DeltaLakeTable, Job]:
    """A table that says this, and whose entries are all of that age."""
    create_delta_table(str(location), SPEC)
    add_entry(location, {"metaData": {**actions(location, "metaData")[-1], "configuration": settings}})
    table, job = open_delta_table(str(location)), new_job()
    bill = opening(job)
    put_and_commit(table, bill)
    for _ in range(ENTRIES - 3):
        bill = takeover(job, bill)
        put_and_commit(table, bill)
    stamp = (NOW - age).timestamp()
    for path in (location / LOG).glob("*.json"):
        os.utime(path, (stamp, stamp))
    return table, job


def versions(location: Path) -> list[int]:
    return sorted(int(path.stem) for path in (location / LOG).glob("*.json") if path.stem.isdigit())


RETENTIONS = [
    ({}, 40, ENTRIES, ""),
    ({}, 20, 0, ""),
    ({"delta.logRetentionDuration": "365 days"}, 40, 0, ""),
    ({"delta.logRetentionDuration": "INTERVAL 52 WEEKS 1 DAY"}, 40, 0, ""),
    ({"delta.logRetentionDuration": "interval 365 days"}, 400, ENTRIES, ""),
    ({"delta.logRetentionDuration": "interval 1 year"}, 400, 0, "'interval 1 year', which is not understood"),
    ({"delta.enableExpiredLogCleanup": " False"}, 400, 0, ""),
    ({"delta.enableExpiredLogCleanup": "off"}, 400, 0, "'off', which is not understood"),
]


@pytest.mark.parametrize(("settings", "days", "gone", "remark"), RETENTIONS)
def test_entries_go_when_the_table_says_so(
    tmp_path: Path, settings: dict[str, str], days: int, gone: int, remark: str
) -> None:
    table, job = aged(tmp_path, settings, timedelta(days=days))
    report = table.look_after(job.job_id, CarePolicy(), NOW)
    assert remark in report.remark
    assert bool(report.remark) == bool(remark)
    # The newest entry is the one that the checkpoint was made of: it is never below one.
    assert versions(tmp_path) == list(range(max(0, gone - 1), ENTRIES))
    assert deltalake.DeltaTable(str(tmp_path)).version() == ENTRIES - 1


def test_nothing_goes_within_the_time_of_grace(tmp_path: Path) -> None:
    table, job = aged(tmp_path, {"delta.logRetentionDuration": "interval 0 seconds"}, timedelta(minutes=30))
    table.look_after(job.job_id, CarePolicy(), NOW)
    assert versions(tmp_path) == list(range(ENTRIES))


def test_a_version_within_the_retention_keeps_the_checkpoint_it_is_built_on(tmp_path: Path) -> None:
    """Entries 0 to 5 are old. Checkpoints are made at 5 and, when entries 6 to 8 are there, at 8."""
    table, job = aged(tmp_path, {}, timedelta(days=20))
    table.look_after(job.job_id, CarePolicy(), NOW)
    head = table.read_head(job.job_id)
    assert head is not None
    bill = table.bills.read(job.job_id, head)
    for _ in range(3):
        bill = takeover(job, bill)
        put_and_commit(table, bill)
    young = NOW.timestamp()
    for version in (6, 7, 8):
        os.utime(tmp_path / LOG / f"{version:020d}.json", (young, young))
    table.look_after(job.job_id, CarePolicy(), NOW + timedelta(days=25))
    assert versions(tmp_path) == [5, 6, 7, 8]
    assert deltalake.DeltaTable(str(tmp_path), version=6).version() == 6

"""Faults of Delta tables that were found by use: each would have written something that readers take for the truth."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest

from lading.errors import ConflictError, LadingError, SchemaMismatchError
from lading.model.outcome import Landed
from lading.model.table import Column, PartitionField, TableSpec
from lading.tables.delta.actions import TAG_JOB, TAG_ORDER
from lading.tables.delta.create import create_delta_table, open_delta_table
from lading.tables.delta.live import LiveAdd
from lading.tables.delta.writer import DeltaWriter
from tests.tables.delta_by_hand import actions, add_entry, change_field
from tests.tables.drive import load, new_job, opening, put_and_commit

MANY = 40
"""More columns than get statistics when the table does not say."""


@pytest.mark.parametrize(("value", "fits"), [(None, False), (7, True)])
def test_a_column_without_statistics_that_became_required_takes_no_null(
    tmp_path: Path, value: int | None, fits: bool
) -> None:
    names = [f"c{number}" for number in range(MANY)]
    table = create_delta_table(str(tmp_path), TableSpec(columns=tuple(Column(name=name, type="int") for name in names)))
    writer, job = DeltaWriter(table.writer_spec(), "a"), new_job()
    first = opening(job)
    put_and_commit(table, first)
    writer.write(pa.record_batch([pa.array([7, value], pa.int32())] * MANY, names=names))
    bill = load(job, first, writer.close())
    change_field(tmp_path, names[-1], nullable=False)
    if fits:
        assert isinstance(put_and_commit(table, bill), Landed)
        return
    with pytest.raises(SchemaMismatchError, match=f"nulls in column {names[-1]}"):
        put_and_commit(table, bill)


BY_TIME = TableSpec(
    columns=(
        Column(name="at", type="timestamp"),
        Column(name="plain", type="timestamp_ntz"),
        Column(name="n", type="int"),
    ),
    partition_by=(PartitionField(column="at"), PartitionField(column="plain")),
)


def test_a_timestamp_partition_value_says_that_it_is_utc(tmp_path: Path) -> None:
    """Without a zone every reader takes it in the zone of its own session."""
    moment = datetime(2026, 3, 1, 12, 0, 0, 250, tzinfo=UTC)
    table, job = create_delta_table(str(tmp_path), BY_TIME), new_job()
    first = opening(job)
    put_and_commit(table, first)
    writer = DeltaWriter(table.writer_spec(), "a")
    writer.write(
        pa.record_batch(
            {
                "at": pa.array([moment], pa.timestamp("us", tz="Asia/Tokyo")),
                "plain": pa.array([moment.replace(tzinfo=None)], pa.timestamp("us")),
                "n": pa.array([1], pa.int32()),
            }
        )
    )
    put_and_commit(table, load(job, first, writer.close()))
    added = actions(tmp_path, "add")[-1]
    assert added["partitionValues"] == {"at": "2026-03-01T12:00:00.000250Z", "plain": "2026-03-01 12:00:00.000250"}
    # As it was written before.
    older = {**added["partitionValues"], "at": "2026-03-01 12:00:00.000250"}
    add_entry(tmp_path, {"add": {**added, "path": f"{added['path']}?", "partitionValues": older}})
    shutil.copy(tmp_path / unquote(added["path"]), tmp_path / f"{unquote(added['path'])}?")
    rows = open_delta_table(str(tmp_path)).scan().to_pylist()
    assert [row["at"] for row in rows] == [moment, moment]
    assert [row["plain"] for row in rows] == [moment.replace(tzinfo=None)] * 2


@pytest.mark.parametrize(
    ("kind", "nullable", "wanted"),
    [
        ("timestamp_ntz", False, {"invariants", "timestampNtz"}),
        ("timestamp_ntz", True, {"timestampNtz"}),
        ("timestamp", False, None),
    ],
)
def test_a_protocol_that_names_features_names_not_null(
    tmp_path: Path, kind: str, nullable: bool, wanted: set[str] | None
) -> None:
    """Delta on the JVM could not open such a table at all."""
    columns = (Column(name="id", type="bigint", nullable=nullable), Column(name="at", type=kind))
    table = create_delta_table(str(tmp_path), TableSpec(columns=columns))
    assert table.version() == 0
    (protocol,) = actions(tmp_path, "protocol")
    features = protocol.get("writerFeatures")
    assert (None if features is None else set(features)) == wanted
    assert "invariants" not in (protocol.get("readerFeatures") or ())
    with pytest.raises(ConflictError):
        create_delta_table(str(tmp_path), TableSpec(columns=columns))


@pytest.mark.parametrize("path", ["../other/a.parquet", "dt=1/%2e%2e/%2E./b.parquet", "file:/other/a.parquet"])
def test_compaction_follows_no_path_out_of_the_table(path: str) -> None:
    """A log that others can write names files; a copy of theirs would land in this table, and the new file there."""
    tags = {TAG_JOB: "j", TAG_ORDER: "1.0.0"}
    add = LiveAdd(path=path, size=1, modified_ms=1, stats='{"numRecords":1}', tags=tags)
    assert not add.live_file().is_ours
    assert replace(add, path="dt=1/a..b.parquet").live_file().is_ours


def test_a_repair_that_is_interrupted_is_tried_again(tmp_path: Path) -> None:
    table, job = create_delta_table(str(tmp_path), TableSpec(columns=(Column(name="n", type="int"),))), new_job()
    first = opening(job)
    put_and_commit(table, first)
    writer = DeltaWriter(table.writer_spec(), "a")
    writer.write(pa.record_batch([pa.array([7], pa.int32())], names=["n"]))
    now = datetime.now(UTC)
    bill = replace(load(job, first, writer.close(), at=now), table_version=table.version())
    assert isinstance(put_and_commit(table, bill), Landed)
    assert table.repair(job.job_id, bill.head) == ""
    entries = sorted((tmp_path / "_delta_log").glob("*.json"))
    entries[-1].write_text('{"commitInfo":{"operation":"WRITE"}}\n')
    kept = entries[0].read_bytes()
    entries[0].write_text("broken")
    with pytest.raises(LadingError):
        table.repair(job.job_id, bill.head)
    entries[0].write_bytes(kept)
    assert "seq 1 (1 rows): committed again" in table.repair(job.job_id, bill.head)
    assert table.scan().column("n").to_pylist() == [7]

"""Delta tables that Lading must refuse, each with its own error and without a change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from lading.errors import (
    ConfigError,
    ConflictError,
    LadingError,
    RecordError,
    SchemaMismatchError,
    TableError,
    TableNotFoundError,
)
from lading.model.outcome import Landed, NotLanded
from lading.model.s3_access import S3Access
from lading.model.table import Column, PartitionField, TableSpec
from lading.storage.store import open_store
from lading.tables.bills import bill_key
from lading.tables.delta.actions import entry_key, seq_app
from lading.tables.delta.create import create_delta_table, open_delta_table
from lading.tables.delta.table import DeltaLakeTable
from lading.tables.delta.writer import DeltaWriter
from tests.tables.drive import SPEC, load, new_job, opening, put_and_commit, some_rows, takeover
from tests.tables.faulty_storage import FaultyStorage

Change = Callable[[dict[str, Any]], None]


def add_entry(location: Path, version: int, *actions: dict[str, Any]) -> None:
    """Write a log entry as some other program would."""
    text = "\n".join(json.dumps(action) for action in actions)
    (location / entry_key(version)).write_text(text)


def action_of(location: Path, kind: str) -> dict[str, Any]:
    lines = (location / entry_key(0)).read_text().splitlines()
    found: dict[str, Any] = next(json.loads(line)[kind] for line in lines if kind in json.loads(line))
    return found


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_refused(error: LadingError) -> None:
    """The message says what, what state it left, and what to do."""
    assert error.what
    assert error.left
    assert error.todo


def test_a_missing_table_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError) as caught:
        open_delta_table(str(tmp_path / "nothing"))
    assert_refused(caught.value)
    assert not (tmp_path / "nothing").exists()


def test_a_folder_of_other_files_is_not_a_table(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no table")
    with pytest.raises(TableError) as caught:
        open_delta_table(str(tmp_path))
    assert_refused(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_log_that_is_not_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / entry_key(0)).write_text("garbage")
    with pytest.raises(LadingError) as caught:
        open_delta_table(str(tmp_path))
    assert_refused(caught.value)


def test_a_table_is_not_made_over_another(tmp_path: Path) -> None:
    create_delta_table(str(tmp_path / "t"), SPEC)
    before = listing(tmp_path)
    with pytest.raises(ConflictError) as caught:
        create_delta_table(str(tmp_path / "t"), SPEC)
    assert_refused(caught.value)
    assert listing(tmp_path) == before


def test_a_path_that_delta_rs_mistakes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        create_delta_table(str(tmp_path / "100%20"), SPEC)
    assert_refused(caught.value)


def test_a_partition_transform_is_refused(tmp_path: Path) -> None:
    spec = TableSpec(columns=SPEC.columns, partition_by=(PartitionField(column="id", transform="bucket[4]"),))
    with pytest.raises(ConfigError) as caught:
        create_delta_table(str(tmp_path / "t"), spec)
    assert_refused(caught.value)


PROTOCOLS: dict[str, dict[str, Any]] = {
    "writer 8": {"minReaderVersion": 1, "minWriterVersion": 8},
    "reader 4": {"minReaderVersion": 4, "minWriterVersion": 6},
    "a catalog decides": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["catalogManaged"],
        "writerFeatures": ["catalogManaged"],
    },
    "not heard of": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["fromTheFuture"]},
}


def settings(**changes: str) -> Change:
    return lambda metadata: metadata["configuration"].update(changes)


def on_column(**marks: str) -> Change:
    def change(metadata: dict[str, Any]) -> None:
        schema = json.loads(metadata["schemaString"])
        schema["fields"][0]["metadata"].update(marks)
        metadata["schemaString"] = json.dumps(schema)

    return change


METADATA: dict[str, Change] = {
    "column mapping": settings(**{"delta.columnMapping.mode": "by_the_moon"}),
    "Iceberg compatibility": settings(**{"delta.enableIcebergCompatV2": "true"}),
    "checkConstraints": settings(**{"delta.constraints.positive": "id > 0"}),
    "generatedColumns": on_column(**{"delta.generationExpression": "1 + 1"}),
    "invariants": on_column(**{"delta.invariants": '{"expression":{"expression":"id > 0"}}'}),
    "identityColumns": on_column(**{"delta.identity.start": "1"}),
}


@pytest.mark.parametrize("case", PROTOCOLS)
def test_a_table_that_asks_for_more_is_refused_for_jobs_and_when_it_changes(tmp_path: Path, case: str) -> None:
    table, job = create_delta_table(str(tmp_path), SPEC), new_job()
    bill = opening(job)
    table.bills.put(bill)
    add_entry(tmp_path, 1, {"commitInfo": {"operation": "UPGRADE PROTOCOL"}}, {"protocol": PROTOCOLS[case]})
    before = listing(tmp_path)
    with pytest.raises(TableError) as caught:
        table.commit(None, (), bill)
    assert_refused(caught.value)
    with pytest.raises(TableError) as caught:
        open_delta_table(str(tmp_path)).writer_spec()
    assert_refused(caught.value)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("feature", METADATA)
def test_an_active_feature_that_binds_appenders_is_named_and_refused(tmp_path: Path, feature: str) -> None:
    table, job = create_delta_table(str(tmp_path), SPEC), new_job()
    bill = opening(job)
    table.bills.put(bill)
    metadata = action_of(tmp_path, "metaData")
    METADATA[feature](metadata)
    add_entry(tmp_path, 1, {"commitInfo": {"operation": "SET"}}, {"metaData": metadata})
    before = listing(tmp_path)
    with pytest.raises(TableError, match=feature):
        table.commit(None, (), bill)
    opened = open_delta_table(str(tmp_path))
    assert opened.schema().names == ["id", "name"]
    with pytest.raises(TableError, match=feature):
        opened.writer_spec()
    assert listing(tmp_path) == before


def test_features_that_nothing_makes_use_of_are_fine(tmp_path: Path) -> None:
    table, job = create_delta_table(str(tmp_path), SPEC), new_job()
    features = ["appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed", "columnMapping"]
    add_entry(
        tmp_path,
        1,
        {"commitInfo": {"operation": "UPGRADE PROTOCOL"}},
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["columnMapping"],
                "writerFeatures": features,
            }
        },
    )
    first = opening(job)
    assert isinstance(put_and_commit(table, first), Landed)
    assert open_delta_table(str(tmp_path)).read_head(job.job_id) == first.head


def test_a_head_of_which_one_half_is_gone_is_refused(tmp_path: Path) -> None:
    create_delta_table(str(tmp_path), SPEC)
    job = new_job()
    txn = {"appId": seq_app(job.job_id), "version": 3}
    add_entry(tmp_path, 1, {"commitInfo": {"operation": "WRITE"}}, {"txn": txn})
    with pytest.raises(RecordError) as caught:
        open_delta_table(str(tmp_path)).read_head(job.job_id)
    assert_refused(caught.value)


def test_a_folder_that_cannot_be_written_refuses_the_commit_for_certain(tmp_path: Path) -> None:
    create_delta_table(str(tmp_path), SPEC)
    storage = FaultyStorage(open_store(str(tmp_path)))
    table, job = DeltaLakeTable(storage, S3Access()), new_job()
    bill = opening(job)
    table.bills.put(bill)
    storage.under, storage.fault = "_delta_log/", "fail"
    before = listing(tmp_path)
    assert isinstance(table.commit(None, (), bill), NotLanded)
    assert table.read_head(job.job_id) is None
    assert listing(tmp_path) == before


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], type[LadingError]]] = {
    "not JSON": (lambda _: b"garbage", RecordError),
    "not a bill": (lambda _: b'{"some": "thing"}', RecordError),
    "changed": (lambda content: content.replace(b'"seq": 0', b'"seq": 7'), RecordError),
    "cut off": (lambda content: content[: len(content) // 2], RecordError),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_bill_is_refused(tmp_path: Path, case: str) -> None:
    damage, error = DAMAGES[case]
    table, job = create_delta_table(str(tmp_path), SPEC), new_job()
    bill = opening(job)
    put_and_commit(table, bill)
    path = tmp_path / bill_key(job.job_id, bill.head)
    content = damage(path.read_bytes())
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        table.bills.read(job.job_id, bill.head)
    assert_refused(caught.value)


def test_a_bill_under_another_bills_name_is_refused(tmp_path: Path) -> None:
    table, job = create_delta_table(str(tmp_path), SPEC), new_job()
    first = opening(job)
    second = takeover(job, first)
    put_and_commit(table, first)
    put_and_commit(table, second)
    path = tmp_path / bill_key(job.job_id, second.head)
    path.write_bytes((tmp_path / bill_key(job.job_id, first.head)).read_bytes())
    with pytest.raises(RecordError):
        table.bills.read(job.job_id, second.head)


NOT_NULL = TableSpec(columns=(Column(name="id", type="bigint", nullable=False), Column(name="name", type="string")))


def test_rows_without_a_required_value_are_refused_by_the_writer(tmp_path: Path) -> None:
    table = create_delta_table(str(tmp_path), NOT_NULL)
    writer = DeltaWriter(table.writer_spec(), "a")
    rows = pa.record_batch({"id": pa.array([1, None], pa.int64()), "name": pa.array(["a", "b"])})
    with pytest.raises(SchemaMismatchError):
        writer.write(rows)
    writer.abort()
    assert list(tmp_path.glob("*.parquet")) == []


def test_rows_with_other_columns_are_refused_by_the_writer(tmp_path: Path) -> None:
    table = create_delta_table(str(tmp_path), SPEC)
    writer = DeltaWriter(table.writer_spec(), "a")
    with pytest.raises(SchemaMismatchError):
        writer.write(pa.record_batch({"id": pa.array(["not a number"]), "name": pa.array(["a"])}))
    with pytest.raises(SchemaMismatchError):
        writer.write(pa.record_batch({"id": pa.array([1])}))
    writer.abort()


def test_files_that_lack_a_column_that_became_required_are_refused(tmp_path: Path) -> None:
    table, job = create_delta_table(str(tmp_path), SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    writer = DeltaWriter(table.writer_spec(), "a")
    for batch in some_rows(0, 2).to_batches():
        writer.write(batch)
    files = writer.close()
    metadata = action_of(tmp_path, "metaData")
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": "added", "type": "long", "nullable": False, "metadata": {}})
    metadata["schemaString"] = json.dumps(schema)
    add_entry(tmp_path, 2, {"commitInfo": {"operation": "CHANGE"}}, {"metaData": metadata})
    bill = load(job, first, files)
    table.bills.put(bill)
    with pytest.raises(SchemaMismatchError, match="added"):
        table.commit(bill.replaces, files, bill)


def test_files_without_a_column_that_was_added_since_still_fit(tmp_path: Path) -> None:
    table, job = create_delta_table(str(tmp_path), SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    writer = DeltaWriter(table.writer_spec(), "a")
    for batch in some_rows(0, 2).to_batches():
        writer.write(batch)
    metadata = action_of(tmp_path, "metaData")
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": "added", "type": "long", "nullable": True, "metadata": {}})
    metadata["schemaString"] = json.dumps(schema)
    add_entry(tmp_path, 2, {"commitInfo": {"operation": "CHANGE"}}, {"metaData": metadata})
    assert isinstance(put_and_commit(table, load(job, first, writer.close())), Landed)
    assert table.scan().column("added").to_pylist() == [None, None]
    assert table.schema().names == ["id", "name", "added"]


def test_a_table_without_the_feature_invariants_gets_it_as_the_changelog_says(tmp_path: Path) -> None:
    """Older tables of Lading with NOT NULL and DATETIME columns; Spark opens them only with it."""
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("at", pa.timestamp("us"))]
    deltalake.DeltaTable.create(str(tmp_path), schema=deltalake.Schema.from_arrow(pa.schema(fields)))
    assert deltalake.DeltaTable(str(tmp_path)).protocol().writer_features == ["timestampNtz"]
    deltalake.DeltaTable(str(tmp_path)).alter.add_feature(deltalake.TableFeatures.Invariants)
    assert "invariants" in (deltalake.DeltaTable(str(tmp_path)).protocol().writer_features or ())
    assert open_delta_table(str(tmp_path)).schema().names == ["id", "at"]

"""What is Paimon's own: numbers of snapshots that are given again, snapshots that expire, other engines' writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

from lading.errors import ConfigError, HeadLostError, RolledBackError, TableError
from lading.model.outcome import Landed, Unknown
from lading.model.table import Column, PartitionField, TableSpec
from lading.tables.paimon.create import create_paimon_table
from lading.tables.paimon.kind import KIND
from lading.tables.paimon.manifests import MERGE_AT, Manifests
from lading.tables.paimon.resume import FOLDER
from lading.tables.paimon.schema import Schemas
from lading.tables.paimon.snapshots import LATEST, SnapshotLine, snapshot_key
from lading.tables.paimon.table import PaimonTable
from tests.tables.drive import SPEC, driver, ids, load, new_job, opening, put_and_commit, some_rows, takeover
from tests.tables.faulty_storage import FaultyStorage
from tests.tables.optional import skip_without
from tests.tables.rig_paimon import PaimonRig, append, paimon_local, read


@pytest.fixture
def rig(tmp_path: Path) -> PaimonRig:
    skip_without(KIND)
    return paimon_local(tmp_path, None)


def forget_landed(rig: PaimonRig, job_id: str) -> None:
    """As a process that died between its commit and the mark."""
    storage = rig.storage("clicks")
    marks = [key for key in storage.keys(f"{FOLDER}/{job_id}/") if key.endswith(".landed")]
    storage.delete([max(marks)])


def test_pypaimon_reads_every_row_and_the_head_is_in_the_snapshot(rig: PaimonRig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    bill = loader.run_batch()
    assert bill is not None
    stranger = rig.stranger("clicks")
    assert sorted(read(stranger)["id"].to_pylist()) == [0, 1, 2]
    snapshot = stranger.snapshot_manager().get_latest_snapshot()
    assert (snapshot.commit_user, snapshot.commit_identifier) == (f"lading/{job.job_id}", bill.seq)
    assert snapshot.properties["lading.token"] == str(bill.token)
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (3, 3)
    assert rig.storage("clicks").get(LATEST) == b"2"


def test_a_kill_between_the_commit_and_its_mark_loses_no_head(rig: PaimonRig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    bill = loader.run_batch()
    assert bill is not None
    forget_landed(rig, job.job_id)
    append(rig.stranger("clicks"), some_rows(100, 1))
    assert rig.reopen("clicks").read_head(job.job_id) == bill.head


def test_a_commit_of_which_nothing_tells_any_more_stops_the_job_and_loads_nothing(rig: PaimonRig) -> None:
    """Killed before its mark, and its snapshot expired before anybody looked: it landed, and nobody knows."""
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    loader.run_batch()
    forget_landed(rig, job.job_id)
    append(rig.stranger("clicks"), some_rows(100, 1))
    rig.expire_all_but_newest("clicks")
    with pytest.raises(HeadLostError, match="no longer tells whether seq 1"):
        driver(rig, rig.reopen("clicks"), job).start()
    assert ids(rig, rig.reopen("clicks")) == [0, 1, 2, 100]


def test_a_head_whose_snapshot_expired_goes_on(rig: PaimonRig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    bill = loader.run_batch()
    assert bill is not None
    append(rig.stranger("clicks"), some_rows(100, 1))
    rig.expire_all_but_newest("clicks")
    fresh = rig.reopen("clicks")
    assert fresh.read_head(job.job_id) == bill.head == fresh.ends_with(job.job_id)
    again = driver(rig, fresh, job)
    again.start()
    again.run_batch()
    assert ids(rig, fresh) == [*range(6), 100]


def test_a_rollback_is_noticed_although_others_have_its_numbers_again(rig: PaimonRig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    older = loader.run_batch()
    loader.run_batch()
    assert older is not None
    rig.restore_older("clicks", 1)
    for number in range(3):
        append(rig.stranger("clicks"), some_rows(100 + number, 1))
    for handle in (table, rig.reopen("clicks")):
        with pytest.raises(RolledBackError):
            handle.read_head(job.job_id)
        assert handle.ends_with(job.job_id) == older.head
    with pytest.raises(RolledBackError):
        loader.run_batch()
    assert ids(rig, table) == [0, 1, 2, 100, 101, 102]


def test_a_snapshot_that_another_engine_wrote_over_is_not_taken_for_landed(rig: PaimonRig) -> None:
    """Engines that rename without a lock replace a snapshot of the same number."""
    table, job = rig.create("clicks", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    bill = load(job, first, rig.stage(table, some_rows(0, 3), "a"))
    table.bills.put(bill)
    storage = cast("FaultyStorage", cast("PaimonTable", table).storage)
    place = Path(rig.place("clicks")) / snapshot_key(2)

    def write_over(key: str) -> None:
        if key == snapshot_key(2) and place.exists() and b"lading/" in place.read_bytes():
            body = json.loads(place.read_bytes())
            place.write_text(json.dumps({**body, "commitUser": "somebody", "properties": {}}))

    storage.before_get = write_over
    assert isinstance(table.commit(first.head, bill.files, bill), Unknown)
    storage.before_get = lambda _key: None
    assert not table.find(job.job_id, bill.token)
    assert rig.reopen("clicks").read_head(job.job_id) == first.head


def test_a_late_hint_of_another_engine_misleads_nobody(rig: PaimonRig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    loader.run_batch()
    (Path(rig.place("clicks")) / LATEST).write_text("1")
    loader.run_batch()
    assert sorted(read(rig.stranger("clicks"))["id"].to_pylist()) == [*range(6)]


def test_manifests_are_put_together_so_that_commits_do_not_get_dearer(rig: PaimonRig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    bill = opening(job)
    put_and_commit(table, bill)
    for number in range(MERGE_AT + 3):
        bill = load(job, bill, rig.stage(table, some_rows(number, 1), f"t{number}"))
        assert isinstance(put_and_commit(table, bill), Landed)
    storage = rig.storage("clicks")
    line, schemas = SnapshotLine(storage), Schemas(storage)
    assert line.newest is not None
    assert len(list(Manifests(storage, schemas.newest(), schemas).names(line.newest))) < 10
    assert ids(rig, table) == list(range(MERGE_AT + 3))
    assert read(rig.stranger("clicks")).num_rows == MERGE_AT + 3


def test_a_column_that_another_engine_adds_is_null_in_older_rows(rig: PaimonRig) -> None:
    from pypaimon.schema.data_types import AtomicType
    from pypaimon.schema.schema_change import SchemaChange

    table, job = rig.create("clicks", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    staged = rig.stage(table, some_rows(0, 1), "before")
    rig.catalog().alter_table("lake.clicks", [SchemaChange.add_column("more", AtomicType("INT"))])
    bill = load(job, first, staged)
    assert isinstance(put_and_commit(table, bill), Landed)
    assert rig.rows(table) == [{"id": 0, "name": "row 0", "more": None}]
    assert cast("PaimonTable", table).snapshot().schema.names == ["id", "name", "more"]
    assert read(rig.stranger("clicks")).to_pylist() == rig.rows(table)
    rig.catalog().alter_table("lake.clicks", [SchemaChange.rename_column("name", "label")])
    assert rig.rows(table) == [{"id": 0, "label": "row 0", "more": None}]
    with pytest.raises(TableError, match="had another name"):
        cast("PaimonTable", table).snapshot()


PARTITIONED = replace(SPEC, partition_by=(PartitionField(column="name"),))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (replace(SPEC, properties={"primary-key": "id"}), "cannot have a PRIMARY KEY"),
        (replace(SPEC, properties={"bucket": "4"}), "bucket is 4"),
        (replace(SPEC, properties={"deletion-vectors.enabled": "true"}), "deletion-vectors.enabled"),
        (replace(SPEC, partition_by=(PartitionField(column="id", transform="bucket[4]"),)), r"bucket\[4\] of id"),
        (
            TableSpec(
                columns=(Column(name="a", type="double"), Column(name="b", type="int")),
                partition_by=(PartitionField(column="a"),),
            ),
            "partitioned by a, which is double",
        ),
        (TableSpec(columns=SPEC.columns[:1], partition_by=(PartitionField(column="id"),)), "needs a column"),
    ],
)
def test_what_an_append_table_cannot_be_is_refused_and_nothing_is_made(
    rig: PaimonRig, spec: TableSpec, why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        rig.create("clicks", spec)
    assert not Path(rig.place("clicks")).exists()


def test_a_table_with_a_primary_key_of_another_engine_is_refused(rig: PaimonRig) -> None:
    from pypaimon import Schema

    catalog = rig.catalog()
    catalog.create_database("lake", True)
    fields = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    schema = Schema.from_pyarrow_schema(fields, primary_keys=["id"], options={"bucket": "1"})
    catalog.create_table("lake.clicks", schema, False)
    with pytest.raises(TableError, match=r"it has a primary key \(id\)"):
        rig.reopen("clicks")


def test_an_append_table_of_another_engine_can_be_loaded_into(rig: PaimonRig) -> None:
    from pypaimon import Schema

    catalog = rig.catalog()
    catalog.create_database("lake", True)
    fields = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])
    catalog.create_table("lake.clicks", Schema.from_pyarrow_schema(fields, partition_keys=["day"]), False)
    rows = some_rows(0, 2).append_column("day", pa.array([19_782, None], pa.int32()).cast(pa.date32()))
    append(rig.stranger("clicks"), rows)
    table, job = rig.reopen("clicks"), new_job()
    first = opening(job)
    put_and_commit(table, first)
    assert isinstance(put_and_commit(table, load(job, first, rig.stage(table, rows, "a"))), Landed)
    assert sorted(map(repr, rig.rows(table))) == sorted(map(repr, [*rows.to_pylist(), *rows.to_pylist()]))
    # Folders of dates have the names that this table's other writers give them.
    assert len({file.rpartition("/")[0] for file in cast("PaimonTable", table).files()}) == 2
    assert read(rig.stranger("clicks")).num_rows == 4


def test_a_partition_filter_of_another_engine_finds_the_rows(rig: PaimonRig) -> None:
    create_paimon_table(rig.place("clicks"), PARTITIONED)
    table, job = rig.reopen("clicks"), new_job()
    first = opening(job)
    put_and_commit(table, first)
    put_and_commit(table, load(job, first, rig.stage(table, some_rows(0, 3), "a")))
    builder = rig.stranger("clicks").new_read_builder()
    chosen = builder.with_filter(builder.new_predicate_builder().equal("name", "row 1"))
    assert chosen.new_read().to_arrow(chosen.new_scan().plan().splits())["id"].to_pylist() == [1]


def test_two_takeovers_from_one_head_are_told_apart_by_the_token(rig: PaimonRig) -> None:
    """Commit user and identifier are the same: pypaimon would take one for the other."""
    table, job = rig.create("clicks", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    mine, theirs = takeover(job, first), takeover(job, first)
    assert isinstance(put_and_commit(rig.reopen("clicks"), theirs), Landed)
    assert not isinstance(put_and_commit(table, mine), Landed)
    assert table.find(job.job_id, theirs.token)
    assert not table.find(job.job_id, mine.token)

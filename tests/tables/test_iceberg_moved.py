"""ALTER TABLE … SET LOCATION while a job is open: files and bills are where the table says."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table.update import SetLocationUpdate

from lading.errors import SchemaMismatchError
from lading.model.outcome import Landed
from lading.model.s3_access import S3Access
from lading.tables.iceberg.catalog import open_catalog, sqlite_catalog
from lading.tables.iceberg.table import IcebergTable
from lading.tables.iceberg.writer import IcebergWriter
from tests.console.local import LocalLading
from tests.tables.drive import SPEC, ids, load, new_job, opening, put_and_commit, some_rows, takeover
from tests.tables.rig_iceberg import IcebergRig, iceberg_local


@pytest.fixture
def rig(tmp_path: Path) -> IcebergRig:
    return iceberg_local(tmp_path, None)


def move(rig: IcebergRig, location: str) -> None:
    """What SET LOCATION does, by somebody else."""
    update = SetLocationUpdate.model_validate({"location": location})
    rig.stranger("clicks")._do_commit(updates=(update,), requirements=())


def test_a_commit_after_the_move_is_refused_and_the_next_opening_goes_on(rig: IcebergRig, tmp_path: Path) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    base = load(job, first, rig.stage(table, some_rows(0, 3), "a"))
    put_and_commit(table, base)
    writing = table.writer_spec()
    move(rig, f"file://{tmp_path}/elsewhere/")
    writer = IcebergWriter(writing, "b")
    for batch in some_rows(3, 3).to_batches():
        writer.write(batch)
    with pytest.raises(SchemaMismatchError, match="new location"):
        put_and_commit(table, load(job, base, writer.close()))
    assert ids(rig, table) == [0, 1, 2]

    again = rig.reopen("clicks")
    assert again.location == f"file://{tmp_path}/elsewhere"
    assert again.read_head(job.job_id) == base.head
    assert again.bills.read(job.job_id, base.head) == base
    assert base.head in again.bills.heads(job.job_id)
    taken = takeover(job, base)
    assert isinstance(put_and_commit(again, taken), Landed)
    assert isinstance(put_and_commit(again, load(job, taken, rig.stage(again, some_rows(3, 3), "c"))), Landed)
    assert ids(rig, rig.reopen("clicks")) == [0, 1, 2, 3, 4, 5]
    assert len(list((tmp_path / "elsewhere" / "data").glob("*.parquet"))) == 1


def test_a_move_between_the_look_and_the_commit_names_files_and_bill_where_they_are(
    rig: IcebergRig, tmp_path: Path
) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    bill = load(job, first, rig.stage(table, some_rows(0, 3), "a"))
    send = table.handle.catalog.commit_table

    def moved_before(*arguments: object) -> object:
        del table.handle.catalog.commit_table
        move(rig, f"file://{tmp_path}/elsewhere")
        return send(*arguments)  # type: ignore[arg-type]  # passed on as it came

    table.handle.catalog.commit_table = moved_before  # type: ignore[method-assign, assignment]
    # A SQLite catalog compares the whole metadata, and the second attempt sees the move; others let it land.
    try:
        landed = isinstance(put_and_commit(table, bill), Landed)
    except SchemaMismatchError:
        landed = False
    again = rig.reopen("clicks")
    head = again.read_head(job.job_id)
    assert head == (bill.head if landed else first.head)
    assert head is not None
    assert again.bills.read(job.job_id, head) == (bill if landed else first)
    assert ids(rig, again) == ([0, 1, 2] if landed else [])


def test_a_job_goes_on_after_the_move(tmp_path: Path) -> None:
    """From the door: two files, and SET LOCATION between them."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id\n1\n2\n")
    with LocalLading(tmp_path / "home") as lading:
        lading.sql(
            "CREATE TABLE t (id BIGINT) USING iceberg;"
            f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT id FROM FILE("uri"="{tmp_path}/in/*.csv", '
            '"format"="csv_with_names", "column_separator"=",")'
        )
        runner = lading.runner(lading.job("j").job_id)
        runner.run_once()
        other = open_catalog(sqlite_catalog(tmp_path / "home"), S3Access()).load_table("default.t")
        update = SetLocationUpdate.model_validate({"location": f"{tmp_path}/elsewhere"})
        other._do_commit(updates=(update,), requirements=())
        (tmp_path / "in" / "b.csv").write_text("id\n3\n")
        assert runner.run_once()  # It is refused, and another attempt follows.
        runner.run_once()
        table = lading.catalog.open_table("default", "t")
        assert isinstance(table, IcebergTable)
        assert sorted(table.scan()["id"].to_pylist()) == [1, 2, 3]
        assert table.location == f"{tmp_path}/elsewhere"
        assert len(list((tmp_path / "elsewhere" / "data").glob("*.parquet"))) == 1
        assert runner.record().totals is not None

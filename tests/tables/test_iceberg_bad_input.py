"""What is wrong has a name: tables, catalogs and heads that cannot be used."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from lading.errors import (
    ConfigError,
    ConflictError,
    LadingError,
    RecordError,
    StorageError,
    TableError,
    TableNotFoundError,
)
from lading.model.outcome import Landed, NotLanded
from lading.model.s3_access import S3Access
from lading.tables.iceberg.catalog import sqlite_catalog
from lading.tables.iceberg.heads import head_property
from lading.tables.iceberg.postgres import CatalogSpec
from lading.tables.iceberg.table import create_iceberg_table, open_iceberg_table
from lading.testing.marked import secret
from tests.tables.drive import SPEC, new_job, opening, put_and_commit, takeover
from tests.tables.rig_iceberg import IcebergRig, iceberg_local


@pytest.fixture
def rig(tmp_path: Path) -> IcebergRig:
    return iceberg_local(tmp_path, None)


def metadata_file(rig: IcebergRig) -> Path:
    return Path(rig.stranger("clicks").metadata_location.removeprefix("file://"))


def test_no_such_table(rig: IcebergRig) -> None:
    rig.create("clicks", SPEC)
    for name in ("lake.other", "nowhere.clicks"):
        with pytest.raises(TableNotFoundError, match="Create the table"):
            open_iceberg_table(rig.catalog, name)


def test_a_table_is_not_made_twice(rig: IcebergRig) -> None:
    rig.create("clicks", SPEC)
    with pytest.raises(ConflictError):
        rig.create("clicks", SPEC)


def test_a_catalog_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Check that the catalog runs"):
        open_iceberg_table(sqlite_catalog(tmp_path / "nowhere"), "lake.clicks")
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(StorageError):
        open_iceberg_table(CatalogSpec(name="far", properties={"uri": "http://127.0.0.1:9"}), "lake.clicks")


@pytest.mark.parametrize("properties", [{"type": "sql"}, {"type": "sql", "uri": "elephant://x"}])
def test_a_catalog_with_wrong_settings(properties: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        open_iceberg_table(CatalogSpec(name="wrong", properties=properties), "lake.clicks")


def test_a_catalog_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("not a database, by far not one at all" * 100)
    with pytest.raises(StorageError):
        open_iceberg_table(sqlite_catalog(tmp_path), "lake.clicks")


def test_a_metadata_file_that_is_gone(rig: IcebergRig) -> None:
    table = rig.create("clicks", SPEC)
    metadata_file(rig).unlink()
    for look in (rig.reopen, lambda _name: table.read_head(new_job().job_id)):
        with pytest.raises(TableError, match="a file of it is gone"):
            look("clicks")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format-version": 2}', b"\xff\xfe\x00"])
def test_a_metadata_file_that_is_garbage(rig: IcebergRig, content: bytes) -> None:
    rig.create("clicks", SPEC)
    metadata_file(rig).write_bytes(content)
    with pytest.raises(TableError, match="cannot be read"):
        rig.reopen("clicks")


@pytest.mark.parametrize("version", [4, 99])
def test_a_format_version_that_is_not_known(rig: IcebergRig, version: int) -> None:
    rig.create("clicks", SPEC)
    path = metadata_file(rig)
    path.write_text(path.read_text().replace('"format-version":2', f'"format-version":{version}'))
    with pytest.raises(TableError):
        rig.reopen("clicks")


@pytest.mark.parametrize("version", ["1"])
def test_a_format_version_that_lading_does_not_write(rig: IcebergRig, version: str) -> None:
    with pytest.raises(TableError):
        rig.create("clicks", replace(SPEC, properties={"format-version": version}))
    rig.create("clicks", SPEC)
    path = metadata_file(rig)
    made = json.loads(path.read_text()) | {"format-version": int(version), "next-row-id": 0}
    path.write_text(json.dumps(made | {"schema": made["schemas"][0], "partition-spec": []}))
    with pytest.raises(TableError, match=f"format version {version}"):
        rig.reopen("clicks")


@pytest.mark.parametrize("text", ["", "garbage", "[]", "{}", '{"v":1,"seq":"a","token":1,"snapshot":1,"sequence":1}'])
def test_a_head_that_is_garbage(rig: IcebergRig, text: str) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    with rig.stranger("clicks").transaction() as change:
        change.set_properties({head_property(job.job_id): text})
    with pytest.raises(RecordError, match="is not a head"):
        table.read_head(job.job_id)
    with pytest.raises(RecordError):
        put_and_commit(table, opening(job))
    assert rig.versions("clicks") == []


def test_a_head_of_a_newer_lading(rig: IcebergRig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    with rig.stranger("clicks").transaction() as change:
        change.set_properties({head_property(job.job_id): '{"v":2,"seq":1,"token":1,"snapshot":1,"sequence":1}'})
    with pytest.raises(RecordError):
        table.read_head(job.job_id)


def test_a_manifest_list_that_is_gone_stops_the_commit_before_anything_is_sent(rig: IcebergRig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    first = opening(job)
    assert isinstance(put_and_commit(table, first), Landed)
    current = rig.stranger("clicks").current_snapshot()
    assert current is not None
    Path(current.manifest_list.removeprefix("file://")).unlink()
    with pytest.raises(TableError):
        put_and_commit(table, takeover(job, first))
    assert table.read_head(job.job_id) == first.head


def test_a_catalog_that_may_not_be_written_refuses_for_certain(rig: IcebergRig, tmp_path: Path) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    first = opening(job)
    assert isinstance(put_and_commit(table, first), Landed)
    with sqlite3.connect(tmp_path / "home" / "catalog.db") as database:
        database.execute(
            "CREATE TRIGGER no BEFORE UPDATE ON iceberg_tables BEGIN SELECT RAISE(ABORT, 'read only'); END"
        )
    outcome = put_and_commit(table, takeover(job, first))
    assert isinstance(outcome, NotLanded)
    assert "read only" in outcome.why
    assert table.read_head(job.job_id) == first.head


def test_folders_with_unusual_names(tmp_path: Path) -> None:
    for name in ("with space", "per%20cent", "quest?ion", "ha#sh", "Ünïcode"):
        spec = sqlite_catalog(tmp_path / name)
        table, job = create_iceberg_table(spec, "lake.clicks", SPEC), new_job()
        bill = opening(job)
        assert isinstance(put_and_commit(table, bill), Landed)
        assert open_iceberg_table(spec, "lake.clicks").bills.read(job.job_id, bill.head) == bill
        assert (tmp_path / name / "catalog.db").is_file()
        assert (tmp_path / name / "warehouse" / "lake" / "clicks" / "_lading").is_dir()


def test_a_store_that_cannot_be_reached(tmp_path: Path) -> None:
    options = S3Access(
        endpoint="http://127.0.0.1:9",
        region="us-east-1",
        access_key=secret("a"),
        secret_key=secret("b"),
        path_style=True,
    )
    spec = sqlite_catalog(tmp_path, warehouse="s3://bucket/lake")
    with pytest.raises(LadingError) as caught:
        create_iceberg_table(spec, "lake.clicks", SPEC, options=options)
    assert caught.value.todo
    assert "secret" not in str(caught.value)

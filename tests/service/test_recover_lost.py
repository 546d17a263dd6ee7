"""The store is lost, and more with it: catalogs, cards, bills, places. What is not certain is told and left alone."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lading.errors import ConflictError, StoreError
from lading.jobs.record import JobRecord
from lading.model.codec import render_bill
from lading.service.catalog.lost_home import Opening
from lading.service.facade import Lading
from lading.service.recover import Finding, recover
from lading.store.records import AuditEntry
from lading.tables.bills import bill_key
from lading.tables.iceberg.handle import Handle
from lading.tables.iceberg.table import IcebergTable
from lading.tables.manifest import KEY
from tests.service.conftest import Desk
from tests.service.test_recover import fates, lose_store

BOTH = {"table shop.orders": "recovered", "job j": "recovered"}


def loaded(desk: Desk, form: str = "delta", *, more: str = "", batches: int = 1) -> None:
    desk.table(form=form, more=more)
    desk.create(properties='"s3.max_batch_files"="1"')
    for number in range(batches):
        desk.put_orders(f"{number}.csv", number * 10, 10)
    desk.run()


def own_place(desk: Desk, name: str = "orders") -> Path:
    return desk.lading.home.warehouse / "shop" / name


def metadata_of(place: Path) -> list[Path]:
    return sorted((place / "metadata").glob("*.metadata.json"))


def manifest_list(file: Path) -> Path:
    body = json.loads(file.read_text())
    (found,) = [each for each in body["snapshots"] if each["snapshot-id"] == body["current-snapshot-id"]]
    return Path(found["manifest-list"].removeprefix("file://"))


def note_of(findings: list[Finding], what: str) -> str:
    (found,) = [found for found in findings if found.what == what]
    return found.note


# The catalog of Iceberg tables.


def test_a_catalog_that_is_lost_too_names_the_table_again(desk: Desk) -> None:
    loaded(desk, "iceberg", batches=2)
    *_, older, newest = metadata_of(own_place(desk))
    # A commit that was not to land: its files are deleted, its metadata stays.
    manifest_list(newest).unlink()
    lose_store(desk, also=("catalog.db",))
    dry = recover(desk.lading, dry_run=True)
    assert fates(dry) == BOTH
    assert not (desk.path / "home" / "catalog.db").exists()
    assert desk.lading.store.list_tables() == []
    real = recover(desk.lading)
    assert real == dry
    assert str(older) in note_of(real, "table")
    assert f"passed over, since the files they added are gone: {newest}" in note_of(real, "table")
    desk.sql("USE shop; RESUME JOB WHERE jobName='j'")
    desk.run()
    assert desk.ids() == list(range(20))
    assert desk.lading.verify("j").is_clean


def test_a_catalog_alone_that_is_lost_is_made_again(desk: Desk) -> None:
    loaded(desk, "iceberg")
    desk.lading.close()
    (desk.path / "home" / "catalog.db").unlink()
    desk.restart_empty()
    findings = recover(desk.lading)
    assert fates(findings) == {"table shop.orders": "recovered", "job j": "known"}
    assert str(metadata_of(own_place(desk))[-1]) in note_of(findings, "table")
    assert fates(recover(desk.lading)) == {"table shop.orders": "known", "job j": "known"}
    assert desk.ids() == list(range(10))


def test_what_is_missing_is_no_empty_table(desk: Desk) -> None:
    loaded(desk, "iceberg")
    for file in (own_place(desk) / "metadata").glob("snap-*.avro"):
        file.unlink()
    lose_store(desk, also=("catalog.db",))
    (found,) = recover(desk.lading)
    assert found.is_bad
    assert "is not whole" in found.note
    assert desk.lading.store.list_tables() == []
    assert not (desk.path / "home" / "catalog.db").exists()


def test_of_two_newest_states_of_a_lost_catalog_nobody_guesses(desk: Desk) -> None:
    loaded(desk, "iceberg")
    newest = metadata_of(own_place(desk))[-1]
    twin = newest.with_name(f"{newest.name.partition('-')[0]}-twin.metadata.json")
    shutil.copy(newest, twin)
    lose_store(desk, also=("catalog.db",))
    for dry_run in (True, False):
        (found,) = recover(desk.lading, dry_run=dry_run)
        assert found.is_bad
        assert "Several metadata files could be the newest" in found.note
    twin.unlink()
    assert fates(recover(desk.lading)) == BOTH


def test_a_home_that_was_moved_is_told_to_go_back(desk: Desk) -> None:
    loaded(desk, "iceberg")
    desk.lading.close()
    old, new = desk.path / "home", desk.path / "moved"
    for name in ("lading.db", "catalog.db"):
        (old / name).unlink()
    old.rename(new)
    with Lading(new, opening=Opening.RECOVERY) as lading:
        (found,) = recover(lading)
        assert found.is_bad
        assert f"was moved or copied from {old}" in found.note
        assert lading.store.list_tables() == []
        assert not (new / "catalog.db").exists()
    new.rename(old)
    desk.restart_empty()
    assert fates(recover(desk.lading)) == BOTH


def test_the_catalog_gets_no_table_whose_name_another_one_has(desk: Desk, tmp_path: Path) -> None:
    place = tmp_path / "lake"
    with Lading(tmp_path / "other") as other:
        other.sql(f"CREATE DATABASE shop; USE shop; CREATE TABLE orders (id BIGINT) USING iceberg LOCATION '{place}'")
    desk.table()
    (found,) = [found for found in recover(desk.lading, [str(place)]) if found.is_bad]
    assert "another one of this name is at" in found.note
    assert "Do not DROP" in found.note
    assert not (desk.path / "home" / "catalog.db").exists()


def test_a_copy_without_jobs_gets_no_name(desk: Desk, tmp_path: Path) -> None:
    place, copy = tmp_path / "lake", tmp_path / "copy"
    desk.table(form="iceberg", more=f"LOCATION '{place}'")
    shutil.copytree(place, copy)
    lose_store(desk)
    (found,) = recover(desk.lading, [str(copy)])
    assert found.is_bad
    assert f"at {place}, and not at {copy}" in found.note
    assert "Do not DROP" in found.note
    assert desk.lading.store.list_tables() == []
    assert fates(recover(desk.lading, [str(place)])) == {"table shop.orders": "recovered"}


def test_to_make_a_table_whose_catalog_is_lost_is_refused(desk: Desk) -> None:
    loaded(desk, "iceberg")
    lose_store(desk, also=("catalog.db",))
    with pytest.raises(ConflictError, match="lading recover gives tables and jobs back"):
        desk.sql("CREATE DATABASE shop; USE shop; CREATE TABLE orders (id BIGINT) USING iceberg")
    assert fates(recover(desk.lading)) == BOTH


def test_connections_are_closed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.table(form="iceberg")
    for name in ("j", "k", "l"):
        desk.create(name)
    desk.put_orders("a.csv", 0, 10)
    desk.run()
    lose_store(desk)
    opened, closed = list[IcebergTable](), list[IcebergTable]()
    make, close = IcebergTable.__init__, IcebergTable.close

    def note_opened(table: IcebergTable, handle: Handle) -> None:
        opened.append(table)
        make(table, handle)

    def note_closed(table: IcebergTable) -> None:
        closed.append(table)
        close(table)

    monkeypatch.setattr(IcebergTable, "__init__", note_opened)
    monkeypatch.setattr(IcebergTable, "close", note_closed)
    assert list(fates(recover(desk.lading)).values()) == ["recovered"] * 4
    assert len(opened) == 1
    assert closed == opened


# Places and cards.


def test_a_table_made_where_another_one_was_has_its_own_card(desk: Desk, tmp_path: Path) -> None:
    place = tmp_path / "lake"
    loaded(desk, "iceberg", more=f"LOCATION '{place}'")
    desk.sql("DROP JOB WHERE jobName='j'; DROP TABLE orders")
    desk.table("later", "iceberg", f"LOCATION '{place}'")
    desk.create("k", "later")
    desk.run()
    lose_store(desk)
    told = fates(recover(desk.lading, [str(place)]))
    assert (told.pop("table shop.later"), told.pop("job k")) == ("recovered", "recovered")
    assert list(told.values()) == ["left out"]
    desk.sql("USE shop")
    assert desk.ids("later") == list(range(10))
    lose_store(desk, also=("catalog.db",))
    (found,) = recover(desk.lading, [str(place)])
    assert "are of 2 tables, one made after another" in found.note


def test_a_delta_table_is_not_made_where_another_one_was(desk: Desk, tmp_path: Path) -> None:
    place = tmp_path / "lake"
    desk.table(more=f"LOCATION '{place}'")
    desk.sql("DROP TABLE orders")
    card = (place / KEY).read_text()
    with pytest.raises(ConflictError, match="already a Delta table"):
        desk.table("later", more=f"LOCATION '{place}'")
    assert (place / KEY).read_text() == card


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_two_tables_do_not_share_a_place(desk: Desk, tmp_path: Path, form: str) -> None:
    desk.table(form=form, more=f"LOCATION '{tmp_path / 'lake'}'")
    with pytest.raises(ConflictError, match="is already another table"):
        desk.table("later", form, f"LOCATION '{tmp_path}/x/../lake'")


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_place_may_be_written_in_many_ways(
    desk: Desk, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "lake" / "orders"
    loaded(desk, form, more=f"LOCATION '{place}'")
    lose_store(desk)
    monkeypatch.chdir(tmp_path)
    assert fates(recover(desk.lading, ["lake/orders", f"{place}/", "x/../lake/orders"])) == BOTH
    assert desk.lading.catalog.entry("shop", "orders").location == str(place)
    monkeypatch.chdir("/")
    desk.sql("USE shop")
    assert desk.ids() == list(range(10))
    known = {"table shop.orders": "known", "job j": "known"}
    assert fates(recover(desk.lading, [f"file://{place}"])) == known


def test_a_home_may_be_written_in_many_ways(desk: Desk) -> None:
    loaded(desk, "iceberg")
    desk.lading.close()
    (desk.path / "x").mkdir()
    with Lading(desk.path / "x" / ".." / "home") as lading:
        assert fates(recover(lading)) == {"table shop.orders": "known", "job j": "known"}
    desk.restart_empty()


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_table_elsewhere_without_a_card_is_called_what_one_says(desk: Desk, tmp_path: Path, form: str) -> None:
    place = tmp_path / "lake"
    loaded(desk, form, more=f"LOCATION '{place}'")
    (place / KEY).unlink()
    lose_store(desk)
    (nameless,) = recover(desk.lading, [str(place)])
    assert f"database.table={place}" in nameless.note
    findings = recover(desk.lading, [f"shop.orders={place}"])
    assert fates(findings) == BOTH
    assert "lengths of its texts" in note_of(findings, "table")
    assert desk.lading.catalog.entry("shop", "orders").format == form


def test_a_table_that_another_catalog_owns_is_refused(desk: Desk, tmp_path: Path) -> None:
    theirs = SqlCatalog("theirs", uri=f"sqlite:///{tmp_path}/theirs.db", warehouse=f"file://{tmp_path}/lake")
    theirs.create_namespace("x")
    table = theirs.create_table("x.t", pa.schema([pa.field("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    place = table.location().removeprefix("file://")
    (found,) = recover(desk.lading, [f"shop.orders={place}"])
    assert (found.fate, "belongs to another catalog" in found.note) == ("failed", True)
    assert "CREATE TABLE makes one" in found.note
    assert desk.sql("SHOW TABLES") == []
    (Path(place) / "metadata" / "version-hint.text").write_text("1")
    (found,) = recover(desk.lading, [f"shop.orders={place}"])
    assert "Hadoop catalog" in found.note
    theirs.close()


def test_a_card_is_believed_before_what_one_says(desk: Desk, tmp_path: Path) -> None:
    desk.table(more=f"LOCATION '{tmp_path / 'lake'}'")
    lose_store(desk)
    (wrong,) = recover(desk.lading, [f"shop.other={tmp_path / 'lake'}"])
    assert "it says that it is shop.orders" in wrong.note
    assert fates(recover(desk.lading, [f"shop.orders={tmp_path / 'lake'}"])) == {"table shop.orders": "recovered"}


def test_a_place_gets_no_second_name(desk: Desk, tmp_path: Path) -> None:
    desk.table(more=f"LOCATION '{tmp_path / 'lake'}'")
    (tmp_path / "lake" / KEY).unlink()
    (found,) = recover(desk.lading, [f"shop.other={tmp_path / 'lake'}"])
    assert "is already known, as shop.orders" in found.note
    assert [entry.name for entry in desk.lading.store.list_tables()] == ["orders"]


def test_files_of_two_formats_are_told(desk: Desk, tmp_path: Path) -> None:
    for folder in ("_delta_log", "metadata"):
        (tmp_path / "lake" / folder).mkdir(parents=True)
        (tmp_path / "lake" / folder / "0.json").touch()
    (found,) = recover(desk.lading, [f"shop.orders={tmp_path / 'lake'}"])
    assert "files of two tables" in found.note


def test_a_dry_run_tells_of_two_places_of_one_name(desk: Desk, tmp_path: Path) -> None:
    loaded(desk)
    shutil.copytree(own_place(desk), tmp_path / "copy")
    lose_store(desk)
    for dry_run in (True, False):
        findings = recover(desk.lading, [str(tmp_path / "copy")], dry_run=dry_run)
        assert [found.fate for found in findings] == ["recovered", "failed", "recovered"]
        assert f"another one of this name is at {tmp_path / 'copy'}" in findings[1].note


# Jobs.


def test_an_old_bill_that_cannot_be_read_ends_the_history_only(desk: Desk) -> None:
    loaded(desk, batches=3)
    job_id = desk.lading.job("j").job_id
    bills = sorted((own_place(desk) / "_lading" / job_id).iterdir(), key=lambda file: int(file.name.partition("-")[0]))
    bills[1].write_text("no bill")
    lose_store(desk)
    findings = recover(desk.lading)
    assert fates(findings) == BOTH
    assert "its history begins at commit 2: " in note_of(findings, "job")
    assert [entry.seq for entry in desk.lading.store.list_bills(job_id)][-1] == 2
    desk.sql("USE shop; RESUME JOB WHERE jobName='j'")
    desk.put_orders("9.csv", 30, 10)
    desk.run()
    assert desk.ids() == list(range(40))


def test_a_job_that_fails_does_not_end_the_others(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.table()
    desk.create("j")
    desk.create("k")
    desk.put_orders("a.csv", 0, 10)
    desk.run()
    lose_store(desk)
    create = desk.lading.store.create_job

    def fail(record: JobRecord, *, audit: AuditEntry) -> None:
        if record.name == "k":
            msg = "The disk is full"
            raise StoreError(msg)
        create(record, audit=audit)

    monkeypatch.setattr(desk.lading.store, "create_job", fail)
    assert fates(recover(desk.lading)) == {**BOTH, "job k": "failed"}
    monkeypatch.undo()
    assert fates(recover(desk.lading)) == {"table shop.orders": "known", "job j": "known", "job k": "recovered"}


def test_where_a_job_reads_its_secrets_from_is_told(desk: Desk) -> None:
    loaded(desk)
    (bill,) = desk.lading.bills(desk.lading.job("j"), 1)
    source = "S3('uri'='s3://b/*.csv', 's3.access_key'='env:SHOP_KEY', 's3.secret_key'='file:/run/shop')"
    definition = f"CREATE JOB j ON STREAMING DO INSERT INTO shop.orders SELECT * FROM {source}"
    changed = replace(bill, definition=definition)
    (own_place(desk) / bill_key(bill.job_id, bill.head)).write_bytes(render_bill(changed))
    lose_store(desk)
    findings = recover(desk.lading)
    assert fates(findings) == BOTH
    assert "it reads secrets from env:SHOP_KEY, file:/run/shop" in note_of(findings, "job")
    for words in ("Read its definition first", "keys that stood in the statement are gone", "RESUME"):
        assert words in desk.show("ErrorMsg")

"""The metadata store is lost; the tables are there. Each record is still in them once."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from lading.errors import ConflictError
from lading.model.bill import Bill
from lading.service.recover import Finding, recover
from lading.storage.store import open_store
from lading.tables.manifest import KEY
from lading.tables.registry import NAMES
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_generator import KafkaGenerator
from tests.tables.s3_server import S3Server


def lose_store(desk: Desk, *, also: tuple[str, ...] = ()) -> None:
    """Like a disk of the store that broke, and an empty one in its place."""
    desk.lading.close()
    for name in ("lading.db", *also):
        (desk.path / "home" / name).unlink()
    desk.restart_empty()


def fates(findings: list[Finding]) -> dict[str, str]:
    return {f"{found.what} {found.name}": found.fate for found in findings}


@pytest.mark.parametrize("form", NAMES)
def test_a_job_goes_on_from_its_table(desk: Desk, form: str) -> None:
    desk.table(form=form)
    desk.create(properties='"s3.max_batch_files"="1", "session.enable_insert_strict"="false"')
    desk.put_orders("a.csv", 0, 10)
    desk.put_orders("b.csv", 10, 10)
    desk.run()
    before = desk.lading.job("j")
    desk.put_orders("c.csv", 20, 10)
    lose_store(desk)
    assert fates(recover(desk.lading)) == {"table shop.orders": "recovered", "job j": "recovered"}
    desk.sql("USE shop")
    assert desk.show("Status") == "PAUSED"
    assert "Recovered from shop.orders" in desk.show("ErrorMsg")
    assert (desk.lading.job("j").job_id, desk.lading.job("j").definition) == (before.job_id, before.definition)
    desk.run()
    assert desk.ids() == list(range(20))  # Nothing runs before somebody says so.
    desk.sql("RESUME JOB WHERE jobName='j'")
    # What the format does not keep is kept as well: the length of a text.
    desk.put("d.csv", ["30,much too long a name,1.50"])
    desk.run()
    assert desk.ids() == list(range(31))
    rows = desk.lading.catalog.open_table("shop", "orders").scan().to_pylist()
    assert [row["city"] for row in rows if row["id"] == 30] == ["much too l"]
    assert desk.lading.verify("j").is_clean
    assert desk.lading.job("j").totals == desk.lading.bills(desk.lading.job("j"), 1)[0].totals
    assert [entry.action for entry in desk.lading.store.list_audit(job_id=before.job_id)][-1] == "RECOVER"
    assert desk.sql("SELECT count(*) FROM orders") == [(31,)]


def test_the_index_is_whole_and_a_second_run_changes_nothing(desk: Desk) -> None:
    desk.table()
    desk.create(properties='"s3.max_batch_files"="1"')
    for number in range(4):
        desk.put_orders(f"{number}.csv", number * 5, 5)
    desk.run()
    record = desk.lading.job("j")
    index = desk.lading.store.list_bills(record.job_id)
    lose_store(desk)
    recover(desk.lading)
    assert desk.lading.store.list_bills(record.job_id) == index
    saved = desk.lading.job("j")
    assert fates(recover(desk.lading)) == {"table shop.orders": "known", "job j": "known"}
    assert desk.lading.job("j") == saved


@pytest.mark.parametrize("form", NAMES)
def test_a_store_is_recovered_also_when_another_engine_removed_all_bills(desk: Desk, form: str) -> None:
    desk.table(form=form)
    desk.create()
    desk.put_orders("a.csv", 0, 10)
    desk.run()
    # Trino's vacuum and remove_orphan_files take every file that the table format does not know.
    shutil.rmtree(desk.lading.home.warehouse / "shop" / "orders" / "_lading")
    lose_store(desk)
    findings = recover(desk.lading)
    assert fates(findings) == {"table shop.orders": "recovered", "job j": "recovered"}
    assert "lengths of its texts" in findings[0].note
    desk.sql("USE shop; RESUME JOB WHERE jobName='j'")
    desk.put_orders("b.csv", 10, 10)
    desk.run()
    assert desk.ids() == list(range(20))
    assert desk.lading.verify("j").is_clean
    totals = desk.lading.job("j").totals
    assert totals is not None
    assert totals.rows.loaded == 20


@pytest.mark.parametrize("form", NAMES)
def test_who_makes_the_table_again_is_told_of_it(desk: Desk, form: str) -> None:
    """To make table and job by hand once more would load everything twice."""
    desk.table(form=form)
    desk.create()
    desk.put_orders("a.csv", 0, 10)
    desk.run()
    lose_store(desk)
    with pytest.raises(ConflictError, match="lading recover gives tables and jobs back"):
        desk.sql("CREATE DATABASE shop; USE shop; CREATE TABLE orders (id BIGINT) USING " + form)


def test_a_dry_run_changes_nothing(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 10)
    desk.run()
    lose_store(desk)
    assert fates(recover(desk.lading, dry_run=True)) == {"table shop.orders": "recovered", "job j": "recovered"}
    assert desk.lading.store.list_tables() == []
    assert desk.lading.store.list_jobs(include_final=True) == []


def test_of_jobs_of_one_name_the_newest_comes_back(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 10)
    for _ in range(2):
        desk.create()
        desk.run()
        newest = desk.lading.job("j")
        desk.sql("DROP JOB WHERE jobName='j'")
    lose_store(desk)
    findings = recover(desk.lading)
    assert [(found.name, found.fate) for found in findings[1:]] == [("j", "recovered"), ("j", "left out")]
    assert "a newer job has the name" in findings[2].note
    assert desk.lading.job("j").job_id == newest.job_id


def test_what_cannot_be_read_is_told_and_the_rest_is_recovered(desk: Desk, tmp_path: Path) -> None:
    for name in ("orders", "broken", "odd"):
        desk.table(name)
        desk.create(name, name)
    desk.put_orders("a.csv", 0, 10)
    desk.run()
    warehouse = desk.lading.home.warehouse / "shop"
    (bills,) = [folder for folder in (warehouse / "broken" / "_lading").iterdir() if folder.is_dir()]
    shutil.rmtree(bills)
    bills.mkdir()
    (bills / "0-1.json").write_text("no bill")
    # The commits of older versions have no copy in the log folder.
    shutil.rmtree(warehouse / "broken" / "_delta_log" / "_lading")
    (warehouse / "odd" / "_lading" / "table.json").write_text("no card")
    (warehouse / "stranger" / "x").mkdir(parents=True)  # Nothing of ours; nobody is told.
    lose_store(desk)
    findings = recover(desk.lading, [str(tmp_path / "nowhere")])
    told = fates(findings)
    assert told.pop(f"job {bills.name}") == "failed"
    assert told == {
        "table shop.orders": "recovered",
        "table shop.broken": "recovered",
        f"table {warehouse / 'odd'}": "failed",
        f"table {tmp_path / 'nowhere'}": "failed",
        "job orders": "recovered",
    }
    notes = " ".join(found.note for found in findings if found.is_bad)
    assert "names a bill that is gone" in notes
    assert "table.json cannot be read: it is not JSON" in notes
    assert "There is no table of Lading at" in notes


@pytest.mark.parametrize("form", NAMES)
def test_a_copy_is_not_taken_for_the_table(desk: Desk, form: str, tmp_path: Path) -> None:
    desk.table(form=form)
    desk.create()
    desk.put_orders("a.csv", 0, 10)
    desk.run()
    place = desk.lading.home.warehouse / "shop" / "orders"
    for copy in (place.with_name("aaa"), tmp_path / "copy"):
        shutil.copytree(place, copy)
    desk.put_orders("b.csv", 10, 10)
    desk.run()
    lose_store(desk)
    told = fates(recover(desk.lading, [str(tmp_path / "copy")]))
    bad = {f"table {place.with_name('aaa')}", "table shop.orders", "job j"}
    assert set(told) == bad
    assert told["job j"] == "recovered"
    desk.sql("USE shop; RESUME JOB WHERE jobName='j'")
    desk.run()
    assert desk.ids() == list(range(20))


def test_a_card_with_an_odd_name_is_refused(desk: Desk) -> None:
    desk.table()
    card = desk.lading.home.warehouse / "shop" / "orders" / "_lading" / "table.json"
    card.write_text(card.read_text().replace('"shop"', '"../shop"'))
    lose_store(desk)
    (found,) = recover(desk.lading)
    assert "cannot be the name of a database" in found.note


def test_bills_of_another_table_make_no_job(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 10)
    desk.run()
    place = desk.lading.home.warehouse / "shop" / "orders"
    other = shutil.copytree(place, place.with_name("other"))
    card = other / "_lading" / "table.json"
    card.write_text(card.read_text().replace('"orders"', '"other"'))
    lose_store(desk)
    findings = recover(desk.lading)
    assert [(found.name, found.fate) for found in findings if found.what == "job"][-1] == ("j", "recovered")
    assert "its bills lie beside shop.other" in " ".join(found.note for found in findings if found.is_bad)
    assert desk.lading.job("j").target == "shop.orders"


def test_a_job_whose_first_commit_never_landed_is_left_out(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.table()

    def die(*_given: object) -> None:
        raise KeyboardInterrupt

    table = desk.lading.catalog.open_table("shop", "orders")
    monkeypatch.setattr(type(table), "commit", die)
    with pytest.raises(KeyboardInterrupt):
        desk.create()
    monkeypatch.undo()
    lose_store(desk)
    (_, left_out) = recover(desk.lading)
    assert (left_out.fate, "has loaded nothing" in left_out.note) == ("left out", True)


def test_a_table_elsewhere_is_named(desk: Desk, s3: S3Server) -> None:
    keys = {
        "s3.endpoint": s3.endpoint,
        "s3.region": "us-east-1",
        "s3.access_key": secret("access"),
        "s3.secret_key": secret("key"),
        "use_path_style": "true",
    }
    bucket = s3.make_bucket()
    said = ", ".join(f'"{name}"="{value}"' for name, value in keys.items())
    desk.table(more=f"LOCATION 's3://{bucket}/orders' TBLPROPERTIES({said})")
    desk.create()
    desk.put_orders("a.csv", 0, 10)
    desk.run()
    lose_store(desk)
    assert recover(desk.lading) == []
    told = fates(recover(desk.lading, [f"s3://{bucket}/orders"], keys))
    assert told == {"table shop.orders": "recovered", "job j": "recovered"}
    desk.sql("USE shop; RESUME JOB WHERE jobName='j'")
    desk.put_orders("b.csv", 10, 10)
    desk.run()
    assert desk.ids() == list(range(20))
    # One that was made before there were cards.
    open_store(f"s3://{bucket}/orders", desk.lading.catalog.storage_options("shop", "orders")).delete([KEY])
    lose_store(desk)
    (nameless,) = recover(desk.lading, [f"s3://{bucket}/orders"], keys)
    assert f"database.table=s3://{bucket}/orders" in nameless.note
    told = fates(recover(desk.lading, [f"shop.orders=s3://{bucket}/orders/"], keys))
    assert told == {"table shop.orders": "recovered", "job j": "recovered"}


def test_a_routine_load_goes_on_too(desk: Desk, broker: KafkaBroker) -> None:
    generator = KafkaGenerator(broker, "recover", partitions=2)
    generator.put(50)
    desk.sql("CREATE TABLE clicks (k STRING, n BIGINT) USING delta")
    desk.sql(
        'CREATE ROUTINE LOAD r ON clicks PROPERTIES("format"="json", "max_error_number"="7") '
        f'FROM KAFKA("kafka_broker_list"="{broker.bootstrap}", "kafka_topic"="recover", '
        '"property.kafka_default_offsets"="OFFSET_BEGINNING")'
    )
    desk.run()
    generator.put(50)
    lose_store(desk)
    assert fates(recover(desk.lading)) == {"table shop.clicks": "recovered", "job shop.r": "recovered"}
    desk.sql("USE shop; RESUME ROUTINE LOAD FOR r")
    desk.run()
    rows = desk.lading.catalog.open_table("shop", "clicks").scan().to_pylist()
    assert sorted((row["k"], row["n"]) for row in rows) == sorted(
        (key, number) for key, count in generator.sent.items() for number in range(count)
    )
    window = desk.lading.any_job("shop.r").window
    assert window is not None
    assert window.max_errors == 7


def test_a_run_that_was_cut_off_is_run_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.table()
    desk.create(properties='"s3.max_batch_files"="1"')
    for number in range(3):
        desk.put_orders(f"{number}.csv", number * 5, 5)
    desk.run()
    lose_store(desk)
    follow, followed = desk.lading.store.follow, list[int]()

    def die_after_two(bill: Bill) -> None:
        if len(followed) == 2:
            raise KeyboardInterrupt
        followed.append(bill.seq)
        follow(bill)

    monkeypatch.setattr(desk.lading.store, "follow", die_after_two)
    with pytest.raises(KeyboardInterrupt):
        recover(desk.lading)
    monkeypatch.undo()
    assert fates(recover(desk.lading)) == {"table shop.orders": "known", "job j": "recovered"}
    desk.sql("USE shop; RESUME JOB WHERE jobName='j'")
    desk.put_orders("9.csv", 15, 5)
    desk.run()
    assert desk.ids() == list(range(20))
    seqs = [entry.seq for entry in desk.lading.store.list_bills(desk.lading.job("j").job_id)]
    assert seqs == list(range(seqs[0], -1, -1))


def test_a_job_whose_state_is_gone_says_so_before_it_is_resumed(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id BIGINT, at DATETIME) USING delta")
    desk.sql(
        "CREATE JOB j PROPERTIES('watermark.column'='at', 'dedup.keys'='id') ON STREAMING DO INSERT INTO t "
        f'SELECT id, at FROM FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    desk.put("a.csv", ["1,2026-01-01 12:00:00"], header="id,at")
    desk.run()
    lose_store(desk)
    assert "Its state is gone" not in " ".join(found.note for found in recover(desk.lading, dry_run=True))
    for path in Path(desk.lading.home.warehouse).rglob("state/*"):
        path.write_bytes(b"cut")
    assert "is missing or damaged" in " ".join(found.note for found in recover(desk.lading, dry_run=True))
    for path in Path(desk.lading.home.warehouse).rglob("state/*"):  # As the daily round does after DROP JOB.
        path.unlink()
    told = next(found.note for found in recover(desk.lading) if found.what == "job")
    desk.sql("USE shop")
    for text in (told, desk.show("ErrorMsg")):
        assert re.search(r"Its state is gone \(_lading/.* is missing or damaged\).*COMMIT 17.*RESET", text), text
    desk.sql("ALTER JOB j PROPERTIES('state'='RESET'); RESUME JOB WHERE jobName='j'")
    desk.put("b.csv", ["1,2026-01-01 12:00:00", "2,2026-01-01 12:00:01"], header="id,at")
    desk.run()
    assert desk.ids("t") == [1, 1, 2]
    assert desk.show("ErrorMsg") == ""

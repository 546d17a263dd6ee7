"""The index of bills, names, audit, settings."""

from __future__ import annotations

import pytest

from lading.commit.protocols import Follower
from lading.errors import ConflictError, NotFoundError, TableNotFoundError
from lading.ids import JobId
from lading.model.table import Column, PartitionField, TableSpec
from lading.store.protocols import MetadataStore
from lading.store.records import AuditEntry, DatabaseEntry, TableEntry, entry_of
from lading.store.store import Store
from tests.jobs.story import START
from tests.model.samples import FULL_BILL
from tests.store.samples import HARD_TEXT, bill, job

JOB_ID = FULL_BILL.job_id


def test_the_store_is_what_the_rest_of_lading_asks_for(store: Store) -> None:
    follower: Follower = store
    everything: MetadataStore = store
    assert follower is everything


def test_a_bill_is_followed_once(store: Store) -> None:
    assert store.followed_seq(JOB_ID) is None
    for seq in (0, 1, 2, 2, 1, 5, 3):
        store.follow(bill(seq))
    assert store.followed_seq(JOB_ID) == 5
    assert store.list_bills(JOB_ID) == [entry_of(bill(seq)) for seq in (5, 2, 1, 0)]
    assert store.list_bills(JOB_ID)[0].head == bill(5).head


def test_jobs_are_followed_apart_from_each_other(store: Store) -> None:
    other = JobId("other")
    store.follow(bill(7))
    assert store.followed_seq(other) is None
    store.follow(bill(1, other))
    assert (store.followed_seq(JOB_ID), store.followed_seq(other)) == (7, 1)
    assert store.read_totals() == {JOB_ID: FULL_BILL.totals, other: FULL_BILL.totals}


def test_the_index_is_read_in_pages_and_trimmed(store: Store) -> None:
    for seq in range(10):
        store.follow(bill(seq))
    assert [entry.seq for entry in store.list_bills(JOB_ID, limit=3)] == [9, 8, 7]
    assert [entry.seq for entry in store.list_bills(JOB_ID, limit=3, before_seq=7)] == [6, 5, 4]
    assert store.trim_bills(JOB_ID, keep=4) == 6
    assert [entry.seq for entry in store.list_bills(JOB_ID)] == [9, 8, 7, 6]
    assert store.trim_bills(JOB_ID, keep=0) == 3
    assert store.followed_seq(JOB_ID) == 9
    assert store.trim_bills(JobId("nobody"), keep=1) == 0


def table(name: str = "orders", database: str = "sales") -> TableEntry:
    spec = TableSpec(
        columns=(Column(name="id", type="bigint", nullable=False),),
        partition_by=(PartitionField(column="id", transform="bucket[4]"),),
        properties={"a": HARD_TEXT},
    )
    return TableEntry(
        database=database,
        name=name,
        format="iceberg",
        location="s3://shop/orders",
        catalog="main",
        spec=spec,
        created_at=START,
    )


def test_databases_and_tables_have_names(store: Store) -> None:
    sales = DatabaseEntry(name="sales", comment=HARD_TEXT, created_at=START)
    with pytest.raises(NotFoundError):
        store.create_table(table())
    store.create_database(sales)
    store.create_database(DatabaseEntry(name="other", created_at=START))
    with pytest.raises(ConflictError):
        store.create_database(sales)
    assert [entry.name for entry in store.list_databases()] == ["other", "sales"]
    store.create_table(table())
    with pytest.raises(ConflictError):
        store.create_table(table())
    store.create_table(table(database="other"))
    assert store.find_table("sales", "orders") == table()
    assert store.find_table("sales", "nothing") is None
    assert store.list_tables("sales") == [table()]
    assert len(store.list_tables()) == 2


def test_a_table_can_be_forgotten(store: Store) -> None:
    store.create_database(DatabaseEntry(name="sales", created_at=START))
    store.create_table(table())
    store.drop_table("sales", "orders")
    with pytest.raises(TableNotFoundError):
        store.drop_table("sales", "orders")
    assert store.find_table("sales", "orders") is None


def test_a_database_is_dropped_only_when_nothing_needs_it(store: Store) -> None:
    store.create_database(DatabaseEntry(name="sales", created_at=START))
    store.create_table(table())
    with pytest.raises(ConflictError, match="table orders"):
        store.drop_database("sales")
    store.drop_table("sales", "orders")
    store.create_job(job("clicks"))
    with pytest.raises(ConflictError, match="job clicks"):
        store.drop_database("sales")
    with pytest.raises(NotFoundError):
        store.drop_database("nothing")
    store.create_database(DatabaseEntry(name="empty", created_at=START))
    store.drop_database("empty")
    assert [entry.name for entry in store.list_databases()] == ["sales"]


def test_the_audit_is_read_newest_first(store: Store) -> None:
    entries = [
        AuditEntry(at=START, user=HARD_TEXT, action="CREATE", job_id=JOB_ID, subject="orders", statement="CREATE …"),
        AuditEntry(at=START, user="bob", action="DROP", facts={"because": HARD_TEXT}),
    ]
    for number, entry in enumerate(entries):
        store.create_job(job(f"orders{number}"), audit=entry)
    assert store.list_audit() == entries[::-1]
    assert store.list_audit(limit=1) == [entries[1]]
    assert store.list_audit(job_id=JOB_ID) == [entries[0]]


def test_settings_are_small_values_by_key(store: Store) -> None:
    assert store.read_setting("made by") is None
    store.write_setting("made by", "a")
    store.write_setting("made by", "")
    assert store.read_setting("made by") == ""

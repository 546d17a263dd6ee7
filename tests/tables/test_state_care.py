"""Files of state and of bad rows go when no bill needs them, and never before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lading.ids import JobId, Token
from lading.model.batch import StateFile
from lading.model.bill import Bill, BillKind, Head
from lading.model.manifests import render_manifest
from lading.model.positions import Positions
from lading.model.state import StateManifest, StateRef, stamp_of
from lading.storage.local import LocalStore
from lading.storage.store import ObjectStore, open_store
from lading.tables.bills import StoredBills, bill_key, quarantine_folder, state_folder
from tests.model.samples import FULL_BILL
from tests.tables.s3_server import S3Server

JOB = JobId("00000000-0000-4000-8000-000000000001")
NOW = datetime(2026, 5, 1, tzinfo=UTC)


class Copies:
    """What a format keeps of the newest commit."""

    def __init__(self) -> None:
        self.newest: Bill | None = None

    def put(self, bill: Bill) -> None:
        self.newest = bill

    def read(self, job_id: JobId, head: Head) -> Bill | None:
        return self.newest if self.newest is not None and self.newest.head == head else None


def state_of(store: LocalStore, at: datetime, names: list[str]) -> StateRef:
    folder = state_folder(JOB)
    files = []
    for name in names:
        path = f"{folder}/{stamp_of(at)}-{name}.parquet"
        store.put_if_absent(path, b"rows")
        files.append(StateFile(path=path, rows=1, size_bytes=4, digest="", buckets=1, min_us=0, max_us=0))
    manifest = f"{folder}/{stamp_of(at)}-{names[0]}.manifest.json"
    store.put_if_absent(manifest, render_manifest(StateManifest(files=tuple(files))))
    return StateRef(manifest=manifest, digest="", files=len(files), rows=1, size_bytes=4)


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_only_what_no_bill_names_goes_also_when_other_engines_have_removed_the_bills(
    tmp_path: Path, is_cleaned: bool
) -> None:
    store = LocalStore(tmp_path)
    bills = StoredBills(store, Copies())
    long_ago, lately = NOW - timedelta(days=9), NOW - timedelta(hours=1)
    newest = state_of(store, long_ago, [f"live{number}" for number in range(5)])
    for number in range(120):
        store.put_if_absent(f"{state_folder(JOB)}/{stamp_of(long_ago)}-orphan{number}.parquet", b"rows")
    young = f"{state_folder(JOB)}/{stamp_of(lately)}-somebody-is-about-to-commit-it.parquet"
    store.put_if_absent(young, b"rows")
    bill = replace(
        FULL_BILL,
        job_id=JOB,
        kind=BillKind.EDIT,
        accepts_rollback=True,
        positions=Positions(),
        ranges=(),
        files=(),
        tally=replace(FULL_BILL.totals - FULL_BILL.totals),
        state=newest,
        token=Token(7),
    )
    bills.put(bill)
    if is_cleaned:
        store.delete([bill_key(JOB, bill.head)])
    bills.prune(JOB, head=bill.head, keep_commits=1, older_than=NOW - timedelta(days=1))
    left = set(store.keys(f"{state_folder(JOB)}/"))
    assert len(left) == 7  # Five files, their manifest, and the young one.
    assert {young, newest.manifest} <= left


def billed(bills: StoredBills, store: ObjectStore, seq: int, at: datetime, more: str) -> tuple[Bill, str]:
    """A bill with bad rows of its own beside the table, and one that says to delete something else as well."""
    key = f"{quarantine_folder(JOB)}/{seq}-0.jsonl"
    store.put(key, b"{}")
    before = Head(seq=seq - 1, token=Token(seq - 1))
    bill = replace(
        FULL_BILL,
        job_id=JOB,
        seq=seq,
        token=Token(seq),
        replaces=before,
        continues=before,
        billed_at=at,
        quarantine=(f"{store.uri}/{key}", more),
        replayed_through=0,
        state=None,
    )
    bills.put(bill)
    return bill, key


@pytest.mark.parametrize("place", ["disk", "bucket"])
def test_bad_rows_beside_the_table_go_with_their_bill_and_nothing_else_does(
    tmp_path: Path, s3: S3Server, place: str
) -> None:
    store: ObjectStore = LocalStore(tmp_path)
    if place == "bucket":
        store = open_store(f"s3://{s3.make_bucket()}", s3.options)
    bills, kept = StoredBills(store, Copies()), ("data.parquet", f"{quarantine_folder(JOB)}/of-an-attempt.jsonl")
    for key in kept:
        store.put(key, b"rows")
    strange = f"{store.uri}/{quarantine_folder(JOB)}/../../../data.parquet"
    made = [billed(bills, store, seq, NOW - timedelta(days=9 - seq), strange) for seq in range(1, 8)]
    newest = made[-1][0].head
    assert bills.prune(JOB, head=newest, keep_commits=2, older_than=NOW - timedelta(days=4, hours=1)) == 3
    left = {key for _, key in made if store.get(key) is not None}
    assert left == {key for _, key in made[3:]}
    assert [store.get(key) for key in kept] == [b"rows", b"rows"]


def test_very_many_bills_are_pruned_in_several_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job waits for it: there may be 200,000 beside a table whose owner expired its snapshots for the first time."""
    monkeypatch.setattr("lading.tables.bills._MOST_PRUNED", 3)
    store = LocalStore(tmp_path)
    bills = StoredBills(store, Copies())
    made = [billed(bills, store, seq, NOW - timedelta(days=20 - seq), "")[0].head for seq in range(1, 10)]
    rounds = [bills.prune(JOB, head=made[-1], keep_commits=1, older_than=NOW) for _ in range(5)]
    assert rounds == [2, 2, 2, 1, 0]
    assert bills.heads(JOB) == made[7:]

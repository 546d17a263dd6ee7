"""Files of state go when no bill needs them, and never before."""

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
from lading.tables.bills import StoredBills, bill_key, state_folder
from tests.model.samples import FULL_BILL

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

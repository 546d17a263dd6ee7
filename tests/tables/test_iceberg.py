"""What is Iceberg's own in the commit: the property, the snapshot, the catalog's database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import RemoveSnapshotRefUpdate

from lading.errors import RolledBackError
from lading.ids import JobId
from lading.model.bill import Bill
from lading.model.job import Job
from lading.model.outcome import Landed, NotLanded, Unknown
from lading.model.table import TableSpec
from lading.tables.iceberg.append import prepare_append
from lading.tables.iceberg.commit import MAX_ATTEMPTS, Conflict, send
from lading.tables.iceberg.heads import head_property
from lading.tables.iceberg.postgres import CatalogSpec
from lading.tables.iceberg.table import IcebergTable, open_iceberg_table
from tests.tables.drive import SPEC, load, new_job, opening, put_and_commit, some_rows, takeover
from tests.tables.rig_iceberg import IcebergRig, iceberg_local


@pytest.fixture
def rig(tmp_path: Path) -> IcebergRig:
    return iceberg_local(tmp_path, None)


def opened(rig: IcebergRig, spec: TableSpec = SPEC) -> tuple[IcebergTable, Job, Bill]:
    table, job = rig.create("clicks", spec), new_job()
    bill = opening(job)
    assert isinstance(put_and_commit(table, bill), Landed)
    return table, job, bill


def loaded(rig: IcebergRig, table: IcebergTable, job: Job, base: Bill, count: int = 1) -> Bill:
    for number in range(count):
        base = load(job, base, rig.stage(table, some_rows(number * 10, 2), "a"))
        assert isinstance(put_and_commit(table, base), Landed)
    return base


@dataclass(slots=True, kw_only=True)
class Waiting:
    """A clock that does something instead of waiting."""

    instead: Callable[[], None]
    waits: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic_s(self) -> float:
        return 0.0

    def passed_s(self) -> float:
        return 0.0

    def sleep(self, delay_s: float) -> None:
        self.waits.append(delay_s)
        self.instead()


def test_the_property_names_the_snapshot_that_was_committed_with_it(rig: IcebergRig) -> None:
    table, job, bill = opened(rig)
    metadata = rig.stranger("clicks").metadata
    current = metadata.current_snapshot()
    assert current is not None
    assert json.loads(metadata.properties[head_property(job.job_id)]) == {
        "v": 1,
        "seq": 0,
        "token": bill.token,
        "snapshot": current.snapshot_id,
        "sequence": 1,
        "location": table.location,
    }
    assert current.summary is not None
    assert current.summary.additional_properties["lading.bill"] == bill.head.bill_name
    assert table.version() == 0  # What was last seen, before the commit.


def test_a_batch_that_was_already_prepared_cannot_be_sent_after_a_commit_without_files(rig: IcebergRig) -> None:
    table, job, first = opened(rig)
    base = table.handle.load()
    prepared = prepare_append(base, table.location, rig.stage(table, some_rows(0, 3), "a"), load(job, first, ()))
    fence = takeover(job, first)
    assert isinstance(put_and_commit(rig.reopen("clicks"), fence), Landed)
    assert isinstance(send(base, prepared), Conflict)
    assert table.read_head(job.job_id) == fence.head
    assert rig.rows(table) == []


def test_of_two_first_commits_into_an_empty_table_one_is_refused(rig: IcebergRig) -> None:
    table, one, two = rig.create("clicks", SPEC), new_job(), new_job()
    base = table.handle.load()
    prepared = prepare_append(base, table.location, (), opening(one))
    assert isinstance(put_and_commit(rig.reopen("clicks"), opening(two)), Landed)
    assert isinstance(send(base, prepared), Conflict)
    assert table.read_head(one.job_id) is None


def test_settings_of_a_commit_do_not_leak_into_the_table(rig: IcebergRig) -> None:
    table, job, first = opened(rig)
    before = dict(rig.stranger("clicks").metadata.properties)
    loaded(rig, table, job, first)
    after = dict(rig.stranger("clicks").metadata.properties)
    moved = {head_property(job.job_id), f"lading.resume.{job.job_id}"}
    assert {key for key in after if after[key] != before.get(key)} == moved
    assert set(after) == moved | {
        "write.metadata.delete-after-commit.enabled",
        "write.metadata.previous-versions-max",
    }


def test_what_the_user_says_at_creation_wins(rig: IcebergRig) -> None:
    said = {"write.metadata.previous-versions-max": "7", "write.metadata.delete-after-commit.enabled": "false"}
    rig.create("clicks", replace(SPEC, properties=said))
    assert dict(rig.stranger("clicks").metadata.properties) == said


def test_a_table_that_forbids_merging_is_obeyed(rig: IcebergRig) -> None:
    never = replace(SPEC, properties={"commit.manifest-merge.enabled": "false"})
    often = replace(SPEC, properties={"commit.manifest.min-count-to-merge": "3"})
    manifests = []
    for name, spec in (("never", never), ("often", often)):
        table, job = rig.create(name, spec), new_job()
        bill = opening(job)
        assert isinstance(put_and_commit(table, bill), Landed)
        loaded(rig, table, job, bill, 8)
        found = rig.stranger(name)
        current = found.current_snapshot()
        assert current is not None
        manifests.append(len(current.manifests(found.io)))
        assert len(rig.rows(table)) == 16
    assert manifests[0] == 8
    assert manifests[1] < 5


def test_a_commit_behind_an_unrelated_writer_tries_again_and_leaves_no_manifests_behind(rig: IcebergRig) -> None:
    table, job, first = opened(rig)
    bill = load(job, first, rig.stage(table, some_rows(0, 3), "a"))
    clock = Waiting(instead=lambda: None)
    slow = open_iceberg_table(rig.catalog, "lake.clicks", clock=clock)
    base = slow.handle.catalog.load_table

    def overtaken(identifier: str) -> object:
        found = base(identifier)
        del slow.handle.catalog.load_table
        rig.append_unrelated("clicks", some_rows(100, 1))
        return found

    slow.handle.catalog.load_table = overtaken  # type: ignore[method-assign, assignment]
    assert isinstance(put_and_commit(slow, bill), Landed)
    assert len(clock.waits) == 1
    assert sorted(row["id"] for row in rig.rows(table)) == [0, 1, 2, 100]
    assert stray_manifests(rig) == set()


def test_a_commit_to_another_branch_in_between_is_stepped_behind(rig: IcebergRig) -> None:
    table, job, first = opened(rig)
    stranger = rig.stranger("clicks")
    current = stranger.metadata.current_snapshot_id
    assert current is not None
    stranger.manage_snapshots().create_branch(current, "side").commit()
    base = table.handle.load()
    prepared = prepare_append(base, table.location, (), takeover(job, first))
    rig.stranger("clicks").append(some_rows(100, 1), branch="side")
    assert isinstance(send(base, prepared), Conflict)
    assert isinstance(put_and_commit(table, takeover(job, first)), Landed)


def test_a_commit_gives_up_after_a_bounded_number_of_conflicts(rig: IcebergRig) -> None:
    table, job, first = opened(rig)
    clock = Waiting(instead=lambda: None)
    unlucky = open_iceberg_table(rig.catalog, "lake.clicks", clock=clock)

    def refuse(*_: object) -> None:
        msg = "always somebody faster"
        raise CommitFailedException(msg)

    unlucky.handle.catalog.commit_table = refuse  # type: ignore[method-assign, assignment]
    outcome = put_and_commit(unlucky, takeover(job, first))
    assert isinstance(outcome, NotLanded)
    assert "somebody faster" in outcome.why
    assert len(clock.waits) == MAX_ATTEMPTS - 1
    assert max(clock.waits) <= 0.25
    assert table.read_head(job.job_id) == first.head
    assert stray_manifests(rig) == set()


def stray_manifests(rig: IcebergRig) -> set[str]:
    """Manifests and manifest lists in the folder that no snapshot names."""
    table = rig.stranger("clicks")
    named: set[str] = set()
    for snapshot in table.metadata.snapshots:
        named |= {snapshot.manifest_list, *(manifest.manifest_path for manifest in snapshot.manifests(table.io))}
    folder = Path(table.location().removeprefix("file://")) / "metadata"
    return {str(path) for path in folder.glob("*.avro")} - {path.removeprefix("file://") for path in named}


def impatient(rig: IcebergRig, clock: Waiting) -> IcebergTable:
    """A handle whose SQLite does not wait for locks."""
    properties = dict(rig.catalog.properties)
    properties["uri"] = properties["uri"].replace("timeout=60", "timeout=0")
    return open_iceberg_table(CatalogSpec(name=rig.catalog.name, properties=properties), "lake.clicks", clock=clock)


def blocker(tmp_path: Path) -> sqlite3.Connection:
    return sqlite3.connect(tmp_path / "home" / "catalog.db", isolation_level=None, timeout=0)


def test_a_locked_database_is_waited_for(rig: IcebergRig, tmp_path: Path) -> None:
    _, job, first = opened(rig)
    other = blocker(tmp_path)
    other.execute("BEGIN IMMEDIATE")
    clock = Waiting(instead=other.rollback)
    table = impatient(rig, clock)
    bill = takeover(job, first)
    assert isinstance(put_and_commit(table, bill), Landed)
    assert len(clock.waits) == 1
    assert table.read_head(job.job_id) == bill.head
    other.close()


def test_an_error_of_the_database_commit_itself_leaves_the_outcome_open(rig: IcebergRig, tmp_path: Path) -> None:
    _, job, first = opened(rig)
    other = blocker(tmp_path)
    table = impatient(rig, Waiting(instead=lambda: None))
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM iceberg_tables").fetchone()
    bill = takeover(job, first)
    # The reader's lock lets the statement through and stops the COMMIT.
    assert isinstance(put_and_commit(table, bill), Unknown)
    # Asked through the same connections, which must not show what was never committed.
    assert not table.find(job.job_id, bill.token)
    assert table.read_head(job.job_id) == first.head
    other.close()
    assert isinstance(put_and_commit(table, bill), Landed)
    assert table.read_head(job.job_id) == bill.head


def test_a_rollback_is_seen_also_after_others_appended_to_the_restored_table(rig: IcebergRig) -> None:
    table, job, first = opened(rig)
    loaded(rig, table, job, first, 3)
    rig.restore_older("clicks", 2)
    rig.append_unrelated("clicks", some_rows(100, 1))
    with pytest.raises(RolledBackError, match="is no ancestor"):
        table.read_head(job.job_id)


def test_a_table_emptied_of_its_main_branch_is_a_rollback(rig: IcebergRig) -> None:
    table, job, _ = opened(rig)
    stranger = rig.stranger("clicks")
    stranger.catalog.commit_table(stranger, (), (RemoveSnapshotRefUpdate.model_validate({"ref-name": "main"}),))
    with pytest.raises(RolledBackError):
        table.read_head(job.job_id)
    assert table.read_head_unchecked(job.job_id) is not None


def test_expiry_of_the_head_by_others_is_no_rollback(rig: IcebergRig) -> None:
    table, job, first = opened(rig)
    bill = loaded(rig, table, job, first, 3)
    rig.append_unrelated("clicks", some_rows(100, 1))
    rig.others_maintain("clicks")
    assert table.read_head(job.job_id) == bill.head
    assert len(rig.versions("clicks")) == 1


def test_a_rollback_that_another_job_accepted_is_still_seen_by_this_one(rig: IcebergRig) -> None:
    table, idle, first = opened(rig)
    busy = new_job("busy")
    base = opening(busy)
    assert isinstance(put_and_commit(table, base), Landed)
    bill = loaded(rig, table, idle, first, 1)
    rig.restore_older("clicks", 1)
    loaded(rig, table, busy, base, 2)
    with pytest.raises(RolledBackError):
        table.read_head(idle.job_id)
    assert table.find(idle.job_id, bill.token)


def test_a_token_is_found_in_the_bills_when_its_snapshot_has_expired(rig: IcebergRig) -> None:
    table, job, first = opened(rig)
    loaded(rig, table, job, first, 3)
    rig.others_maintain("clicks")
    assert table.find(job.job_id, first.token)
    assert not table.find(JobId("another"), first.token)

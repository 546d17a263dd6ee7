"""Following and extending the log of a Delta table while others do the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import deltalake
import pytest

from lading.errors import RolledBackError, SchemaMismatchError, StorageError, UnknownOutcomeError
from lading.model.bill import Bill
from lading.model.job import Job
from lading.model.outcome import Landed, NotLanded, Unknown
from lading.model.s3_access import S3Access
from lading.storage.store import open_store
from lading.tables.bills import bill_key
from lading.tables.delta.actions import LOG, entry_key
from lading.tables.delta.create import create_delta_table
from lading.tables.delta.maintenance import LogRules, look_after_log
from lading.tables.delta.table import MAX_REBASES, DeltaLakeTable
from lading.tables.maintenance import CarePolicy
from tests.tables.drive import SPEC, ids, load, new_job, opening, put_and_commit, some_rows, takeover
from tests.tables.faulty_storage import FaultyStorage
from tests.tables.rig_delta import DeltaRig, delta_local

HINT = f"{LOG}/_last_checkpoint"


class Scene:
    """A table with one open job, whose storage a test can interfere with."""

    def __init__(self, root: Path) -> None:
        self.rig: DeltaRig = delta_local(root, None)
        self.path = root / "lake" / "clicks"
        create_delta_table(str(self.path), SPEC)
        self.storage = FaultyStorage(open_store(str(self.path)))
        self.table = DeltaLakeTable(self.storage, S3Access())
        self.job: Job = new_job()
        self.first: Bill = opening(self.job)
        assert isinstance(put_and_commit(self.table, self.first), Landed)

    def prepared(self) -> Bill:
        """A batch of three rows, staged and billed."""
        bill = load(self.job, self.first, self.rig.stage(self.table, some_rows(0, 3), "a"))
        self.table.bills.put(bill)
        return bill

    def at_the_next_put(self, action: Callable[[], None]) -> None:
        """Somebody does this after our look at the log and before our put."""

        def once(_key: str) -> None:
            self.storage.before_put = lambda _key: None
            action()

        self.storage.under, self.storage.before_put = f"{LOG}/", once


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_stranger_who_is_faster_at_the_last_moment_is_stepped_behind(scene: Scene) -> None:
    bill = scene.prepared()
    scene.at_the_next_put(lambda: scene.rig.append_unrelated("clicks", some_rows(100, 1)))
    assert scene.table.commit(bill.replaces, bill.files, bill) == Landed(version=3)
    assert ids(scene.rig, scene.table) == [0, 1, 2, 100]


def test_another_incarnation_that_is_faster_at_the_last_moment_wins(scene: Scene) -> None:
    bill, theirs = scene.prepared(), takeover(scene.job, scene.first)
    other = scene.rig.reopen("clicks")
    scene.at_the_next_put(lambda: assert_landed(other.commit(theirs.replaces, (), theirs)))
    other.bills.put(theirs)
    assert isinstance(scene.table.commit(bill.replaces, bill.files, bill), NotLanded)
    assert scene.table.read_head(scene.job.job_id) == theirs.head


def test_a_schema_changed_at_the_last_moment_is_looked_at_again(scene: Scene) -> None:
    bill = scene.prepared()
    scene.at_the_next_put(lambda: scene.rig.change_schema("clicks"))
    with pytest.raises(SchemaMismatchError):
        scene.table.commit(bill.replaces, bill.files, bill)
    assert scene.table.read_head(scene.job.job_id) == scene.first.head


def test_a_restore_at_the_last_moment_is_noticed(scene: Scene) -> None:
    bill = scene.prepared()
    scene.at_the_next_put(lambda: scene.rig.restore_older("clicks", 1))
    with pytest.raises(RolledBackError):
        scene.table.commit(bill.replaces, bill.files, bill)


def test_stepping_behind_others_ends_some_time(scene: Scene) -> None:
    bill = scene.prepared()

    def always_faster(key: str) -> None:
        (scene.path / key).write_text(json.dumps({"commitInfo": {"operation": "WRITE"}}))

    scene.storage.under, scene.storage.before_put = f"{LOG}/", always_faster
    outcome = scene.table.commit(bill.replaces, bill.files, bill)
    assert isinstance(outcome, NotLanded)
    assert scene.table.version() == 1 + MAX_REBASES


def clean_log(scene: Scene) -> None:
    """A stranger commits, makes a checkpoint, and log cleanup removes every entry below it."""
    for number in range(3):
        scene.rig.append_unrelated("clicks", some_rows(100 + number, 1))
    stranger = scene.rig.stranger("clicks")
    stranger.create_checkpoint()
    for version in range(stranger.version()):
        (scene.path / entry_key(version)).unlink(missing_ok=True)


def test_an_entry_put_below_a_checkpoint_did_not_land(scene: Scene) -> None:
    bill = scene.prepared()
    scene.at_the_next_put(lambda: clean_log(scene))
    assert isinstance(scene.table.commit(bill.replaces, bill.files, bill), NotLanded)
    assert scene.table.read_head(scene.job.job_id) == scene.first.head
    assert not scene.table.find(scene.job.job_id, bill.token)
    assert ids(scene.rig, scene.table) == [100, 101, 102]


def test_an_entry_put_below_a_checkpoint_is_not_taken_for_history(scene: Scene) -> None:
    bill, theirs = scene.prepared(), takeover(scene.job, scene.first)

    def take_over_and_clean() -> None:
        assert_landed(put_and_commit(scene.rig.reopen("clicks"), theirs))
        clean_log(scene)

    scene.at_the_next_put(take_over_and_clean)
    assert isinstance(scene.table.commit(bill.replaces, bill.files, bill), Unknown)
    assert scene.table.read_head(scene.job.job_id) == theirs.head
    assert not scene.table.find(scene.job.job_id, bill.token)


def test_entries_removed_by_log_cleanup_are_not_taken_for_nothing_new(scene: Scene) -> None:
    theirs = takeover(scene.job, scene.first)
    assert_landed(put_and_commit(scene.rig.reopen("clicks"), theirs))
    clean_log(scene)
    assert scene.table.read_head(scene.job.job_id) == theirs.head
    bill = takeover(scene.job, theirs)
    assert_landed(put_and_commit(scene.table, bill))
    assert scene.rig.reopen("clicks").read_head(scene.job.job_id) == bill.head


def test_a_commit_whose_confirmation_fails_is_unknown_and_can_be_found(scene: Scene) -> None:
    bill = scene.prepared()

    def fail(key: str) -> None:
        if key == HINT and (scene.path / entry_key(2)).exists():
            raise StorageError("The store is gone", unknown=False)

    scene.storage.before_get = fail
    assert isinstance(scene.table.commit(bill.replaces, bill.files, bill), Unknown)
    scene.storage.before_get = lambda _key: None
    assert scene.table.find(scene.job.job_id, bill.token)
    assert_landed(scene.table.commit(bill.replaces, bill.files, bill))
    assert ids(scene.rig, scene.table) == [0, 1, 2]


def test_a_look_that_fails_after_a_lost_race_is_unknown(scene: Scene) -> None:
    bill = scene.prepared()

    def fail(_key: str) -> None:
        raise StorageError("The store is gone", unknown=False)

    def race_then_fail() -> None:
        scene.rig.append_unrelated("clicks", some_rows(100, 1))
        scene.storage.before_get = fail

    scene.at_the_next_put(race_then_fail)
    assert isinstance(scene.table.commit(bill.replaces, bill.files, bill), Unknown)


def test_a_table_put_back_by_copying_files_is_seen_as_it_is(scene: Scene) -> None:
    copy = scene.path.with_name("copy")
    shutil.copytree(scene.path, copy)
    bill = scene.prepared()
    assert_landed(scene.table.commit(bill.replaces, bill.files, bill))
    shutil.rmtree(scene.path)
    copy.rename(scene.path)
    assert scene.table.read_head(scene.job.job_id) == scene.first.head


def test_a_table_made_again_in_the_same_place_has_no_head(scene: Scene) -> None:
    bill = scene.prepared()
    shutil.rmtree(scene.path)
    create_delta_table(str(scene.path), SPEC)
    assert scene.table.read_head(scene.job.job_id) is None
    assert isinstance(scene.table.commit(bill.replaces, (), bill), NotLanded)
    assert scene.rig.versions("clicks") == [0]


def test_restoring_a_version_that_has_the_rows_is_no_rollback(scene: Scene) -> None:
    scene.rig.append_unrelated("clicks", some_rows(100, 1))
    scene.rig.append_unrelated("clicks", some_rows(101, 1))
    scene.rig.restore_older("clicks", 1)
    for handle in (scene.table, scene.rig.reopen("clicks")):
        assert handle.read_head(scene.job.job_id) == scene.first.head


def test_a_rollback_that_was_taken_back_is_none(scene: Scene) -> None:
    bill = scene.prepared()
    assert_landed(scene.table.commit(bill.replaces, bill.files, bill))
    scene.rig.restore_older("clicks", 1)
    with pytest.raises(RolledBackError):
        scene.table.read_head(scene.job.job_id)
    scene.rig.restore_older("clicks", 1)
    for handle in (scene.table, scene.rig.reopen("clicks")):
        assert handle.read_head(scene.job.job_id) == bill.head
        assert ids(scene.rig, handle) == [0, 1, 2]


def test_a_commit_costs_the_same_requests_however_long_the_log_is(scene: Scene) -> None:
    costs, bill = [], scene.first
    for _ in range(40):
        bill = takeover(scene.job, bill)
        before = scene.storage.requests
        assert_landed(put_and_commit(scene.table, bill))
        assert scene.table.read_head(scene.job.job_id) == bill.head
        costs.append(scene.storage.requests - before)
    assert len(set(costs)) == 1
    assert costs[0] <= 10


def test_the_library_understands_what_was_committed(scene: Scene) -> None:
    bill = scene.prepared()
    assert_landed(scene.table.commit(bill.replaces, bill.files, bill))
    stranger = scene.rig.stranger("clicks")
    newest = stranger.history(1)[0]
    assert newest["operation"] == "WRITE"
    assert newest["lading.job"] == scene.job.job_id
    assert newest["lading.bill"] == bill_key(scene.job.job_id, bill.head)
    assert stranger.count() == 3
    assert stranger.transaction_version(f"lading/{scene.job.job_id}/token") == bill.token
    assert sorted(scene.table.files()) == sorted(file.path for file in bill.files)


def test_whether_a_commit_landed_is_not_guessed_when_its_bill_is_gone(scene: Scene) -> None:
    bill = scene.prepared()
    theirs = takeover(scene.job, scene.first)
    assert_landed(put_and_commit(scene.rig.reopen("clicks"), theirs))
    (scene.path / bill_key(scene.job.job_id, bill.head)).unlink()
    with pytest.raises(UnknownOutcomeError):
        scene.table.find(scene.job.job_id, bill.token)


def test_a_table_may_have_an_awkward_path(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "with space" / "größe 東京 it's")
    bill = scene.prepared()
    assert_landed(scene.table.commit(bill.replaces, bill.files, bill))
    scene.rig.append_unrelated("clicks", some_rows(100, 1))
    scene.rig.others_maintain("clicks")
    assert ids(scene.rig, scene.rig.reopen("clicks")) == [0, 1, 2, 100]


def test_care_does_not_clean_a_log_that_says_it_must_not_be(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    stranger = scene.rig.stranger("clicks")
    stranger.alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 0 seconds", "delta.enableExpiredLogCleanup": "false"}
    )
    before = scene.rig.versions("clicks")
    look_after_log(scene.storage, S3Access(), CarePolicy(), datetime(2100, 1, 1, tzinfo=UTC), LogRules())
    assert scene.rig.versions("clicks") == before
    assert deltalake.DeltaTable(str(scene.path)).version() == 2


def assert_landed(outcome: object) -> None:
    assert isinstance(outcome, Landed)

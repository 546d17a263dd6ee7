"""What attempts left that failed or were killed goes; nothing that anybody may still need does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.update import SetLocationUpdate

from lading.errors import RolledBackError, StorageError, TableError
from lading.model.batch import StateFile
from lading.model.bill import Bill
from lading.model.job import Job
from lading.model.manifests import render_manifest
from lading.model.outcome import Landed
from lading.model.state import StateManifest, StateRef
from lading.tables.base import LakeTable
from lading.tables.bills import bill_key, state_folder
from lading.tables.orphans import BILL, DATA, STATE, UPLOAD, find_orphans, remove_orphans
from tests.tables.drive import SPEC, driver, ids, load, new_job, opening, put_and_commit, some_rows
from tests.tables.rig import Rig, RigTable
from tests.tables.rig_iceberg import IcebergRig, iceberg_local
from tests.tables.s3_server import S3Server

ATTEMPT = "0123456789abcdef-7-1"
"""As tasks name their attempts."""
LIVES = 8


def opened(table: RigTable) -> Bill:
    first = opening(new_job())
    assert isinstance(put_and_commit(table, first), Landed)
    return first


def job_of(bill: Bill) -> Job:
    return Job(job_id=bill.job_id, name=bill.job_name)


def orphans(table: RigTable, older_than: datetime | None = None) -> dict[str, str]:
    """What is found, path → what it is; without a limit, as if everything were old."""
    limit = older_than or datetime.now(UTC) + timedelta(hours=1)
    return {each.path: each.what for each in find_orphans(cast("LakeTable", table), older_than=limit)}


def test_what_a_killed_attempt_left_goes_and_what_was_committed_stays(lake: Rig) -> None:
    table = lake.create("clicks", SPEC)
    first = opened(table)
    bill = load(job_of(first), first, lake.stage(table, some_rows(0, 3), ATTEMPT))
    assert isinstance(put_and_commit(table, bill), Landed)
    # One died before its bill, one between bill and commit; a later commit was faster than that.
    left = lake.stage(table, some_rows(0, 3), ATTEMPT)
    lost = load(job_of(first), first, lake.stage(table, some_rows(3, 3), ATTEMPT))
    table.bills.put(lost)
    young = datetime.now(UTC) - timedelta(hours=1)
    assert orphans(table, young).keys() <= {bill_key(lost.job_id, lost.head)}
    expected = {left[0].path: DATA, lost.files[0].path: DATA, bill_key(lost.job_id, lost.head): BILL}
    assert orphans(table) == expected
    found = find_orphans(cast("LakeTable", table), older_than=datetime.now(UTC) + timedelta(hours=1))
    remove_orphans(cast("LakeTable", table), found)
    assert orphans(table) == {}
    assert ids(lake, table) == [0, 1, 2]
    again = driver(lake, lake.reopen("clicks"), job_of(first))
    again.start()
    again.run_batch()
    assert ids(lake, table) == [*range(6)]


KILLED = """
import os, sys
import pyarrow.fs as pafs
path, *access = sys.argv[1:]
names = ("endpoint_override", "access_key", "secret_key", "region")
files = pafs.S3FileSystem(**dict(zip(names, access)), allow_bucket_creation=False)
sent = [files.open_output_stream(f"{path}/{name}") for name in sys.stdin.read().split()]
sent[0].write(bytes(12_000_000))
os._exit(9)
"""


def test_what_was_killed_while_it_was_sent_to_a_bucket_is_thrown_away(bucket_lake: Rig, s3: S3Server) -> None:
    """No listing of objects shows such a file, and its parts are paid for."""
    table = bucket_lake.create("clicks", SPEC)
    first = opened(table)
    bill = load(job_of(first), first, bucket_lake.stage(table, some_rows(0, 3), ATTEMPT))
    assert isinstance(put_and_commit(table, bill), Landed)
    storage, access = cast("LakeTable", table).bills.storage, s3.options
    own = {f"{ATTEMPT}-{'0' * 16}.parquet", f"{state_folder(first.job_id)}/part", "inner/_delta_log/0.json"}
    words = [storage.arrow()[1], access.endpoint, access.access_key, access.secret_key, access.region]
    sent = " ".join((*own, "of-somebody.parquet", f"inner/{ATTEMPT}-{'1' * 16}.parquet"))
    subprocess.run([sys.executable, "-c", KILLED, *words], input=sent, text=True, check=False, timeout=60)
    storage.put("inner/_delta_log/1.json", b"{}")
    assert len([*storage.uploads()]) == 5
    expected = {name: UPLOAD for name in own if "inner" not in name}
    assert orphans(table, datetime.now(UTC) - timedelta(minutes=30)) == {}
    assert orphans(table) == expected
    found = find_orphans(cast("LakeTable", table), older_than=datetime.now(UTC) + timedelta(hours=1))
    remove_orphans(cast("LakeTable", table), found)
    remove_orphans(cast("LakeTable", table), found)  # By two at once.
    assert orphans(table) == {}
    assert len([*storage.uploads()]) == 3
    assert ids(bucket_lake, table) == [0, 1, 2]


def test_a_commit_that_may_still_land_keeps_its_files(local_lake: Rig) -> None:
    table = local_lake.create("clicks", SPEC)
    first = opened(table)
    pending = load(job_of(first), first, local_lake.stage(table, some_rows(0, 3), ATTEMPT))
    table.bills.put(pending)  # The process is stopped here, and goes on after the clean-up.
    assert orphans(table) == {}
    assert isinstance(table.commit(pending.replaces, pending.files, pending), Landed)


def test_a_commit_of_a_job_that_only_another_branch_has_keeps_its_files(local_lake: Rig) -> None:
    """Its bills are beside the table, and its head is in a state that is not seen from here."""
    table = local_lake.create("clicks", SPEC)
    opened(table)
    elsewhere = opening(new_job())
    table.bills.put(elsewhere)
    table.bills.put(load(job_of(elsewhere), elsewhere, local_lake.stage(table, some_rows(0, 3), ATTEMPT)))
    assert orphans(table) == {}


def test_a_staged_file_that_is_gone_is_never_committed(local_lake: Rig) -> None:
    table = local_lake.create("clicks", SPEC)
    first = opened(table)
    staged = local_lake.stage(table, some_rows(0, 3), ATTEMPT)
    found = find_orphans(cast("LakeTable", table), older_than=datetime.now(UTC) + timedelta(hours=1))
    remove_orphans(cast("LakeTable", table), found)  # By somebody whose limit was too short.
    with pytest.raises(TableError, match="is gone"):
        put_and_commit(table, load(job_of(first), first, staged))
    assert ids(local_lake, table) == []


def test_files_of_older_states_stay_as_long_as_the_table_keeps_them(lake: Rig) -> None:
    table = lake.create("clicks", SPEC)
    bill = opened(table)
    for at in range(3):
        bill = load(job_of(bill), bill, lake.stage(table, some_rows(at, 1), ATTEMPT))
        assert isinstance(put_and_commit(table, bill), Landed)
    lake.restore_older("clicks", 1)
    with pytest.raises(RolledBackError):
        orphans(lake.reopen("clicks"))  # The newest file is in no current state, and somebody may go back to it.


def test_others_maintenance_leaves_no_live_file_among_them(lake: Rig) -> None:
    table = lake.create("clicks", SPEC)
    bill = opened(table)
    for at in range(3):
        bill = load(job_of(bill), bill, lake.stage(table, some_rows(at, 1), ATTEMPT))
        assert isinstance(put_and_commit(table, bill), Landed)
    lake.others_maintain("clicks")
    fresh = lake.reopen("clicks")
    found = find_orphans(cast("LakeTable", fresh), older_than=datetime.now(UTC) + timedelta(hours=1))
    remove_orphans(cast("LakeTable", fresh), found)
    assert ids(lake, lake.reopen("clicks")) == [0, 1, 2]


def test_a_table_inside_the_place_of_another_is_left_alone(local_lake: Rig) -> None:
    outer, inner = local_lake.create("clicks", SPEC), local_lake.create("clicks/inner", SPEC)
    opened(outer)
    first = opened(inner)
    bill = load(job_of(first), first, local_lake.stage(inner, some_rows(0, 3), ATTEMPT))
    assert isinstance(put_and_commit(inner, bill), Landed)
    left = local_lake.stage(inner, some_rows(0, 3), ATTEMPT)
    assert orphans(outer) == {}
    assert orphans(inner) == {left[0].path: DATA}


def test_files_that_lading_did_not_name_are_somebody_s(local_lake: Rig) -> None:
    table = local_lake.create("clicks", SPEC)
    first = opened(table)
    storage = cast("LakeTable", table).bills.storage
    storage.put_if_absent("notes/part-00000-0123456789abcdef.parquet", b"mine")
    storage.put_if_absent(f"_lading/{first.job_id}/notes.txt", b"mine")
    storage.put_if_absent(f"{state_folder(first.job_id)}/20200101T000000000000-a.parquet", b"of an attempt")
    assert orphans(table) == {f"{state_folder(first.job_id)}/20200101T000000000000-a.parquet": STATE}


def test_a_log_that_cannot_be_read_as_a_whole_keeps_everything(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.tables.rig_delta import delta_local

    rig = delta_local(tmp_path_factory.mktemp("lake"), None)
    table = rig.create("clicks", SPEC)
    bill = opened(table)
    for at in range(3):
        bill = load(job_of(bill), bill, rig.stage(table, some_rows(at, 1), ATTEMPT))
        put_and_commit(table, bill)
    storage = cast("LakeTable", table).bills.storage
    content = storage.get("_delta_log/00000000000000000002.json")
    assert content is not None
    storage.delete(["_delta_log/00000000000000000002.json"])
    with pytest.raises(TableError, match="entry 2 of its log is missing"):
        orphans(table)


def test_it_runs_beside_loads_and_kills(local_lake: Rig) -> None:
    table, job = local_lake.create("clicks", SPEC), new_job()
    ended, all_gone, wrong, gone = threading.Event(), threading.Event(), list[Exception](), set[str]()

    def clean() -> None:
        mine = cast("LakeTable", local_lake.reopen("clicks"))
        while not ended.is_set():
            try:
                found = find_orphans(mine, older_than=datetime.now(UTC) - timedelta(minutes=30))
                remove_orphans(mine, found)
                gone.update(each.path for each in found if each.what == DATA)
            except StorageError:
                continue  # A file was gone between a listing and a look: the next round.
            except Exception as error:  # noqa: BLE001 - told by the test
                wrong.append(error)
                all_gone.set()
                return
            if len(gone) == LIVES:
                all_gone.set()

    cleaner = threading.Thread(target=clean)
    cleaner.start()
    committed = 0
    for life in range(LIVES):
        mine = local_lake.reopen("clicks")
        loader = driver(local_lake, mine, job)
        loader.start()
        # What a life before it left, an hour ago.
        for file in local_lake.stage(mine, some_rows(0, 2), ATTEMPT):
            place = Path(cast("LakeTable", mine).location.removeprefix("file://")) / file.path
            os.utime(place, (time.time() - 3600,) * 2)
        for _ in range(1 + life % 3):
            assert loader.run_batch() is not None
            committed += 3
    assert all_gone.wait(60)
    ended.set()
    cleaner.join()
    assert wrong == []
    assert ids(local_lake, local_lake.reopen("clicks")) == [*range(committed)]
    assert not gone & set(cast("LakeTable", table).kept_files())


def test_state_goes_with_the_job_that_was_dropped(local_lake: Rig) -> None:
    table = cast("LakeTable", local_lake.create("clicks", SPEC))
    first = opened(cast("RigTable", table))
    folder = state_folder(first.job_id)
    file = StateFile(path=f"{folder}/20200101T000000-a", rows=1, size_bytes=4, digest="", buckets=1, min_us=0, max_us=0)
    manifest = f"{folder}/20200101T000000-a.manifest.json"
    table.bills.storage.put_if_absent(file.path, b"rows")
    table.bills.storage.put_if_absent(manifest, render_manifest(StateManifest(files=(file,))))
    kept = StateRef(manifest=manifest, digest="", files=1, rows=1, size_bytes=4)
    bill = replace(load(job_of(first), first, local_lake.stage(table, some_rows(0, 3), ATTEMPT)), state=kept)
    assert isinstance(put_and_commit(table, bill), Landed)
    assert (orphans(table), table.ended_jobs(), table.bills.missing_state(first.job_id, kept)) == ({}, set(), "")
    table.end_job(first.job_id)
    fresh = cast("LakeTable", local_lake.reopen("clicks"))
    assert fresh.ended_jobs() == {first.job_id}
    found = find_orphans(fresh, older_than=datetime.now(UTC))
    assert {each.path: each.what for each in found} == {file.path: STATE, manifest: STATE}
    remove_orphans(fresh, found)
    assert (orphans(fresh), fresh.bills.missing_state(first.job_id, kept)) == ({}, manifest)


def loaded_iceberg(folder: Path) -> tuple[IcebergRig, RigTable, str]:
    """A table with three rows, and beside it a file of a killed attempt."""
    rig = iceberg_local(folder, None)
    table = rig.create("clicks", SPEC)
    first = opened(table)
    put_and_commit(table, load(job_of(first), first, rig.stage(table, some_rows(0, 3), ATTEMPT)))
    return rig, table, rig.stage(table, some_rows(0, 3), ATTEMPT)[0].path


def test_a_place_that_is_written_in_another_way_is_the_same(tmp_path: Path) -> None:
    rig, table, left = loaded_iceberg(tmp_path)
    stranger = rig.stranger("clicks")
    folder, _, name = stranger.location().rpartition("/")
    with stranger.transaction() as moved:
        moved._apply((SetLocationUpdate(location=f"{folder}/./{name}"),))
    fresh = rig.reopen("clicks")
    assert orphans(fresh) == {left: DATA}
    remove_orphans(fresh, find_orphans(fresh, older_than=datetime.now(UTC) + timedelta(hours=1)))
    assert ids(rig, rig.reopen("clicks")) == [0, 1, 2]
    assert cast("LakeTable", table).location != fresh.location


def test_a_place_with_two_tables_is_left_alone(tmp_path: Path) -> None:
    rig, table, left = loaded_iceberg(tmp_path)
    other = rig.create("orders", SPEC)
    opened(other)
    storage = cast("LakeTable", table).bills.storage
    foreign = Path(rig.stranger("orders").metadata_location.removeprefix("file://"))
    storage.put_if_absent(f"metadata/{foreign.name}", foreign.read_bytes())
    with pytest.raises(TableError, match="is another Iceberg table, too"):
        orphans(table)
    storage.delete([f"metadata/{foreign.name}"])
    storage.put_if_absent("_delta_log/00000000000000000000.json", b"{}")
    with pytest.raises(TableError, match="tables of several formats"):
        orphans(table)
    storage.delete(["_delta_log/00000000000000000000.json"])
    assert orphans(table) == {left: DATA}


def test_metadata_that_is_not_understood_keeps_everything(tmp_path: Path) -> None:
    rig, table, left = loaded_iceberg(tmp_path)
    storage = cast("LakeTable", table).bills.storage
    content = Path(rig.stranger("clicks").metadata_location.removeprefix("file://")).read_bytes()
    storage.put_if_absent("metadata/00097-cut.metadata.json", content[:100])  # No commit named it.
    assert orphans(table) == {left: DATA}
    newer = json.loads(content) | {"format-version": 9}
    storage.put_if_absent("metadata/00098-newer.metadata.json", json.dumps(newer).encode())
    with pytest.raises(TableError, match="cannot be understood"):
        orphans(table)


@pytest.mark.parametrize("name", ["", "v1.metadata.json"])
def test_what_a_tag_on_an_older_state_names_stays(tmp_path: Path, name: str) -> None:
    """Others expired the snapshot, and left its manifests; another catalog still names the state that had it."""
    rig, table, left = loaded_iceberg(tmp_path)
    named = Path(rig.stranger("clicks").metadata_location.removeprefix("file://"))
    if name:  # As tables without a catalog call theirs.
        content, named = named.read_bytes(), named.with_name(name)
        named.write_bytes(content)
    tags = SqlCatalog("tags", uri=f"sqlite:///{tmp_path}/tags.db", warehouse=f"file://{tmp_path}/other")
    tags.create_namespace("lake")
    tags.register_table("lake.clicks", f"file://{named}")
    rig.others_maintain("clicks")
    assert orphans(rig.reopen("clicks")) == {left: DATA}
    assert tags.load_table("lake.clicks").scan().to_arrow()["id"].to_pylist() == [0, 1, 2]
    assert cast("LakeTable", table).kept_files()


def test_files_of_a_snapshot_that_was_expired_go(tmp_path: Path) -> None:
    """Old metadata files have it, and its manifests are gone: nobody can read it."""
    rig, _, left = loaded_iceberg(tmp_path)
    old = set(rig.reopen("clicks").files())
    rig.others_maintain("clicks")
    (current,) = (snapshot.manifest_list.rpartition("/")[2] for snapshot in rig.stranger("clicks").snapshots())
    for path in tmp_path.rglob("snap-*.avro"):
        if path.name != current:
            path.unlink()
    assert orphans(rig.reopen("clicks")) == dict.fromkeys({left, *old}, DATA)


@pytest.mark.parametrize("inside", [True, False])
def test_metadata_in_a_folder_of_their_own(tmp_path: Path, inside: bool) -> None:
    rig, table, left = loaded_iceberg(tmp_path)
    place = f"{cast('LakeTable', table).location}/meta" if inside else f"file://{tmp_path}/elsewhere"
    with rig.stranger("clicks").transaction() as changed:
        changed.set_properties({"write.metadata.path": place})
    if inside:
        assert orphans(rig.reopen("clicks")) == {left: DATA}
        return
    with pytest.raises(TableError, match=r"write\.metadata\.path"):
        orphans(rig.reopen("clicks"))
    with rig.stranger("clicks").transaction() as changed:
        changed.remove_properties("write.metadata.path")
    assert orphans(rig.reopen("clicks")) == {left: DATA}


def test_older_metadata_files_are_read_only_for_what_the_newest_does_not_name(tmp_path: Path) -> None:
    """Tables of others have tens of thousands of them."""
    rig, table, left = loaded_iceberg(tmp_path)
    storage = cast("LakeTable", table).bills.storage
    newest = Path(rig.stranger("clicks").metadata_location.removeprefix("file://"))
    others = [path for path in newest.parent.glob("*.metadata.json") if path != newest]
    assert others
    newer = json.loads(newest.read_bytes()) | {"format-version": 9}
    storage.put_if_absent("metadata/00098-newer.metadata.json", json.dumps(newer).encode())
    with pytest.raises(TableError, match="cannot be understood"):
        orphans(table)  # Something may be an orphan: whether it is, they all have to tell.
    storage.delete([left])
    assert orphans(table) == {}  # Every file is named by the newest: no other is read.


def test_a_second_look_reads_what_the_first_one_left_unread(tmp_path: Path) -> None:
    rig, table, _ = loaded_iceberg(tmp_path)
    first = opened(table)
    put_and_commit(table, load(job_of(first), first, rig.stage(table, some_rows(3, 3), ATTEMPT)))
    lake = cast("LakeTable", rig.reopen("clicks"))
    everything = set(cast("LakeTable", rig.reopen("clicks")).kept_files())
    assert len(everything) == 2
    for path in sorted(everything):
        assert path in lake.kept_files([path])
    assert set(lake.kept_files()) == everything

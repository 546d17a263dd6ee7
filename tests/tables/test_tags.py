"""Saying in the table itself that a partition is complete, read back as others read it. Heads and rows stay."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import cast

import deltalake
import pytest

from lading.ids import JobId
from lading.tables.base import DoneTag, LakeTable
from lading.tables.maintenance import CarePolicy
from tests.tables.drive import SPEC, START, Driver, driver, ids, new_job
from tests.tables.rig import Rig, RigTable
from tests.tables.rig_iceberg import IcebergRig
from tests.tables.rig_paimon import PaimonRig, paimon_local

KEEP = timedelta(days=36500)
"""Snapshots have the time of the machine, the tests have one of their own."""
NOW = START + timedelta(days=400)


def started(rig: Rig) -> tuple[LakeTable, Driver, JobId]:
    table, job = rig.create("t", SPEC), new_job()
    made = driver(rig, table, job)
    made.start()
    return cast("LakeTable", table), made, job.job_id


def done(job_id: JobId, partition: str, seq: int, keep: timedelta = KEEP) -> DoneTag:
    return DoneTag(job_id=job_id, job_name="clicks", partition=partition, seq=seq, at=NOW, keep=keep)


def tags(rig: Rig) -> dict[str, int]:
    """Names, and the seq of the commit that they lead to, by the format's own library."""
    if isinstance(rig, IcebergRig):
        table = rig.stranger("t")
        found = {name: table.metadata.snapshot_by_id(ref.snapshot_id) for name, ref in table.metadata.refs.items()}
        return {
            name: int(snapshot.summary.additional_properties["lading.seq"])
            for name, snapshot in found.items()
            if name != "main" and snapshot is not None and snapshot.summary is not None
        }
    if isinstance(rig, PaimonRig):
        manager = rig.stranger("t").tag_manager()
        return {name: manager.get_or_throw(name).trim_to_snapshot().commit_identifier for name in manager.list_tags()}
    location = cast("LakeTable", rig.reopen("t")).location
    told = json.loads(deltalake.DeltaTable(location).metadata().configuration.get("lading.done.clicks", "{}"))
    return {f"lading-clicks-{name.replace('/', ',') or 'table'}": facts["seq"] for name, facts in told.items()}


def whose(rig: Rig) -> str:
    """The job whose commit the tag of dt=1 leads to."""
    name = "lading-clicks-dt=1"
    if isinstance(rig, IcebergRig):
        metadata = rig.stranger("t").metadata
        snapshot = metadata.snapshot_by_id(metadata.refs[name].snapshot_id)
        assert snapshot is not None
        assert snapshot.summary is not None
        return str(snapshot.summary.additional_properties["lading.job"])
    if isinstance(rig, PaimonRig):
        tagged = rig.stranger("t").tag_manager().get_or_throw(name).trim_to_snapshot()
        return str(tagged.commit_user).removeprefix("lading/")
    location = cast("LakeTable", rig.reopen("t")).location
    configuration = deltalake.DeltaTable(location).metadata().configuration
    return str(json.loads(configuration["lading.done.clicks"])["dt=1"]["job_id"])


def test_a_tag_names_the_commit_and_the_job_goes_on(local_lake: Rig) -> None:
    table, made, job_id = started(local_lake)
    for _ in range(2):
        made.run_batch()
    head = table.read_head(job_id)
    table.tag(done(job_id, "dt=1/hh=2", 1))
    table.tag(done(job_id, "", 2))
    assert tags(local_lake) == {"lading-clicks-dt=1,hh=2": 1, "lading-clicks-table": 2}
    assert (table.read_head(job_id), local_lake.reopen("t").read_head(job_id)) == (head, head)
    before = table.version()
    table.tag(done(job_id, "", 2))  # The same again.
    assert (tags(local_lake)["lading-clicks-table"], table.version()) == (2, before)
    bill = made.run_batch()
    assert bill is not None
    table.tag(done(job_id, "dt=1/hh=2", 3))  # Rows came later: it leads to the newer commit.
    assert tags(local_lake) == {"lading-clicks-dt=1,hh=2": 3, "lading-clicks-table": 2}
    assert local_lake.reopen("t").read_head(job_id) == bill.head
    assert len(ids(local_lake, cast("RigTable", table))) == bill.totals.rows.loaded


def test_a_process_that_was_stopped_for_long_does_not_move_a_tag_back(local_lake: Rig) -> None:
    table, made, job_id = started(local_lake)
    for _ in range(3):
        made.run_batch()
    for seq in (3, 2, 1):
        table.tag(done(job_id, "dt=1", seq))
        assert tags(local_lake) == {"lading-clicks-dt=1": 3}


def test_a_new_job_of_the_same_name_has_tags_of_its_own(local_lake: Rig) -> None:
    table, made, job_id = started(local_lake)
    made.run_batch()
    table.tag(done(job_id, "dt=1", 1))
    later = new_job()
    second = driver(local_lake, cast("RigTable", table), later)
    second.start()
    second.run_batch()
    table.tag(done(later.job_id, "dt=1", 1))
    assert whose(local_lake) == later.job_id


def test_old_tags_of_lading_go_and_those_of_others_stay(local_lake: Rig) -> None:
    if not isinstance(local_lake, IcebergRig | PaimonRig):
        pytest.skip("Delta has a property, with a number of entries")
    table, made, job_id = started(local_lake)
    made.run_batch()
    if isinstance(local_lake, IcebergRig):
        stranger = local_lake.stranger("t")
        current = stranger.metadata.current_snapshot_id
        assert current is not None
        stranger.manage_snapshots().create_tag(current, "lading-looks-like-it").commit()
    else:
        local_lake.stranger("t").create_tag("release")
    table.tag(done(job_id, "dt=1", 1, keep=timedelta(seconds=1)))
    made.run_batch()
    later = done(job_id, "dt=2", 2, keep=timedelta(seconds=1))
    table.tag(
        DoneTag(**{**{name: getattr(later, name) for name in later.__slots__}, "at": NOW + 9000 * timedelta(days=1)})
    )
    assert "lading-clicks-dt=1" not in tags(local_lake)
    assert tags(local_lake).keys() > {"lading-clicks-dt=2"}


def test_the_property_of_delta_keeps_the_newest_partitions(tmp_path: Path) -> None:
    from tests.tables.rig_delta import delta_local

    rig = delta_local(tmp_path, None)
    table, made, job_id = started(rig)
    made.run_batch()
    for number in range(103):
        table.tag(done(job_id, f"dt={number}", 1))
    told = json.loads(deltalake.DeltaTable(table.location).metadata().configuration["lading.done.clicks"])
    assert list(told) == [f"dt={number}" for number in range(3, 103)]


def test_snapshots_of_paimon_expire_beside_tags_of_lading_and_what_a_tag_needs_stays(tmp_path: Path) -> None:
    rig = paimon_local(tmp_path, None)
    table, made, job_id = started(rig)
    for _ in range(6):
        made.run_batch()
    table.tag(done(job_id, "dt=1", 2))
    policy = CarePolicy(keep_commits=1, keep_age=timedelta(0), grace=timedelta(0))
    report = rig.look_after(cast("RigTable", table), job_id, policy, NOW + 9000 * timedelta(days=1))
    assert (report.snapshots_expired > 3, report.remark) == (True, "")
    stranger = rig.stranger("t").copy({"scan.tag-name": "lading-clicks-dt=1"})
    builder = stranger.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    assert sorted(rows["id"].to_pylist()) == ids(rig, cast("RigTable", table))[: rows.num_rows]
    assert 0 < rows.num_rows < len(ids(rig, cast("RigTable", table)))
    rig.stranger("t").create_tag("release")  # Somebody else's tag: nothing expires.
    made.run_batch()
    made.run_batch()
    report = rig.look_after(cast("RigTable", table), job_id, policy, NOW + 9000 * timedelta(days=1))
    assert (report.snapshots_expired, "tag/" in report.remark) == (0, True)

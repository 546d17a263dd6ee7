"""A table that was rolled back, written to and expired by others before the job looked again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lading.errors import HeadLostError, RolledBackError
from lading.ids import Token
from lading.model.bill import Head
from lading.model.table import Column, TableSpec
from lading.tables.iceberg.ancestry import Line, State, WayBack, sort_snapshots
from lading.tables.iceberg.heads import Anchor
from tests.tables.drive import load, new_job, opening, put_and_commit
from tests.tables.rig_iceberg import IcebergRig, iceberg_local

SPEC = TableSpec(columns=(Column(name="id", type="bigint"),))
ROWS = pa.table({"id": pa.array([1], pa.int64())})


@pytest.fixture
def rig(tmp_path: Path) -> IcebergRig:
    return iceberg_local(tmp_path, None)


def expire(rig: IcebergRig) -> None:
    table = rig.stranger("t")
    old = [each.snapshot_id for each in table.snapshots() if each.snapshot_id != table.metadata.current_snapshot_id]
    table.maintenance.expire_snapshots().by_ids(old).commit()


@pytest.mark.parametrize("inserts", [1, 2, 3])
@pytest.mark.parametrize("is_rolled_back", [True, False])
def test_a_rollback_that_an_expiry_hides(rig: IcebergRig, inserts: int, is_rolled_back: bool) -> None:
    table, job = rig.create("t", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    second = load(job, first, rig.stage(table, ROWS, "a"))
    put_and_commit(table, second)
    if is_rolled_back:
        rig.restore_older("t", 1)
    for _ in range(inserts):
        rig.append_unrelated("t", ROWS)
    expire(rig)
    rig.append_unrelated("t", ROWS)
    expire(rig)
    for looked in (table, rig.reopen("t")):
        if is_rolled_back:
            with pytest.raises(RolledBackError):
                looked.read_head(job.job_id)
        else:
            assert looked.read_head(job.job_id) == second.head


def test_without_the_older_metadata_files_nobody_can_tell(rig: IcebergRig, tmp_path: Path) -> None:
    """The blind spot that docs/engines.md names: the rows are taken for a part of the table."""
    table, job = rig.create("t", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    second = load(job, first, rig.stage(table, ROWS, "a"))
    put_and_commit(table, second)
    rig.restore_older("t", 1)
    rig.append_unrelated("t", ROWS)
    expire(rig)
    current = Path(rig.stranger("t").metadata_location.removeprefix("file://"))
    for file in current.parent.glob("*.metadata.json"):
        if file != current:
            file.unlink()
    assert rig.reopen("t").read_head(job.job_id) == second.head


def test_a_parent_that_expired_is_not_taken_for_none(rig: IcebergRig) -> None:
    """PyIceberg takes its name out of the snapshots that follow. A table with no commit is loaded from the start."""
    table, job = rig.create("t", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    second = load(job, first, rig.stage(table, ROWS, "a"))
    put_and_commit(table, second)
    rig.append_unrelated("t", ROWS)
    expire(rig)
    assert [each.parent_snapshot_id for each in rig.stranger("t").snapshots()] == [None]
    put_and_commit(table, load(job, second, rig.stage(table, ROWS, "b")))
    rig.restore_older("t", 1)
    with pytest.raises(RolledBackError):
        table.read_head(job.job_id)
    assert table.ends_with(job.job_id) == second.head
    current = Path(rig.stranger("t").metadata_location.removeprefix("file://"))
    for file in current.parent.glob("*.metadata.json"):
        if file != current:
            file.unlink()
    with pytest.raises(HeadLostError, match="has expired"):
        rig.reopen("t").ends_with(job.job_id)


def test_one_that_took_the_place_of_the_table_has_nothing_before_it() -> None:
    """It leaves the snapshots of the table alone, so what was before it is not what has expired."""
    job, head = new_job(), Head(seq=1, token=Token(1))
    told = {20: (str(job.job_id), head)}
    before = State(current=20, snapshots=((20, 10, 2),), commits=told)
    replaced = State(current=30, snapshots=((20, 10, 2), (30, None, 3)), commits=told)
    expired = State(current=30, snapshots=((30, None, 3),))
    for states, ends in (((replaced, before), None), ((expired, replaced, before), None)):
        way = WayBack(states[0], None, job.job_id)
        for older in states[1:]:
            way.learn(older)
        assert (way.is_over, way.found) == (True, ends)
    # Added, and its parent expired, in one commit: nobody can tell it from a replacement.
    way = WayBack(expired, None, job.job_id)
    way.learn(before)
    assert not way.is_over


def test_snapshots_are_sorted_by_their_parents() -> None:
    anchor = Anchor(head=Head(seq=1, token=Token(1)), snapshot_id=30, sequence_number=3)
    line = Line()
    state = State(current=60, snapshots=((20, 10, 2), (30, 20, 3), (40, 20, 4), (50, 30, 5), (60, 40, 6), (80, 70, 8)))
    sort_snapshots(state, anchor, line)
    assert line.after == {30, 50}
    assert line.beside == {20, 40, 60}
    assert line.knows(80) is None
    sort_snapshots(State(current=90, snapshots=((90, 60, 9), (95, 50, 10))), anchor, line)
    assert line.knows(90) is False
    assert line.knows(95) is True

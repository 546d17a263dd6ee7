"""Bad rows come into the errors table, each once, wherever the process dies and also when two copy at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import cast

import pyarrow as pa
import pytest

from lading import failpoints
from lading.errors import StorageError
from lading.ids import errors_id
from lading.model.bill import Bill, resume_copy
from lading.model.errors_copied import ErrorsCopied
from lading.model.table import Column, TableSpec
from lading.service.runtime.errors_copy import ErrorsCopy
from lading.tables.base import LakeTable
from tests.service.errors_rig import POINTS, SPEC, BadJob, KilledError, at_point
from tests.tables.rig import Rig, RigFactory
from tests.tables.rig_delta import delta_local
from tests.tables.rig_iceberg import iceberg_local
from tests.tables.rig_paimon import paimon_local


@pytest.fixture(params=[delta_local, iceberg_local, paimon_local], ids=lambda factory: factory.__name__)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    made = cast("RigFactory", request.param)(tmp_path, None)
    made.create("errors", SPEC)
    return made


@pytest.fixture
def delta(tmp_path: Path) -> Rig:
    made = delta_local(tmp_path, None)
    made.create("errors", SPEC)
    return made


def test_every_bad_row_is_there_once_with_what_is_known_of_it(tmp_path: Path, rig: Rig) -> None:
    job, other = BadJob(tmp_path, rig), BadJob(tmp_path, rig)
    copier = job.copier()
    assert copier.copy(job.newest)
    assert copier.summary == ErrorsCopied(table="shop.errors", through=1, behind=0)
    job.load("x,1", 'y,"größe"')
    job.load()
    assert copier.copy(job.newest)
    job.load()
    assert not copier.copy(job.newest), "a commit without bad rows is no news"
    job.load("z,3")
    assert copier.copy(job.newest)
    other.load("a")
    other.copier().copy(other.newest)
    # In another life nothing is copied again.
    again = job.copier()
    again.copy(job.newest)
    assert again.summary == ErrorsCopied(table="shop.errors", through=5, rows=3, behind=0)
    assert job.copied() == job.wanted
    assert other.copied() == other.wanted
    (first,) = [row for row in job.table().scan().to_pylist() if row["raw"] == "x,1"]
    assert (first["file"], first["reason"], first["committed_at"]) == ("in/1.csv", "not a number", job.newest.billed_at)


def test_a_kill_at_any_step_neither_loses_nor_doubles_a_row(tmp_path: Path, rig: Rig) -> None:
    with at_point(-1) as points:
        first = BadJob(tmp_path, rig)
        first.load("x")
        first.copier().copy(first.newest)
    assert {"errors.bill.after", "errors.commit.before", "errors.commit.after", "errors.stage.after"} <= set(points)
    for number in range(0, len(points), 1 if rig.name.startswith("delta") else 5):
        job = BadJob(tmp_path, rig)
        job.load("x", "y")
        job.load("z")
        with at_point(number) as seen, suppress(KilledError):
            job.copier().copy(job.newest)
        if number % 10 == 5:
            job.load("after")
        job.copier().copy(job.newest)
        assert len(seen) == number + 1
        assert job.copied() == job.wanted, points[number]


def test_two_who_copy_at_once_copy_each_row_once(tmp_path: Path, delta: Rig) -> None:
    with at_point(-1) as points:
        job = BadJob(tmp_path, delta)
        job.load("x")
        job.copier().copy(job.newest)
    for number in range(0, len(points), 3):
        job = BadJob(tmp_path, delta)
        job.load("x", "y")
        mine, theirs, left = job.copier(), job.copier(), [number]

        def meanwhile(_name: str, left: list[int] = left, job: BadJob = job, theirs: ErrorsCopy = theirs) -> None:
            left[0] -= 1
            if left[0] == -1:
                theirs.copy(job.newest)

        for name in POINTS:
            failpoints.arm(name, meanwhile)
        try:
            mine.copy(job.newest)
        finally:
            failpoints.disarm_all()
        assert (mine.summary.error, mine.summary.behind) == ("", 0), points[number]
        assert job.copied() == job.wanted, points[number]
        # The one that was beaten goes on with what comes.
        job.load("z")
        mine.copy(job.newest)
        theirs.copy(job.newest)
        assert job.copied() == job.wanted, points[number]


@pytest.mark.parametrize("is_new_life", [True, False])
def test_bad_rows_of_before_and_after_a_replay_are_copied(tmp_path: Path, delta: Rig, *, is_new_life: bool) -> None:
    """A replay makes the count of bad rows smaller, so that it comes to the same number again."""
    first = BadJob(tmp_path, delta)
    first.load("x", "y")
    first.replay("y", good=1)
    first.copier().copy(first.newest)
    assert first.copied() == first.wanted, "those of before it, by one that looks for the first time"
    job = BadJob(tmp_path, delta)
    job.load("x", "y")
    copier = job.copier()
    copier.copy(job.newest)
    job.replay(good=2)
    copier = job.copier() if is_new_life else copier
    job.load("p", "q")
    job.load("r")
    copier.copy(job.newest)
    assert job.copied() == job.wanted
    # What it costs to find nothing: the position was moved past the replay, once.
    job.bills.reads = 0
    for _ in range(5):
        job.load()
    job.copier().copy(job.newest)
    assert job.bills.reads <= 1


@pytest.mark.parametrize("fault", ["lose_answer_once", "fail_once"])
def test_a_lost_answer_neither_loses_nor_doubles_a_row(tmp_path: Path, rig: Rig, fault: str) -> None:
    job = BadJob(tmp_path, rig)
    job.copier().copy(job.newest)
    job.load("x")
    table = job.table()
    copier = job.copier()
    copier._place = replace(copier._place, open=lambda: table)
    with getattr(rig, fault)(table):
        copier.copy(job.newest)
    if copier.summary.error:
        assert copier.summary.behind == 1
    job.later()
    copier.copy(job.newest)
    assert copier.summary.error == ""
    job.copier().copy(job.newest)
    assert job.copied() == job.wanted


@pytest.mark.parametrize("seed", range(12))
def test_whatever_a_job_does_every_row_is_copied_once(tmp_path: Path, delta: Rig, seed: int) -> None:
    random, job = Random(seed), BadJob(tmp_path, delta)
    copier = job.copier()
    for turn in range(14):
        ways: list[Callable[[], Bill]] = [
            job.take_over,
            job.edit,
            job.load,
            lambda: job.roll_back(random.randint(1, 4)),
            partial(replayed, job, random, turn),
        ]
        random.choice(ways)() if random.random() < 0.4 else job.load(
            *(f"{turn}.{n}" for n in range(random.randint(0, 2)))
        )
        if random.random() < 0.6:
            with at_point(random.randint(0, 50)), suppress(KilledError):
                copier.copy(job.newest)
                continue
            copier = job.copier(known=random.choice([None, copier.summary]))
    job.copier().copy(job.newest)
    assert job.copied() == job.wanted


def replayed(job: BadJob, random: Random, turn: int) -> Bill:
    """What waits is taken up: some of it is bad again."""
    waiting = job.newest.totals.rows.error
    again = random.randint(0, max(0, waiting - 1))
    return job.replay(*(f"{turn}.again.{n}" for n in range(again)), good=waiting - again) if waiting else job.load()


def test_bad_rows_of_commits_that_were_rolled_back_are_not_passed_over(tmp_path: Path, delta: Rig) -> None:
    job = BadJob(tmp_path, delta)
    job.load("x", "y")
    job.copier().copy(job.newest)
    job.load("taken away")
    job.roll_back(1)
    job.load()  # By its totals, no row was bad since the position.
    job.copier().copy(job.newest)
    assert job.copied() == job.wanted


def test_what_cannot_be_reached_is_told_and_the_bills_are_kept_for_it(tmp_path: Path, delta: Rig) -> None:
    job, is_away = BadJob(tmp_path, delta), True
    first = job.copier()
    job.load("x")
    first.copy(job.newest)
    copier = job.copier(known=first.summary)

    def opened() -> LakeTable:
        if is_away:
            msg = "The bucket does not answer"
            raise StorageError(msg)
        return job.table()

    copier._place = replace(copier._place, open=opened)
    job.load("y")
    job.load()
    assert copier.copy(job.newest)
    job.load("z")
    assert copier.copy(job.newest)
    assert (copier.summary.error, copier.summary.tries) == ("The bucket does not answer", 1)
    assert (copier.summary.behind, copier.needs_from, copier.is_due()) == (2, 2, False)
    job.later()
    assert copier.is_due()
    copier.copy(job.newest)
    assert copier.summary.tries == 2
    is_away = False
    job.later()
    copier.copy(job.newest)
    assert copier.summary == ErrorsCopied(table="shop.errors", through=5, rows=3, behind=0)
    assert copier.needs_from is None
    assert job.copied() == job.wanted


def test_a_table_that_lost_a_column_takes_nothing_before_it_is_back(tmp_path: Path, delta: Rig) -> None:
    job = BadJob(tmp_path, delta, errors="others")
    delta.create("others", TableSpec(columns=(*SPEC.columns[:-1], Column(name="raw", type="bigint"))))
    job.load("x")
    copier = job.copier()
    copier.copy(job.newest)
    assert "its column raw is bigint, not string" in copier.summary.error
    assert copier.summary.behind is None
    delta.create("wide", TableSpec(columns=(Column(name="note", type="string"), *SPEC.columns)))
    job.errors = "wide"
    job.later()
    copier.copy(job.newest)
    assert job.copied() == job.wanted


def test_old_bills_are_not_read_again_in_another_life(tmp_path: Path, delta: Rig) -> None:
    job = BadJob(tmp_path, delta)
    job.load("x")
    copier = job.copier()
    copier.copy(job.newest)
    for _ in range(40):
        job.load()
    job.load("y")
    job.bills.reads = 0
    job.copier().copy(job.newest)
    assert job.bills.reads <= 3
    for does in (job.edit, job.load):
        does()
        job.copier().copy(job.newest)  # The epoch has changed: the position goes along.
    for _ in range(40):
        job.load()
    job.bills.reads = 0
    job.copier().copy(job.newest)
    assert job.bills.reads == 0
    assert job.copied() == job.wanted


def test_bills_that_others_removed_are_told_in_the_place_of_their_rows(tmp_path: Path, delta: Rig) -> None:
    job = BadJob(tmp_path, delta)
    job.load("x")
    job.copier().copy(job.newest)
    job.load("lost")
    job.load("lost too")
    job.load("there")
    for key in job.bills.storage.keys("_lading/"):
        if key.rpartition("/")[2].partition("-")[0] in ("2", "3"):
            job.bills.storage.delete([key])
    job.copier().copy(job.newest)
    job.copier().copy(job.newest)
    told = {row["seq"]: (row["raw"], row["reason"]) for row in job.table().scan().to_pylist()}
    assert told.keys() == {1, 3, 4}
    assert told[4][0] == "there"
    assert told[3][1].startswith("the bills of commits 2 to 3 are gone")
    # Of a head whose file is gone the table keeps what a restart needs, and not where its bad rows are.
    job.load("known to nobody")
    job.copies.kept[job.newest.head] = kept = resume_copy(job.newest)
    job.copier().copy(kept)
    (row,) = [row for row in job.table().scan().to_pylist() if row["seq"] == kept.seq]
    assert row["reason"].startswith("the bill of this commit is gone")
    assert row["committed_at"] is None


def test_a_rollback_of_the_errors_table_is_told_and_nothing_is_written(tmp_path: Path, delta: Rig) -> None:
    job = BadJob(tmp_path, delta)
    job.load("x")
    copier = job.copier()
    copier.copy(job.newest)
    delta.restore_older("errors", 1)
    job.load("y")
    copier.copy(job.newest)
    assert "rolled back" in copier.summary.error
    assert "ACCEPT" not in copier.summary.error
    assert not job.copied()


def test_a_job_that_went_back_with_its_table_is_not_taken_for_a_newer_one(tmp_path: Path, delta: Rig) -> None:
    job = BadJob(tmp_path, delta)
    old = job.load("x")
    job.load("y")
    job.copier().copy(job.newest)
    copier = job.copier()
    copier.copy(replace(old, seq=0, replaces=None))
    assert "up to its commit 2, and the job is at commit 0" in copier.summary.error
    assert job.copied() == job.wanted


def test_many_rows_are_copied_in_several_commits(tmp_path: Path, delta: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lading.service.runtime.errors_copy.BATCH_ROWS", 3)
    monkeypatch.setattr("lading.service.runtime.errors_columns._ROWS", 2)
    job = BadJob(tmp_path, delta)
    for number in range(5):
        job.load(f"{number}.0", f"{number}.1")
    job.copier().copy(job.newest, lambda: True)  # No time: not even the bills are looked at.
    for number in (20, 35):
        with at_point(number), suppress(KilledError):
            job.copier().copy(job.newest)
    job.copier().copy(job.newest)
    assert job.copied() == job.wanted
    bill = job.table().bills.read(errors_id(job.job.job_id), job.table().read_head(errors_id(job.job.job_id)))  # type: ignore[arg-type]  # it has one
    assert (bill.totals.rows.loaded, bill.totals.commits) == (10, 3)
    assert isinstance(job.table().scan(), pa.Table)

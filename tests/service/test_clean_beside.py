"""Orphans are removed by one service while others load and are killed: never a live file, and in the end all orphans.

The one that cleans does what ADMIN CLEAN ORPHANS does, for files that are older than half a second. The statement
itself takes no less than an hour, and a clock that is ahead would not do: cleaning asks the disk for its time.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import deltalake
import pytest

from lading import failpoints
from tests.service.lease_rig import LIMIT_S, Shared, Worker, until
from tests.service.lease_rig import shared as shared
from tests.support.other_readers import read_elsewhere

pytestmark = pytest.mark.long

SAFE_S = 0.5
CLEAN = f"clean {SAFE_S}"
PLACES = ("stage.after", "bill.after", "commit.before", "commit.after", "record.before")


class Cleaner:
    """A service of its own that runs no job and cleans all the time."""

    def __init__(self, worker: Worker, *, forgives: bool = False) -> None:
        self.forgives = forgives
        self.removed: list[dict[str, Any]] = []
        self.remarks: list[str] = []
        self.rounds = 0
        self._worker = worker
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait_for_rounds(self, more: int) -> None:
        """Whole rounds that begin from now on."""
        wanted = self.rounds + more + 1
        until(lambda: self.rounds >= wanted, "rounds of cleaning")

    def close(self) -> None:
        self._ending.set()
        self._thread.join(LIMIT_S)

    def _run(self) -> None:
        while not self._ending.wait(0.05):
            rows = self._worker.sql(CLEAN) if not self.forgives else self._worker.try_sql(CLEAN)
            if rows is None:
                continue  # The store was away.
            self.removed += [row for row in rows if not row["Remark"]]
            self.remarks += [row["Remark"] for row in rows if row["Remark"]]
            self.rounds += 1


@contextmanager
def cleaning(shared: Shared) -> Iterator[Cleaner]:
    cleaner = Cleaner(shared.worker("cleaner", "--idle"))
    try:
        yield cleaner
    finally:
        cleaner.close()


def ids(shared: Shared, job: str) -> list[int]:
    """As Polars reads the table: a file that is gone is an error."""
    return sorted(read_elsewhere("delta", shared.path / "lake" / job)["id"].to_pylist())


def files_of(shared: Shared, job: str, pattern: str) -> set[str]:
    place = shared.path / "lake" / job
    return {path.name for path in place.rglob(pattern) if "_delta_log" not in path.parts}


def check_nothing_is_left(shared: Shared, job: str) -> None:
    """Files beside the table are exactly those that its log and its bills name."""
    named = {Path(path).name for path in deltalake.DeltaTable(str(shared.path / "lake" / job)).file_uris()}
    assert files_of(shared, job, "*.parquet") == named
    with shared.home("looker") as lading:
        record = lading.job(job)
        bills = lading.bills(record, 1000)
        assert files_of(shared, job, "*.jsonl") == {Path(path).name for bill in bills for path in bill.quarantine}
        assert files_of(shared, job, "*-*.json") == {bill.head.bill_name for bill in bills}
        assert lading.verify(job).is_clean


def put(shared: Shared, job: str, number: int, rows: int = 3) -> None:
    shared.put(job, f"{number:05}.csv", number * rows, rows, f"bad {number}")


def end_in_peace(shared: Shared, cleaner: Cleaner, job: str, files: int) -> None:
    """Everything is loaded; then what kills left is older than the limit, and goes."""
    with shared.home("one") as lading:
        lading.run([job])
        bad = [str(row["Raw"]) for row in lading.sql(f"SHOW LOAD ERRORS FOR {job} LIMIT 10000")[-1].dicts()]
    assert ids(shared, job) == [*range(3 * files)]
    assert sorted(bad) == sorted(f"bad {number}" for number in range(files))
    until(lambda: not cleaner_is_busy(cleaner), "no orphan is found any more")
    check_nothing_is_left(shared, job)
    assert ids(shared, job) == [*range(3 * files)]


def cleaner_is_busy(cleaner: Cleaner) -> bool:
    """Whether it has found something in a time that is longer than its safe age."""
    before, rounds = len(cleaner.removed), cleaner.rounds
    threading.Event().wait(2 * SAFE_S)
    cleaner.wait_for_rounds(1)
    return len(cleaner.removed) > before or cleaner.rounds == rounds


def test_kills_leave_nothing_behind_and_cleaning_takes_nothing_that_lives(shared: Shared) -> None:
    shared.make("a")
    with cleaning(shared) as cleaner:
        for number, place in enumerate(("stage.after", "commit.before")):
            put(shared, "a", number)
            # One home: the next service in it has its jobs at once.
            worker = shared.worker("one", "--die", place, "1")
            worker.wait_for("at", place)
            worker.close()
        end_in_peace(shared, cleaner, "a", files=2)
    assert {"data file", "bad rows"} <= {row["Kind"] for row in cleaner.removed}
    assert not cleaner.remarks


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_two_services_are_killed_at_any_moment_while_a_third_one_cleans(shared: Shared, seed: int) -> None:
    """Twenty kills, at a step or at any time; the services have jobs of each other in between."""
    chosen = random.Random(seed)
    shared.make("a", "b")
    with cleaning(shared) as cleaner:
        workers = dict[str, Worker]()
        files = 0
        for _ in range(20):
            for name in ("one", "two"):
                if name not in workers:
                    deadly = ("--die", chosen.choice(PLACES), str(chosen.randint(1, 3)))
                    workers[name] = shared.worker(name, *(deadly if chosen.random() < 0.6 else ()))
            for _ in range(chosen.randint(1, 3)):
                for job in ("a", "b"):
                    put(shared, job, files)
                files += 1
            name = chosen.choice(("one", "two"))
            threading.Event().wait(chosen.uniform(0.0, 1.5))
            workers.pop(name).close()
        for worker in workers.values():
            worker.close()
        with shared.home("one") as lading:
            lading.run(["a", "b"])
        for job in ("a", "b"):
            end_in_peace(shared, cleaner, job, files)
    print(f"20 kills, {files} files a job, {cleaner.rounds} rounds of cleaning, {len(cleaner.removed)} orphans removed")
    assert cleaner.removed


def test_a_batch_that_is_staged_for_longer_than_the_safe_age_keeps_its_files(shared: Shared) -> None:
    shared.make("a")
    put(shared, "a", 0)
    worker = shared.worker("one", "--die", "check.after", "1")  # What it leaves is there to be removed.
    worker.wait_for("at", "check.after")
    worker.close()
    kinds = ("*.parquet", "*.jsonl")
    left = {kind: files_of(shared, "a", kind) for kind in kinds}
    assert all(left.values())
    staged, may_go_on = threading.Event(), threading.Event()

    def stay(_name: str) -> None:
        staged.set()
        assert may_go_on.wait(LIMIT_S)

    with cleaning(shared) as cleaner:
        failpoints.arm("stage.after", stay)
        shared.serve("one")
        assert staged.wait(LIMIT_S)
        live = {kind: files_of(shared, "a", kind) - left[kind] for kind in kinds}
        assert all(live.values())
        threading.Event().wait(2 * SAFE_S)
        cleaner.wait_for_rounds(2)
        kept = {kind: files_of(shared, "a", kind) for kind in kinds}
        failpoints.disarm_all()
        may_go_on.set()
        assert all(live[kind] <= kept[kind] for kind in kinds)
        until(lambda: shared.ids("a") == [0, 1, 2], "the batch is committed")
        until(lambda: not cleaner_is_busy(cleaner), "no orphan is found any more")
        assert not any(left[kind] & files_of(shared, "a", kind) for kind in kinds), "what the killed one left is gone"
        assert ids(shared, "a") == [0, 1, 2]
    check_nothing_is_left(shared, "a")

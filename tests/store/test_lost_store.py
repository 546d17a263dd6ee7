"""The store is lost: nothing breaks but names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.commit.steps import run_steps
from lading.ids import Incarnation, new_token
from lading.jobs.events import BatchCommitted, BatchStarted, Goodbye, Opened
from lading.jobs.record import JobKind
from lading.jobs.transition import create_record, transition
from lading.model.batch import Limits
from lading.model.bill import Bill
from lading.model.job import Job
from lading.plan.planner import Planner
from lading.store.records import entry_of
from lading.store.store import Store, open_store
from lading.tables.memory import MemoryBills, MemoryTable
from lading.testing.clock import ManualClock
from lading.testing.source import ScriptedSource
from lading.testing.stager import ScriptedStager
from tests.jobs.story import JOB_ID, created


class Installation:
    """One job on a table in memory, its names in a SQLite file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "metadata.db"
        self.clock = ManualClock()
        self.source = ScriptedSource(Random(1), shards=2, knows_ends=True)
        self.table, self.bills = MemoryTable(), MemoryBills()
        self.stager = ScriptedStager(self.source, self.table.write_file, Random(2))
        self.source.produce(20)

    def incarnation(self, store: Store, name: str) -> Coordinator:
        world = CoordinatorPorts(
            table=self.table,
            bills=self.bills,
            planner=Planner(self.source, self.clock, on_data_loss="PAUSE"),
            stager=self.stager,
            clock=self.clock,
            new_token=new_token,
            followers=(store,),
        )
        job = Job(job_id=JOB_ID, name="orders", start="TRIM_HORIZON", limits=Limits(rows=3))
        return Coordinator(job, world, Incarnation(name))

    def lose_store(self) -> None:
        for file in self.path.parent.glob("metadata.db*"):
            file.unlink()


def drain(coordinator: Coordinator, note: Callable[[Bill], None]) -> Bill:
    while (bill := run_steps(coordinator.run_batch())) is not None:
        note(bill)
    assert coordinator.bill is not None
    return coordinator.bill


def test_a_deleted_store_costs_names_and_nothing_else(tmp_path: Path) -> None:
    place = Installation(tmp_path)
    with open_store(str(place.path), place.clock) as store:
        store.create_job(create_record(created(JobKind.STREAMING))[0])
        coordinator = place.incarnation(store, "first")
        run_steps(coordinator.start())
        run_steps(coordinator.run_batch())
        before = coordinator.bill
        assert before is not None
    place.lose_store()

    with open_store(str(place.path), place.clock) as store:
        assert store.list_jobs(include_final=True) == []
        coordinator = place.incarnation(store, "second")
        taken_over = run_steps(coordinator.start())
        assert taken_over.positions == before.positions
        assert taken_over.totals == before.totals
        newest = drain(coordinator, lambda _bill: None)
        assert newest.totals.rows.total == 20
        entries = store.list_bills(JOB_ID)
        assert [entry.seq for entry in entries] == list(range(newest.seq, -1, -1))
        assert entries[0] == entry_of(newest)
        assert store.read_totals() == {JOB_ID: newest.totals}


def test_a_store_that_is_older_than_the_table_is_caught_up(tmp_path: Path) -> None:
    place = Installation(tmp_path)
    with open_store(str(place.path), place.clock) as store, open_store(str(tmp_path / "copy"), place.clock) as copy:
        run_steps(place.incarnation(copy, "first").start())
        first = place.incarnation(store, "second")
        run_steps(first.start())
        newest = drain(first, lambda _bill: None)
        assert copy.followed_seq(JOB_ID) == 0
        run_steps(place.incarnation(copy, "third").start(said_goodbye=newest.head))
        assert copy.read_totals() == store.read_totals()
        assert len(copy.list_bills(JOB_ID)) == newest.seq + 1


def test_the_record_of_a_job_tells_the_same_as_its_bills(tmp_path: Path) -> None:
    place = Installation(tmp_path)
    with open_store(str(place.path), place.clock) as store:
        stored = store.create_job(create_record(created(JobKind.STREAMING))[0])
        coordinator = place.incarnation(store, "first")
        opening = run_steps(coordinator.start())
        at = place.clock.now()
        record, _ = transition(stored.record, Opened(head=opening.head, totals=opening.totals, at=at))

        def note(bill: Bill) -> None:
            nonlocal record
            record, _ = transition(record, BatchStarted(at=at))
            assert record.task is not None
            task_id = record.task.task_id
            landed = BatchCommitted(task_id=task_id, head=bill.head, tally=bill.tally, totals=bill.totals, at=at)
            record, _ = transition(record, landed)

        newest = drain(coordinator, note)
        record, _ = transition(record, Goodbye(head=newest.head, at=at))
        store.save_job(record, stored.version)
        assert (record.last_seen, record.totals) == (newest.head, newest.totals)
        assert record.counts.succeeded == newest.totals.commits
        found = store.load_job_by_id(JOB_ID).record
        again = place.incarnation(store, "second")
        run_steps(again.start(last_seen=found.last_seen, said_goodbye=found.goodbye))
        assert again.bill == newest

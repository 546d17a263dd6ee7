"""A home with a job that loads CSV files without Spark, and an app over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from argon2 import PasswordHasher
from fastapi import FastAPI
from fastapi.testclient import TestClient

from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.commit.steps import run_steps
from lading.http.app import create_app
from lading.http.hosts import Hosts
from lading.http.middleware import DoorRules
from lading.ids import new_incarnation, new_job_id, new_token
from lading.jobs.events import BatchCancelled, BatchCommitted, BatchStarted, Created, Opened
from lading.jobs.record import JobKind, JobRecord
from lading.jobs.transition import create_record
from lading.model.batch import BatchPlan, Limits, Report, Split
from lading.model.bill import Bill
from lading.model.job import Job
from lading.model.positions import BEGINNING, ListedPartition, Listing, PartitionState, Positions
from lading.pipeline.quarantine import QuarantineFile
from lading.plan.planner import Planner
from lading.service.facade import Lading
from lading.service.security.users import Access
from lading.service.telemetry.metrics import Metrics
from lading.settings import SecuritySettings
from lading.sql.statements.load_specs import spec_of_text
from lading.store.records import BillEntry
from lading.tables.base import Writer
from lading.tables.delta.writer import DeltaWriter
from tests.logins import with_root
from tests.support.csv_folder import CsvStager

JSON = {"content-type": "application/json"}


async def at_once(_delay_s: float) -> None:
    """Wrong passwords are answered at once."""


def rules(**changes: Any) -> DoorRules:
    """Rules under which the client of a test gets in: it calls every app `testserver`."""
    return replace(DoorRules(hosts=Hosts(names=frozenset({"testserver"})), sleep=at_once), **changes)


class Rig:
    """One home."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.inbox = path / "in"
        self.inbox.mkdir()
        self.lading = Lading(path / "home", user="tester")
        self.metrics = Metrics(self.lading.store, self.lading.clock, audit=self.lading.audit)
        self.sql("CREATE DATABASE shop; USE shop")
        self._quarantined = 0

    def sql(self, text: str) -> list[tuple[object, ...]]:
        return list(self.lading.sql(text)[-1].rows)

    def put(self, name: str, *amounts: str) -> None:
        """Let a file appear; an amount that is no number makes a bad row."""
        rows = [f"{number},essen,{amount}" for number, amount in enumerate(amounts)]
        (self.inbox / name).write_text("\n".join(["id,city,amount", *rows]) + "\n")

    def create(self, name: str = "orders", *, comment: str = "") -> JobRecord:
        """A table and a job of the same name."""
        self.sql(
            f"CREATE TABLE IF NOT EXISTS {name} "
            "(id BIGINT NOT NULL, city VARCHAR(10), amount DECIMAL(10,2)) USING delta"
        )
        said = f"COMMENT '{comment}'" if comment else ""
        self.sql(
            f"CREATE JOB {name} ON STREAMING {said} DO INSERT INTO {name} SELECT * "
            f'FROM FILE("uri"="{self.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )
        return self.lading.job(name)

    def load(self, record: JobRecord) -> list[Bill]:
        """What `run` does, in this process: the coordinator commits, the record hears of it."""
        table, incarnation = self.lading.open_target(record), new_incarnation()
        spec = table.writer_spec()

        def open_writer(attempt: str) -> Writer:
            return DeltaWriter(spec, attempt)

        world = CoordinatorPorts(
            table=table,
            bills=table.bills,
            planner=Planner(_Folder(self.inbox, self.lading.bills(record, 1)[0].positions), self.lading.clock),
            stager=_Quarantining(CsvStager(self.inbox, open_writer, incarnation), self),
            clock=self.lading.clock,
            new_token=new_token,
            followers=(self.lading.store,),
        )
        self._folder = self.lading.home.quarantine(record.job_id)
        job = Job(job_id=record.job_id, name=record.name, limits=Limits(files=1), definition=record.definition)
        coordinator, runner = Coordinator(job, world, incarnation), self.lading.runner(record.job_id)
        opened = run_steps(coordinator.start(last_seen=record.last_seen, said_goodbye=record.goodbye))
        runner.apply(Opened(head=opened.head, totals=opened.totals, at=self.lading.clock.now()))
        bills: list[Bill] = []
        while True:
            task = runner.apply(BatchStarted(at=self.lading.clock.now())).task
            assert task
            bill = run_steps(coordinator.run_batch())
            if bill is None:
                runner.apply(BatchCancelled(task_id=task.task_id, at=self.lading.clock.now()))
                return bills
            bills.append(bill)
            runner.apply(
                BatchCommitted(
                    task_id=task.task_id,
                    head=bill.head,
                    tally=bill.tally,
                    totals=bill.totals,
                    first_bad_row=bill.first_error,
                    current_offset='{"fileName": "x"}',
                    at=self.lading.clock.now(),
                )
            )
            self.metrics.committed(self.lading.job(record.name), bill)

    def access(self, security: SecuritySettings | None = None) -> Access:
        """Users of this home; wrong passwords are answered at once."""
        quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        lading = self.lading
        access = Access(
            lading.store,
            lading.clock,
            lading.vault,
            wait=lambda delay_s: None,
            hasher=quick,
            security=security,
            audit=lading.audit,
        )
        return with_root(access)

    def create_routine(self, name: str = "clicks", database: str = "shop") -> JobRecord:
        """The record of a routine load that nobody runs."""
        definition = f"CREATE ROUTINE LOAD {database}.{name} ON orders FROM KINESIS ()"
        event = Created(
            job_id=new_job_id(),
            name=name,
            database=database,
            kind=JobKind.ROUTINE,
            definition=definition,
            spec=spec_of_text(definition),
            target=f"{database}.orders",
            user="tester",
            at=self.lading.clock.now(),
        )
        record, _ = create_record(event)
        return self.lading.store.create_job(record).record

    def quarantine(self, report: Report) -> Report:
        if not report.rows.error:
            return report
        self._quarantined += 1
        file = QuarantineFile(self._folder, f"attempt-{self._quarantined}")
        for number in range(report.rows.error):
            file.add(file=report.end, row=number, reason="not a number", raw=b"0,essen,\xffwrong")
        return replace(report, quarantine=(file.close(),), first_error="not a number")

    def entries(self, record: JobRecord) -> list[BillEntry]:
        return self.lading.store.list_bills(record.job_id)

    def app(self, *, access: Access | None = None, under: DoorRules | None = None) -> FastAPI:
        return create_app(self.lading, access=access, metrics=self.metrics, rules=under or rules())

    def client(self, *, access: Access | None = None) -> TestClient:
        return TestClient(self.app(access=access), raise_server_exceptions=False)


class _Folder:
    """The files of a folder, with the partition and the positions that a job of files has."""

    def __init__(self, folder: Path, positions: Positions) -> None:
        self._folder = folder
        self._partition = next(iter(positions.partitions))

    def open(self, start: str) -> Positions:
        return Positions(partitions={self._partition: PartitionState(at=BEGINNING)})

    def list_partitions(self) -> Listing:
        return Listing(partitions={self._partition: ListedPartition()})

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        at = ready[self._partition].at
        files = sorted(str(path) for path in self._folder.glob("*.csv") if str(path) > at)[: limits.files]
        starts = [at, *files]
        return tuple(
            Split(number=number, partition=self._partition, start=starts[number], end=file)
            for number, file in enumerate(files)
        )


class _Quarantining:
    """Puts bad rows where a real stager puts them."""

    def __init__(self, stager: CsvStager, rig: Rig) -> None:
        self._stager = stager
        self._rig = rig

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        return [self._rig.quarantine(report) for report in self._stager.stage(plan)]

"""Jobs, bills and entries to store, with text that is hard to store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lading.ids import JobId, Token, new_job_id
from lading.jobs.record import JobKind, JobRecord
from lading.jobs.tasks import TaskRecord, TaskState
from lading.jobs.transition import create_record
from lading.model.bill import Bill
from tests.jobs.story import START, created
from tests.model.samples import FULL_BILL

HARD_TEXT = "größe 'x' \"y\" \x00 \ud83d %s :name {serial} \\ \n 💧"


def job(
    name: str = "orders", *, kind: JobKind = JobKind.STREAMING, database: str = "sales", age_s: int = 0
) -> JobRecord:
    record, _ = create_record(created(kind, name=name))
    at = START - timedelta(seconds=age_s)
    return replace(record, job_id=new_job_id(), database=database, comment=HARD_TEXT, created_at=at)


def task(job_id: JobId, number: int) -> TaskRecord:
    at = START + timedelta(seconds=number)
    return TaskRecord(
        task_id=number, job_id=job_id, job_name="orders", state=TaskState.SUCCESS, created_at=at, error=HARD_TEXT
    )


def bill(seq: int, job_id: JobId = FULL_BILL.job_id) -> Bill:
    return replace(FULL_BILL, job_id=job_id, seq=seq, token=Token(2**63 - 1 - seq))

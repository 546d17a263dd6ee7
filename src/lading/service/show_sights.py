"""From records to what is shown of them. Texts that people or foreign systems wrote go through `said`."""

from __future__ import annotations

from typing import Any

from lading.jobs.record import JobRecord
from lading.jobs.tasks import TaskRecord
from lading.model.bill import Bill
from lading.model.tally import Tally
from lading.service.hidden import hide
from lading.service.sight_records import (
    AuditSight,
    BatchSight,
    BillSight,
    CountsSight,
    JobDetail,
    JobSight,
    LagSight,
    PartitionSight,
    ReasonSight,
)
from lading.sql.masking import mask_properties
from lading.status.lag import Lag
from lading.status.rates import Beat, Rates
from lading.store.records import AuditEntry, BillEntry


def show_job(record: JobRecord, totals: Tally, rates: Rates, lag: Lag | None) -> JobSight:
    """A job as lists show it."""
    reason = record.reason
    return JobSight(
        name=str(record.full_name),
        job_id=record.job_id,
        kind=record.kind.value,
        database=record.database,
        target=record.target,
        state=record.state.value,
        reason=ReasonSight(code=reason.code.name, message=said(reason.message), needs_a_person=reason.needs_a_person)
        if reason
        else None,
        comment=said(record.comment),
        definer=record.definer,
        created_at=record.created_at,
        ended_at=record.ended_at,
        paused_at=record.paused_at,
        resumes_at=record.auto_resume.next_at,
        lag=show_lag(lag) if lag else None,
        totals=totals,
        rows_per_s=rates.rows_per_s,
        bytes_per_s=rates.bytes_per_s,
        last_commit_at=record.last_success_at,
        last_error=said(record.last_error),
        last_error_at=record.last_error_at,
        failures_in_a_row=record.failures,
        batches=CountsSight(
            begun=record.counts.begun,
            succeeded=record.counts.succeeded,
            failed=record.counts.failed,
            cancelled=record.counts.cancelled,
        ),
        is_busy=record.task is not None,
        message=said(record.runtime_message),
        current_offset=said(record.current_offset),
        end_offset=said(record.end_offset),
        seq=record.last_seen.seq if record.last_seen else None,
    )


def show_detail(
    record: JobRecord,
    job: JobSight,
    *,
    epoch: int | None = None,
    positions: tuple[PartitionSight, ...] = (),
    fault: str = "",
) -> JobDetail:
    """A job with what its table knows."""
    return JobDetail(
        job=job,
        definition=said(record.definition),
        properties=mask_properties(record.properties),
        epoch=epoch,
        positions=positions,
        positions_fault=fault,
    )


def show_lag(lag: Lag) -> LagSight:
    """How far a job is behind."""
    return LagSight(
        unit=lag.unit,
        behind=lag.behind,
        partitions=lag.partitions,
        seconds_to_trim=lag.seconds_to_trim,
        at=lag.at,
    )


def show_partitions(bill: Bill) -> tuple[PartitionSight, ...]:
    """Where a job stands, by partition."""
    return tuple(
        PartitionSight(partition=said(name), at=said(state.at), finished=state.finished, parents=state.parents)
        for name, state in sorted(bill.positions.partitions.items())
    )


def show_bill(entry: BillEntry) -> BillSight:
    """One commit."""
    return BillSight(
        seq=entry.seq,
        token=str(entry.token),
        epoch=entry.epoch,
        kind=entry.kind.value,
        incarnation=entry.incarnation,
        planned_at=entry.planned_at,
        billed_at=entry.billed_at,
        seconds=(entry.billed_at - entry.planned_at).total_seconds(),
        tally=entry.tally,
        totals=entry.totals,
    )


def beat_of(entry: BillEntry) -> Beat:
    """One commit, as rates see it."""
    seconds = (entry.billed_at - entry.planned_at).total_seconds()
    return Beat(at=entry.billed_at, tally=entry.tally, seconds=seconds)


def show_batch(task: TaskRecord) -> BatchSight:
    """One batch."""
    begun = task.started_at or task.created_at
    return BatchSight(
        batch_id=task.task_id,
        state=task.state.value,
        attempt=task.attempt,
        created_at=task.created_at,
        started_at=task.started_at,
        finished_at=task.finished_at,
        seconds=(task.finished_at - begun).total_seconds() if task.finished_at else None,
        rows=task.tally.rows if task.tally else None,
        error=said(task.error),
        first_error=said(task.first_error),
        user=task.user,
        running_offset=said(task.running_offset),
    )


def show_audit(entry: AuditEntry) -> AuditSight:
    """One change."""
    return AuditSight(
        at=entry.at,
        user=entry.user,
        action=entry.action,
        subject=entry.subject,
        statement=said(entry.statement),
        facts={name: said(value) for name, value in mask_properties(entry.facts).items()},
    )


def said(text: str) -> str:
    """A text without secrets, and without what UTF-8 cannot carry."""
    return hide(printable(text))


def printable(text: str) -> str:
    """A text without what UTF-8 cannot carry."""
    return text.encode("utf-8", "backslashreplace").decode()


def without_secrets_deep(value: Any) -> Any:
    """JSON with every text masked."""
    match value:
        case str():
            return said(value)
        case dict():
            return {name: without_secrets_deep(item) for name, item in value.items()}
        case list():
            return [without_secrets_deep(item) for item in value]
    return value

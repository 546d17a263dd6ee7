"""From records to what is shown of them. Texts that people or foreign systems wrote go through `redacted`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.jobs.record import JobRecord
from lading.jobs.tasks import TaskRecord
from lading.jobs.views import render_event_time
from lading.model.bill import Bill
from lading.model.errors_copied import ErrorsCopied
from lading.model.tally import Tally
from lading.service.security.redaction import redact
from lading.service.views.health import health_of
from lading.service.views.problems import problem_of
from lading.service.views.records import (
    AuditView,
    BatchView,
    BillView,
    CountsView,
    JobDetail,
    JobView,
    LagView,
    PartitionView,
    ReasonView,
)
from lading.sql.syntax.masking import mask_properties
from lading.status.lag import Lag
from lading.status.rates import Beat, Rates
from lading.status.windows import count_open_windows
from lading.store.records import AuditEntry, BillEntry


def show_job(
    record: JobRecord,
    totals: Tally,
    rates: Rates,
    lag: Lag | None,
    *,
    left_out: Mapping[str, int] | None = None,
    service: str = "",
) -> JobView:
    """A job as lists show it."""
    reason = record.reason
    return JobView(
        name=str(record.full_name),
        job_id=record.job_id,
        kind=record.kind.value,
        source=record.spec.source.kind if record.spec else "",
        database=record.database,
        target=record.target,
        state=record.state.value,
        health=health_of(record, lag=lag, rates=rates, left_out=left_out),
        problem=problem_of(record),
        reason=ReasonView(
            code=reason.code.name, message=redacted(reason.message), needs_attention=reason.needs_attention
        )
        if reason
        else None,
        comment=redacted(record.comment),
        definer=record.definer,
        created_at=record.created_at,
        ended_at=record.ended_at,
        paused_at=record.paused_at,
        resumes_at=record.auto_resume.next_at,
        lag=show_lag(lag) if lag else None,
        totals=totals,
        has_event_time=record.spec is not None and record.spec.watermark is not None,
        watermark=render_event_time(record.watermark_us),
        state_rows=record.kept.rows if record.kept is not None else None,
        state_bytes=record.kept.size_bytes if record.kept is not None else None,
        state_due=render_event_time(record.kept.next_us) if record.kept is not None else None,
        listening=record.listening,
        errors_copied=_errors_copied(record),
        rows_per_s=rates.rows_per_s,
        bytes_per_s=rates.bytes_per_s,
        last_commit_at=record.last_success_at,
        last_error=redacted(record.last_error),
        last_error_at=record.last_error_at,
        failures_in_a_row=record.failures,
        batches=CountsView(
            begun=record.counts.begun,
            succeeded=record.counts.succeeded,
            failed=record.counts.failed,
            cancelled=record.counts.cancelled,
        ),
        is_busy=record.task is not None,
        message=redacted(record.runtime_message),
        current_offset=redacted(record.current_offset),
        end_offset=redacted(record.end_offset),
        seq=record.last_seen.seq if record.last_seen else None,
        service=service,
    )


def _errors_copied(record: JobRecord) -> ErrorsCopied | None:
    """None: the job has no errors table, or another one by now."""
    name, known = record.spec.errors_table if record.spec is not None else "", record.errors_copied
    return known if name and known is not None and known.table == name else None


def show_detail(
    record: JobRecord,
    job: JobView,
    *,
    newest: Bill | None = None,
    fault: str = "",
) -> JobDetail:
    """A job with what its table knows."""
    window = record.spec.window if record.spec else None
    return JobDetail(
        job=job,
        definition=redacted(record.definition),
        properties=mask_properties(record.properties),
        epoch=newest.epoch if newest else None,
        positions=show_partitions(newest) if newest else (),
        positions_fault=fault,
        open_windows=count_open_windows(window, newest) if window and newest else None,
    )


def show_lag(lag: Lag) -> LagView:
    """How far a job is behind."""
    return LagView(
        unit=lag.unit,
        behind=lag.behind,
        partitions=lag.partitions,
        seconds_to_trim=lag.seconds_to_trim,
        at=lag.at,
    )


def show_partitions(bill: Bill) -> tuple[PartitionView, ...]:
    """Where a job stands, by partition."""
    return tuple(
        PartitionView(
            partition=redacted(name),
            at=redacted(state.at),
            finished=state.finished,
            parents=state.parents,
            event_time=render_event_time(state.event_us),
        )
        for name, state in sorted(bill.positions.partitions.items())
    )


def show_bill(entry: BillEntry) -> BillView:
    return BillView(
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


def show_batch(task: TaskRecord) -> BatchView:
    begun = task.started_at or task.created_at
    return BatchView(
        batch_id=task.task_id,
        state=task.state.value,
        attempt=task.attempt,
        created_at=task.created_at,
        started_at=task.started_at,
        finished_at=task.finished_at,
        seconds=(task.finished_at - begun).total_seconds() if task.finished_at else None,
        rows=task.tally.rows if task.tally else None,
        error=redacted(task.error),
        first_error=redacted(task.first_error),
        user=task.user,
        running_offset=redacted(task.running_offset),
    )


def show_audit(entry: AuditEntry) -> AuditView:
    return AuditView(
        at=entry.at,
        user=entry.user,
        action=entry.action,
        subject=entry.subject,
        statement=redacted(entry.statement),
        facts={name: redacted(value) for name, value in mask_properties(entry.facts).items()},
    )


def redacted(text: str) -> str:
    """A text without secrets, and without what UTF-8 cannot carry."""
    return redact(printable(text))


def printable(text: str) -> str:
    """A text without what UTF-8 cannot carry."""
    return text.encode("utf-8", "backslashreplace").decode()


def without_secrets_deep(value: Any) -> Any:
    """JSON with every text masked."""
    match value:
        case str():
            return redacted(value)
        case dict():
            return {name: without_secrets_deep(item) for name, item in value.items()}
        case list():
            return [without_secrets_deep(item) for item in value]
    return value

"""The one function that changes the record of a job.

    streaming   PENDING ─▶ RUNNING ─▶ PAUSED ─▶ PENDING      any ─▶ STOPPED (DROP)       RUNNING ─▶ FINISHED
    routine     NEED_SCHEDULE ─▶ RUNNING ─▶ PAUSED ─▶ NEED_SCHEDULE
                any ─▶ STOPPED (STOP)      any ─▶ CANCELLED (the table is gone)

A refused statement raises JobStateError and changes nothing. Reports of an incarnation are never refused, except the
start of a batch: what a table has accepted is true in every state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lading.errors import JobStateError
from lading.jobs import batches
from lading.jobs.actions import Halt, LetGo, Run
from lading.jobs.batches import Change
from lading.jobs.dialects import DIALECTS
from lading.jobs.events import (
    Altered,
    BadRowsCopied,
    BatchCancelled,
    BatchCommitted,
    BatchFailed,
    BatchStarted,
    BatchWaits,
    CaughtUp,
    Created,
    Event,
    Fenced,
    Goodbye,
    Interrupted,
    ListenersTold,
    NothingToDo,
    Opened,
    OpeningCommitted,
    PausedByUser,
    Replayed,
    Resumed,
    RollbackAccepted,
    RolledBack,
    Stopped,
    TableEvolved,
    TargetGone,
    Tick,
    TurnBegun,
)
from lading.jobs.pace import acquitted
from lading.jobs.pausing import is_due, pause, wait_to_be_opened
from lading.jobs.reasons import Reason, ReasonCode
from lading.jobs.record import AutoResume, JobRecord, JobState
from lading.jobs.windows import begin_window


def create_record(event: Created) -> Change:
    """The record of a new job, which wants to run."""
    record = JobRecord(
        job_id=event.job_id,
        name=event.name,
        database=event.database,
        kind=event.kind,
        definition=event.definition,
        spec=event.spec,
        properties=dict(event.properties),
        target=event.target,
        comment=event.comment,
        definer=event.user,
        created_at=event.at,
        state=DIALECTS[event.kind].waiting,
        window=event.window,
    )
    return record, (Run(scale=record.batch_scale),)


def transition(record: JobRecord, event: Event) -> Change:
    """What the record becomes, and what is to be done."""
    match event:
        case TurnBegun():
            return _begin_turn(record)
        case PausedByUser():
            return _pause_by_user(record, event)
        case Resumed():
            return _resume(record)
        case Stopped():
            return _stop(record, event)
        case Altered():
            return _alter(record, event)
        case RollbackAccepted():
            return _accept_rollback(record, event)
        case Replayed():
            return batches.on_replayed(record, event)
        case Opened():
            return batches.on_opened(record, event)
        case OpeningCommitted():
            return batches.on_opening_committed(record, event)
        case BatchStarted():
            return batches.on_batch_started(record, event)
        case BatchCommitted():
            return batches.on_batch_committed(record, event)
        case BatchFailed():
            return batches.on_batch_failed(record, event)
        case BatchCancelled():
            return batches.on_batch_cancelled(record, event)
        case NothingToDo():
            return batches.on_nothing_to_do(record, event)
        case TableEvolved():
            return replace(record, runtime_message=event.message), ()
        case BatchWaits():
            return batches.on_batch_waits(record, event)
        case ListenersTold():
            return replace(record, listening=event.listening), ()
        case BadRowsCopied():
            return replace(record, errors_copied=event.copied), ()
        case CaughtUp():
            return _finish(record, event)
        case Fenced() | RolledBack():
            return _halt_for_good(record, event)
        case TargetGone():
            return _lose_target(record, event)
        case Goodbye():
            return replace(record, goodbye=event.head), ()
        case Interrupted():
            return batches.end_interrupted_task(record, event.at)
        case Tick():
            return _tick(record, event)
    assert_never(event)


def _begin_turn(record: JobRecord) -> Change:
    if record.is_final or record.state is JobState.PAUSED:
        return record, (Halt(),)
    run = Run(scale=record.batch_scale)
    # It was resumed: it is opened again, from what the table says.
    return record, (LetGo(), run) if record.is_waiting else (run,)


def _pause_by_user(record: JobRecord, event: PausedByUser) -> Change:
    waits_for_attention = record.reason is None or record.reason.needs_attention
    if record.is_final or (record.state is JobState.PAUSED and waits_for_attention):
        raise _refused(record, "PAUSED")
    reason = Reason(code=ReasonCode.MANUAL_PAUSE_ERR, message=record.dialect.pauses(event.user))
    return pause(record, reason, event.at), (Halt(),)


def _resume(record: JobRecord) -> Change:
    may_resume = record.state is JobState.PAUSED or record.dialect.reopens_running
    if record.is_final or not may_resume:
        raise _refused(record, record.dialect.waiting.value)
    fresh = begin_window(replace(record, first_error="", failures=0, pace=acquitted(record.pace)))
    resumed = wait_to_be_opened(fresh, AutoResume())
    if record.state is JobState.RUNNING:
        return resumed, (Halt(),)
    # The old task may still be settling its commit. The job is opened again only after that, by a tick.
    return resumed, () if resumed.task else (Run(scale=resumed.batch_scale),)


def _stop(record: JobRecord, event: Stopped) -> Change:
    if record.is_final:
        raise _refused(record, "STOPPED")
    return replace(_ended(record, JobState.STOPPED), ended_at=event.at), (Halt(),)


def _alter(record: JobRecord, event: Altered) -> Change:
    if record.is_final or record.state is not JobState.PAUSED:
        raise _not_paused(record)
    changed = replace(
        record,
        definition=record.definition if event.definition is None else event.definition,
        spec=record.spec if event.definition is None else event.spec,
        properties=dict(event.properties) if event.is_undo else {**record.properties, **event.properties},
        window=event.window or record.window,
        secrets_slot=record.secrets_slot if event.secrets_slot is None else event.secrets_slot,
        last_seen=event.moved or record.last_seen,
        watermark_us=event.watermark_us if event.moved else record.watermark_us,
        kept=event.kept if event.moved else record.kept,
        joined=event.joined if event.moved else record.joined,
        pace=acquitted(record.pace) if event.moved else record.pace,
        current_offset=record.current_offset if event.current_offset is None else event.current_offset,
    )
    if changed == record and not event.is_said_again:
        msg = f"No properties or sql changed for job {record.full_name}"
        raise JobStateError(msg, left="Nothing was changed.", todo="Name what should change.", job_id=record.job_id)
    return changed, ()


def _accept_rollback(record: JobRecord, event: RollbackAccepted) -> Change:
    """What stopped the job is settled; it waits for RESUME."""
    if record.is_final or record.state is not JobState.PAUSED:
        raise _not_paused(record)
    moved = replace(
        record,
        reason=None,
        last_seen=event.head,
        goodbye=None,
        totals=event.totals,
        watermark_us=event.watermark_us,
        kept=event.kept,
        joined=event.joined,
        current_offset=event.current_offset,
    )
    return pause(moved, Reason(code=ReasonCode.MANUAL_PAUSE_ERR, message=event.message), event.at), ()


def _finish(record: JobRecord, event: CaughtUp) -> Change:
    """Where there is such a state; other jobs go on waiting for rows."""
    if not record.dialect.can_finish or record.state is not JobState.RUNNING or record.task is not None:
        return record, ()
    return replace(_ended(record, JobState.FINISHED), ended_at=event.at), (Halt(),)


def _halt_for_good(record: JobRecord, event: Fenced | RolledBack) -> Change:
    ended, actions = batches.end_failed_task(record, event.message, event.at)
    is_paused_by_user = record.reason is not None and record.reason.code is ReasonCode.MANUAL_PAUSE_ERR
    if isinstance(event, Fenced) and (is_paused_by_user or record.is_waiting):
        # A person paused it and moved its position through another service, while its last batch was running here. It
        # may have been resumed since: it is opened again then.
        return ended, (*actions, LetGo(), Halt())
    reason = Reason(code=ReasonCode.CANNOT_RESUME_ERR, message=event.message)
    return pause(ended, reason, event.at), (*actions, LetGo(), Halt())


def _lose_target(record: JobRecord, event: TargetGone) -> Change:
    ended, actions = batches.end_failed_task(record, event.message, event.at)
    reason = Reason(code=event.code, message=event.message)
    if record.is_final or not record.dialect.ends_without_target:
        return pause(ended, reason, event.at), (*actions, LetGo(), Halt())
    gone = replace(_ended(ended, JobState.CANCELLED), reason=reason, ended_at=event.at)
    return gone, (*actions, LetGo(), Halt())


def _tick(record: JobRecord, event: Tick) -> Change:
    if is_due(record, event.at):
        tries = record.auto_resume.tries + 1
        message = f"Resumed automatically, try {tries}"
        resumed = wait_to_be_opened(record, AutoResume(tries=tries, resumed_at=event.at), message)
        return resumed, (Run(scale=resumed.batch_scale),)
    may_run = record.state is JobState.RUNNING or (record.is_waiting and record.task is None)
    return record, (Run(scale=record.batch_scale),) if may_run else ()


def _ended(record: JobRecord, state: JobState) -> JobRecord:
    return replace(record, state=state, reason=None, paused_at=None, auto_resume=AutoResume(), runtime_message="")


def _refused(record: JobRecord, wanted: str) -> JobStateError:
    state, text = record.state.value, record.dialect.ended if record.is_final else record.dialect.same_state
    msg = text.format(name=record.full_name, own=record.name, state=state, wanted=wanted)
    return JobStateError(msg, left="Nothing was changed.", todo=_advice(record), job_id=record.job_id, state=state)


def _advice(record: JobRecord) -> str:
    if record.is_final:
        return "Create the job again; its name is free."
    return "Resume it first." if record.state is JobState.PAUSED else "It is already on its way."


def _not_paused(record: JobRecord) -> JobStateError:
    msg = record.dialect.not_paused.format(name=record.full_name, state=record.state.value)
    todo = "Create the job again." if record.is_final else "Pause it first."
    return JobStateError(msg, left="Nothing was changed.", todo=todo, job_id=record.job_id)

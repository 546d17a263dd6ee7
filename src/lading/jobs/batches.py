"""What the reports of a batch do to the record of its job."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from lading.errors import JobStateError
from lading.jobs import pace
from lading.jobs.actions import Action, Halt, LetGo, Rest, Retry, Run, SaveTask
from lading.jobs.events import (
    BatchCancelled,
    BatchCommitted,
    BatchFailed,
    BatchStarted,
    BatchWaits,
    NothingToDo,
    Opened,
    OpeningCommitted,
    Replayed,
)
from lading.jobs.pausing import pause, reason_to_pause
from lading.jobs.reasons import Failure, Reason, ReasonCode
from lading.jobs.record import AutoResume, JobRecord, JobState, TaskCounts, with_error, with_try
from lading.jobs.tasks import TaskRecord, TaskState
from lading.jobs.windows import check_window
from lading.model.tally import RowCounts, Tally

MAX_ATTEMPTS = 4
"""Attempts at one task of a streaming job, and failed tasks in a row of a routine load, before the job is paused."""

NOTHING_NEW = "No new data is available in the source"
NOT_LOADED = "not loaded: "
"""How a remark begins that is about files which are there and are not going to be loaded."""

Change = tuple[JobRecord, tuple[Action, ...]]


def on_opened(record: JobRecord, event: Opened) -> Change:
    """Take in what the table says, which may be more than the record knew, and run."""
    is_open = event.is_retry and event.totals.commits == (record.totals or Tally()).commits
    settled, actions = (record, ()) if is_open else _end_lost_task(record, event.at, event.totals)
    seen = _take_in(settled, event)
    life = seen.pace if event.is_retry else pace.after_opening(seen.pace)
    seen = replace(seen, goodbye=None, current_offset=event.current_offset or seen.current_offset, pace=life)
    if record.is_final or record.state is JobState.PAUSED:
        return seen, (*actions, Halt())
    opened = check_window(replace(seen, state=JobState.RUNNING), event.at)
    # It was opened to plan batches as large as the one that died. It is opened again before the first of them.
    again = (Run(scale=opened.batch_scale),) if opened.batch_scale != record.batch_scale else ()
    return opened, (*actions, *(_halt_if_paused(opened) or again))


def on_opening_committed(record: JobRecord, event: OpeningCommitted) -> Change:
    """The job waits to be run, as before, and now the table knows it."""
    seen = _take_in(record, event)
    return replace(seen, goodbye=event.head, current_offset=event.current_offset or seen.current_offset), ()


def on_replayed(record: JobRecord, event: Replayed) -> Change:
    """What was in quarantine was taken up. The job goes on as it was; nobody is left to fence, and bad rows are counted
    from here on."""
    seen = _take_in(record, event)
    counted = replace(seen, window_base=event.totals.rows) if seen.last_seen == event.head else seen
    return replace(counted, goodbye=None, current_offset=event.current_offset or seen.current_offset), ()


def on_batch_started(record: JobRecord, event: BatchStarted) -> Change:
    """Open a task. One that is open is tried once more.

    What the batch reads is kept with it before it is staged: the process may die of it.
    """
    paced = replace(record, pace=pace.begun(record.pace, event.fill, event.least))
    if record.state is JobState.RUNNING and record.task is not None:
        return paced, ()
    if record.state is not JobState.RUNNING:
        msg = f"Job {record.full_name} is {record.state.value} and cannot begin a batch"
        raise JobStateError(msg, left="Nothing was read.", todo="Stop working for this job.", job_id=record.job_id)
    number = record.counts.begun + 1
    task = TaskRecord(
        task_id=number,
        job_id=record.job_id,
        job_name=record.name,
        created_at=event.at,
        started_at=event.at,
        user=record.definer,
        running_offset=event.running_offset,
    )
    begun = replace(
        paced,
        task=task,
        counts=replace(record.counts, begun=number),
        end_offset=event.end_offset or record.end_offset,
        runtime_message="",
    )
    return begun, (SaveTask(task=task),)


def on_batch_committed(record: JobRecord, event: BatchCommitted) -> Change:
    """The table has it, so it counts, whatever the state of the job has become meanwhile."""
    seen = _take_in(record, event)
    done = replace(
        _paced_by_commit(record, seen, event.tally),
        failures=0,
        auto_resume=AutoResume() if seen.state is JobState.RUNNING else seen.auto_resume,
        last_success_at=event.at,
        first_error=seen.first_error or event.first_bad_row,
        current_offset=event.current_offset or seen.current_offset,
        end_offset=event.end_offset or seen.end_offset,
        runtime_message="" if seen.state is JobState.RUNNING else seen.runtime_message,
    )
    actions: tuple[Action, ...] = ()
    if _is_open(record, event.task_id):
        done, actions = _end_task(
            done,
            TaskState.SUCCESS,
            event.at,
            tally=event.tally,
            first_error=event.first_bad_row,
            running_offset=event.running_offset,
        )
    checked = check_window(done, event.at)
    if record.state is not JobState.RUNNING:
        return checked, actions
    # A batch that was not full has loaded what there was: waiting saves tiny commits.
    goes_on = Run(scale=checked.batch_scale) if event.was_full else Rest()
    return checked, (*actions, *(_halt_if_paused(checked) or (goes_on,)))


def _paced_by_commit(record: JobRecord, seen: JobRecord, tally: Tally) -> JobRecord:
    """`seen` is the record with what the table says; the batch that landed is the one that `record` has begun."""
    base = seen.window_base
    if record.pace.passes_over:
        # The user chose that it is bad: it does not count among those that pause the job. Of a file the other rows do.
        inside = record.pace.least.inside if record.pace.least is not None else ()
        base += RowCounts(total=len(inside), error=len(inside)) if inside else tally.rows
    return replace(seen, window_base=base, pace=pace.after_commit(seen.pace, tally.rows.loaded))


def on_batch_failed(record: JobRecord, event: BatchFailed) -> Change:
    """Try again, or end the task and pause the job."""
    failed, actions = _batch_failed(record, event)
    # A file that was to be put aside and is not: the job is opened again, to read it as any other.
    is_spared = record.pace.poison is not None and failed.pace.poison is None
    return failed, (*_let_go_if(event.failure.is_unsure or is_spared), *actions)


def _batch_failed(record: JobRecord, event: BatchFailed) -> Change:
    noted = with_try(record, event.failure.reason.message, event.at)
    if event.failure.is_worker_lost:
        noted = replace(noted, pace=pace.after_worker_death(noted.pace))
        if record.task is not None and record.task.task_id == event.task_id and record.state is JobState.RUNNING:
            return _worker_lost(noted, record.task, event)
    elif event.failure.while_staging:
        noted = replace(noted, pace=pace.after_death(noted.pace))
    elif event.failure.is_unreadable and record.task is not None and _puts_aside(record, event):
        return _unreadable(noted, record.task, event)
    if event.task_id is None:
        paused = pause(noted, event.failure.reason, event.at)
        return paused, _halt_if_paused(paused)
    if record.task is None or record.task.task_id != event.task_id:
        return record, (Rest(),)
    if _may_try_again(record, record.task, event.failure):
        return _try_again(noted, record.task, event.failure)
    ended, actions = _end_task(noted, TaskState.FAILED, event.at, error=event.failure.reason.message)
    ended = replace(ended, failures=ended.failures + 1)
    if _goes_on(ended, event.failure):
        told = replace(ended, runtime_message=f"The last task failed: {event.failure.reason.message}")
        return told, (*actions, _retry(told, event.task_id, told.failures))
    paused = pause(ended, reason_to_pause(record, event.failure), event.at)
    return paused, (*actions, *_halt_if_paused(paused))


def _worker_lost(record: JobRecord, task: TaskRecord, event: BatchFailed) -> Change:
    """Cut the batch until it fits. What cannot be cut, and has killed often enough alone, is the reason."""
    paced, message, found = record.pace, event.failure.reason.message, event.failure.found
    if paced.passes_over and found is None:
        told = f"{message} It died without {paced.least}, too: that is not the cause."
        return _pause_for(replace(record, pace=pace.acquitted(paced)), told, event)
    place = found or paced.least
    if place is None or (found is None and paced.suspect_deaths < pace.POISON_DEATHS):
        what = "the batch is cut" if place is None else f"{place} is tried again alone"
        return _cut_and_retry(record, task, f"A worker died, and {what}: {message}", message)
    told = f"{place} ended {pace.POISON_DEATHS} workers that read it alone"
    if place.is_record and (paced.passed >= pace.MOST_PASSED or len(place.inside) > pace.MOST_INSIDE):
        others = max(paced.passed, len(place.inside) - 1)
        told += f", after {others} others in a row that were put aside. It is hardly the records: look at the memory "
        told += f"and the libraries of the workers, then RESUME the job. The last: {message}"
        return _pause_for(replace(record, pace=replace(pace.acquitted(paced), passed=paced.passed)), told, event)
    if place.is_record and record.spec is not None and record.spec.on_poison_record == "QUARANTINE":
        reason = f"It ended {pace.POISON_DEATHS} workers that read it alone. The last: {message}"
        judged = replace(record, pace=pace.condemned(paced, place, reason))
        again, actions = _cut_and_retry(judged, task, f"{told}, and goes to quarantine: {message}", message)
        # The job is opened again: its next batch does not read that record.
        return again, (LetGo(is_retry=True), *actions)
    todo = 'Set "on_poison_record" = "QUARANTINE" to load the rest' if place.is_record else "Take it away"
    told = f"{told}. {todo}, or give workers more memory. The last: {message}"
    return _pause_for(replace(record, pace=pace.acquitted(paced)), told, event)


def _puts_aside(record: JobRecord, event: BatchFailed) -> bool:
    is_chosen = record.spec is not None and record.spec.intake.on_error == "SKIP"
    is_open = record.task is not None and record.task.task_id == event.task_id
    return is_chosen and is_open and record.state is JobState.RUNNING


def _unreadable(record: JobRecord, task: TaskRecord, event: BatchFailed) -> Change:
    """Find the file among those of the batch, and put it aside if it is as bad when it is read once more."""
    message = event.failure.reason.message
    judged = pace.after_unreadable(record.pace, message)
    if judged is None:
        told = f"{message} {record.pace.passed} others in a row were put aside: look at how the job reads files."
        return _pause_for(record, told, event, ReasonCode.CANNOT_RESUME_ERR)
    what = "the batch is cut" if judged.poison is None else f"{judged.least} is looked at once more"
    told = f"A file cannot be read, and {what}: {message}"
    again, actions = _cut_and_retry(replace(record, pace=judged), task, told, message)
    # The job is opened again: its next batch is that file alone.
    return again, (*_let_go_if(judged.poison is not None), *actions)


def _cut_and_retry(record: JobRecord, task: TaskRecord, told: str, message: str) -> Change:
    """The same task with another batch, which is no further attempt at the old one. Each is smaller than the one
    before it, or a death of a suspect: they come to an end."""
    again = replace(task, error=message, first_error=task.first_error or message)
    after_s = retry_delay_s(max(1, task.attempt - 1, record.failures))
    if record.pace.suspect_deaths and record.pace.poison is None:
        after_s = max(after_s, pace.SUSPECT_WAIT_S)
    retry = Retry(task_id=task.task_id, attempt=task.attempt, scale=record.batch_scale, after_s=after_s)
    return replace(record, task=again, runtime_message=told), (SaveTask(task=again), retry)


def _pause_for(
    record: JobRecord, message: str, event: BatchFailed, code: ReasonCode = ReasonCode.TASKS_ABORT_ERR
) -> Change:
    ended, actions = _end_task(record, TaskState.FAILED, event.at, error=message)
    reason = Reason(code=code, message=message)
    noted = replace(ended, failures=ended.failures + 1, last_error=message)
    return pause(noted, reason, event.at), (*actions, Halt())


def on_batch_waits(record: JobRecord, event: BatchWaits) -> Change:
    """Say what the open task waits for."""
    if record.state is not JobState.RUNNING or record.task is None:
        return record, ()
    noted = with_error(record, event.message, event.at) if event.message else record
    return replace(noted, runtime_message=event.message), ()


def on_batch_cancelled(record: JobRecord, event: BatchCancelled) -> Change:
    """The task is settled: nothing of it was committed."""
    let_go = _let_go_if(event.is_unsure)
    if not _is_open(record, event.task_id):
        return record, let_go
    ended, actions = _end_task(record, TaskState.CANCELED, event.at)
    return ended, (*let_go, *actions)


def on_nothing_to_do(record: JobRecord, event: NothingToDo) -> Change:
    """The source answered, so whatever was wrong is over."""
    if record.state is not JobState.RUNNING:
        return record, ()
    idle = replace(
        record,
        failures=0,
        auto_resume=AutoResume(),
        end_offset=event.end_offset or record.end_offset,
        runtime_message="; ".join(filter(None, (NOTHING_NEW, event.remark))),
    )
    # A task that was staged and moved nothing is a success that committed nothing.
    rested, actions = _end_task(idle, TaskState.SUCCESS, event.at)
    return rested, (*actions, Rest(is_drained=True))


def end_failed_task(record: JobRecord, message: str, at: datetime) -> Change:
    """End the open task, if there is one, because the job itself came to a halt."""
    noted = with_try(record, message, at)
    return _end_task(noted, TaskState.FAILED, at, error=message) if noted.task else (noted, ())


def end_interrupted_task(record: JobRecord, at: datetime) -> Change:
    """End the task of a process that is gone, when the table cannot be asked."""
    return _end_lost_task(record, at, None)


def _is_open(record: JobRecord, task_id: int) -> bool:
    return record.task is not None and record.task.task_id == task_id


def _end_task(
    record: JobRecord,
    state: TaskState,
    at: datetime,
    *,
    error: str = "",
    first_error: str = "",
    tally: Tally | None = None,
    running_offset: str = "",
) -> Change:
    open_task = record.task
    if open_task is None:
        return record, ()
    task = replace(
        open_task,
        state=state,
        finished_at=at,
        error=error or ("" if state is TaskState.SUCCESS else open_task.error),
        first_error=open_task.first_error or first_error or error,
        tally=tally,
        running_offset=running_offset or open_task.running_offset,
    )
    return replace(record, task=None, counts=_counted(record.counts, state)), (SaveTask(task=task),)


def _counted(counts: TaskCounts, state: TaskState) -> TaskCounts:
    match state:
        case TaskState.SUCCESS:
            return replace(counts, succeeded=counts.succeeded + 1)
        case TaskState.FAILED:
            return replace(counts, failed=counts.failed + 1)
        case _:
            return replace(counts, cancelled=counts.cancelled + 1)


def _end_lost_task(record: JobRecord, at: datetime, totals: Tally | None) -> Change:
    """The process died while the task was open. One commit more in the table than the record knew was its own."""
    if record.task is None:
        return record, ()
    before = record.totals or Tally()
    if totals is not None and totals.commits == before.commits + 1:
        tally = totals - before
        landed = _paced_by_commit(record, replace(record, last_success_at=at), tally)
        return _end_task(landed, TaskState.SUCCESS, at, tally=tally)
    died = replace(record, pace=pace.after_lost_process(record.pace))
    return _end_task(died, TaskState.CANCELED, at, error="The process ended while the task was running")


def _take_in(record: JobRecord, event: Opened | OpeningCommitted | BatchCommitted | Replayed) -> JobRecord:
    """Copy what the newest bill says. Older news changes nothing."""
    head, totals = event.head, event.totals
    if record.last_seen is not None and head.seq < record.last_seen.seq:
        return record
    base = record.window_base
    # Totals go back when a rollback of the table was accepted; the window then starts again.
    went_back = totals.rows.total < base.total or totals.rows.error < base.error
    return replace(
        record,
        last_seen=head,
        totals=totals,
        watermark_us=event.watermark_us,
        kept=event.kept,
        joined=event.joined,
        window_base=totals.rows if went_back else base,
    )


def _let_go_if(is_unsure: bool) -> tuple[Action, ...]:
    return (LetGo(is_retry=True),) if is_unsure else ()


def _halt_if_paused(record: JobRecord) -> tuple[Action, ...]:
    return (Halt(),) if record.is_final or record.state is JobState.PAUSED else ()


def _may_try_again(record: JobRecord, task: TaskRecord, failure: Failure) -> bool:
    is_wanted = record.dialect.retries_tasks and record.state is JobState.RUNNING
    return is_wanted and failure.retry and not failure.reason.needs_attention and task.attempt < MAX_ATTEMPTS


def _goes_on(record: JobRecord, failure: Failure) -> bool:
    """A routine load begins a new task after one that failed, until too many did in a row."""
    is_wanted = not record.dialect.retries_tasks and record.state is JobState.RUNNING
    return is_wanted and failure.retry and not failure.reason.needs_attention and record.failures < MAX_ATTEMPTS


def _try_again(record: JobRecord, task: TaskRecord, failure: Failure) -> Change:
    message = failure.reason.message
    again = replace(task, attempt=task.attempt + 1, error=message, first_error=task.first_error or message)
    told = f"Attempt {task.attempt} of {MAX_ATTEMPTS} failed: {message}"
    retry = _retry(record, task.task_id, task.attempt)
    return replace(record, task=again, runtime_message=told), (SaveTask(task=again), retry)


def _retry(record: JobRecord, task_id: int, failures: int) -> Retry:
    return Retry(task_id=task_id, attempt=failures + 1, scale=record.batch_scale, after_s=retry_delay_s(failures))


def retry_delay_s(failures: int) -> float:
    """How long to wait before the next attempt, after so many failed in a row: 0.25, 0.5, 1, … 8 seconds."""
    return float(min(0.25 * 2 ** max(0, failures - 1), 8.0))

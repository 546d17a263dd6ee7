"""States of both kinds of job, one statement or report at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lading.errors import JobStateError, ListingError, StageError, TrimmedError
from lading.ids import Token
from lading.jobs.actions import Halt, LetGo, Rest, Retry, Run
from lading.jobs.events import (
    Altered,
    BatchCancelled,
    BatchFailed,
    BatchStarted,
    CaughtUp,
    Fenced,
    Goodbye,
    NothingToDo,
    Opened,
    Resumed,
    RolledBack,
    Stopped,
    TargetGone,
    TurnBegun,
)
from lading.jobs.reasons import Reason, ReasonCode, failure_of, render_reason
from lading.jobs.record import JobKind, WindowLimits
from lading.jobs.tasks import TaskState
from lading.model.bill import Head
from tests.jobs.story import Story, tally

BOTH = pytest.mark.parametrize("kind", JobKind)
STREAMING, ROUTINE = JobKind.STREAMING, JobKind.ROUTINE


@BOTH
def test_a_new_job_waits_is_opened_and_runs(kind: JobKind) -> None:
    story = Story(kind)
    assert story.state == ("PENDING" if kind is STREAMING else "NEED_SCHEDULE")
    assert story.actions == (Run(),)
    assert story.wait(1) == (Run(),)
    assert story.open().state == "RUNNING"
    assert story.wait(1) == (Run(),)


@BOTH
def test_a_commit_is_counted_and_remembered(kind: JobKind) -> None:
    story = Story(kind).open()
    assert story.begin() == 1
    story.commit()
    assert (story.record.counts.succeeded, story.record.last_seen) == (1, story.head)
    assert story.record.last_success_at == story.now
    assert story.tasks[1].state is TaskState.SUCCESS
    assert story.tasks[1].label == f"{story.record.job_id}_1"
    assert story.begin() == 2


def test_pause_and_resume_of_a_streaming_job() -> None:
    story = Story().open()
    with pytest.raises(JobStateError, match="Can't change job status to the same status"):
        story.tell(Resumed(at=story.now))
    assert story.pause() == (Halt(),)
    assert (story.state, story.code) == ("PAUSED", "MANUAL_PAUSE_ERR")
    with pytest.raises(JobStateError, match="Can't change job status to the same status"):
        story.pause()
    assert story.tell(Resumed(at=story.now)) == (Run(),)
    assert (story.state, story.code, story.record.paused_at) == ("PENDING", "", None)
    with pytest.raises(JobStateError, match="Can't change job status to the same status"):
        story.tell(Resumed(at=story.now))


def test_pause_and_resume_of_a_routine_load() -> None:
    story = Story(ROUTINE).open()
    story.pause()
    assert render_reason(story.record.reason) == (
        "ErrorReason{code=errCode = 100, msg='User ann pauses routine load job'}"
    )
    with pytest.raises(JobStateError, match="Could not transform PAUSED to PAUSED"):
        story.pause()
    story.tell(Resumed(at=story.now))
    assert story.state == "NEED_SCHEDULE"
    story.open()
    assert story.tell(Resumed(at=story.now)) == (Halt(),)
    assert story.state == "NEED_SCHEDULE"


@BOTH
def test_a_job_that_would_go_on_by_itself_can_be_paused(kind: JobKind) -> None:
    story = Story(kind).open()
    story.tell(BatchFailed(task_id=None, failure=failure_of(ListingError("down")), at=story.now))
    assert (story.state, story.code) == ("PAUSED", "GET_REMOTE_DATA_ERROR")
    paused_at = story.record.paused_at
    assert story.pause() == (Halt(),)
    assert (story.code, story.record.paused_at, story.record.auto_resume.next_at) == (
        "MANUAL_PAUSE_ERR",
        paused_at,
        None,
    )
    assert story.wait(100_000) == ()
    with pytest.raises(JobStateError):
        story.pause()


@BOTH
def test_a_paused_job_begins_no_batch(kind: JobKind) -> None:
    story = Story(kind).open()
    story.pause()
    with pytest.raises(JobStateError, match="cannot begin a batch"):
        story.tell(BatchStarted(at=story.now))
    assert story.wait(100_000) == ()


@BOTH
def test_a_stopped_job_stays_stopped(kind: JobKind) -> None:
    story = Story(kind).open()
    assert story.tell(Stopped(at=story.now)) == (Halt(),)
    assert (story.state, story.record.ended_at) == ("STOPPED", story.now)
    for event in (Stopped(at=story.now), Resumed(at=story.now), Altered(definition="x", at=story.now)):
        with pytest.raises(JobStateError):
            story.tell(event)
    with pytest.raises(
        JobStateError, match="Could not transform STOPPED to PAUSED" if kind is ROUTINE else "not exist"
    ):
        story.pause()
    assert story.open().state == "STOPPED"
    assert story.actions == (Halt(),)


def test_alter_changes_a_paused_job_and_leaves_it_paused() -> None:
    story = Story().open()
    with pytest.raises(JobStateError, match="Only PAUSED job can be altered"):
        story.tell(Altered(properties={"max_interval": "9"}, at=story.now))
    story.pause()
    with pytest.raises(JobStateError, match="No properties or sql changed"):
        story.tell(Altered(properties={"max_interval": "5"}, at=story.now))
    story.tell(Altered(properties={"s3.max_batch_files": "3"}, at=story.now))
    assert (story.state, story.record.properties) == ("PAUSED", {"max_interval": "5", "s3.max_batch_files": "3"})
    moved = Head(seq=7, token=Token(9))
    story.tell(Altered(moved=moved, current_offset='{"fileName":"a"}', at=story.now))
    assert (story.record.last_seen, story.record.current_offset) == (moved, '{"fileName":"a"}')


def test_alter_of_a_running_routine_load_is_refused() -> None:
    story = Story(ROUTINE).open()
    with pytest.raises(JobStateError, match="Only supports modification of PAUSED jobs"):
        story.tell(Altered(definition="x", at=story.now))


def test_an_explicit_empty_value_is_a_change() -> None:
    story = Story().open()
    story.pause()
    story.tell(Altered(definition="", at=story.now))
    assert story.record.definition == ""


def test_pause_ends_the_task_when_it_is_settled() -> None:
    story = Story().open()
    story.begin()
    story.pause()
    assert story.record.task is not None
    story.tell(BatchCancelled(task_id=1, at=story.now))
    assert story.tasks[1].state is TaskState.CANCELED
    assert (story.record.counts.cancelled, story.record.counts.ended) == (1, len(story.tasks))


def test_a_commit_that_lands_after_pause_is_counted_as_what_it_is() -> None:
    story = Story().open()
    task_id = story.begin()
    story.pause()
    story.tell(story.landed(task_id))
    assert (story.state, story.record.counts.succeeded, story.record.counts.cancelled) == ("PAUSED", 1, 0)
    assert story.tasks[1].state is TaskState.SUCCESS


def test_resume_waits_for_the_old_task() -> None:
    story = Story().open()
    task_id = story.begin()
    story.pause()
    assert story.tell(Resumed(at=story.now)) == ()
    assert story.wait(1) == ()
    story.tell(BatchCancelled(task_id=task_id, at=story.now))
    assert story.wait(1) == (Run(),)


@pytest.mark.parametrize("event", [Fenced, RolledBack])
@BOTH
def test_fenced_and_rolled_back_jobs_wait_for_a_person(kind: JobKind, event: type[Fenced | RolledBack]) -> None:
    story = Story(kind).open()
    story.begin()
    assert Halt() in story.tell(event(message="the head moved", at=story.now))
    assert (story.state, story.code) == ("PAUSED", "CANNOT_RESUME_ERR")
    assert story.tasks[1].state is TaskState.FAILED
    assert story.wait(100_000) == ()


def test_a_graver_reason_replaces_one_that_would_pass() -> None:
    story = Story().open()
    story.fail()
    assert story.code == "INTERNAL_ERR"
    story.tell(Fenced(message="the head moved", at=story.now))
    assert story.code == "CANNOT_RESUME_ERR"
    story.tell(TargetGone(message="gone", at=story.now))
    assert story.code == "CANNOT_RESUME_ERR"


def test_a_routine_load_without_table_is_cancelled_and_a_streaming_job_paused() -> None:
    routine, streaming = Story(ROUTINE).open(), Story().open()
    routine.tell(TargetGone(code=ReasonCode.DB_ERR, message="sales is gone", at=routine.now))
    assert render_reason(routine.record.reason) == "ErrorReason{code=errCode = 5, msg='sales is gone'}"
    assert (routine.state, routine.record.ended_at) == ("CANCELLED", routine.now)
    streaming.tell(TargetGone(message="orders is gone", at=streaming.now))
    assert (streaming.state, streaming.code) == ("PAUSED", "TABLE_ERR")


def test_a_streaming_job_that_loads_once_finishes() -> None:
    story = Story().open()
    story.begin()
    assert story.tell(CaughtUp(at=story.now)) == ()
    story.commit()
    assert story.tell(CaughtUp(at=story.now)) == (Halt(),)
    assert (story.state, story.record.ended_at) == ("FINISHED", story.now)
    routine = Story(ROUTINE).open()
    assert routine.tell(CaughtUp(at=routine.now)) == ()
    assert routine.state == "RUNNING"


def test_nothing_to_do_is_said_and_is_no_failure() -> None:
    story = Story().open()
    story.tell(NothingToDo(end_offset='{"fileName":"z"}', at=story.now))
    assert "No new data" in story.record.runtime_message
    assert (story.state, story.record.end_offset, story.record.counts.ended) == ("RUNNING", '{"fileName":"z"}', 0)


def test_goodbye_is_remembered_until_the_job_is_opened_again() -> None:
    story = Story().open()
    story.tell(Goodbye(head=story.head, at=story.now))
    assert story.record.goodbye == story.head
    assert story.open().record.goodbye is None


def test_older_news_of_the_head_change_nothing() -> None:
    story = Story().open()
    story.begin()
    story.commit()
    story.tell(Opened(head=Head(seq=0, token=Token(1)), totals=Story().totals, at=story.now))
    assert (story.record.last_seen, story.record.totals) == (story.head, story.totals)


def test_bad_rows_are_committed_then_the_routine_load_is_paused_and_resume_begins_a_new_window() -> None:
    story = Story(ROUTINE, window=WindowLimits(max_errors=2)).open()
    story.begin()
    story.commit(bad=2)
    assert story.state == "RUNNING"
    story.begin()
    assert Halt() in story.commit(bad=1)
    assert (story.state, story.code, story.record.counts.succeeded) == ("PAUSED", "TOO_MANY_FAILURE_ROWS_ERR", 2)
    assert story.wait(100_000) == ()
    story.tell(Resumed(at=story.now))
    story.open()
    assert (story.state, story.record.window_rows.error) == ("RUNNING", 0)


def test_a_bad_row_that_was_committed_just_before_a_crash_is_counted() -> None:
    story = Story(ROUTINE, window=WindowLimits(max_errors=0)).open()
    story.begin()
    story.landed(1, bad=1)
    story.open()
    assert (story.state, story.code) == ("PAUSED", "TOO_MANY_FAILURE_ROWS_ERR")


def test_the_ratio_is_checked_and_a_full_window_begins_anew() -> None:
    story = Story(ROUTINE, window=WindowLimits(max_errors=1000, max_ratio=0.5, rows=30)).open()
    for _ in range(4):
        story.begin()
        story.commit(bad=5)
    assert (story.state, story.record.window_rows.total) == ("RUNNING", 0)
    story.begin()
    story.commit(bad=6)
    assert story.code == "TOO_MANY_FAILURE_ROWS_ERR"


def test_errors_become_reasons() -> None:
    assert failure_of(TrimmedError("gone")).reason.code is ReasonCode.CANNOT_RESUME_ERR
    assert failure_of(StageError("Encountered unqualified data")).reason.code is ReasonCode.TOO_MANY_FAILURE_ROWS_ERR
    assert failure_of(StageError("lost executor")).while_staging
    assert failure_of(ValueError()).reason == Reason(code=ReasonCode.INTERNAL_ERR, message="ValueError")


def test_after_an_accepted_rollback_the_window_begins_where_the_table_now_ends() -> None:
    story = Story(ROUTINE, window=WindowLimits(max_errors=5)).open()
    story.begin()
    story.commit(bad=5)
    story.pause()
    story.tell(Resumed(at=story.now))
    story.totals, story.seq = tally(4, bad=1), story.seq + 1
    story.open()
    assert (story.state, story.record.window_base) == ("RUNNING", story.totals.rows)


def test_a_job_has_one_task_at_a_time() -> None:
    story = Story().open()
    assert [story.begin(), story.begin()] == [1, 1]
    assert (story.actions, story.record.counts.begun) == ((), 1)


@BOTH
def test_a_turn_runs_what_may_run_and_halts_the_rest(kind: JobKind) -> None:
    story = Story(kind)
    assert story.tell(TurnBegun(at=story.now)) == (LetGo(), Run())
    story.open()
    assert story.tell(TurnBegun(at=story.now)) == (Run(),)
    story.pause()
    assert story.tell(TurnBegun(at=story.now)) == (Halt(),)
    story.tell(Stopped(at=story.now))
    assert story.tell(TurnBegun(at=story.now)) == (Halt(),)


@BOTH
def test_the_pace_after_a_batch_is_decided_with_its_record(kind: JobKind) -> None:
    story = Story(kind).open()
    full = replace(story.landed(story.begin()), was_full=True)
    assert story.tell(full)[-1] == Run()
    assert story.tell(story.landed(story.begin()))[-1] == Rest()
    assert story.tell(NothingToDo(at=story.now)) == (Rest(is_drained=True),)
    story.begin()
    retry = story.fail(failure_of(ZeroDivisionError("boom")))
    assert retry[0] == LetGo(is_retry=True), "what nobody foresaw makes everything known doubtful"
    assert isinstance(retry[-1], Retry)
    assert retry[-1].after_s == 0.25
    assert story.tell(Fenced(message="another", at=story.now))[-2:] == (LetGo(), Halt())

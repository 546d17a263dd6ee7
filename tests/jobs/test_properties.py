"""Whatever happens to a job, in whatever order: its record stays one that makes sense."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lading.errors import JobStateError
from lading.ids import Token
from lading.jobs.actions import Halt, Run
from lading.jobs.events import (
    Altered,
    BatchCancelled,
    BatchCommitted,
    BatchFailed,
    BatchStarted,
    CaughtUp,
    Event,
    Fenced,
    Goodbye,
    Interrupted,
    NothingToDo,
    Opened,
    PausedByUser,
    Resumed,
    RolledBack,
    Stopped,
    TargetGone,
    Tick,
    TurnBegun,
)
from lading.jobs.reasons import ReasonCode
from lading.jobs.record import JobKind, JobRecord, JobState, WindowLimits
from lading.jobs.views import render_job
from lading.model.bill import Head
from lading.model.codec import decode, encode
from tests.jobs.story import START, Story, failure, tally
from tests.support.examples import examples

AT = st.integers(0, 10**6).map(lambda seconds: START + timedelta(seconds=seconds))
OPEN = -1
"""Stands for the task that is open."""
TASK_IDS = st.integers(0, 6) | st.just(OPEN)
HEADS = st.builds(Head, seq=st.integers(0, 50), token=st.integers(1, 99).map(Token))
TALLIES = st.builds(lambda rows, bad: tally(rows + bad, bad=bad), st.integers(0, 50), st.integers(0, 5))
FAILURES = st.builds(
    failure, st.text(max_size=5), code=st.sampled_from(ReasonCode), retry=st.booleans(), while_staging=st.booleans()
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(TurnBegun, at=AT),
    st.builds(PausedByUser, user=st.just("ann"), at=AT),
    st.builds(Resumed, at=AT),
    st.builds(Stopped, at=AT),
    st.builds(Altered, properties=st.dictionaries(st.sampled_from("ab"), st.text(max_size=2), max_size=1), at=AT),
    st.builds(Opened, head=HEADS, totals=TALLIES, at=AT),
    st.builds(BatchStarted, at=AT),
    st.builds(
        BatchCommitted, task_id=TASK_IDS, head=HEADS, tally=TALLIES, totals=TALLIES, was_full=st.booleans(), at=AT
    ),
    st.builds(BatchFailed, task_id=st.none() | TASK_IDS, failure=FAILURES, at=AT),
    st.builds(BatchCancelled, task_id=TASK_IDS, at=AT),
    st.builds(NothingToDo, at=AT),
    st.builds(CaughtUp, at=AT),
    st.builds(Fenced, message=st.just("fenced"), at=AT),
    st.builds(RolledBack, message=st.just("rolled back"), at=AT),
    st.builds(TargetGone, message=st.just("gone"), at=AT),
    st.builds(Goodbye, head=HEADS, at=AT),
    st.builds(Interrupted, at=AT),
    st.builds(Tick, at=AT),
)
# Most random orders end in a final state soon, and speak of tasks that never were; these let stories live.
COMMON: st.SearchStrategy[Event] = st.one_of(
    st.builds(Opened, head=HEADS, totals=TALLIES, at=AT),
    st.builds(BatchStarted, at=AT),
    st.builds(BatchCommitted, task_id=st.just(OPEN), head=HEADS, tally=TALLIES, totals=TALLIES, at=AT),
    st.builds(BatchFailed, task_id=st.just(OPEN), failure=FAILURES, at=AT),
    st.builds(Resumed, at=AT),
    st.builds(Tick, at=AT),
)
STORIES = st.lists(st.integers(0, 4).flatmap(lambda dice: COMMON if dice else EVENTS), min_size=10, max_size=40)
WINDOWS = st.none() | st.builds(WindowLimits, max_errors=st.integers(0, 5), max_ratio=st.sampled_from([0.1, 1.0]))


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kind=st.sampled_from(JobKind), window=WINDOWS, events=STORIES)
def test_no_order_of_events_makes_nonsense(kind: JobKind, window: WindowLimits | None, events: list[Event]) -> None:
    story = Story(kind, window=window)
    check_record(story.record)
    for event in events:
        before = story.record
        try:
            story.tell(aimed(event, before))
        except JobStateError:
            assert isinstance(event, PausedByUser | Resumed | Stopped | Altered | BatchStarted)
            assert story.record is before
            continue
        check_record(story.record)
        check_step(before, story, event)
    ended = [task for task in story.tasks.values() if task.state.is_final]
    assert len(ended) == story.record.counts.ended


def aimed(event: Event, record: JobRecord) -> Event:
    """The event, about the open task where it said so."""
    if isinstance(event, BatchCommitted | BatchFailed | BatchCancelled) and event.task_id == OPEN and record.task:
        return replace(event, task_id=record.task.task_id)
    return event


EVERY_KIND = {JobState.RUNNING, JobState.PAUSED, JobState.STOPPED}
STATES = {
    JobKind.STREAMING: EVERY_KIND | {JobState.PENDING, JobState.FINISHED},
    JobKind.ROUTINE: EVERY_KIND | {JobState.NEED_SCHEDULE, JobState.CANCELLED},
}


def check_record(record: JobRecord) -> None:
    """What must hold for a record by itself."""
    assert record.state in STATES[record.kind]
    assert (record.reason is not None) == (record.state in (JobState.PAUSED, JobState.CANCELLED))
    assert (record.paused_at is not None) == (record.state is JobState.PAUSED)
    assert (record.ended_at is not None) == record.is_final
    assert record.counts.begun == record.counts.ended + (record.task is not None)
    assert 0 < record.batch_scale <= 1
    assert record.window_rows.error >= 0
    assert decode(JobRecord, json.loads(json.dumps(encode(record))), where="here") == record
    assert all(isinstance(value, str) for value in render_job(record, None).values())


def check_step(before: JobRecord, story: Story, event: Event) -> None:
    """What must hold between a record and the next."""
    after, old, new = story.record, before.counts, story.record.counts
    if before.is_final:
        assert (after.state, after.ended_at, after.reason) == (before.state, before.ended_at, before.reason)
        assert not any(isinstance(action, Run) for action in story.actions)
    assert new.begun >= old.begun
    assert new.succeeded >= old.succeeded
    assert new.failed >= old.failed
    assert new.cancelled >= old.cancelled
    if isinstance(event, BatchStarted):
        assert before.state is after.state is JobState.RUNNING
    if before.last_seen and after.last_seen:
        assert after.last_seen.seq >= before.last_seen.seq
    stands = after.is_final or after.state is JobState.PAUSED
    if stands:
        assert not any(isinstance(action, Run) for action in story.actions)
    if stands and before.state is JobState.RUNNING:
        assert Halt() in story.actions

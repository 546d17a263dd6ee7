"""Attempts, pace and lost tasks: what follows when a batch ends badly."""

from __future__ import annotations

from datetime import timedelta

from lading.errors import BudgetError, StoreError
from lading.jobs.actions import Halt, LetGo, Retry, Run
from lading.jobs.events import BatchWaits, Interrupted, Opened
from lading.jobs.reasons import failure_of
from lading.jobs.record import KEPT_TRIES, MOST_TRY_LETTERS, JobKind
from lading.jobs.tasks import TaskState
from tests.jobs.story import START, Story, failure


def test_a_streaming_task_has_four_attempts() -> None:
    story = Story().open()
    story.begin()
    for attempt in (2, 3, 4):
        actions = story.fail()
        assert [action for action in actions if isinstance(action, Retry)] == [
            Retry(task_id=1, attempt=attempt, scale=1.0, after_s=0.125 * 2 ** (attempt - 1))
        ]
        assert f"Attempt {attempt - 1} of 4 failed: boom" in story.record.runtime_message
    assert Halt() in story.fail(failure("the last straw"))
    assert (story.state, story.code, story.record.counts.failed) == ("PAUSED", "INTERNAL_ERR", 1)
    assert (story.tasks[1].error, story.tasks[1].first_error) == ("the last straw", "boom")
    assert (story.record.first_error, story.record.last_error) == ("boom", "the last straw")


def test_each_try_is_remembered_with_its_time_and_only_the_newest_are_kept() -> None:
    story = Story().open()
    story.begin()
    for number in (1, 2):
        story.now += timedelta(seconds=1)
        story.fail(failure(f"boom {number}"))
    assert [(each.message, each.at) for each in story.record.tries] == [
        ("boom 1", START + timedelta(seconds=1)),
        ("boom 2", START + timedelta(seconds=2)),
    ]
    # What a batch waits for is no try, however often it is said.
    story.tell(BatchWaits(message="no executor", at=story.now))
    assert len(story.record.tries) == 2
    story.commit()
    assert len(story.record.tries) == 2, "they happened"
    # A source that cannot be listed is tried again after each pause.
    for _ in range(KEPT_TRIES):
        story.fail(failure("gone" * 1000))
        story.wait(1000)
        story.open()
    assert [len(each.message) for each in story.record.tries] == [MOST_TRY_LETTERS] * KEPT_TRIES


def test_a_failure_that_cannot_pass_is_not_tried_again() -> None:
    story = Story().open()
    story.begin()
    story.fail(failure_of(BudgetError("3 of 9 rows are bad")))
    assert (story.state, story.code, story.record.counts.failed) == ("PAUSED", "TOO_MANY_FAILURE_ROWS_ERR", 1)


def test_a_routine_load_begins_a_new_task_after_a_failure_and_pauses_after_four() -> None:
    story = Story(JobKind.ROUTINE).open()
    for number in (1, 2, 3, 4):
        assert story.state == "RUNNING"
        assert story.begin() == number
        story.fail()
    assert (story.state, story.code, story.record.counts.failed) == ("PAUSED", "TASKS_ABORT_ERR", 4)


def test_a_batch_that_died_twice_is_planned_half_as_large_and_grows_again() -> None:
    story = Story().open()
    story.begin()
    scales = []
    for _ in range(4):
        story.fail(failure(while_staging=True))
        scales.append(story.record.batch_scale)
    assert scales == [1.0, 0.5, 0.5, 0.25]
    story.wait(1)
    assert story.actions == (Run(scale=0.25),)
    story.open()
    for _ in range(16):
        story.begin()
        story.commit()
    assert story.record.batch_scale == 1.0


def test_failures_of_the_listing_do_not_shrink_batches() -> None:
    story = Story().open()
    for _ in range(6):
        story.fail()
        story.wait(1000)
        story.open()
    assert story.record.batch_scale == 1.0


def test_a_task_of_a_dead_process_that_landed_is_a_success() -> None:
    story = Story().open()
    story.begin()
    story.landed(1, rows=5)
    story.open()
    assert (story.state, story.tasks[1].state) == ("RUNNING", TaskState.SUCCESS)
    assert story.tasks[1].tally is not None
    assert story.tasks[1].tally.rows.loaded == 5
    assert story.record.totals == story.totals


def test_each_life_commits_or_the_batch_that_its_process_died_with_is_halved() -> None:
    story = Story().open()
    scales = []
    for _ in range(2):
        story.begin()
        story.open()
        scales.append(story.record.batch_scale)
    assert [task.state for task in story.tasks.values()] == [TaskState.CANCELED] * 2
    assert scales == [0.5, 0.25]
    story.begin()
    story.commit()
    story.begin()
    story.open()
    assert story.record.batch_scale == 0.25, "that life has committed something"
    story.begin()
    story.open()
    assert story.record.batch_scale == 0.125


def test_the_task_of_a_dead_process_is_ended_also_when_the_job_is_paused() -> None:
    story = Story().open()
    story.begin()
    story.pause()
    story.tell(Interrupted(at=story.now))
    assert (story.record.task, story.record.counts.cancelled) == (None, 1)


def test_after_an_error_of_the_store_the_job_is_opened_again_because_a_commit_may_not_be_in_the_record() -> None:
    story = Story().open()
    story.begin()
    story.landed(1, rows=5)
    actions = story.fail(failure_of(StoreError("The connection was cut")))
    assert LetGo(is_retry=True) in actions
    story.tell(Opened(head=story.head, totals=story.totals, is_retry=True, at=story.now))
    assert (story.record.totals, story.tasks[1].state) == (story.totals, TaskState.SUCCESS)


def test_a_batch_that_waits_says_for_what_and_the_task_goes_on() -> None:
    story = Story().open()
    task = story.begin()
    assert story.tell(BatchWaits(message="no executor", at=story.now)) == ()
    assert (story.state, story.record.runtime_message, story.record.last_error) == (
        "RUNNING",
        "no executor",
        "no executor",
    )
    assert story.record.task is not None
    assert (story.record.task.task_id, story.record.batch_scale, story.record.failures) == (task, 1.0, 0)
    story.tell(BatchWaits(message="", at=story.now))
    assert story.record.runtime_message == ""
    story.commit()
    # It comes late, from a thread that has not heard of the commit: the job does not wait for anything.
    story.tell(BatchWaits(message="no executor", at=story.now))
    assert story.record.runtime_message == ""

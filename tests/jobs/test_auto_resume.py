"""Resuming without a person: when, how often, and when not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lading.errors import CUT_METADATA, TableError
from lading.jobs.actions import Run
from lading.jobs.dialects import STREAMING
from lading.jobs.events import BatchFailed, NothingToDo, Resumed
from lading.jobs.pausing import resume_delay_s
from lading.jobs.reasons import NEEDS_A_PERSON, ReasonCode, failure_of
from lading.jobs.record import JobKind
from tests.jobs.story import Story, failure


def test_delays_double_up_to_five_minutes() -> None:
    assert [resume_delay_s(tries) for tries in range(8)] == [0, 20, 40, 80, 160, 300, 300, 300]


@pytest.mark.parametrize("kind", JobKind)
@pytest.mark.parametrize("code", ReasonCode)
def test_only_reasons_that_can_pass_are_tried_again(kind: JobKind, code: ReasonCode) -> None:
    story = Story(kind).open()
    story.fail(failure(code=code))
    assert story.state == "PAUSED"
    assert (story.wait(0) == (Run(),)) is (code not in NEEDS_A_PERSON)


def test_each_try_waits_longer() -> None:
    story = Story().open()
    story.fail()
    assert story.wait(0) == (Run(),)
    for delay_s in (20, 40, 80, 160, 300, 300):
        story.fail()
        assert story.wait(delay_s - 1) == ()
        assert story.wait(1) == (Run(),)
        assert story.state == "PENDING"


def test_a_streaming_job_gives_up_after_ten_tries_and_says_so() -> None:
    story = Story().open()
    for tries in range((STREAMING.most_resumes or 0) + 1):
        assert story.record.auto_resume.tries == tries
        story.fail()
        story.wait(1000)
    assert (story.state, story.code) == ("PAUSED", "CANNOT_RESUME_ERR")
    assert story.record.reason is not None
    assert story.record.reason.message == "Auto resume failed after 10 attempts: boom"
    assert story.wait(100_000) == ()
    story.tell(Resumed(at=story.now))
    assert (story.state, story.record.auto_resume.tries) == ("PENDING", 0)


def test_a_routine_load_never_gives_up() -> None:
    story = Story(JobKind.ROUTINE).open()
    for _ in range(50):
        story.fail()
        assert story.wait(300) == (Run(),)


def test_a_commit_or_an_answer_of_the_source_resets_the_tries() -> None:
    story = Story().open()
    for _ in range(3):
        story.fail()
        story.wait(1000)
    story.open()
    assert story.record.auto_resume.tries == 3
    story.begin()
    story.commit()
    assert story.record.auto_resume.tries == 0
    story.fail()
    story.wait(1000)
    story.open()
    story.tell(NothingToDo(at=story.now))
    assert story.record.auto_resume.tries == 0


def test_a_routine_load_counts_its_tries_anew_after_ten_minutes_without_one() -> None:
    story = Story(JobKind.ROUTINE).open()
    for _ in range(3):
        story.fail()
        story.wait(300)
    assert story.record.auto_resume.tries == 3
    story.now += timedelta(minutes=9)
    story.fail()
    assert (story.record.auto_resume.tries, story.wait(0)) == (3, ())
    story.wait(300)
    story.now += timedelta(minutes=10)
    story.fail()
    assert story.record.auto_resume.tries == 0
    assert story.wait(0) == (Run(),)


def test_a_job_is_not_resumed_while_its_task_is_not_settled() -> None:
    story = Story().open()
    story.begin()
    story.tell(BatchFailed(task_id=None, failure=failure(), at=story.now))
    assert story.state == "PAUSED"
    assert story.wait(1000) == ()
    story.commit()
    assert story.wait(1000) == (Run(),)


@pytest.mark.parametrize("kind", list(JobKind))
def test_a_clock_that_is_set_back_by_hours_does_not_keep_a_job_waiting(kind: JobKind) -> None:
    story = Story(kind).open()
    for _ in range(3):
        story.fail()
        story.wait(1000)
        story.open()
    story.fail()
    assert story.state == "PAUSED"
    story.now -= timedelta(hours=5)
    story.wait()
    assert story.state != "PAUSED"


def test_metadata_that_came_without_its_end_is_read_again_by_itself() -> None:
    story = Story().open()
    story.fail(failure_of(TableError("The metadata cannot be read", code=CUT_METADATA)))
    assert story.record.reason is not None
    assert not story.record.reason.needs_attention
    assert failure_of(TableError("The format is not known")).reason.needs_attention

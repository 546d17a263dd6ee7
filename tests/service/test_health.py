"""How a job is doing: one word for API, SHOW, command line and console."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lading.jobs.events import NothingToDo, Resumed, Stopped
from lading.jobs.reasons import RECOVERED, Reason, ReasonCode
from lading.jobs.record import JobKind, JobRecord, JobState
from lading.service.views.health import health_of
from lading.service.views.records import Health
from lading.status.lag import Lag, LagUnit
from lading.status.rates import Rates
from tests.jobs.story import START, Story, failure


def running(kind: JobKind = JobKind.STREAMING) -> Story:
    told = Story(kind).open()
    told.begin()
    told.commit()
    return told


def test_a_job_that_was_just_made_is_healthy_and_waits() -> None:
    assert (health_of(Story().record).state, health_of(Story().record).note) == (Health.HEALTHY, "waits to be opened")
    assert health_of(running().record).state is Health.HEALTHY


@pytest.mark.parametrize("kind", JobKind)
def test_a_job_whose_batches_fail_is_failing_and_its_tries_are_counted(kind: JobKind) -> None:
    told = running(kind)
    for count in (1, 2):
        if told.record.task is None:
            told.begin()
        told.fail()
        found = health_of(told.record)
        assert (told.record.state, found.state, found.tries) == (JobState.RUNNING, Health.FAILING, count)
    assert found.note == "2 tries failed"
    while told.record.state is JobState.RUNNING:
        if told.record.task is None:
            told.begin()
        told.fail()
    found = health_of(told.record)
    assert (told.record.state, found.state) == (JobState.PAUSED, Health.FAILING)
    assert found.next_try_at == told.record.auto_resume.next_at


def test_a_job_that_is_resumed_without_a_person_fails_until_its_source_answers() -> None:
    told = running()
    told.begin()
    while told.record.state is JobState.RUNNING:
        told.fail()
    told.wait(1)
    assert told.record.state is JobState.PENDING
    assert health_of(told.record).state is Health.FAILING
    told.open()
    assert health_of(told.record).state is Health.FAILING
    told.tell(NothingToDo(at=told.now))
    assert health_of(told.record).state is Health.HEALTHY


def test_each_listing_that_failed_is_counted() -> None:
    """Of a job that was resumed once and failed again, one try was told."""
    told = running()
    for count in (1, 2, 3):
        told.fail()
        found = health_of(told.record)
        assert (told.record.state, found.tries, found.next_try_at) == (
            JobState.PAUSED,
            count,
            told.record.auto_resume.next_at,
        )
        told.wait(100)
        assert health_of(told.record).tries == count, "not tried again yet"
        told.open()


def test_bad_rows_need_review_and_a_pause_by_a_user_does_not() -> None:
    told = running()
    told.begin()
    told.fail(failure("too many", code=ReasonCode.TOO_MANY_FAILURE_ROWS_ERR, retry=False))
    assert health_of(told.record).state is Health.NEEDS_REVIEW
    told.tell(Resumed(at=told.now))
    told.open()
    told.pause()
    found = health_of(told.record)
    assert (found.state, found.note) == (Health.PAUSED, "by a user")


def test_a_job_that_was_recovered_needs_review() -> None:
    told = running()
    told.pause()
    reason = Reason(code=ReasonCode.MANUAL_PAUSE_ERR, message=f"{RECOVERED}its table")
    found = health_of(_with(told.record, reason=reason))
    assert (found.state, found.note) == (Health.NEEDS_REVIEW, "recovered")


def test_files_that_will_not_be_loaded_are_late_files() -> None:
    record = running().record
    found = health_of(record, left_out={"late": 2, "changed": 1})
    assert (found.state, found.note) == (Health.LATE_FILES, "3 files not loaded")
    told = _with(record, runtime_message="No new data; not loaded: 1 file before the position")
    assert health_of(told).state is Health.LATE_FILES
    assert health_of(record, left_out={"late": 0}).state is Health.HEALTHY


@pytest.mark.parametrize(
    ("unit", "behind", "rates", "is_far"),
    [
        (LagUnit.MILLISECONDS, 59_000, None, False),
        (LagUnit.MILLISECONDS, 61_000, None, True),
        (LagUnit.RECORDS, 1_000, Rates(window_s=300, rows_per_s=100), False),
        (LagUnit.RECORDS, 7_000, Rates(window_s=300, rows_per_s=100), True),
        (LagUnit.FILES, 50, Rates(window_s=300, files_per_s=1), False),
        (LagUnit.FILES, 61, Rates(window_s=300, files_per_s=1), True),
        (LagUnit.FILES, 1, Rates(window_s=300), True),
        (LagUnit.FILES, 0, Rates(window_s=300), False),
    ],
)
def test_more_than_a_minute_behind_is_catching_up(unit: LagUnit, behind: int, rates: Rates, is_far: bool) -> None:
    lag = Lag(unit=unit, partitions={"p": behind}, at=START)
    wanted = Health.CATCHING_UP if is_far else Health.HEALTHY
    assert health_of(running().record, lag=lag, rates=rates).state is wanted


def test_the_gravest_that_is_true_is_told_and_comes_first() -> None:
    told = running()
    told.begin()
    told.fail()
    lag = Lag(unit=LagUnit.MILLISECONDS, partitions={"p": 10**6}, at=START + timedelta(seconds=1))
    assert health_of(told.record, lag=lag, left_out={"late": 1}).state is Health.FAILING
    assert [each.value for each in sorted(Health, key=lambda each: each.rank)] == [
        "needs review",
        "failing",
        "late files",
        "catching up",
        "paused",
        "healthy",
        "ended",
    ]
    told.tell(Stopped(at=told.now))
    assert health_of(told.record).state is Health.ENDED


def _with(record: JobRecord, **changes: object) -> JobRecord:
    return replace(record, **changes)  # type: ignore[arg-type]

"""What people are told follows from what is known and what they were told; nothing is told twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lading.ids import new_job_id
from lading.jobs.pausing import pause, wait_to_be_opened
from lading.jobs.reasons import Reason, ReasonCode
from lading.jobs.record import AutoResume, JobKind, JobRecord, JobState
from lading.service.notify.books import Book, parse_book, render_book
from lading.service.notify.signals import EventKind, JobEvent, LagLimits, Pause, Sight, Told, derive, describe_changes
from lading.status.lag import Lag, LagUnit

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB = JobRecord(
    job_id=new_job_id(),
    name="orders",
    database="shop",
    kind=JobKind.STREAMING,
    definition="",
    target="shop.orders",
    created_at=AT,
    state=JobState.RUNNING,
)
PASSES = Reason(code=ReasonCode.INTERNAL_ERR, message="The bucket is away.")
STAYS = Reason(code=ReasonCode.TOO_MANY_FAILURE_ROWS_ERR, message="Row 7: 'n/a' is no number")
LIMITS = LagLimits(seconds=60, records=1000, files=5)


def tell(told: Told, record: JobRecord = JOB, **known: object) -> tuple[Told, list[JobEvent]]:
    sight = replace(Sight(record=record, now=AT), **known)  # type: ignore[arg-type]  # each test names what it knows
    return derive(told, sight, LIMITS, EventKind)


def test_a_job_that_fails_again_and_again_is_told_of_once_and_when_it_is_well() -> None:
    first = pause(JOB, PASSES, AT)
    told, events = tell(Told(), first)
    assert [event.text for event in events] == [
        "Job orders is paused and will be tried again by itself: The bucket is away."
    ]
    for tries in (1, 2, 3):
        waiting = wait_to_be_opened(first, AutoResume(tries=tries, resumed_at=AT))
        told, events = tell(told, waiting)
        assert events == []
        again = pause(replace(waiting, state=JobState.RUNNING), PASSES, AT + timedelta(minutes=tries))
        told, events = tell(told, again)
        assert (events, told.pause) == ([], Pause.TRIED_AGAIN)
    told, events = tell(told, JOB)
    assert [(event.kind, event.number) for event in events] == [(EventKind.RESUMED, 2)]
    assert "goes on by itself" in events[0].text
    assert tell(told, JOB)[1] == []


def test_when_only_a_person_can_help_it_is_said_once_more_and_a_new_pause_is_new() -> None:
    told, _ = tell(Told(), pause(JOB, PASSES, AT))
    given_up = pause(pause(JOB, PASSES, AT), STAYS, AT)
    told, events = tell(told, given_up)
    assert [event.value for event in events] == ["Row 7: 'n/a' is no number"]
    assert "until somebody resumes it" in events[0].text
    assert tell(told, given_up)[1] == []
    later = pause(JOB, STAYS, AT + timedelta(hours=1))
    told, events = tell(told, later)
    assert [event.kind for event in events] == [EventKind.PAUSED]
    told, events = tell(told, JOB)
    assert (events, told.pause) == ([], Pause.NONE)


def test_a_pause_that_began_after_the_job_did_well_is_told_though_nobody_saw_it_well() -> None:
    told, _ = tell(Told(), pause(JOB, PASSES, AT))
    _, events = tell(told, pause(JOB, PASSES, AT + timedelta(hours=3)))
    assert [event.kind for event in events] == [EventKind.PAUSED]


def test_who_resumed_a_job_is_not_told_that_it_goes_on_by_itself() -> None:
    told, _ = tell(Told(), pause(JOB, PASSES, AT))
    assert tell(told, JOB, was_resumed_by="ada")[1] == []


def test_a_cancelled_job_is_told_of_once() -> None:
    gone = replace(JOB, state=JobState.CANCELLED, reason=STAYS, ended_at=AT)
    told, events = tell(Told(), gone)
    assert "was cancelled" in events[0].text
    assert tell(told, gone)[1] == []


def test_late_files_are_told_of_when_there_are_more_and_not_more_than_once_an_hour() -> None:
    told, events = tell(Told(), late_files=2, remark="not loaded: a.csv, b.csv")
    assert events[0].text == "Job orders has 2 late files that it does not load: not loaded: a.csv, b.csv."
    assert tell(told, late_files=2)[1] == []
    assert tell(told, late_files=3, now=AT + timedelta(minutes=59))[1] == []
    assert [event.value for event in tell(told, late_files=3, now=AT + timedelta(hours=1))[1]] == ["3"]
    assert tell(told)[0].late_files == 2, "nobody has looked since the start"
    told, events = tell(told, late_files=0)
    assert (told.late_files, events) == (0, [])


@pytest.mark.parametrize(
    ("unit", "below", "above", "said"),
    [
        (LagUnit.MILLISECONDS, 59_999, 60_000, "60 seconds"),
        (LagUnit.RECORDS, 999, 1_200, "1,200 records"),
        (LagUnit.FILES, 4, 5, "5 files"),
    ],
)
def test_lag_is_told_of_at_the_limit_and_again_after_it_was_well_below(
    unit: LagUnit, below: int, above: int, said: str
) -> None:
    def lag(behind: int) -> Lag:
        return Lag(unit=unit, partitions={"p": behind}, at=AT)

    told, events = tell(Told(), lag=lag(below))
    assert events == []
    told, events = tell(told, lag=lag(above))
    assert [event.value for event in events] == [said]
    told, events = tell(told, lag=lag(below))
    assert events == []
    told, events = tell(told, lag=lag(above))
    assert events == [], "it hovers at the limit"
    told, _ = tell(told, lag=lag(0))
    assert len(tell(told, lag=lag(above))[1]) == 1


def test_columns_are_told_of_when_they_change_and_not_when_they_are_first_seen() -> None:
    before, after = (("id", "int64"), ("city", "string")), (("city", "string"), ("id", "int64"), ("note", "string"))
    told, events = tell(Told(), columns=before)
    assert events == []
    told, events = tell(told, columns=after)
    assert [event.value for event in events] == ["note (string) was added"]
    assert tell(told)[1] == []
    assert describe_changes(after, (("id", "int32"),)) == (
        "city (string) is gone, note (string) is gone, id is int32 and was int64"
    )


def test_what_nobody_wants_to_hear_is_not_told_and_counts_nothing() -> None:
    told, events = derive(Told(), Sight(record=pause(JOB, STAYS, AT), now=AT), LIMITS, [EventKind.LAG])
    assert (events, told.number) == ([], 0)


def test_a_book_is_read_as_it_was_written_and_lets_the_oldest_go() -> None:
    told, events = tell(Told(columns=(("id", "int64"),)), pause(JOB, STAYS, AT), late_files=2)
    book = Book(job="orders", table="shop.orders").plus(told, events, ["webhook", "slack"])
    assert parse_book(render_book(book)) == book
    assert len(book.without(1, "webhook").without(1, "slack").pending) == len(events) - 1
    assert {name for each in book.only_for(["slack"]).pending for name in each.waiting} == {"slack"}
    many = [replace(events[0], number=number) for number in range(150)]
    full = Book(job="orders", table="shop.orders").plus(told, many, ["slack"])
    assert (len(full.pending), full.let_go, full.pending[0].event.number) == (100, 50, 50)

"""Jobs that run by themselves: new files, pauses, faults that go away, and an orderly end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lading.jobs.record import JobState
from lading.service.scheduling.scheduler import Scheduler
from tests.service.conftest import Desk

LIMIT_S = 60.0


@pytest.fixture
def running(desk: Desk) -> Iterator[Scheduler]:
    scheduler = Scheduler(desk.lading)
    scheduler.start()
    yield scheduler
    scheduler.close()


def until(met: Callable[[], bool], what: str) -> None:
    """Wait for something that happens in other threads."""
    deadline = time.monotonic() + LIMIT_S
    while not met():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.02)


def test_files_are_loaded_as_they_come(desk: Desk, running: Scheduler) -> None:
    desk.table()
    desk.create(properties='"max_interval"="1"')
    desk.put_orders("a.csv", 0, 10)
    until(lambda: desk.ids() == list(range(10)), "the first file")
    desk.put_orders("b.csv", 10, 5)
    until(lambda: desk.ids() == list(range(15)), "the second file")
    assert desk.show("Status") == "RUNNING"


def test_a_paused_job_rests_and_a_resumed_one_goes_on(desk: Desk, running: Scheduler) -> None:
    desk.table()
    desk.create(properties='"max_interval"="1"')
    desk.put_orders("a.csv", 0, 10)
    until(lambda: len(desk.ids()) == 10, "the first file")
    desk.sql("PAUSE JOB WHERE jobName='j'")
    until(lambda: not running.snapshot(), "the scheduler forgets it")
    desk.put_orders("b.csv", 10, 5)
    assert desk.show("Status") == "PAUSED"
    desk.sql("RESUME JOB WHERE jobName='j'")
    until(lambda: len(desk.ids()) == 15, "the second file")


def test_a_fault_that_goes_away_needs_no_person(desk: Desk, running: Scheduler, tmp_path: Path) -> None:
    desk.table()
    desk.create(properties='"max_interval"="1"')
    desk.put_orders("a.csv", 0, 3)
    until(lambda: len(desk.ids()) == 3, "the first file")
    away = tmp_path / "away"
    desk.inbox.rename(away)
    until(lambda: desk.lading.job("j").auto_resume.tries > 0 or desk.show("ErrorMsg") != "", "the fault is seen")
    away.rename(desk.inbox)
    desk.put_orders("c.csv", 3, 2)
    until(lambda: len(desk.ids()) == 5, "the job goes on")


def test_closing_says_goodbye_so_that_the_next_start_fences_nobody(desk: Desk) -> None:
    desk.table()
    desk.create(properties='"max_interval"="1"')
    desk.put_orders("a.csv", 0, 10)
    scheduler = Scheduler(desk.lading)
    scheduler.start()
    until(lambda: len(desk.ids()) == 10, "the file")
    scheduler.close()
    desk.restart()
    record = desk.lading.job("j")
    assert record.goodbye == record.last_seen
    assert record.state is JobState.RUNNING


def test_a_stopped_job_is_forgotten(desk: Desk, running: Scheduler) -> None:
    desk.table()
    desk.create(properties='"max_interval"="1"')
    until(lambda: len(running.snapshot()) == 1, "the job is known")
    desk.sql("DROP JOB WHERE jobName='j'")
    until(lambda: not running.snapshot(), "the job is forgotten")

"""What does not get on is found, too: loads that fail, processes that end or say nothing, jobs that stand still."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from lading.clock import SystemClock
from lading.testing.clock import ManualClock
from tests.crash.load_stories import FilesSender
from tests.soak.counts import Counts
from tests.soak.journal import Journal
from tests.soak.killer import Killer
from tests.soak.lakes import FolderLake
from tests.soak.patience import Patience
from tests.soak.plain import Lane, Soak
from tests.soak.plain_worker import Life, Lives
from tests.soak.service import NoAnswerError, Service
from tests.soak.spark import Driver
from tests.support.stream_worker import JOB, StreamJob


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    with Lives("delta") as made:
        yield made


def make_lane(path: Path) -> Lane:
    sender, counts = FilesSender(path / "in", 2, Random(1)), Counts()
    job = StreamJob(home=str(path), form="delta", source="files", address="", stream=sender.stream, start="")
    job.create_table()
    return Lane(job, sender, Journal(JOB, FolderLake("delta", path / "warehouse" / "events"), counts), counts)


def test_a_load_that_always_fails_is_stuck(tmp_path: Path, lives: Lives) -> None:
    lane = make_lane(tmp_path)
    lane.sender.put(20)
    (tmp_path / "in" / "000099.csv").write_text("k,n,place,number\nkey-1,no number,x,1\n")
    soak = Soak([lane], (lives, lives), Random(0), None)
    soak.rest(lane)
    assert lane.counts.found == {"STUCK": 1}
    assert "cannot load what is there" in lane.counts.examples[0]


def test_a_job_that_stands_still_is_stuck_until_it_goes_on(tmp_path: Path, lives: Lives) -> None:
    """A loader that is stopped in the middle of its work, and nobody takes over."""
    lane, clock = make_lane(tmp_path), ManualClock()
    patience, real = Patience(60.0, clock), SystemClock()

    def look() -> int:
        lane.journal.read_on(lane.job.open_table())
        last, has_more = lane.journal.last, lane.journal.lacks(lane.sender.sent) > 0
        patience.look("files", last.seq if last else -1, lane.counts, has_more=has_more)
        return lane.journal.lacks(lane.sender.sent)

    lives.start(lane.job, Life())
    lane.sender.put(20)
    end_s = real.monotonic_s() + 60
    while look() and real.monotonic_s() < end_s:
        real.sleep(0.02)
    lives.signal(signal.SIGSTOP)
    clock.sleep(3600)
    look()
    assert lane.counts.is_clean, "there is nothing to load"
    lane.sender.put(20)
    clock.sleep(59)
    look()
    assert lane.counts.is_clean, "it has a minute"
    clock.sleep(2)
    look()
    clock.sleep(2)
    look()
    assert lane.counts.found == {"STUCK": 1}
    lives.signal(signal.SIGCONT)
    assert lives.finish(lane.job) == 0
    assert look() == 0
    assert lane.counts.found == {"STUCK": 1}


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import time; time.sleep(600)", "no answer for 0.5 seconds"),
        ("import sys; print('\"ready\"', flush=True); sys.stdin.readline()", "ended with status 0"),
        ("raise SystemExit(3)", "ended with status 3"),
    ],
    ids=["mute", "ends", "fails"],
)
def test_a_driver_that_says_nothing_or_ends_by_itself_is_stuck(tmp_path: Path, program: str, told: str) -> None:
    driver, counts = Driver([sys.executable, "-c", program], tmp_path / "log", patience_s=0.5), Counts()
    driver.sql("anything")
    driver.judge(counts)
    assert counts.found == {"STUCK": 1}
    assert told in counts.examples[0]


def test_a_service_that_cannot_start_is_stuck(tmp_path: Path) -> None:
    """Nobody listens where its store is said to be."""
    service = Service(tmp_path / "one", "postgresql://nobody@127.0.0.1:1/none", tmp_path / "password", {})
    killer = Killer([service], Random(0), dict, lease_s=1.0)
    service.start()
    clock = SystemClock()
    end_s = clock.monotonic_s() + 60
    while service.code is None and clock.monotonic_s() < end_s:
        clock.sleep(0.05)
    killer._look_after()
    assert killer.counts.found == {"STUCK": 1}
    assert "ended by itself with status" in killer.counts.examples[0]
    with pytest.raises(NoAnswerError):
        service.sql("SHOW SERVICES")

"""A service without Spark between faults: real jobs, tables and sources, a clock that does not keep anybody waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lading.clock import SystemClock
from lading.errors import LadingError
from lading.jobs.events import Tick
from lading.jobs.pausing import wait_to_resume_s
from lading.jobs.record import JobRecord, JobState
from lading.service.scheduling.scheduler import Scheduler
from tests.console.local import LocalLading
from tests.support.fault_proxy import FaultProxy


class JumpClock(SystemClock):
    """Goes on with the machine's clock, and further wherever somebody waits. Wall time may jump besides."""

    def __init__(self) -> None:
        self._ahead_s = 0.0
        self.jump = timedelta()

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._ahead_s) + self.jump

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self._ahead_s

    def passed_s(self) -> float:
        return super().passed_s() + self._ahead_s

    def sleep(self, delay_s: float) -> None:
        self._ahead_s += delay_s


class Service:
    """One job `j` in a home of its own, which is given turns as a scheduler gives them, or has a scheduler."""

    def __init__(self, home: Path, *, store_url: str = "") -> None:
        self.home, self.store_url, self.clock = home, store_url, JumpClock()
        self.lading = self._open()
        self.reasons: list[str] = []
        """What SHOW said was wrong, after each turn that something was."""
        self.refusals: list[str] = []
        """What SHOW said when it could not be answered: the store could not be read."""
        self.errors: list[str] = []
        """What turns raised. A log has it; nobody else reads it."""

    def _open(self) -> LocalLading:
        return LocalLading(self.home, store_url=self.store_url, user="tester", clock=self.clock)

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return list(self.lading.sql(text)[-1].rows)

    def shown(self) -> str:
        """What SHOW says of the job, as a user types it: its state, and what is wrong."""
        found = self.lading.sql("SHOW ALL ROUTINE LOAD FOR default.j") if self._is_routine() else None
        if found is not None:
            told = found[-1].dicts()[-1]
            return " ".join(str(told[name]) for name in ("State", "ReasonOfStateChanged", "OtherMsg"))
        (row,) = self.lading.sql("SHOW JOBS")[-1].dicts()
        return " ".join(str(row[name]) for name in ("Status", "ErrorMsg", "JobRuntimeMsg"))

    def _is_routine(self) -> bool:
        return not self.lading.sql("SHOW JOBS")[-1].rows

    def look(self) -> None:
        """Keep what SHOW says is wrong."""
        try:
            shown = self.shown()
        except LadingError as error:
            self.refusals.append(str(error))
            return
        if any(word in shown for word in ("PAUSED", "fail", "could not", "died", "did not")):
            self.reasons.append(shown)

    def forget(self) -> None:
        """What was said so far is of another fault."""
        self.reasons, self.refusals, self.errors = [], [], []

    def turn(self) -> None:
        """What a scheduler does, with every wait of the job behind it."""
        try:
            runner = self.lading.runner(self._job_id())
            record = runner.record()
            self.clock.sleep(max(runner.retry_in_s, runner.interval_s))
            if record.state is JobState.PAUSED:
                self.clock.sleep(wait_s(record, self.clock.now()))
                runner.apply(Tick(at=self.clock.now()))
            runner.run_once()
        except LadingError as error:
            self.errors.append(str(error))
            with suppress(LadingError):
                self.lading.drop_runner(self._job_id())
        self.look()

    @contextmanager
    def scheduled(self) -> Iterator[None]:
        """Within this the service's own scheduler gives the turns; the test looks on, with `wait_until`."""
        self._scheduler = Scheduler(self.lading, workers=2)
        self._scheduler.start()
        try:
            yield
        finally:
            self._scheduler.close(grace_s=10.0)

    def wait_until(self, met: Callable[[], bool], limit_s: float = 60.0) -> None:
        """Until something is so. The scheduler works, time runs fifty times as fast, and nobody resumes the job."""
        machine = SystemClock()
        until_s = machine.monotonic_s() + limit_s
        while not met():
            assert machine.monotonic_s() < until_s, (self.reasons[-3:], self.refusals[-3:])
            machine.sleep(0.1)
            self.clock.sleep(5.0)
            self._scheduler.look_again()  # It waits by the machine's clock, and finds out what is due now.
            self.look()

    def _job_id(self) -> Any:
        return next(stored.record.job_id for stored in self.lading.store.list_jobs())

    def run_until(self, met: Callable[[], bool], turns: int = 80) -> int:
        """Turns until something is so; how many it took. Nobody resumes the job by hand."""
        for number in range(turns):
            self.turn()
            if met():
                return number + 1
        raise AssertionError(f"not after {turns} turns: {self.shown()}")

    def ids(self, table: str = "t") -> list[int]:
        found = self.lading.catalog.open_table("default", table).scan()["id"].to_pylist()
        return sorted(found)

    def is_loaded(self, count: int) -> Callable[[], bool]:
        """Whether the table has this many rows, as its own library reads it."""

        def met() -> bool:
            try:
                return len(self.ids()) >= count
            except Exception:  # noqa: BLE001 - the reader of the test goes through the same faults
                return False

        return met

    def restart(self) -> None:
        with suppress(LadingError):
            self.lading.close()
        self.lading = self._open()

    def close(self) -> None:
        self.lading.close()


def tell_counts(what: str, proxy: FaultProxy, rows: int) -> None:
    """For docs/reliability.md: what happened, and how many rows are there once each."""
    counts = proxy.counts()
    faults = sum(count for name, count in counts.items() if name != "pass")
    print(f"\nCOUNTED {what}: {counts.total()} requests, {faults} faults {dict(sorted(counts.items()))}, {rows} rows")


def wait_s(record: JobRecord, now: datetime) -> float:
    """As long as the scheduler would wait for a job that resumes by itself; an error for one that does not."""
    assert record.reason is not None
    assert not record.reason.needs_attention, f"it waits for a person: {record.reason.message}"
    return wait_to_resume_s(record, now)

"""A service without Spark between faults: real jobs, tables and sources, a clock that does not keep anybody waiting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lading.clock import SystemClock
from lading.errors import LadingError
from lading.jobs.events import Tick
from lading.jobs.pausing import wait_to_resume_s
from lading.jobs.record import JobRecord, JobState
from tests.console.local import LocalLading


class JumpClock(SystemClock):
    """Goes on with the machine's clock, and further wherever somebody waits. Wall time may jump besides."""

    def __init__(self) -> None:
        self._ahead_s = 0.0
        self.jump = timedelta()

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._ahead_s) + self.jump

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self._ahead_s

    def sleep(self, delay_s: float) -> None:
        self._ahead_s += delay_s


class Service:
    """One job `j` in a home of its own, which is given turns as a scheduler gives them."""

    def __init__(self, home: Path, *, store_url: str = "") -> None:
        self.home, self.store_url, self.clock = home, store_url, JumpClock()
        self.lading = self._open()
        self.reasons: list[str] = []
        """What SHOW said was wrong, after each turn that something was."""

    def _open(self) -> LocalLading:
        return LocalLading(self.home, store_url=self.store_url, user="tester", clock=self.clock)

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return list(self.lading.sql(text)[-1].rows)

    def shown(self) -> str:
        """What SHOW says of the job: its state, and what is wrong."""
        found = self.lading.sql("SHOW ALL ROUTINE LOAD FOR default.j") if self._is_routine() else None
        if found is not None:
            told = found[-1].dicts()[-1]
            return " ".join(str(told[name]) for name in ("State", "ReasonOfStateChanged", "OtherMsg"))
        (row,) = self.lading.sql('SELECT Status, ErrorMsg, JobRuntimeMsg FROM jobs("type"="insert")')[-1].rows
        return " ".join(map(str, row))

    def _is_routine(self) -> bool:
        return not self.lading.sql('SELECT Name FROM jobs("type"="insert")')[-1].rows

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
            self.reasons.append(str(error))
            with suppress(LadingError):
                self.lading.drop_runner(self._job_id())
        with suppress(LadingError):
            shown = self.shown()
            if any(word in shown for word in ("PAUSED", "failed", "fail", "could not")):
                self.reasons.append(shown)

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


def wait_s(record: JobRecord, now: datetime) -> float:
    """As long as the scheduler would wait for a job that resumes by itself; an error for one that does not."""
    assert record.reason is not None
    assert not record.reason.needs_attention, f"it waits for a person: {record.reason.message}"
    return wait_to_resume_s(record, now)

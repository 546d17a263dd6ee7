"""Everything at once that happens to services which share a store, compressed into a minute or two.

Services are killed, at a step and at any moment, and stopped for longer than their lease; their connections to the
store are cut, hang or are refused, each for itself; PostgreSQL ends as by a power cut; somebody pauses and resumes
jobs; orphans are removed. Afterwards each row is there once, nobody had to help, and nothing is left beside the tables.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

from lading.errors import LadingError
from lading.jobs.reasons import ReasonCode
from lading.jobs.record import JobState
from tests.service.lease_rig import Shared, Worker, until
from tests.service.lease_rig import shared as shared
from tests.service.test_clean_beside import PLACES, Cleaner, check_nothing_is_left, cleaner_is_busy, put
from tests.store.conftest import postgres as postgres
from tests.store.postgres import PostgresServer
from tests.support.fault_proxy import TCP_FAULTS, Weather, serve_faults
from tests.support.other_readers import read_elsewhere

NAMES, FORMS = ("one", "two"), ("delta", "iceberg", "paimon")
EVENTS = int(os.environ.get("LADING_TEST_EVENTS", "24"))


class Week:
    """Two services, each with a proxy of its own before the store."""

    def __init__(self, shared: Shared, postgres: PostgresServer, chosen: random.Random, stack: ExitStack) -> None:
        self.shared, self.postgres, self.chosen = shared, postgres, chosen
        shared.store = postgres.fresh_url()
        self.desk = stack.enter_context(shared.home("desk"))
        self.proxies = {name: stack.enter_context(serve_faults(postgres.socket, "tcp")) for name in NAMES}
        self.workers = dict[str, Worker]()
        self.done = Counter[str]()
        self.files = 0
        self._pause = threading.Event()

    def make(self) -> None:
        self.desk.sql("CREATE DATABASE shop")
        for form in FORMS:
            self.shared.form = form
            self.shared.make_job(self.desk, form)

    def start_missing(self) -> None:
        """Also one that ended by itself is found here: nothing that happens is a reason for that."""
        for name in NAMES:
            worker = self.workers.get(name)
            if worker is not None and (code := worker.process.poll()) is not None:
                is_killed = code == -signal.SIGKILL
                assert is_killed or not worker.was_ready, (name, code, worker.logged[-5:])
                self.workers.pop(name).close()
                self.done["killed at a step" if is_killed else "started while the store was away"] += 1
            if name not in self.workers:
                self.proxies[name].calm()
                deadly = ("--die", self.chosen.choice(PLACES), str(self.chosen.randint(1, 4)))
                self.workers[name] = self._start(name, *(deadly if self.chosen.random() < 0.5 else ()))

    def _start(self, name: str, *words: str) -> Worker:
        options = self.shared.store.partition("&options=")[2]
        store = f"postgresql://lading@127.0.0.1:{self.proxies[name].port}/postgres?options={options}"
        return Worker([str(self.shared.path / name), store, *words])

    def put(self) -> None:
        for form in FORMS:
            put(self.shared, form, self.files)
        self.files += 1

    def happen(self) -> None:
        events: list[tuple[int, Callable[[str], None]]] = [
            (4, self._kill),
            (3, self._stop_a_while),
            (3, self._storm),
            (2, self._outage),
            (2, self._hang),
            (2, self._power_cut),
            (2, self._pause_and_resume),
        ]
        event = self.chosen.choices([event for _, event in events], [weight for weight, _ in events])[0]
        event(self.chosen.choice(NAMES))
        self.done[event.__name__.strip("_")] += 1

    def wait(self, most_s: float) -> None:
        self._pause.wait(self.chosen.uniform(0, most_s))

    def _kill(self, name: str) -> None:
        self.workers.pop(name).close()

    def _stop_a_while(self, name: str) -> None:
        process = self.workers[name].process
        process.send_signal(signal.SIGSTOP)
        self.wait(6.0)
        process.send_signal(signal.SIGCONT)

    def _storm(self, name: str) -> None:
        weather = Weather(rate=0.1, faults=TCP_FAULTS, seed=self.chosen.randrange(1000), delay_s=0.02)
        self._weather(name, weather, 3.0)

    def _outage(self, name: str) -> None:
        self._weather(name, Weather(is_down=True), 5.0)

    def _hang(self, name: str) -> None:
        """What was sent meanwhile is lost, and the connections stay."""
        self._weather(name, Weather(rate=1.0, faults=["silent"]), 3.0)

    def _weather(self, name: str, weather: Weather, most_s: float) -> None:
        self.proxies[name].set(weather)
        self.wait(most_s)
        self.proxies[name].calm()

    def _power_cut(self, _name: str) -> None:
        self.postgres.restart()

    def _pause_and_resume(self, _name: str) -> None:
        job = self.chosen.choice(FORMS)
        for word in ("PAUSE", "RESUME"):
            with suppress(LadingError):  # It may wait for a PostgreSQL that is just back, or be paused already.
                self.desk.sql(f"{word} JOB WHERE jobName = '{job}'")
            self.wait(1.0)

    def end(self) -> None:
        """It is calm again. Only who was paused by hand is resumed by hand."""
        for name in NAMES:
            self.proxies[name].calm()
        self.start_missing()
        for job in FORMS:
            record = self.desk.any_job(job)
            assert record.reason is None or not record.reason.needs_attention, (job, record.reason)
            code = record.reason.code if record.reason is not None else None
            if record.state is JobState.PAUSED and code is ReasonCode.MANUAL_PAUSE_ERR:
                self.desk.sql(f"RESUME JOB WHERE jobName = '{job}'")
        for job in FORMS:
            until(lambda job=job: self._is_loaded(job), f"all of {job}: {self.desk.any_job(job).reason}")  # type: ignore[misc]
        for worker in self.workers.values():
            worker.close()

    def _is_loaded(self, job: str) -> bool:
        self.start_missing()
        totals = self.desk.any_job(job).totals
        return totals is not None and totals.rows.total == 4 * self.files


@pytest.fixture
def week(shared: Shared, postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Week]:
    with ExitStack() as stack:
        made = Week(shared, postgres, random.Random(request.param), stack)
        yield made
        for worker in made.workers.values():
            worker.close()


def ids(week: Week, form: str) -> list[int]:
    week.shared.form = form
    if form == "iceberg":
        return week.shared.ids(form)
    return sorted(read_elsewhere(form, week.shared.path / "lake" / form)["id"].to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("week", range(2), indirect=True)
def test_each_row_is_there_once_after_a_bad_week(week: Week) -> None:
    week.make()
    cleaner = Cleaner(week.shared.worker("cleaner", "--idle"), forgives=True)
    for _ in range(EVENTS):
        week.start_missing()
        week.put()
        week.wait(1.0)
        week.happen()
    week.end()
    for form in FORMS:
        assert ids(week, form) == [*range(3 * week.files)], form
        assert week.desk.verify(form).is_clean
        bad = [str(row["Raw"]) for row in week.desk.sql(f"SHOW LOAD ERRORS FOR {form} LIMIT 10000")[-1].dicts()]
        assert sorted(bad) == sorted(f"bad {number}" for number in range(week.files))
    until(lambda: not cleaner_is_busy(cleaner), "no orphan is found any more")
    check_nothing_is_left(week.shared, "delta")
    cleaner.close()
    print(
        f"\nCOUNTED {dict(week.done)}, {week.files} files a job, {len(cleaner.removed)} orphans, {cleaner.remarks[-3:]}"
    )

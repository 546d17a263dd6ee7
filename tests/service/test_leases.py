"""Several services that share one store: each job runs in one of them, and goes on in another when that one dies."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest
from pyiceberg.exceptions import NoSuchTableError

from lading import failpoints
from lading.clock import SystemClock
from lading.errors import JobStateError, TableNotFoundError
from lading.jobs.record import JobState
from lading.model.bill import Bill
from lading.store.store import Store
from tests.console.local import LocalLading
from tests.service.lease_rig import LIMIT_S, TAKEN_WITHIN_S, Shared, has, holders, until, use_postgres
from tests.service.lease_rig import shared as shared
from tests.store.conftest import postgres as postgres

pytestmark = pytest.mark.long


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_jobs_are_spread_and_a_service_that_ends_hands_its_own_over(
    shared: Shared, kind: str, request: pytest.FixtureRequest
) -> None:
    if kind == "postgresql":
        use_postgres(shared, request)
    jobs = ["a", "b", "c", "d"]
    shared.make(*jobs)
    one, first = shared.serve("one")
    until(lambda: len(holders(one)) == 4, "one service takes everything")
    two, _ = shared.serve("two")
    until(lambda: sorted(Counter(holders(one).values()).values()) == [2, 2], "two services share")
    for job in jobs:
        shared.put(job, "1.csv", 0, 3)
    for job in jobs:
        until(lambda job=job: shared.ids(job) == [0, 1, 2], f"the rows of {job}")  # type: ignore[misc]
    shown = two.sql("SHOW SERVICES")[0].rows
    assert sorted((row[5], row[7]) for row in shown) == [(2, "No"), (2, "Yes")]
    assert sorted(job for row in shown for job in str(row[6]).split(", ")) == jobs
    assert [how for what, how in two.sql("EXPLAIN JOB a")[0].rows if what == "runs in"] == [
        f"service {holders(one)['a']} on {shown[0][1]}, pid {os.getpid()}"
    ]
    first.close()
    one.close()
    until(lambda: set(holders(two).values()) == {two.leases.service_id} and len(holders(two)) == 4, "all are two's")
    for job in jobs:
        shared.put(job, "2.csv", 3, 2)
    for job in jobs:
        until(lambda job=job: shared.ids(job) == [0, 1, 2, 3, 4], f"more rows of {job}")  # type: ignore[misc]
    assert {two.job(job).state for job in jobs} == {JobState.RUNNING}


def test_a_service_that_is_killed_loses_its_jobs_within_fifteen_seconds(
    shared: Shared, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    use_postgres(shared, request)
    monkeypatch.delenv("LADING_LEASE_SECONDS")
    shared.make("a")
    worker = shared.worker("one")
    shared.put("a", "1.csv", 0, 3)
    until(lambda: shared.ids("a") == [0, 1, 2], "the rows")
    two, _ = shared.serve("two")
    until(lambda: len(two.store.list_services()) == 2, "they know each other")
    assert holders(two)["a"] != two.leases.service_id
    with shared.home("runner") as runner, pytest.raises(JobStateError, match="are run by a service on"):
        runner.run(["a"])
    worker.kill()
    shared.put("a", "2.csv", 3, 3)
    took = until(lambda: has(two, "a"), "the job is taken over")
    assert took < TAKEN_WITHIN_S
    more = until(lambda: shared.ids("a") == [0, 1, 2, 3, 4, 5], "the rest")
    print(f"a killed service: its job was taken over after {took:.1f} s, its rows were there after {took + more:.1f} s")
    assert two.job("a").state is JobState.RUNNING


def test_a_job_is_paused_and_moved_through_a_service_that_does_not_run_it(shared: Shared) -> None:
    """While its batch is before its commit elsewhere: that lands nothing, and the job stays as the person left it."""
    shared.make("a")
    with shared.home("desk") as desk:
        done = list[str]()

        def interfere(_name: str) -> None:
            if done:
                return
            done.append("")
            desk.sql("PAUSE JOB WHERE jobName = 'a'")
            desk.sql(f"""ALTER JOB a PROPERTIES("offset" = '{{"fileName":"{shared.path}/in_a/1.csv"}}')""")

        shared.put("a", "1.csv", 0, 3)
        failpoints.arm("check.after", interfere)
        runs, _ = shared.serve("runs")
        until(lambda: bool(done) and runs.job("a").task is None, "the batch ends")
        failpoints.disarm_all()
        record = runs.job("a")
        assert record.state is JobState.PAUSED
        assert record.reason is not None
        assert "tester" in record.reason.message
        assert shared.ids("a") == []
        shared.put("a", "2.csv", 3, 3)
        desk.sql("RESUME JOB WHERE jobName = 'a'")
        until(lambda: shared.ids("a") == [3, 4, 5], "it goes on behind the first file")
        assert runs.verify("a").is_clean


def test_a_job_that_is_being_made_is_opened_by_nobody_else(shared: Shared) -> None:
    """A service that saw the job before its opening commit would load it, and CREATE would say that it failed."""
    shared.make("first")
    runs, _ = shared.serve("runs")
    until(lambda: bool(holders(runs)), "it has looked")
    with shared.home("desk") as desk:
        (shared.path / "in_a").mkdir()
        shared.put("a", "1.csv", 0, 3)
        desk.sql(f"CREATE TABLE shop.a (id BIGINT) USING delta LOCATION '{shared.path}/lake/a'")
        seen = list[str | None]()

        def look(_name: str) -> None:
            runs.leases.look(runs.give_back)
            runs.changed()
            time.sleep(0.5)
            seen.append(runs.store.list_leases().get(desk.job("a").job_id))

        failpoints.arm("create.recorded", look)
        desk.sql(
            'CREATE JOB a PROPERTIES("max_interval"="1") ON STREAMING DO INSERT INTO shop.a SELECT id '
            f'FROM FILE("uri"="{shared.path}/in_a/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )
        failpoints.disarm_all()
        assert len(seen) == 1
        assert seen[0] not in (None, runs.leases.service_id)
        assert holders(runs)["first"] == runs.leases.service_id, "a command that makes a job gets no share"
    until(lambda: shared.ids("a") == [0, 1, 2], "the service runs it")
    assert runs.job("a").state is JobState.RUNNING


def test_a_job_whose_create_takes_longer_than_others_wait_runs_there_and_is_not_taken_back(shared: Shared) -> None:
    """The command is taken for dead. It must neither fence the service that opened the job, nor remove what runs."""
    shared.make("first")
    runs, _ = shared.serve("runs")
    until(lambda: bool(holders(runs)), "it has looked")
    with shared.home("desk") as desk:
        (shared.path / "in_a").mkdir()
        shared.put("a", "1.csv", 0, 3)
        desk.sql(f"CREATE TABLE shop.a (id BIGINT) USING delta LOCATION '{shared.path}/lake/a'")
        loaded = list[int]()

        def stall(_name: str) -> None:
            failpoints.disarm_all()
            until(lambda: shared.ids("a") == [0, 1, 2], "the service took the job and runs it")
            loaded.extend(shared.ids("a"))

        failpoints.arm("create.recorded", stall)
        desk.sql(
            'CREATE JOB a PROPERTIES("max_interval"="1") ON STREAMING DO INSERT INTO shop.a SELECT id '
            f'FROM FILE("uri"="{shared.path}/in_a/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )
        assert loaded == [0, 1, 2]
    shared.put("a", "2.csv", 3, 3)
    until(lambda: shared.ids("a") == [*range(6)], "it goes on")
    assert (runs.job("a").state, has(runs, "a")) == (JobState.RUNNING, True)
    assert runs.verify("a").is_clean


def test_a_service_that_starts_while_a_command_runs_a_job_waits_until_that_has_ended(
    shared: Shared, request: pytest.FixtureRequest
) -> None:
    """It fenced the command, which paused the job that the service was running: until a person came."""
    use_postgres(shared, request)
    shared.make("a")
    shared.put("a", "1.csv", 0, 3)
    seen = list[object]()

    def interfere(_name: str) -> None:
        failpoints.disarm_all()
        runs, _ = shared.serve("runs")
        until(lambda: runs.leases.service_id is not None, "the service has looked")
        for _ in range(3):
            runs.leases.look(runs.give_back)
        seen.append((has(runs, "a"), len(runs.store.list_services())))
        with shared.home("late") as late, pytest.raises(JobStateError, match="are run by a service on"):
            late.run(["a"])

    with shared.home("command") as command:
        failpoints.arm("check.after", interfere)
        ended = command.run(["a"])
        assert (seen, ended["a"].state) == ([(False, 2)], JobState.RUNNING)
        assert shared.ids("a") == [0, 1, 2]
        shared.put("a", "2.csv", 3, 3)
        until(lambda: shared.ids("a") == [*range(6)], "the service runs it")
        assert set(holders(command)) == {"a"}
        assert command.job("a").state is JobState.RUNNING


def test_commands_of_two_homes_take_turns_with_a_job(shared: Shared, request: pytest.FixtureRequest) -> None:
    """What one of them has open from its last run is not true any more when the other one has loaded."""
    use_postgres(shared, request)
    shared.make("a")
    with shared.home("one") as one, shared.home("two") as two:
        for number, each in enumerate((one, two, one, two)):
            shared.put("a", f"{number}.csv", 3 * number, 3)
            assert each.run(["a"])["a"].state is JobState.RUNNING
            assert shared.ids("a") == [*range(3 * number + 3)]
            assert each.store.list_leases() == {}
        assert two.verify("a").is_clean


def test_a_service_without_the_lease_does_not_open_a_job(shared: Shared) -> None:
    shared.make("a")
    runs, _ = shared.serve("runs")
    until(lambda: has(runs, "a"), "it has the job")
    with shared.home("late") as late:
        late.leases.look(late.give_back)
        shared.put("a", "1.csv", 0, 3)
        assert not late.runner(late.job("a").job_id).run_once()
        until(lambda: shared.ids("a") == [0, 1, 2], "the other one loads it")
        assert runs.job("a").state is JobState.RUNNING


def test_a_batch_ends_before_its_job_is_given_away_and_it_comes_back_when_the_other_has_left(shared: Shared) -> None:
    shared.make("a", "b")
    one, _ = shared.serve("one")
    until(lambda: len(holders(one)) == 2, "it has both")
    began, may_end = threading.Event(), threading.Event()

    def run_long(_name: str) -> None:
        began.set()
        assert may_end.wait(LIMIT_S)

    failpoints.arm("commit.before", run_long)
    for name in ("a", "b"):
        shared.put(name, "1.csv", 0, 2)
    assert began.wait(LIMIT_S)
    with shared.home("two") as two:
        two.leases.look(two.give_back)
        job_ids = [one.job(name).job_id for name in ("a", "b")]
        until(lambda: any(one.leases.is_leaving(job_id) for job_id in job_ids), "one of them is to be given back")
        time.sleep(1.0)  # It is asked again and again.
        assert not any(one.runner(job_id).is_halted() for job_id in job_ids)
    may_end.set()
    failpoints.disarm_all()
    until(lambda: set(holders(one).values()) == {one.leases.service_id} and len(holders(one)) == 2, "it has both again")
    for name in ("a", "b"):
        until(lambda name=name: shared.ids(name) == [0, 1], f"the rows of {name}")  # type: ignore[misc]
        shared.put(name, "2.csv", 2, 1)
        until(lambda name=name: shared.ids(name) == [0, 1, 2], f"more rows of {name}")  # type: ignore[misc]
    assert one.verify("a").is_clean


def test_a_home_of_the_same_path_on_a_machine_of_the_same_name_is_another_one(shared: Shared) -> None:
    with shared.home("one") as one, shared.home("two") as two:
        for each in (one, two):
            each.leases._entry = replace(each.leases._entry, home="/var/lib/lading", host="lading")
        for _ in range(3):
            one.leases.look(one.give_back)
            two.leases.look(two.give_back)
        assert len(one.store.list_services()) == 2


def test_services_with_a_copied_home_leave_each_other_alone_and_say_so(
    shared: Shared, caplog: pytest.LogCaptureFixture
) -> None:
    with shared.home("one"):
        pass
    shutil.copytree(shared.path / "one", shared.path / "two")
    with shared.home("one") as one, shared.home("two") as two:
        assert one.leases.home_id == two.leases.home_id
        for _ in range(3):
            one.leases.look(one.give_back)
            two.leases.look(two.give_back)
        one.leases.look(one.give_back)
        assert len(one.store.list_services()) == 2
        told = [record.getMessage() for record in caplog.records if "one is a copy of the other" in record.getMessage()]
        assert len(told) == 2, "each says it once"
        # A process before it in the same home still leaves its jobs at once.
        entry = replace(one.leases._entry, service_id="before", beat=7)
        one.store.beat(entry)
        one.leases.look(one.give_back)
        assert "before" not in {each.service_id for each in one.store.list_services()}


def test_an_iceberg_table_of_one_home_is_brought_along_and_opened_by_others(
    shared: Shared, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was in a catalog in the home of the service that made it, where no other one could open it."""
    use_postgres(shared, request)
    shared.form = "iceberg"
    with monkeypatch.context() as before:
        before.setattr(Store, "shared_url", "")
        shared.make("a")
    assert (shared.path / "maker" / "catalog.db").exists()
    shared.put("a", "1.csv", 0, 3)
    with shared.home("other") as other, pytest.raises(TableNotFoundError):
        other.catalog.open_table("shop", "a")
    (shared.path / "other" / "catalog.db").touch()  # As one that was killed when it made the first table leaves it.
    with shared.home("maker") as maker:
        maker.run(["a"])
    shared.put("a", "2.csv", 3, 3)
    with shared.home("other") as other:
        other.run(["a"])
        assert other.verify("a").is_clean
        assert shared.ids("a") == [*range(6)]
    with shared.home("maker") as maker:
        maker.sql("DROP JOB WHERE jobName = 'a'; DROP TABLE shop.a")
    with pytest.raises(NoSuchTableError):
        shared.ids("a")


class Stopping(SystemClock):
    """Of a process that is stopped for a while: it sees that only afterwards."""

    stopped_s = 0.0

    def passed_s(self) -> float:
        return super().passed_s() + self.stopped_s


def test_a_service_that_was_stopped_tells_the_source_nothing_before_it_has_looked_at_its_leases(shared: Shared) -> None:
    """Others may have loaded more and told it: a consumer group would be set back."""
    shared.make("a")
    clock, told = Stopping(), list[Bill]()
    with LocalLading(shared.path / "one", store_url=shared.store, user="tester", clock=clock) as one:
        one.leases.look(one.give_back)
        runner = one.runner(one.job("a").job_id)
        shared.put("a", "0.csv", 0, 1)
        runner.run_once()
        assert runner.opened is not None
        object.__setattr__(runner.opened.compiled.source, "acknowledge", told.append)

        def stop(_name: str) -> None:
            clock.stopped_s += 60

        for name, is_stopped in (("1.csv", True), ("2.csv", False)):
            shared.put("a", name, int(name[0]), 1)
            if is_stopped:
                failpoints.arm("settle.after", stop)
            runner.run_once()
            failpoints.disarm_all()
            assert len(told) == (not is_stopped)
            one.leases.look(one.give_back)
        assert shared.ids("a") == [0, 1, 2]

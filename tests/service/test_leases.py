"""Several services that share one store: each job runs in one of them, and goes on in another when that one dies."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import deltalake
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError

from lading import failpoints
from lading.errors import JobStateError, TableNotFoundError
from lading.jobs.record import JobState
from lading.service.scheduling.scheduler import Scheduler
from lading.store.store import Store
from lading.testing.marked import secret
from tests.console.local import LocalLading
from tests.store.conftest import postgres as postgres
from tests.store.postgres import PostgresServer
from tests.tables.s3_server import S3Server

LIMIT_S = 90.0
TAKEN_WITHIN_S = 15.0
ROOT = Path(__file__).parent.parent.parent


def until(met: Callable[[], bool], what: str) -> float:
    """Wait for something that happens elsewhere; how long it took."""
    began = time.monotonic()
    while not met():
        assert time.monotonic() < began + LIMIT_S, f"never came: {what}"
        time.sleep(0.05)
    return time.monotonic() - began


class Shared:
    """A store, a lake and an inbox that several homes share."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path
        self.store = str(path / "store.db")
        self.form = "delta"
        self.bucket: S3Server | None = None
        """Where the tables are, if not on this disk."""
        self._bucket = ""
        self._stack = stack

    @contextmanager
    def home(self, name: str) -> Iterator[LocalLading]:
        with LocalLading(self.path / name, store_url=self.store, user="tester") as lading:
            yield lading

    def serve(self, name: str) -> tuple[LocalLading, Scheduler]:
        lading = self._stack.enter_context(self.home(name))
        scheduler = Scheduler(lading)
        scheduler.start()
        self._stack.callback(scheduler.close)
        return lading, scheduler

    def worker(self, name: str, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.support.lease_worker", str(self.path / name), self.store, *more]
        process = self._stack.enter_context(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True))
        self._stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def make(self, *jobs: str) -> None:
        with self.home("maker") as lading:
            lading.sql("CREATE DATABASE shop")
            for job in jobs:
                (self.path / f"in_{job}").mkdir()
                lading.sql(f"CREATE TABLE shop.{job} (id BIGINT) USING {self.form} {self._place(job)}")
                lading.sql(
                    f'CREATE JOB {job} PROPERTIES("max_interval"="1") ON STREAMING DO INSERT INTO shop.{job} SELECT id '
                    f'FROM FILE("uri"="{self.path}/in_{job}/*.csv", "format"="csv_with_names", "column_separator"=",")'
                )

    def put(self, job: str, name: str, first: int, count: int) -> None:
        draft = self.path / "draft"
        draft.write_text("id\n" + "".join(f"{number}\n" for number in range(first, first + count)))
        draft.rename(self.path / f"in_{job}" / name)

    def _place(self, job: str) -> str:
        if self.bucket is None:
            return f"LOCATION '{self.path}/lake/{job}'"
        keys = f'"s3.access_key"="{secret("lake")}", "s3.secret_key"="{secret("lake")}"'
        reach = f'"s3.endpoint"="{self.bucket.endpoint}", "s3.region"="us-east-1", "use_path_style"="true"'
        return f"LOCATION 's3://{self._bucket_name()}/{job}' TBLPROPERTIES ({reach}, {keys})"

    def _bucket_name(self) -> str:
        assert self.bucket is not None
        self._bucket = self._bucket or self.bucket.make_bucket()
        return self._bucket

    def ids(self, job: str) -> list[int]:
        """As somebody else reads the table."""
        if self.form == "iceberg":
            with closing(
                SqlCatalog("lading", uri=self.store.replace("://", "+psycopg://"), **self._reach())
            ) as catalog:
                return sorted(catalog.load_table(f"shop.{job}").scan().to_arrow()["id"].to_pylist())
        place = str(self.path / "lake" / job) if self.bucket is None else f"s3://{self._bucket_name()}/{job}"
        options = {name.replace("s3.", "aws_").replace("-", "_"): value for name, value in self._reach().items()}
        table = deltalake.DeltaTable(place, storage_options={**options, "aws_allow_http": "true"})
        return sorted(table.to_pyarrow_table()["id"].to_pylist())

    def _reach(self) -> dict[str, str]:
        if self.bucket is None:
            return {}
        keys = {"s3.access-key-id": secret("lake"), "s3.secret-access-key": secret("lake")}
        return {"s3.endpoint": self.bucket.endpoint, "s3.region": "us-east-1", **keys}


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shared]:
    monkeypatch.setenv("LADING_SECRET_KEY", base64.urlsafe_b64encode(os.urandom(32)).decode())
    monkeypatch.setenv("LADING_LEASE_SECONDS", "2")
    with ExitStack() as stack:
        yield Shared(tmp_path, stack)


def use_postgres(shared: Shared, request: pytest.FixtureRequest) -> None:
    server: PostgresServer = request.getfixturevalue("postgres")
    shared.store = server.fresh_url()


def holders(lading: LocalLading) -> dict[str, str]:
    """Job → service."""
    names = {stored.record.job_id: stored.record.name for stored in lading.store.list_jobs()}
    return {names[job_id]: holder for job_id, holder in lading.store.list_leases().items()}


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
    took = until(lambda: holders(two).get("a") == two.leases.service_id, "the job is taken over")
    assert took < TAKEN_WITHIN_S
    more = until(lambda: shared.ids("a") == [0, 1, 2, 3, 4, 5], "the rest")
    print(f"a killed service: its job was taken over after {took:.1f} s, its rows were there after {took + more:.1f} s")
    assert two.job("a").state is JobState.RUNNING


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("delta", "disk"),
        ("iceberg", "s3"),
        pytest.param("delta", "s3", marks=pytest.mark.slow),
        pytest.param("iceberg", "disk", marks=pytest.mark.slow),
    ],
)
def test_a_service_that_was_stopped_before_its_commit_lands_and_changes_nothing(
    shared: Shared, request: pytest.FixtureRequest, form: str, place: str
) -> None:
    shared.form, shared.bucket = form, request.getfixturevalue("s3") if place == "s3" else None
    use_postgres(shared, request)  # A process that is stopped while it writes would keep others out of SQLite.
    shared.make("a")
    # Its first commit is that of opening the job or of its first batch; the later one is stopped in the middle.
    stopped = shared.worker("one", "2")
    shared.put("a", "1.csv", 0, 3)
    with shared.home("looker") as lading:
        until(lambda: len(lading.store.list_leases()) == 1, "the worker has it")
        until(lambda: shared.ids("a") == [0, 1, 2], "the first batch")
    shared.put("a", "2.csv", 3, 3)
    assert stopped.stdout is not None
    assert stopped.stdout.readline() == "stopped\n"
    two, _ = shared.serve("two")
    took = until(lambda: holders(two).get("a") == two.leases.service_id, "another service takes it")
    assert took < TAKEN_WITHIN_S
    until(lambda: shared.ids("a") == [0, 1, 2, 3, 4, 5], "and loads it")
    before = two.store.find_job(two.job("a").full_name)
    assert before is not None
    os.kill(stopped.pid, signal.SIGCONT)
    # It lives again, and shows it; nothing of it is in the table or in the record.
    until(lambda: len(two.store.list_services()) == 2, "the first one is back")
    shared.put("a", "3.csv", 6, 3)
    until(lambda: shared.ids("a") == [*range(9)], "the next file")
    record = two.job("a")
    assert record.state is JobState.RUNNING
    assert record.counts.failed == before.record.counts.failed
    assert two.verify("a").is_clean
    assert holders(two)["a"] in {service.service_id for service in two.store.list_services()}


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


def test_a_service_without_the_lease_does_not_open_a_job(shared: Shared) -> None:
    shared.make("a")
    runs, _ = shared.serve("runs")
    until(lambda: holders(runs).get("a") == runs.leases.service_id, "it has the job")
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

"""Batches of the vector path while nobody has started Spark: processes of this machine stage them.

None of these tests can start Java: what loads rows here does it without Spark.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from lading.errors import StageError
from lading.pipeline.local_pool import LocalPool
from lading.service.facade import Lading
from lading.service.runtime.spark import Engine
from lading.service.security.redaction import HIDDEN
from lading.sources.files.source import FilesSource
from lading.testing.marked import secret
from tests.service import near_reads
from tests.service.conftest import Desk
from tests.service.near_reads import NearLading

pytestmark = pytest.mark.long

SECONDS = 60.0
EXACT = '"file.settle_seconds"="0"'
RUN = """
import sys
from tests.service import near_reads
near_reads.NearLading.around = staticmethod(near_reads.hangs)
near_reads.NearLading.mark = near_reads.Path(sys.argv[2])
with near_reads.NearLading(sys.argv[1]) as lading:
    lading.run()
"""


class NearDesk(Desk):
    """A desk without a session that somebody made."""

    lading: NearLading

    def _open(self) -> Lading:
        made = NearLading(self.path / "home", user="tester")
        made.mark = self.path / "mark"
        return made

    def begin(self, around: Any = None, form: str = "delta", properties: str = EXACT) -> None:
        """A job, and two files for it."""
        self.lading.around = around
        self.table(form=form)
        self.create(properties=properties)
        self.put_orders("a.csv", 1, 10)
        self.put_orders("b.csv", 11, 10)


@pytest.fixture
def near(tmp_path: Path) -> Iterator[NearDesk]:
    made = NearDesk(tmp_path)
    yield made
    made.lading.close()


def is_running(pid: int) -> bool:
    """Whether a process does anything; one that ended may still wait for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until_gone(pid: int) -> None:
    waiting = threading.Event()
    for _ in range(int(SECONDS / 0.05)):
        if not is_running(pid):
            return
        waiting.wait(0.05)
    pytest.fail(f"process {pid} is still there")


def pid_in(mark: Path) -> int:
    waiting = threading.Event()
    for _ in range(int(SECONDS / 0.05)):
        if mark.exists():
            return int(mark.read_text())
        waiting.wait(0.05)
    pytest.fail("nobody has begun to read")


@pytest.mark.parametrize("form", ["delta", "iceberg", "paimon"])
def test_rows_and_bad_rows_are_loaded_without_java(near: NearDesk, form: str) -> None:
    near.begin(
        form=form,
        properties=f'{EXACT}, "session.insert_max_filter_ratio"="0.5", "session.enable_insert_strict"="false"',
    )
    near.put("c.csv", ["21,essen,1.00", "x,essen,1.00", "x,essen,1.00"])
    near.run()
    assert near.ids() == [*range(1, 22)]
    assert near.lading.verify("j").is_clean
    assert near.lading.engine._session is None
    near.put_orders("d.csv", 31, 5)
    near.run()
    assert near.ids() == [*range(1, 22), *range(31, 36)]


@pytest.mark.parametrize("around", [near_reads.dies_once, near_reads.fails_without_memory])
def test_a_process_that_died_is_told_as_such_and_its_batch_is_tried_again(near: NearDesk, around: Any) -> None:
    near.begin(around)
    runner = near.lading.runner(near.lading.job("j").job_id)
    runner.run_once()
    record = runner.record()
    assert "A worker of the batch was killed or ran out of memory" in str(record)
    assert near.ids() == []
    near.run()
    assert near.ids() == [*range(1, 21)]
    assert near.lading.verify("j").is_clean


def test_the_process_that_forks_may_die_between_batches(near: NearDesk) -> None:
    near.begin()
    near.run()
    pool = near.lading.engine.near_pool()
    assert pool is not None
    first = pool._process
    assert first is not None
    first.kill()
    first.wait()
    near.put_orders("c.csv", 21, 5)
    near.run()
    assert near.ids() == [*range(1, 26)]
    assert pool._process is not first


def test_the_process_that_forks_ends_when_spark_is_there_and_nobody_needs_it(near: NearDesk) -> None:
    near.begin()
    near.run()
    engine = near.lading.engine
    pool = engine.near_pool()
    assert pool is not None
    forking = pool._process
    assert forking is not None
    engine._session = Any  # type: ignore[assignment]  # Whatever it is: it is there.
    with pool.slot():
        assert engine.near_pool() is None
        assert forking.poll() is None
    assert engine.near_pool() is None
    assert forking.poll() is not None
    engine._session = None


def test_a_batch_that_is_cut_off_ends_its_process(near: NearDesk) -> None:
    near.begin(near_reads.hangs)
    running = threading.Thread(target=near.run)
    running.start()
    pid = pid_in(near.lading.mark)
    near.sql("PAUSE JOB WHERE jobName='j'")
    wait_until_gone(pid)
    running.join(SECONDS)
    assert not running.is_alive()
    assert near.lading.runner(near.lading.job("j").job_id).record().pace.suspect_deaths == 0
    assert near.ids() == []
    near.lading.around = None
    near.sql("RESUME JOB WHERE jobName='j'")
    near.run()
    assert near.ids() == [*range(1, 21)]


def test_a_batch_that_waits_for_others_is_cut_off_too(near: NearDesk) -> None:
    near.begin()
    pool = near.lading.engine.near_pool()
    assert pool is not None
    with ExitStack() as others:
        for _ in range(pool.slots):
            others.enter_context(pool.slot())
        running = threading.Thread(target=near.run)
        running.start()
        waiting = threading.Event()
        while near.lading.job("j").task is None:
            waiting.wait(0.05)
        near.sql("PAUSE JOB WHERE jobName='j'")
        running.join(SECONDS)
        assert not running.is_alive()
    assert near.ids() == []


def test_a_batch_that_takes_too_long_ends_its_process(near: NearDesk) -> None:
    near.begin(near_reads.hangs, properties=f'{EXACT}, "session.insert_timeout"="1", "session.query_timeout"="1"')
    runner = near.lading.runner(near.lading.job("j").job_id)
    runner.run_once()
    assert "The batch took longer than 1 seconds" in str(runner.record())
    if near.lading.mark.exists():  # Else it was over before a process had begun.
        wait_until_gone(pid_in(near.lading.mark))


def test_processes_end_with_a_service_that_is_killed(near: NearDesk) -> None:
    near.begin()
    near.lading.close()
    mark = near.path / "other"
    service = subprocess.Popen([sys.executable, "-c", RUN, str(near.path / "home"), str(mark)])
    pid = pid_in(mark)
    service.kill()
    service.wait()
    wait_until_gone(pid)
    near.restart()
    near.run()
    assert near.ids() == [*range(1, 21)]


def test_processes_have_no_secret_of_the_service(near: NearDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LADING_X", "of the service")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the service")
    monkeypatch.setenv("MY_TOKEN", "of the service")
    near.begin(near_reads.tells_environment)
    near.run()
    told = near.lading.mark.read_text()
    assert "PATH=" in told
    assert "OMP_NUM_THREADS=" in told
    assert "of the service" not in told


def test_what_processes_print_is_logged_without_secrets(near: NearDesk, caplog: pytest.LogCaptureFixture) -> None:
    key = secret("printed")
    HIDDEN.learn([key])
    near.begin(partial(near_reads.prints, f"connecting with {key}"))
    with caplog.at_level("WARNING", "lading.worker"):
        near.run()
        near.lading.close()
        for thread in threading.enumerate():
            if thread.name == "lading-lines-lading.worker":
                thread.join(SECONDS)
    said = {record.getMessage() for record in caplog.records if record.name == "lading.worker"}
    assert said == {"connecting with ******"}
    near.restart_empty()


@pytest.mark.parametrize("form", ["delta", "iceberg", "paimon"])
def test_what_tasks_need_was_imported_before_they_were_forked(near: NearDesk, form: str) -> None:
    near.lading.around = near_reads.tells_imports
    near.table(form=form)
    near.create(properties=EXACT, select="id + 1 AS id, upper(city) AS city, amount * 2 AS amount")
    near.put_orders("a.csv", 1, 10)
    near.run()
    roots = {name.partition(".")[0] for name in near.lading.mark.read_text().split()}
    assert not roots & {"lading", "numpy", "pandas", "pyiceberg", "pydantic", "pypaimon", "deltalake", "boto3"}


def test_a_value_that_arrow_cannot_decide_goes_to_spark(near: NearDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def session(self: Engine) -> Any:
        asked.set()
        msg = "This test has no Spark"
        raise OSError(msg)

    monkeypatch.setattr(Engine, "session", session)
    near.sql("CREATE TABLE orders (at TIMESTAMP) USING delta")
    near.create(properties=EXACT, select="CAST(city AS TIMESTAMP) AS at")
    near.put("a.csv", ["1,2024-01-01 10:00:00 Europe/Berlin,1"])
    job_id = near.lading.job("j").job_id
    near.lading.runner(job_id).run_once()
    assert asked.is_set()
    refusal = near.lading.vector.refusal(job_id)
    assert refusal is not None
    assert refusal.part == "a batch"


def test_who_set_more_of_spark_than_where_it_runs_gets_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pool_with(**settings: str) -> object:
        with Lading(tmp_path / "home", spark={f"spark.{name}": value for name, value in settings.items()}) as lading:
            return lading.engine.near_pool()

    assert pool_with(master="local[3]") is not None
    assert pool_with(master="spark://localhost:7077") is None
    assert pool_with(**{"python.worker.memory": "1g"}) is None
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert pool_with() is not None
    (tmp_path / "spark-defaults.conf").touch()
    assert pool_with() is None


def test_a_reader_that_only_spark_can_send_goes_to_spark(near: NearDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def session(self: Engine) -> Any:
        asked.set()
        msg = "This test has no Spark"
        raise OSError(msg)

    monkeypatch.setattr(Engine, "session", session)
    near.begin(lambda mark, read, splits: read(splits))
    job_id = near.lading.job("j").job_id
    near.lading.runner(job_id).run_once()
    assert asked.is_set()
    assert near.lading.vector.refusal(job_id) is None


def test_so_many_tasks_run_at_once_as_spark_would_run(tmp_path: Path) -> None:
    with Lading(tmp_path / "home", spark={"spark.master": "local[3]"}) as lading:
        pool = lading.engine.near_pool()
        assert pool is not None
        assert pool.slots == 3


def test_a_service_that_is_ready_has_started_no_spark(near: NearDesk) -> None:
    near.lading.get_ready()
    pool = near.lading.engine.near_pool()
    assert pool is not None
    assert pool._process is not None
    near.begin()
    near.run()
    assert near.ids() == [*range(1, 21)]
    assert near.lading.engine._beginning is None
    assert near.lading.engine._session is None


def test_spark_starts_while_the_source_of_a_job_that_needs_it_is_listed(
    near: NearDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, listed, plan = threading.Event(), threading.Event(), FilesSource.plan

    def session(self: Engine) -> Any:
        asked.set()
        assert listed.wait(SECONDS)
        msg = "This test has no Spark"
        raise OSError(msg)

    def plan_when_spark_starts(self: FilesSource, *given: Any) -> Any:
        assert asked.wait(SECONDS)
        listed.set()
        return plan(self, *given)

    monkeypatch.setattr(Engine, "session", session)
    monkeypatch.setattr(FilesSource, "plan", plan_when_spark_starts)
    near.table()
    near.create(properties=EXACT, select="id, regexp_replace(city, 'e', 'a') AS city, amount")
    near.put_orders("a.csv", 1, 10)
    near.lading.runner(near.lading.job("j").job_id).run_once()
    assert listed.is_set()


@pytest.mark.java  # It only looks which version there is.
def test_nobody_waits_for_a_spark_that_was_started_and_is_not_needed(
    near: NearDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher, said = near.path / "bin" / "spark-submit", near.path / "said"
    launcher.parent.mkdir()
    launcher.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {said}.new; mv {said}.new {said}\nwait\n")
    launcher.chmod(0o700)
    monkeypatch.setenv("SPARK_HOME", str(near.path))
    for name in ("_active_spark_context", "_gateway"):  # Other tests may have a Spark in this process.
        monkeypatch.setattr(SparkContext, name, None)
    near.table()
    near.create(properties=EXACT, select="id, regexp_replace(city, 'e', 'a') AS city, amount")
    near.put_orders("a.csv", 1, 10)
    near.lading.engine.begin()
    java = pid_in(said)
    closing = threading.Thread(target=near.lading.close)
    closing.start()
    closing.join(SECONDS)
    assert not closing.is_alive()
    wait_until_gone(java)
    with pytest.raises(StageError, match="is being closed"):
        near.lading.spark()


def test_tasks_have_their_turns_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    pool, began = LocalPool({}, 1), list[int]()
    busy, threads = [threading.Event() for _ in range(5)], list[threading.Thread]()

    def work(number: int) -> None:
        with pool.slot():
            began.append(number)
            assert busy[number].wait(SECONDS)

    for number in range(5):
        threads.append(threading.Thread(target=work, args=(number,)))
        threads[-1].start()
        while len(began) + len(pool._waiting) <= number:
            threading.Event().wait(0.01)
    for number, thread in enumerate(threads):
        busy[number].set()
        thread.join(SECONDS)
    assert began == [0, 1, 2, 3, 4]

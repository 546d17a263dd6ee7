"""Each process of a cluster is killed in the middle of each step, some on a machine that is too busy: exact."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.cluster.conftest import StartDriver
from tests.cluster.inbox import Inbox, create_table
from tests.cluster.shown import UI, attempts_of
from tests.support.cluster_driver import RUNNING, Driver
from tests.support.other_readers import read_elsewhere
from tests.support.spark_cluster import SparkCluster, kill_all

pytestmark = [pytest.mark.java, pytest.mark.slow]

STEPS = (
    "plan.after",
    "stage.before",
    RUNNING,
    "check.after",
    "bill.after",
    "commit.before",
    "commit.after",
    "settle.after",
    "follow.before",
)
"""One in each step of a batch, and on both sides of its commit."""
STRAINED = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.task.maxFailures": "8",
    "spark.stage.maxConsecutiveAttempts": "8",
    "spark.lading.executors.timeout": "60",
}
"""An executor that starts on a busy machine unpacks Lading's archive for up to half a minute."""


@contextmanager
def busy_machine() -> Iterator[None]:
    """A process for every second core that takes all of it, so that tasks overtake each other."""
    count = max(1, (os.cpu_count() or 2) // 2)
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def kill_worker(cluster: SparkCluster) -> int:
    """A machine that is gone. It comes back."""
    killed = cluster.kill_worker(0)
    cluster.start_worker(0)
    return killed


def kill_master(cluster: SparkCluster) -> int:
    """Another one takes its place, which knows nothing of the applications of the first."""
    killed = cluster.kill("master")
    cluster.start_master()
    return killed


VICTIMS: dict[str, Callable[[SparkCluster], int]] = {
    "executor": lambda cluster: cluster.kill_executors(1),
    "all executors": lambda cluster: cluster.kill_executors(9),
    "Python workers": lambda cluster: cluster.kill_python_workers(),
    "worker": kill_worker,
    "master": kill_master,
}
"""How many processes each has killed. Those that are not there yet are waited for."""
OVERTAKEN = ("executor", "Python workers")
"""Killed on a machine that is too busy: those whose tasks others can overtake."""


def read_ids(home: Path, form: str = "delta") -> list[int]:
    """As Polars finds them."""
    return sorted(read_elsewhere(form, home / "warehouse" / "shop" / "orders")["id"].to_pylist())


def check_exact(driver: Driver, inbox: Inbox, what: str, form: str = "delta") -> None:
    ids = read_ids(inbox.folder.parent / "home", form)
    print(f"{what}: {len(ids)} rows, {len(set(ids))} different, {len(inbox.ids)} sent")
    assert ids == inbox.ids
    assert driver.ask("verify", "j") == [True, []]


@pytest.mark.parametrize(
    ("victim", "form"),
    [
        ("executor", "delta"),
        ("all executors", "iceberg"),
        ("Python workers", "delta"),
        ("worker", "iceberg"),
        ("master", "delta"),
    ],
)
def test_a_process_of_the_cluster_is_killed_at_every_step(
    tmp_path: Path, cluster: SparkCluster, start_driver: StartDriver, victim: str, form: str
) -> None:
    """One batch in peace, so that everything runs, then one for each step, in which the victim is killed there, and two
    more."""
    inbox = Inbox(tmp_path / "in", files=2 * (len(STEPS) + 3), rows=20_000)
    patience = {"spark.lading.executors.timeout": "15"} if victim == "master" else {}  # None comes from another master.
    driver = start_driver(**{**STRAINED, **UI, **patience})
    driver.ask("sql", f"CREATE DATABASE shop; {create_table('orders', form)}; {inbox.job('j', 'orders', files=2)}")
    kills: dict[str, Future[int]] = {}

    def kill_at(step: str) -> None:
        """Where none is there, the driver goes on: Spark ends Python workers that had nothing to do for a minute, and
        on a busy machine that is not long."""
        kills[step] = beside.submit(VICTIMS[victim], cluster)
        wait([kills[step]], timeout=30)

    stops = {f"{step}:{number + 2}": (lambda step=step: kill_at(step)) for number, step in enumerate(STEPS)}
    with ThreadPoolExecutor(1) as beside, busy_machine() if victim in OVERTAKEN else nullcontext():
        states = driver.run(stops)
    killed = {step: kill.result() for step, kill in kills.items()}
    assert states["j"][0] == "RUNNING", states
    assert killed.keys() == set(STEPS)
    assert min(killed.values()) > 0, killed
    tasks = driver.ask("tasks", "j")
    assert len(tasks) > len(STEPS)
    assert max(tasks) == sum(cluster.cores), tasks
    check_exact(driver, inbox, f"{victim}: {sum(killed.values())} killed at {len(killed)} steps, {form}", form)
    print(f"{tasks} tasks in each commit; {attempts_of(driver)}")


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_the_driver_is_killed_at_every_step(
    tmp_path: Path, cluster: SparkCluster, start_driver: StartDriver, form: str
) -> None:
    inbox = Inbox(tmp_path / "in", files=2 * len(STEPS) + 2, rows=20_000)
    driver = start_driver(**STRAINED)
    driver.ask("sql", f"CREATE DATABASE shop; {create_table('orders', form)}; {inbox.job('j', 'orders', files=2)}")
    for step in STEPS:
        driver.tell("run", [f"{step}:1"])
        assert driver.hear() == f"{step}:1"
        driver.kill()
        driver = start_driver(**STRAINED)
    states = driver.run({})
    assert states["j"][0] == "RUNNING", states
    check_exact(driver, inbox, f"driver killed at {len(STEPS)} steps, {form}", form)


def shown(driver: Driver) -> str:
    """What SHOW says of the job."""
    (row,) = driver.ask("sql", 'SELECT Status, JobRuntimeMsg FROM jobs("type"="insert")')
    return " ".join(row)


def test_a_job_without_an_executor_says_what_it_waits_for_and_goes_on_by_itself(
    tmp_path: Path, cluster: SparkCluster, start_driver: StartDriver
) -> None:
    inbox = Inbox(tmp_path / "in", files=2, rows=100)
    for number in range(len(cluster.cores)):
        cluster.kill(f"worker-{number}")
    kill_all(cluster.executors())
    driver = start_driver()
    driver.ask("sql", f"CREATE DATABASE shop; {create_table('orders')}; {inbox.job('j', 'orders')}")
    driver.ask("begin")
    told = "RUNNING The batch waits: Spark has no executor from spark://127.0.0.1:"
    cluster.wait_until(lambda: told in shown(driver), "word of what the job waits for", timeout_s=180)
    assert "The batch waits" in driver.log
    for number in range(len(cluster.cores)):
        cluster.start_worker(number)
    driver.ask("wait", timeout_s=300)
    check_exact(driver, inbox, "workers that came late")
    assert "waits" not in shown(driver)


def changed(archive: Path, name: str, change: Callable[[str, bytes], bytes | None]) -> Path:
    """An archive with other content; None leaves a file out."""
    other = archive.with_name(name)
    with tarfile.open(archive) as whole, tarfile.open(other, "w:gz", compresslevel=1) as made:
        for member in whole:
            content = change(member.name, whole.extractfile(member).read())  # type: ignore[union-attr]
            if content is not None:
                member.size = len(content)
                made.addfile(member, io.BytesIO(content))
    return other


def older(name: str, content: bytes) -> bytes:
    """A Lading whose tasks answer with nothing, as if there was nothing to read."""
    if name == "lading/__init__.py":
        return content.replace(b'"0.1.0"', b'"0.0.9"')
    if name == "lading/pipeline/stager.py":
        return content.replace(b"    tools: TaskTools = sealed.open()\n", b"    return\n    tools = None\n")
    return content


def test_executors_with_an_older_lading_or_without_a_library_are_refused(
    tmp_path: Path, archive: Path, start_driver: StartDriver
) -> None:
    inbox = Inbox(tmp_path / "in", files=2, rows=100)
    cases = {
        "has Lading 0.0.9, and the service 0.1.0": changed(archive, "older.tar.gz", older),
        "lacks orjson, of which the service has": changed(
            archive, "less.tar.gz", lambda name, content: None if name.startswith("orjson") else content
        ),
    }
    resume = ""
    for told, other in cases.items():
        driver = start_driver(**{"spark.lading.archive": str(other)})
        if not resume:
            driver.ask("sql", f"CREATE DATABASE shop; {create_table('orders')}; {inbox.job('j', 'orders')}")
        driver.ask("sql", resume or "SHOW DATABASES")
        state, reason = driver.run({})["j"]
        assert state == "PAUSED"
        assert told in reason
        assert "lading package" in reason
        assert read_ids(tmp_path / "home") == []
        driver.ask("close")
        resume = "RESUME JOB WHERE jobName='j'"
    driver = start_driver()
    driver.ask("sql", resume)
    assert driver.run({})["j"][0] == "RUNNING"
    check_exact(driver, inbox, "fit executors after unfit ones")

"""Jobs on a standalone cluster: exact, with executors that have nothing but Python, and no key left anywhere."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lading.testing.marked import MARK, secret
from tests.cluster.conftest import StartDriver
from tests.cluster.inbox import Inbox, create_table
from tests.support.cluster_driver import Driver
from tests.support.spark_cluster import SparkCluster, descendants
from tests.tables.s3_server import S3Server

pytestmark = pytest.mark.java


def test_jobs_on_a_cluster_are_exact_through_kills_and_leave_no_key(
    tmp_path: Path, cluster: SparkCluster, start_driver: StartDriver, s3: S3Server
) -> None:
    """The tables are on a path that all share and in a bucket; the workers' Python has no library at all."""
    inbox, bucket = Inbox(tmp_path / "in", files=6, rows=30_000), s3.make_bucket()
    driver = start_driver(**{"spark.ui.enabled": "true", "spark.ui.port": "0", "spark.speculation": "true"})
    driver.ask("sql", f"CREATE DATABASE shop; {create_table('here')}; {inbox.job('here', 'here', files=2)}")
    keys = {"s3.endpoint": s3.endpoint, "s3.region": "us-east-1", "use_path_style": "true"}
    keys |= {"s3.access_key": secret("cluster"), "s3.secret_key": secret("cluster-secret")}
    given = ", ".join(f"'{name}'='{value}'" for name, value in keys.items())
    more = f"LOCATION 's3://{bucket}/far' TBLPROPERTIES({given})"
    driver.ask("sql", f"{create_table('far', 'iceberg', more)}; {inbox.job('far', 'far', files=6)}")

    killed: list[int] = []
    states = driver.run(
        {
            "running:2": lambda: killed.append(cluster.kill_python_workers()),
            "running:3": lambda: killed.append(cluster.kill_executors(1)),
        }
    )
    assert {name: state for name, (state, _) in states.items()} == {"here": "RUNNING", "far": "RUNNING"}, states
    for name in ("here", "far"):
        assert driver.ask("ids", f"shop.{name}") == inbox.ids
        assert driver.ask("verify", name) == [True, []]
    assert min(killed) > 0
    assert len(killed) == 2
    print(f"killed: {killed[0]} Python workers, {killed[1]} executor; 2 tables, {len(inbox.ids)} rows each, as sent")
    cluster.wait_until(lambda: driver.ask("facts")["executors"] == len(cluster.cores), "executor in its place")
    facts = driver.ask("facts")
    assert (facts["cores"], facts["executors"]) == (sum(cluster.cores), len(cluster.cores))
    bad = driver.ask("sql", "SHOW LOAD ERRORS FOR far")
    assert len(bad) == inbox.files, bad
    check_no_key(cluster, driver, facts)


def check_no_key(cluster: SparkCluster, driver: Driver, facts: dict[str, str]) -> None:
    """Neither in settings, command lines and environments of Spark's processes, nor in pages, logs and files."""
    assert MARK not in repr(facts["settings"])
    processes = [process.pid for process in cluster.processes.values()] + [int(facts["java"])]
    processes += [child for pid in list(processes) for child in descendants(pid)]
    known = {pid: known_to(pid) for pid in processes}
    assert sum(b"Executor" in each for each in known.values()) >= 2
    assert not [pid for pid, each in known.items() if MARK.encode() in each]
    shown = list(pages(cluster, facts["ui"]))
    assert len(shown) > 6
    assert not [url for url, page in shown if MARK in page]
    assert any("spark.authenticate" in page for _, page in shown)
    cluster_secret = cluster.secret_file.read_text()
    assert not [url for url, page in shown if cluster_secret in page]
    written = [path for path in cluster.folder.rglob("*") if path.is_file() and path.suffix in ("", ".log")]
    assert not [path for path in written if MARK.encode() in path.read_bytes()]
    assert MARK not in driver.log


def known_to(pid: int) -> bytes:
    with suppress(OSError):  # It ended meanwhile.
        return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline"))
    return b""


def pages(cluster: SparkCluster, ui: str) -> Iterator[tuple[str, str]]:
    """What Spark shows: of the application, of the master, of the workers."""
    roots = [ui] + [
        found[1]
        for name in cluster.processes
        if (found := re.search(r"WebUI to .*started at (http://\S+)", cluster.log(name)))
    ]
    urls = [f"{root}/{page}" for root in roots[1:] for page in ("", "json/")]
    urls += [f"{ui}/{page}/" for page in ("jobs", "stages", "storage", "environment", "executors", "SQL")]
    with urllib.request.urlopen(f"{ui}/api/v1/applications", timeout=10) as answer:
        name = re.findall(r'"id" : "([^"]+)"', answer.read().decode())[0]
    urls += [f"{ui}/api/v1/applications/{name}/{page}" for page in ("environment", "jobs", "sql?planDescription=true")]
    for url in urls:
        with urllib.request.urlopen(url, timeout=10) as answer:
            yield url, answer.read().decode()

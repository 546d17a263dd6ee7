"""What a cluster shows of jobs, and what it must not: attempts of stages and tasks, and nowhere a key."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lading.pipeline.archive import MANIFEST
from lading.testing.marked import MARK
from tests.support.cluster_driver import Driver
from tests.support.spark_cluster import SparkCluster, descendants

UI = {"spark.ui.enabled": "true", "spark.ui.port": "0"}
"""Settings of a driver of which these functions are asked."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """What Spark tells of the work of an application."""

    stages: int
    """Those that ran."""
    retried: int
    """Those of them that were attempted more than once, because what they read was gone."""
    speculative: int
    """Second attempts of tasks that ran beside the first."""
    fetch_failures: int
    """Tasks that did not find what a task before them had written."""


def attempts_of(driver: Driver) -> Attempts:
    """By Spark's own REST interface."""
    ui = driver.ask("facts")["ui"]
    told = [stage for stage in stages_of(ui) if stage["status"] != "SKIPPED"]
    tasks = [task for stage in told for task in stage.get("tasks", {}).values()]
    return Attempts(
        stages=len({stage["stageId"] for stage in told}),
        retried=len({stage["stageId"] for stage in told if stage["attemptId"] > 0}),
        speculative=sum(task["speculative"] for task in tasks),
        fetch_failures=sum("FetchFailed" in task.get("errorMessage", "") for task in tasks),
    )


def stages_of(ui: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(get(f"{application(ui)}/stages?details=true"))
    return found


def application(ui: str) -> str:
    """Where Spark tells of the application."""
    return f"{ui}/api/v1/applications/{json.loads(get(f'{ui}/api/v1/applications'))[0]['id']}"


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return str(answer.read().decode())


def check_no_key(cluster: SparkCluster, driver: Driver, facts: dict[str, str]) -> None:
    """Neither in settings, command lines and environments of Spark's processes, nor in pages, logs and files."""
    assert MARK not in repr(facts["settings"])
    processes = [process.pid for process in cluster.processes.values()] + [int(facts["java"])]
    processes += [child for pid in list(processes) for child in descendants(pid)]
    known = {pid: known_to(pid) for pid in processes}
    assert sum(b"Executor" in each for each in known.values()) >= 2
    assert not [pid for pid, each in known.items() if MARK.encode() in each]
    shown = list(pages(cluster, facts["ui"]))
    assert len(shown) > 12
    assert not [url for url, page in shown if MARK in page]
    assert any("spark.authenticate" in page for _, page in shown)
    cluster_secret = cluster.secret_file.read_text()
    assert not [url for url, page in shown if cluster_secret in page]
    written = list(files_of(cluster.folder))
    assert {"stderr", "worker-0.log", "master.log"} <= {path.name for path in written}
    assert not [path for path in written if holds_key(path)]
    assert MARK not in driver.log


def files_of(folder: Path) -> Iterator[Path]:
    """All of a cluster: logs, work folders, what is spilled and shuffled; but for the archive, which is the same for
    all jobs."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink() and not (path / MANIFEST).exists() and path.name != "bare":
            yield from files_of(path)
        elif path.is_file() and not path.name.endswith(".tar.gz"):
            yield path


def holds_key(path: Path) -> bool:
    with suppress(OSError):  # It was removed meanwhile.
        return MARK.encode() in path.read_bytes()
    return False


def known_to(pid: int) -> bytes:
    with suppress(OSError):  # It ended meanwhile.
        return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline"))
    return b""


def pages(cluster: SparkCluster, ui: str) -> Iterator[tuple[str, str]]:
    """What Spark shows: of the application with its last job, stage and query, of the master, of the workers."""
    roots = [
        found[1]
        for name in cluster.processes
        if (found := re.search(r"WebUI to .*started at (http://\S+)", cluster.log(name)))
    ]
    urls = [f"{root}/{page}" for root in roots for page in ("", "json/")]
    urls += [f"{ui}/{page}/" for page in ("jobs", "stages", "storage", "environment", "executors", "SQL")]
    told = application(ui)
    for number in {stage["stageId"] for stage in stages_of(ui) if stage["status"] != "SKIPPED"}:
        urls.append(f"{ui}/stages/stage/?id={number}&attempt=0")
    for what, page in (("jobs", "jobs/job"), ("sql", "SQL/execution")):
        numbers = [each["jobId" if what == "jobs" else "id"] for each in json.loads(get(f"{told}/{what}"))]
        urls += [f"{ui}/{page}/?id={number}" for number in numbers]
    urls += [
        f"{told}/{page}"
        for page in ("environment", "jobs", "allexecutors", "stages?details=true", "sql?planDescription=true")
    ]
    for url in urls:
        yield url, get(url)

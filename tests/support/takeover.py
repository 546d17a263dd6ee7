"""Two `lading serve` on Spark that share a store in PostgreSQL: one is killed in a batch, the other goes on."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from lading.service.facade import Lading
from lading.store.store import Store

NAMES = ("a", "b")
"""Jobs, one for each of the services: so the one that is left is warm."""
BATCH_FILES = 2
PATIENCE_S = 240.0
SERVE = "from lading.cli.main import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """One kill."""

    leased_s: float
    """From the signal until the other service has the job."""
    committed_s: float
    """From the signal until its first commit with rows."""


class Pair:
    """Two services, their store, and an inbox for each job whose backlog is read in small batches."""

    def __init__(self, folder: Path, store_url: str) -> None:
        self._folder = folder
        self._store_url = store_url
        key = base64.urlsafe_b64encode(os.urandom(32)).decode()
        self._environment = {**os.environ, "LADING_SECRET_KEY": key, "LADING_FILE_SETTLE_SECONDS": "0"}
        self._sent = dict.fromkeys(NAMES, 0)
        self._services: dict[str, subprocess.Popen[bytes]] = {}
        self._maker: Lading | None = None

    def __enter__(self) -> Self:
        os.environ["LADING_SECRET_KEY"] = self._environment["LADING_SECRET_KEY"]
        self._maker = Lading(self._folder / "maker", store_url=self._store_url)
        self._maker.sql("CREATE DATABASE shop")
        for job in NAMES:
            (self._folder / f"in_{job}").mkdir()
            self._maker.sql(
                f"CREATE TABLE shop.{job} (id BIGINT, city STRING) USING delta LOCATION '{self.table(job)}';"
                f'CREATE JOB {job} PROPERTIES ("s3.max_batch_files"="{BATCH_FILES}", "max_interval"="1") ON STREAMING '
                f"DO INSERT INTO shop.{job} SELECT id, upper(city) FROM "
                f'FILE("uri"="{self._folder}/in_{job}/*.csv", "format"="csv_with_names", "column_separator"=",")'
            )
        for name in ("one", "two"):
            self.start(name)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._services.values():
            _end(process)
        if self._maker is not None:
            self._maker.close()
        os.environ.pop("LADING_SECRET_KEY", None)

    @property
    def store(self) -> Store:
        assert self._maker is not None
        return self._maker.store

    def table(self, job: str) -> Path:
        return self._folder / "lake" / job

    def sent(self, job: str) -> int:
        """Rows that were put into the inbox: their ids are the numbers below it."""
        return self._sent[job]

    def send(self, job: str, files: int, rows: int) -> None:
        """More backlog."""
        for _ in range(files):
            first = self._sent[job]
            draft = self._folder / "draft"
            draft.write_text("id,city\n" + "".join(f"{each},essen\n" for each in range(first, first + rows)))
            draft.rename(self._folder / f"in_{job}" / f"{first:09}.csv")
            self._sent[job] += rows

    def start(self, name: str) -> None:
        """`lading serve`, in a group of processes of its own."""
        words = ["serve", "--init", "--home", str(self._folder / name), "--store", self._store_url]
        # A setting of Spark: batches go there from the first on.
        words += ["--mysql-port", "0", "--http-port", "0", "--spark-conf", "spark.sql.shuffle.partitions=2"]
        with (self._folder / f"{name}.log").open("ab") as log:
            self._services[name] = subprocess.Popen(
                [sys.executable, "-c", SERVE, *words],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_warm(self) -> None:
        """Each has a job, and has loaded rows of it since it has it."""
        wait_until(lambda: len(set(self._holders().values())) == len(NAMES), "each service has a job")
        before = {job: self.commits(job) for job in NAMES}
        for job in NAMES:
            wait_until(lambda job=job: self.commits(job) > before[job] + 1, f"job {job} loads")  # type: ignore[misc]

    def kill_holder(self, job: str) -> tuple[str, Takeover]:
        """Kill the service of a job with everything that it has started, in a batch. Which one it was."""
        holder = self._holders()[job]
        wait_until(lambda: self._is_in_batch(job), "a batch is running")
        (name,) = (name for name, process in self._services.items() if self._is_of(process, holder))
        began = time.perf_counter()
        _end(self._services.pop(name))
        before = self.commits(job)
        wait_until(lambda: self._holders().get(job) not in (None, holder), "the job is taken over")
        leased_s = time.perf_counter() - began
        wait_until(lambda: self.commits(job) > before, "the first commit of the other service")
        return name, Takeover(leased_s=leased_s, committed_s=time.perf_counter() - began)

    def commits(self, job: str) -> int:
        """With rows, by the log of the table."""
        return sum('{"add"' in path.read_text() for path in (self.table(job) / "_delta_log").glob("*.json"))

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def _holders(self) -> dict[str, str]:
        names = {stored.record.job_id: stored.record.name for stored in self.store.list_jobs()}
        return {names[job_id]: holder for job_id, holder in self.store.list_leases().items()}

    def _is_in_batch(self, job: str) -> bool:
        """A batch was begun, and is not committed yet."""
        record = next(stored.record for stored in self.store.list_jobs() if stored.record.name == job)
        return record.task is not None and record.task.started_at is not None

    def _is_of(self, process: subprocess.Popen[bytes], holder: str) -> bool:
        entries = self.store.list_services()
        return any(each.service_id == holder and os.getpgid(each.pid) == process.pid for each in entries)


def wait_until(is_met: Callable[[], bool], what: str) -> None:
    end_s = time.perf_counter() + PATIENCE_S
    while not is_met():
        if time.perf_counter() > end_s:
            msg = f"never came: {what}"
            raise RuntimeError(msg)
        time.sleep(0.02)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

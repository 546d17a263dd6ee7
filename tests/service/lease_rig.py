"""A store, a lake and an inbox that several homes share, and services in them, in this process or in others."""

from __future__ import annotations

import base64
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import deltalake
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lading.service.scheduling.scheduler import Scheduler
from lading.testing.marked import secret
from tests.console.local import LocalLading
from tests.store.postgres import PostgresServer
from tests.tables.s3_server import S3Server

LIMIT_S = 90.0
TAKEN_WITHIN_S = 15.0
LENIENT = (
    '"max_interval"="1", "session.insert_max_filter_ratio"="0.9", '
    '"session.enable_insert_strict"="false", "session.enable_strict_cast"="true"'
)
"""Jobs look often, and bad rows do not stop them."""
ROOT = Path(__file__).parent.parent.parent


def until(met: Callable[[], bool], what: str) -> float:
    """Wait for something that happens elsewhere; how long it took."""
    began = time.monotonic()
    while not met():
        assert time.monotonic() < began + LIMIT_S, f"never came: {what}"
        time.sleep(0.05)
    return time.monotonic() - began


class Worker:
    """`tests.support.lease_worker`: what it says is kept, and may be waited for."""

    def __init__(self, words: list[str]) -> None:
        command = [sys.executable, "-m", "tests.support.lease_worker", *words]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.logged: list[str] = []
        self.was_ready = False
        """It has said so, whether anybody waited for that or not."""
        self._said: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def wait_for(self, what: str, value: str = "") -> Any:
        """The next thing of a kind that it says."""
        while True:
            try:
                said = self._said.get(timeout=LIMIT_S)
            except queue.Empty:
                pytest.fail(f"the worker never said {what} {value}; it logged {self.logged}")
            if what in said and value in ("", said[what]):
                return said[what]
            assert "error" not in said, said

    def sql(self, statement: str) -> list[dict[str, Any]]:
        """Ask this service."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{statement}\n")
        self.process.stdin.flush()
        rows: list[dict[str, Any]] = self.wait_for("rows")
        return rows

    def try_sql(self, statement: str) -> list[dict[str, Any]] | None:
        """Ask this service; None when it could not answer."""
        with suppress(AssertionError):
            return self.sql(statement)
        return None

    def wake(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self._reading.join()
        for end in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                end.close()  # type: ignore[union-attr]  # both are pipes

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            self.logged += [said["log"]] if "log" in said else []
            self.was_ready |= said.get("at") == "ready"
            self._said.put(said)


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

    def worker(self, name: str, *more: str) -> Worker:
        """A service in another process; it is there when this returns."""
        worker = Worker([str(self.path / name), self.store, *more])
        self._stack.callback(worker.close)
        worker.wait_for("at", "ready")
        return worker

    def make(self, *jobs: str) -> None:
        with self.home("maker") as lading:
            lading.sql("CREATE DATABASE shop")
            for job in jobs:
                self.make_job(lading, job)

    def make_job(self, lading: LocalLading, job: str) -> None:
        """With its inbox and its table."""
        (self.path / f"in_{job}").mkdir()
        lading.sql(f"CREATE TABLE shop.{job} (id BIGINT) USING {self.form} {self._place(job)}")
        lading.sql(
            f"CREATE JOB {job} PROPERTIES({LENIENT}) ON STREAMING DO INSERT INTO shop.{job} SELECT id "
            f'FROM FILE("uri"="{self.path}/in_{job}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )

    def put(self, job: str, name: str, first: int, count: int, *bad: str) -> None:
        draft = self.path / "draft"
        draft.write_text("id\n" + "".join(f"{row}\n" for row in (*range(first, first + count), *bad)))
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


def has(lading: LocalLading, job: str) -> bool:
    """Whether this service runs a job. Before its first round it has no id and the job no holder: that is no yes."""
    holder = holders(lading).get(job)
    return holder is not None and holder == lading.leases.service_id

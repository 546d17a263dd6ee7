"""The disk of the metadata store is full: health, metrics and the job say so, and nothing is lost or doubled."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from lading import failpoints
from lading.clock import SystemClock
from lading.errors import StoreError
from lading.http.app import create_app
from lading.http.hosts import Hosts
from lading.http.middleware import DoorRules
from lading.jobs.record import JobRecord
from lading.service.runtime.store_health import StoreHealth
from lading.service.scheduling.scheduler import Scheduler
from lading.service.telemetry.log_watch import LogWatch
from lading.service.telemetry.metrics import Metrics
from lading.store.store import Store, open_store
from tests.console.local import LocalLading

LIMIT_S = 60.0


class Disk:
    """A small disk of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        for size in (1 << 16, 1 << 12, 1):
            with (self.path / "filler").open("ab", buffering=0) as file:
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def free(self) -> None:
        (self.path / "filler").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    place = tmp_path / "disk"
    place.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m,mode=0700", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("A FULL DISK IS NOT TESTED: no tmpfs can be mounted here; run as root")
    yield Disk(place)
    subprocess.run(["umount", str(place)], check=True)


class Service:
    """A home on the small disk, its table and its files on another."""

    def __init__(self, disk: Disk, elsewhere: Path) -> None:
        self.inbox = elsewhere / "in"
        self.inbox.mkdir()
        self.lading = LocalLading(disk.path / "home", user="tester")
        self.lading.sql(
            f"CREATE TABLE t (id BIGINT, city STRING) USING delta LOCATION '{elsewhere / 'lake'}';"
            'CREATE JOB j PROPERTIES("max_interval"="1") ON STREAMING DO INSERT INTO t SELECT id, city FROM '
            f'FILE("uri"="{self.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )
        health = StoreHealth(self.lading.store, self.lading.clock, every_s=0.0)
        self.metrics = Metrics(self.lading.store, self.lading.clock, health=health)
        self.lading.watches.append(self.metrics)
        rules = DoorRules(hosts=Hosts(names=frozenset({"testserver"})))
        self.client = TestClient(create_app(self.lading, metrics=self.metrics, rules=rules))

    def put(self, name: str, first: int) -> None:
        rows = "".join(f"{number},essen\n" for number in range(first, first + 10))
        (self.inbox / name).write_text("id,city\n" + rows)

    def run(self) -> None:
        self.lading.runner(self.lading.job("j").job_id).run_once()

    def metric(self, name: str) -> float:
        lines = self.client.get("/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith(name)).rpartition(" ")[2])

    def shown(self) -> tuple[str, str, str]:
        """What the API and SQL show of the job's errors, and the state."""
        told = self.client.get("/api/jobs/j").json()["job"]
        (row,) = self.lading.sql('SELECT Status, ErrorMsg FROM jobs("type"="insert")')[0].rows
        return told["last_error"], str(row[1]), str(row[0])

    def ids(self) -> list[int]:
        found = self.lading.catalog.open_table("default", "t").scan().to_pylist()
        return sorted(row["id"] for row in found)


@pytest.fixture
def service(disk: Disk, tmp_path: Path) -> Iterator[Service]:
    made = Service(disk, tmp_path)
    yield made
    made.lading.close()


def test_a_full_disk_is_told_everywhere_and_loses_nothing(disk: Disk, service: Service) -> None:
    service.put("a.csv", 0)
    service.run()
    assert service.client.get("/readyz").status_code == 200
    assert service.metric("lading_store_up") == 1
    assert service.metric("lading_unrecorded_batches_total") == 0

    disk.fill()
    service.put("b.csv", 10)
    with pytest.raises(StoreError):
        service.run()
    ready = service.client.get("/readyz")
    assert ready.status_code == 503
    assert "full" in ready.json()["error"]["message"]
    assert service.client.get("/healthz").status_code == 200
    assert service.metric("lading_store_up") == 0
    assert service.metric("lading_unrecorded_batches_total") == 1
    last_error, error_message, _ = service.shown()
    assert "could not be recorded" in last_error
    assert "full" in last_error
    assert "could not be recorded" in error_message

    # It is not opened again and again: that would commit to the table each time.
    service.lading.drop_runner(service.lading.job("j").job_id)
    version = service.lading.catalog.open_table("default", "t").version()
    for _ in range(3):
        with pytest.raises(StoreError):
            service.run()
    assert service.lading.catalog.open_table("default", "t").version() == version
    assert service.metric("lading_unrecorded_batches_total") == 1

    disk.free()
    service.run()
    service.run()
    assert service.ids() == list(range(20))
    assert service.lading.verify("j").is_clean
    assert service.client.get("/readyz").status_code == 200
    assert service.metric("lading_store_up") == 1
    assert "could not be recorded" not in "".join(service.shown())


def test_a_commit_that_cannot_be_followed_is_recorded_when_the_disk_has_room_again(
    disk: Disk, service: Service
) -> None:
    """The disk fills up between the commit and what the store is told of it."""
    service.put("a.csv", 0)
    service.run()
    failpoints.arm("follow.before", lambda _name: disk.fill())
    service.put("b.csv", 10)
    try:
        with pytest.raises(StoreError):
            service.run()
    finally:
        failpoints.disarm_all()
    assert service.ids() == list(range(20))  # It is in the table.
    assert service.metric("lading_unrecorded_batches_total") == 1
    assert "could not be recorded" in service.shown()[0]
    service.lading.drop_runner(service.lading.job("j").job_id)
    disk.free()
    service.run()
    assert service.ids() == list(range(20))
    record = service.lading.job("j")
    assert record.totals is not None
    assert record.totals.rows.loaded == 20
    assert service.lading.store.read_totals()[record.job_id].rows.loaded == 20


class Hears(LogWatch):
    """Waits for the first batch that cannot be recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.it = threading.Event()

    def unrecorded(self, record: JobRecord) -> None:
        self.it.set()


def test_the_scheduler_goes_on_by_itself(disk: Disk, service: Service) -> None:
    service.put("a.csv", 0)
    disk.fill()
    hears = Hears()
    service.lading.watches.append(hears)
    scheduler = Scheduler(service.lading, workers=2)
    scheduler.start()
    try:
        assert hears.it.wait(LIMIT_S)
        assert scheduler.is_alive
    finally:
        scheduler.close(5.0)


class SlowStore:
    """A store that does not answer until it is let go."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.let_go = threading.Event()
        self.writes = 0

    def write_setting(self, key: str, value: str) -> None:
        self.writes += 1
        assert self.let_go.wait(LIMIT_S)
        self._store.write_setting(key, value)


def test_a_store_that_hangs_is_away_and_nobody_waits_twice(tmp_path: Path) -> None:
    clock = SystemClock()
    with open_store(str(tmp_path / "store.db"), clock) as store:
        slow = SlowStore(store)
        health = StoreHealth(slow, clock, every_s=0.0, within_s=0.05)  # type: ignore[arg-type]  # one method is asked
        for _ in range(5):
            state = health.check()
            assert state.is_hanging
            assert "not answered" in state.said
        assert slow.writes == 1
        slow.let_go.set()
        healthy = StoreHealth(store, clock)
        assert healthy.check().is_ok


def test_asking_often_writes_seldom(tmp_path: Path) -> None:
    clock = SystemClock()
    with open_store(str(tmp_path / "store.db"), clock) as store:
        slow = SlowStore(store)
        slow.let_go.set()
        health = StoreHealth(slow, clock, every_s=3600.0)  # type: ignore[arg-type]  # one method is asked
        assert all(health.check().is_ok for _ in range(50))
        assert slow.writes == 1

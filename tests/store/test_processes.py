"""Many threads and processes on one store; processes that die in the middle."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from lading.clock import SystemClock
from lading.errors import ConflictError, JobChangedError
from lading.ids import JobId
from lading.store.database import Database
from lading.store.store import Store, open_store
from lading.tables.iceberg.postgres import with_limits
from tests.store.conftest import OpenStore
from tests.store.postgres import PostgresServer
from tests.store.samples import bill, job
from tests.support.fault_proxy import serve_faults

WRITERS = 4
ROUNDS = 10

DIE_IN_A_TRANSACTION = """
import os, sys
from sqlalchemy import insert
from lading.store.database import Database
from lading.store.schema import SETTINGS

database = Database(sys.argv[1])
with database.write("Dying") as connection:
    connection.execute(insert(SETTINGS).values(key="half", value="done"))
    os._exit(9)
"""


def all_at_once(work: Callable[[int], bool]) -> int:
    """How many of the writers succeeded."""
    with ThreadPoolExecutor(WRITERS) as pool:
        return sum(pool.map(work, range(WRITERS)))


def test_no_change_is_lost_when_many_write(store: Store, open_another: OpenStore) -> None:
    record = job()
    store.create_job(record)
    stores = [open_another() for _ in range(WRITERS)]

    def count_up(number: int) -> bool:
        for _ in range(ROUNDS):
            while not try_count_up(stores[number], record.job_id):
                pass
        return True

    assert all_at_once(count_up) == WRITERS
    found = store.load_job_by_id(record.job_id)
    assert (found.record.failures, found.version) == (WRITERS * ROUNDS, WRITERS * ROUNDS + 1)


def try_count_up(store: Store, job_id: JobId) -> bool:
    found = store.load_job_by_id(job_id)
    try:
        store.save_job(replace(found.record, failures=found.record.failures + 1), found.version)
    except JobChangedError:
        return False
    return True


def test_one_of_many_gets_the_name(open_another: OpenStore) -> None:
    stores = [open_another() for _ in range(WRITERS)]

    def create(number: int) -> bool:
        try:
            stores[number].create_job(job())
        except ConflictError:
            return False
        return True

    assert all_at_once(create) == 1


def test_many_may_follow_the_same_bills(open_another: OpenStore) -> None:
    stores = [open_another() for _ in range(WRITERS)]

    def follow(number: int) -> bool:
        for seq in range(ROUNDS):
            stores[number].follow(bill(seq))
        return True

    assert all_at_once(follow) == WRITERS
    assert [entry.seq for entry in stores[0].list_bills(bill(0).job_id)] == list(range(ROUNDS))[::-1]


def test_many_may_open_a_new_store_at_once(open_another: OpenStore) -> None:
    assert all_at_once(lambda _number: open_another().list_jobs() == []) == WRITERS


def test_a_new_file_may_be_opened_by_many_in_the_same_moment(tmp_path: Path) -> None:
    gate = threading.Barrier(WRITERS)

    def open_one(place: str) -> bool:
        gate.wait()
        with open_store(place, SystemClock()) as found:
            return found.list_jobs() == []

    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        with ThreadPoolExecutor(WRITERS) as pool:
            assert all(pool.map(open_one, [str(folder / "metadata.db")] * WRITERS))


def test_a_process_that_dies_in_a_transaction_leaves_nothing(store: Store, url: str) -> None:
    done = subprocess.run([sys.executable, "-c", DIE_IN_A_TRANSACTION, url], check=False)
    assert done.returncode == 9
    assert store.read_setting("half") is None
    store.write_setting("half", "whole")


def test_a_store_that_cannot_be_reached_says_so_without_the_password(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from lading.errors import StoreError\n"
        "from lading.store.store import open_store\n"
        "from lading.clock import SystemClock\n"
        "try:\n"
        "    open_store(sys.argv[1], SystemClock())\n"
        "except StoreError as error:\n"
        "    print(error.retry, error)\n"
    )
    url = f"postgresql://ann:hush@/x?host={tmp_path}"
    done = subprocess.run([sys.executable, "-c", code, url], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("True Migration 1 failed")
    assert "hush" not in done.stdout


def test_a_server_that_is_gone_without_a_word_is_waited_for_for_seconds_and_not_for_hours(
    postgres: PostgresServer,
) -> None:
    """Of the store, and of the catalog that may be beside it. What a URL says holds."""
    options = postgres.fresh_url().partition("&options=")[2]
    with serve_faults(postgres.socket, "tcp") as proxy:
        url = f"postgresql://lading@127.0.0.1:{proxy.port}/postgres?keepalives_idle=7&options={options}"
        database = Database(url)
        catalog = create_engine(with_limits(database.shared_url), poolclass=NullPool)
        for engine in (database._engine, catalog):
            with engine.connect() as connection:
                driver = connection.connection.driver_connection
                assert driver is not None
                with socket.socket(fileno=os.dup(driver.fileno())) as there:
                    assert there.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 7
                    assert there.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 3
                    assert there.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000
        database.close()

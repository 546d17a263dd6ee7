"""The trial of a catalog: many commits, an engine that inserts at the same time, and a catalog that is killed."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog

from lading.service.scheduling.scheduler import Scheduler
from tests.service.conftest import Desk
from tests.service.test_catalog_matrix import Adopted
from tests.service.test_rollbacks import LocalDesk
from tests.store.postgres import NoPostgresError, serve_postgres
from tests.support.jvm_engine import EngineError, JvmEngine
from tests.support.lakes import in_postgres, rest_lake
from tests.support.maven import JarsMissingError
from tests.support.rest_catalog import RestServer, free_port, serve_rest

pytestmark = [pytest.mark.slow, pytest.mark.java]

COMMITS, INSERTS, ROWS = 120, 60, 50
KILLS = (30, 60, 90)
_PATIENCE_S = 180.0


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[RestServer]:
    # Not in SQLite, as elsewhere: killed in the middle of a write, it says SQLITE_BUSY to every commit for minutes.
    try:
        with serve_postgres(free_port()) as postgres, serve_rest(tmp_path / "rest", in_postgres(postgres)) as server:
            yield server
    except (JarsMissingError, NoPostgresError) as error:
        pytest.skip(f"NOT PROVED, no REST catalog: {error}")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = LocalDesk(tmp_path)
    yield made
    made.lading.close()


class Inserter(threading.Thread):
    """Inserts one row after the other through the JVM, and writes down which were confirmed."""

    def __init__(self, table: Adopted) -> None:
        super().__init__(daemon=True)
        self._table = table
        self._ended = threading.Event()
        self.confirmed: list[int] = []
        self.unsure: list[int] = []
        """The engine said that they failed; the catalog may have them all the same."""

    def run(self) -> None:
        number = -1
        while not self._ended.is_set():
            number -= 1
            try:
                self._table.sql(f"INSERT INTO {{t}} VALUES ({number}, 'jvm', NULL)")
                self.confirmed.append(number)
            except EngineError:
                self.unsure.append(number)
            self._ended.wait(0.2)

    def end(self) -> None:
        self._ended.set()
        self.join()


class Trial:
    """A job that loads file after file."""

    def __init__(self, desk: Desk, rest: RestServer, table: Adopted) -> None:
        self._desk, self._rest, self._table = desk, rest, table
        self._theirs = RestCatalog("theirs", uri=rest.url, **{"header.Connection": "close"})

    def loads(self) -> int:
        """Commits of Lading with rows, as the history of the table has them."""
        found = self._theirs.load_table(f"{self._table.database}.orders").metadata.snapshots
        ours = [each.summary for each in found if each.summary and "lading.bill" in each.summary.additional_properties]
        return sum(1 for summary in ours if int(summary.get("added-records") or 0))

    def wait_for_more(self, before: int) -> None:
        wait_until(lambda: self.loads() > before, "the next commit")

    def put(self, number: int) -> None:
        self._desk.put_orders(f"{number:05d}.csv", number * ROWS, ROWS)

    def kill_during(self, number: int) -> None:
        """The catalog dies at some moment while a file is loaded, and stays away until the job has noticed."""
        self.put(number)
        time.sleep(secrets.randbelow(300) / 1000)  # Any moment: that is the trial.
        self._rest.kill()
        self.put(number + 1)
        wait_until(lambda: self._desk.show("Status") == "PAUSED", "the job notices")
        self._rest.start()


def wait_until(met: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not met():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.05)


def test_many_commits_beside_an_engine_and_three_kills(desk: Desk, rest: RestServer, jvm: JvmEngine) -> None:
    table = Adopted(rest_lake(rest), jvm, 2)
    desk.sql(table.lake.statement)
    desk.create(target=f"lake.{table.database}.orders", properties='"max_interval"="1"')
    trial, other, service = Trial(desk, rest, table), Inserter(table), Scheduler(desk.lading)
    service.start()
    other.start()
    files = 0
    try:
        kills = list(KILLS)
        while (loads := trial.loads()) < COMMITS or len(other.confirmed) < INSERTS:
            if kills and loads >= kills[0]:
                kills.pop(0)
                trial.kill_during(files)
                files += 2
            else:
                trial.put(files)
                files += 1
            trial.wait_for_more(loads)
        wait_until(lambda: counted(table)[files * ROWS - 1] == 1, "the last file")
    finally:
        other.end()
        service.close()
    found = counted(table)
    assert {number: found[number] for number in range(files * ROWS)} == dict.fromkeys(range(files * ROWS), 1)
    assert all(found[number] == 1 for number in (-1, *other.confirmed))
    assert all(found[number] <= 1 for number in other.unsure)
    assert set(found) <= {-1, *other.confirmed, *other.unsure, *range(files * ROWS)}
    assert desk.lading.verify("j").is_clean
    print(
        f"\n{trial.loads()} commits of Lading with {files * ROWS} rows, {len(other.confirmed)} inserts of the JVM "
        f"that were confirmed and {len(other.unsure)} that were not, {len(KILLS)} kills of the catalog: every row once"
    )


def counted(table: Adopted) -> Counter[int]:
    """How often the JVM finds each number."""
    return Counter(int(row["id"]) for row in table.sql("SELECT id FROM {t}"))

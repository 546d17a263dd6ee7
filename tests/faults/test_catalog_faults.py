"""Iceberg's REST catalog that delays, cuts, refuses and loses answers, apart from the files and from the store."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.faults.rig import Service, tell_counts
from tests.support.fault_proxy import REST_FAULTS, FaultProxy, Weather, serve_faults
from tests.support.maven import JarsMissingError
from tests.support.rest_catalog import RestServer, serve_rest

pytestmark = pytest.mark.java
ROWS = 5
SEEDS = int(os.environ.get("LADING_TEST_FAULT_SEEDS", "12"))
COMMIT = r"^POST \S*/tables/\w+ "


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    try:
        with serve_rest(tmp_path_factory.mktemp("rest")) as server:
            yield server
    except JarsMissingError as error:
        pytest.skip(str(error))


class CatalogService(Service):
    """Its table is one of the catalog, read by somebody else past the proxy."""

    def __init__(self, home: Path, rest: RestServer, namespace: str) -> None:
        super().__init__(home)
        self.namespace = namespace
        self._theirs = RestCatalog("theirs", uri=rest.url, **{"header.Connection": "close"})
        self._theirs.create_namespace(namespace)

    def ids(self, table: str = "t") -> list[int]:
        newest = self._theirs.load_table(f"{self.namespace}.{table}").metadata_location
        return sorted(polars.scan_iceberg(newest.replace("file:///", "/")).collect()["id"].to_list())


class Lake:
    """Files on a disk, a table whose catalog is behind the proxy, and a store that is not."""

    def __init__(self, rest: RestServer, proxy: FaultProxy, path: Path) -> None:
        self.proxy, self.inbox, self.files = proxy, path / "in", 0
        self.inbox.mkdir()
        self.service = CatalogService(path / "home", rest, f"n{uuid.uuid4().hex[:8]}")
        table = f"lake.{self.service.namespace}.t"
        self.put()
        self.service.sql(
            'CREATE CATALOG lake PROPERTIES ("type" = "iceberg", "iceberg.catalog.type" = "rest", '
            f'"uri" = "{proxy.endpoint}", "warehouse" = "file://{rest.warehouse}");'
            f"CREATE TABLE {table} (id BIGINT, city STRING) USING iceberg;"
            'CREATE JOB j PROPERTIES("max_interval"="1", "file.settle_seconds"="0") ON STREAMING DO '
            f'INSERT INTO {table} SELECT id, city FROM FILE("uri"="{self.inbox}/*.csv", "format"="csv_with_names", '
            '"column_separator"=",")'
        )

    def put(self) -> None:
        first = self.files * ROWS
        rows = "".join(f"{number},essen\n" for number in range(first, first + ROWS))
        (self.inbox / f"{self.files:03d}.csv").write_text(f"id,city\n{rows}")
        self.files += 1

    def check(self) -> None:
        """Once it is calm the job goes on by itself, and each row is there once."""
        self.proxy.calm()
        self.service.run_until(self.service.is_loaded(self.files * ROWS))
        self.service.turn()
        assert self.service.ids() == list(range(self.files * ROWS))
        assert self.service.lading.verify("j").is_clean
        assert "PAUSED" not in self.service.shown()


@pytest.fixture
def lake(rest: RestServer, tmp_path: Path) -> Iterator[Lake]:
    with serve_faults(rest.url, "rest") as proxy:
        made = Lake(rest, proxy, tmp_path)
        yield made
        proxy.calm()
        made.service.close()


def storm(lake: Lake, seed: int, rate: float) -> None:
    lake.proxy.set(Weather(rate=rate, faults=REST_FAULTS, seed=seed, delay_s=0.02))
    for _ in range(4):
        lake.put()
        lake.service.turn()
    lake.check()
    tell_counts("catalog", lake.proxy, lake.files * ROWS)
    assert sum(count for fault, count in lake.proxy.counts().items() if fault in REST_FAULTS) > 0


def test_lost_answers_and_an_outage_make_no_wrong_row_and_are_told(lake: Lake) -> None:
    lake.service.turn()
    for fault in ("lose", "late-error"):
        lake.put()
        lake.proxy.set(Weather(only=COMMIT, script=[fault]))
        lake.service.turn()
        assert lake.proxy.counts()[fault] == 1, "the commit went another way"
        lake.check()
    lake.service.forget()
    lake.proxy.set(Weather(is_down=True))
    lake.put()
    for _ in range(5):
        lake.service.turn()
    assert_told(lake)
    lake.check()


def assert_told(lake: Lake) -> None:
    """SHOW names the table, or the catalog when it was opened again at that moment, and says that it is away. The store
    is there: SHOW itself has no error.
    """
    told = next(told for told in lake.service.reasons if "PAUSED" in told)
    table = f"The catalog of the Iceberg table lake.{lake.service.namespace}.t did not answer"
    assert table in told or "The Iceberg catalog lake did not answer" in told
    assert "Check that the catalog runs and can be reached" in told
    assert lake.service.refusals == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", REST_FAULTS)
def test_a_fault_at_each_commit_makes_no_wrong_row(lake: Lake, fault: str) -> None:
    lake.service.turn()
    for _ in range(3):
        lake.put()
        lake.proxy.set(Weather(only=COMMIT, script=[fault] * 2))
        lake.service.turn()
    assert lake.proxy.counts()[fault] > 1
    lake.check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 1 + SEEDS))
def test_many_storms_make_no_wrong_row(lake: Lake, seed: int) -> None:
    storm(lake, seed, (0.05, 0.2, 0.4)[seed % 3])


@pytest.mark.slow
def test_a_scheduler_goes_on_by_itself_after_an_outage(lake: Lake) -> None:
    with lake.service.scheduled():
        lake.service.wait_until(lake.service.is_loaded(ROWS))
        lake.proxy.set(Weather(is_down=True))
        lake.put()
        lake.service.wait_until(lambda: any("PAUSED" in told for told in lake.service.reasons), 120)
        assert_told(lake)
        lake.proxy.calm()
        lake.service.wait_until(lake.service.is_loaded(2 * ROWS))
    lake.check()

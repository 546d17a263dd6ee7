"""PostgreSQL that is cut off and restarted under a service: its store, and its catalog of Iceberg tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.errors import LadingError
from tests.faults.rig import Service, tell_counts
from tests.store.conftest import postgres as postgres
from tests.store.postgres import PostgresServer
from tests.support.fault_proxy import TCP_FAULTS, FaultProxy, Weather, serve_faults

SEEDS = int(os.environ.get("LADING_TEST_FAULT_SEEDS", "12"))
ROWS = 5


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[FaultProxy]:
    with serve_faults(postgres.socket, "tcp") as made:
        yield made


class Shop:
    """A service whose store is a PostgreSQL behind the proxy; files and table are on a disk. Of an Iceberg table the
    pointer to its newest metadata is in that PostgreSQL as well: each commit goes through the proxy."""

    def __init__(self, postgres: PostgresServer, proxy: FaultProxy, path: Path, form: str = "delta") -> None:
        self.postgres, self.proxy, self.inbox = postgres, proxy, path / "in"
        self.inbox.mkdir()
        self.files = 0
        options = postgres.fresh_url().partition("&options=")[2]
        url = f"postgresql://lading@127.0.0.1:{proxy.port}/postgres?options={options}"
        self.service = Service(path / "home", store_url=url)
        self.put()
        self.service.sql(
            f"CREATE TABLE t (id BIGINT, city STRING) USING {form} LOCATION '{path / 'lake'}';"
            'CREATE JOB j PROPERTIES("max_interval"="1", "file.settle_seconds"="0") ON STREAMING DO INSERT INTO t '
            f'SELECT id, city FROM FILE("uri"="{self.inbox}/*.csv", "format"="csv_with_names", '
            '"column_separator"=",")'
        )

    def put(self) -> None:
        first = self.files * ROWS
        rows = "".join(f"{number},essen\n" for number in range(first, first + ROWS))
        (self.inbox / f"{self.files:03d}.csv").write_text(f"id,city\n{rows}")
        self.files += 1

    def check(self) -> None:
        self.proxy.calm()
        self.service.run_until(self.is_caught_up, 5 + self.files)
        assert self.service.ids() == list(range(self.files * ROWS))
        assert self.service.lading.verify("j").is_clean

    def is_caught_up(self) -> bool:
        """Whether the record says what was put."""
        try:
            totals = self.service.lading.job("j").totals
        except LadingError:
            return False
        return totals is not None and totals.rows.loaded == self.files * ROWS


@pytest.fixture
def shop(postgres: PostgresServer, proxy: FaultProxy, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(postgres, proxy, tmp_path)
    yield made
    proxy.calm()
    made.service.close()


@pytest.fixture
def iceberg(postgres: PostgresServer, proxy: FaultProxy, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(postgres, proxy, tmp_path, "iceberg")
    yield made
    proxy.calm()
    made.service.close()


def storm(shop: Shop, seed: int, rate: float) -> None:
    shop.proxy.set(Weather(rate=rate, faults=TCP_FAULTS, seed=seed, delay_s=0.01))
    for _ in range(5):
        shop.put()
        shop.service.turn()
    shop.check()
    tell_counts("store", shop.proxy, shop.files * ROWS)


@pytest.mark.parametrize(("seed", "rate"), [(1, 0.05), (3, 0.02)])
def test_connections_that_are_cut_make_no_wrong_row(shop: Shop, seed: int, rate: float) -> None:
    """Also none in the record: seed 3 cuts between a commit and what the store is told of it."""
    storm(shop, seed, rate)
    assert shop.proxy.counts()["cut"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 2 + SEEDS))
def test_many_cuts_make_no_wrong_row(shop: Shop, seed: int) -> None:
    storm(shop, seed, (0.02, 0.1, 0.3)[seed % 3])


def test_a_store_that_is_restarted_is_used_again_without_a_word(shop: Shop) -> None:
    shop.service.turn()
    for _ in range(2):
        shop.put()
        shop.postgres.restart()
        shop.service.turn()
    shop.check()


def test_an_outage_of_the_store_is_said_and_nothing_is_committed_blindly(shop: Shop) -> None:
    shop.service.run_until(shop.service.is_loaded(ROWS))
    version = shop.service.lading.catalog.open_table("default", "t").version()
    table = shop.service.lading.catalog.open_table("default", "t")
    shop.proxy.set(Weather(is_down=True))
    shop.put()
    for _ in range(4):
        shop.service.turn()
    assert table.version() == version
    assert_said_by_show(shop)
    shop.check()
    assert "PAUSED" not in shop.service.shown()


def assert_said_by_show(shop: Shop) -> None:
    """SHOW reads the store, and cannot: its own error says what is away, and what that leaves untouched."""
    refused = shop.service.refusals[-1]
    assert "metadata store" in refused
    assert "Progress is in the tables and is not touched" in refused
    assert shop.service.reasons == []


def test_a_scheduler_goes_on_by_itself_after_an_outage_of_the_store(shop: Shop) -> None:
    with shop.service.scheduled():
        shop.service.wait_until(shop.is_caught_up)
        shop.proxy.set(Weather(is_down=True))
        shop.put()
        shop.service.wait_until(lambda: len(shop.service.refusals) > 20)
        assert_said_by_show(shop)
        shop.proxy.calm()
        shop.service.wait_until(shop.is_caught_up)
    assert shop.service.ids() == list(range(shop.files * ROWS))
    assert shop.service.lading.verify("j").is_clean


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 6 + SEEDS))])
def test_a_catalog_whose_connections_are_cut_makes_no_wrong_row(iceberg: Shop, seed: int) -> None:
    """Also where the answer to a commit is lost: it is looked up, and not made twice."""
    storm(iceberg, seed, (0.05, 0.1, 0.3)[seed % 3])
    assert iceberg.proxy.counts()["cut"] + iceberg.proxy.counts()["lose"] > 0


def test_an_outage_of_the_catalog_is_said_and_over_when_it_is(iceberg: Shop) -> None:
    iceberg.service.run_until(iceberg.service.is_loaded(ROWS))
    iceberg.proxy.set(Weather(is_down=True))
    iceberg.put()
    for _ in range(4):
        iceberg.service.turn()
    assert_said_by_show(iceberg)
    iceberg.check()
    assert "PAUSED" not in iceberg.service.shown()
